"""A number in eight formats: every bit a box to click, the value as the formula, and what became of the number."""

import math
from collections.abc import Iterator
from fractions import Fraction

from course_utils.chapters.floats.float_lab.asked import Cast, Stored
from course_utils.core import floats
from course_utils.core.say import Number, listed
from course_utils.engine.labs.draw.lettering import fitted, key
from course_utils.engine.labs.draw.svg import picture, rect, switch, text
from course_utils.engine.labs.lab import View

NAMES = {name: f.label for name, f in floats.FORMATS.items()}
WIDTH, TOP, ROW = 1000, 28, 53
LEFT, BIT_WIDTH, BIT_HEIGHT, GAP = 60, 19, 20, 6
FRACTION_X = LEFT + 9 * BIT_WIDTH + GAP  # where every format's fraction begins
EVENT_X = 755


def view(cast: Cast, found: object) -> View:
    """The number in the formats that are asked for."""
    drawn = [key([(field, field) for field in ("sign", "exponent", "fraction")], LEFT, 14)]
    for number, fmt in enumerate(cast.named):
        y, name = TOP + ROW * number, NAMES[fmt]
        drawn.append(text(0, y + 15, name, class_="strong large"))
        if fmt in cast.stored:
            drawn += _row(cast.stored[fmt], y)
        else:
            words = f"{name} has no NaN: all {2 ** floats.FORMATS[fmt].bits} patterns are numbers"
            drawn.append(text(LEFT, y + 15, words, class_="alarm"))
    return View(picture(WIDTH, TOP + ROW * len(cast.named), *drawn), _meaning(cast))


def _row(stored: Stored, y: Number) -> Iterator[str]:
    """The bits and what became of the number; below them the formula, and the step to the next number."""
    yield from _bits(stored, y)
    alarming = stored.fate in ("too large", "too small")
    yield fitted(EVENT_X, y + 15, _event(stored), WIDTH, "alarm" if alarming else "faint")
    yield text(LEFT, y + 37, floats.formula(stored.bits, stored.fmt))
    if math.isfinite(stored.value):
        step = f"step {floats.spacing(stored.value, stored.fmt):.3g}"
        yield text(WIDTH, y + 37, step, class_="faint small end")


def _bits(stored: Stored, y: Number) -> Iterator[str]:
    """The bits as boxes. In all rows the fraction begins at the same place."""
    f = floats.FORMATS[stored.fmt]
    width = BIT_WIDTH if f.bits <= 32 else BIT_WIDTH / 2
    fields = ["sign", *["exponent"] * f.exponent_bits, *["fraction"] * f.fraction_bits]
    for place, field in zip(reversed(range(f.bits)), fields, strict=True):
        power = place - f.fraction_bits
        worth = (
            "one for minus"
            if field == "sign"
            else f"adds {2**power if power >= 0 else f'2^{power}'}"
        )
        x = FRACTION_X - (power + 1) * width - GAP * (power >= 0)
        bit = stored.bits >> place & 1
        box = rect(x, y, width - 1, BIT_HEIGHT, class_=field)
        digit = text(
            x + (width - 1) / 2, y + 15, str(bit), class_="middle" if width > 10 else "middle small"
        )
        label = f"{NAMES[stored.fmt]} {field} bit, {worth}"
        yield switch(
            box, digit, key=f"{stored.fmt}:{place}", row=stored.fmt, label=label, on=bit == 1
        )


# In words.


def _meaning(cast: Cast) -> str:
    """One sentence on all formats."""
    if cast.x != cast.x:
        said = "NaN is not a number: its exponent bits are all 1, and its fraction is not 0"
        return (
            f"{said}; in E4M3, all bits but the sign are 1." if "e4m3" in cast.named else f"{said}."
        )
    by_fate = {}
    for fmt, stored in cast.stored.items():
        by_fate.setdefault(stored.fate, []).append(NAMES[fmt])
    power = cast.times_two_to_the
    number = cast.number.strip() + (f" × 2^{power}" if power else "")
    named = {
        fate: "all eight" if len(some) == len(NAMES) else listed(some)
        for fate, some in by_fate.items()
    }
    said = [f"{fate} for {named[fate]}" for fate in ("too large", "too small") if fate in named]
    said += [f"rounded in {named['rounded']}"] if "exact" in named and "rounded" in named else []
    said += [f"exact in {named.get('exact', 'none of them')}"]
    return f"The number {number} is {'; '.join(said)}."


def _event(stored: Stored) -> str:
    """What storing the number did to it."""
    kind, value = floats.kind(stored.bits, stored.fmt), stored.value
    if stored.fate == "too large":
        return f"overflow: {f'held at {value:g}' if kind == 'normal' else kind}"
    if stored.fate == "too small":
        return "underflow: 0"
    if kind in ("NaN", "infinity"):
        return kind
    off = float(Fraction(value) - Fraction(stored.x))
    how = (
        "exact" if stored.fate == "exact" else f"error {off:+.3g}" if off else "error below 5e-324"
    )
    return f"subnormal, {how}" if kind == "subnormal" else how
