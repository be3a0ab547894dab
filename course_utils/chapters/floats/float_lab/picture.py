"""The picture of a number in eight formats, in which every bit is a box to click."""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from course_utils.chapters.floats.float_lab.asked import Cast, Stored, is_nan
from course_utils.core import floats
from course_utils.core.say import Number, listed
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.draw.lettering import fitted, key
from course_utils.engine.labs.draw.svg import picture, rect, switch, text
from course_utils.engine.labs.lab import View

NAMES = {name: f.label for name, f in floats.FORMATS.items()}
FIELDS = (template("sign"), template("exponent"), template("fraction"))
WIDTH = 1000
TOP = 26  # of the first format
ROW = 48  # from one format to the next
LEFT = 60
BIT_WIDTH = 19
BIT_HEIGHT = 20
GAP = 6  # between the exponent and the fraction
# Every format's fraction begins here. To its left there is room for a sign and 8 exponent bits; the
# 12 such bits of fp64 are drawn half as wide.
FRACTION_X = LEFT + 9 * BIT_WIDTH + GAP
EVENT_X = 755  # where the words on what storing changed begin


def view(cast: Cast, found: object) -> View:
    """Draw the number in each of the chosen formats.

    `found` is what every lab's view is given; this lab needs nothing beyond the answers.
    """
    # The key to the colours. A field's name is also the CSS class of its colour.
    drawn = [key([(field, translated(field)) for field in FIELDS], LEFT, 14)]
    for row, fmt in enumerate(cast.format_names):
        y = TOP + ROW * row
        drawn.append(text(0, y + 15, NAMES[fmt], class_="strong large"))
        if fmt in cast.stored:
            drawn += _row(cast.stored[fmt], y)
        else:
            patterns = 2 ** floats.FORMATS[fmt].bits
            words = translated(
                "{format} has no NaN: all {patterns} patterns are numbers",
                format=NAMES[fmt],
                patterns=patterns,
            )
            drawn.append(text(LEFT, y + 15, words, class_="alarm"))
    height = TOP + ROW * len(cast.format_names)
    return View(picture(WIDTH, height, *drawn), _meaning(cast))


def _row(stored: Stored, y: Number) -> Iterator[str]:
    """Draw one format: its bits, what storing changed, and below them the formula and the gap."""
    yield from _bits(stored, y)
    is_lost = stored.fate in ("too large", "too small")
    yield fitted(EVENT_X, y + 15, _event(stored), WIDTH, "alarm" if is_lost else "faint")
    yield text(LEFT, y + 35, floats.formula(stored.bits, stored.fmt))
    if math.isfinite(stored.value):
        spacing = floats.spacing(stored.value, stored.fmt)
        gap = translated("gap {gap}", gap=f"{spacing:.3g}")
        yield text(WIDTH, y + 35, gap, class_="faint small end")


def _bits(stored: Stored, y: Number) -> Iterator[str]:
    """Draw the bits as boxes. In all rows the fraction begins at the same place."""
    f = floats.FORMATS[stored.fmt]
    is_narrow = f.bits > 32  # so many bits do not fit in a row at the usual width
    width = BIT_WIDTH / 2 if is_narrow else BIT_WIDTH
    digit_class = "middle small" if is_narrow else "middle"
    for place in reversed(range(f.bits)):
        field = _field(place, f)
        power = place - f.fraction_bits  # the bit adds 2^power to its field
        x = FRACTION_X - (power + 1) * width  # the fraction begins with the bit of power -1
        if power >= 0:  # a bit of the exponent, or the sign
            x -= GAP
        bit = stored.bits >> place & 1
        yield switch(
            rect(x, y, width - 1, BIT_HEIGHT, class_=field),
            text(x + (width - 1) / 2, y + 15, str(bit), class_=digit_class),
            key=f"{stored.fmt}:{place}",
            row=stored.fmt,
            label=_spoken(NAMES[stored.fmt], field, power),
            on=bit == 1,
        )


def _field(place: int, f: floats.Format) -> str:
    """Return the field to which the bit at this place belongs; places count from the right."""
    if place < f.fraction_bits:
        return "fraction"
    if place < f.fraction_bits + f.exponent_bits:
        return "exponent"
    return "sign"


def _spoken(name: str, field: str, power: int) -> str:
    """Return what a screen reader says of a bit: its format and field, and what it adds."""
    if field == "sign":
        return translated("{format} sign bit, one for minus", format=name)
    worth = f"2^{power}" if power < 0 else 2**power
    if field == "exponent":
        return translated("{format} exponent bit, adds {worth}", format=name, worth=worth)
    return translated("{format} fraction bit, adds {worth}", format=name, worth=worth)


# In words.


def _meaning(cast: Cast) -> str:
    """Say in one sentence which formats store the number exactly, round it or lose it."""
    if is_nan(cast.x):
        if "e4m3" in cast.format_names:
            return translated(
                "NaN is not a number: its exponent bits are all 1, and its fraction is not 0; "
                "in E4M3, all bits but the sign are 1."
            )
        return translated(
            "NaN is not a number: its exponent bits are all 1, and its fraction is not 0."
        )
    number = cast.number.strip()
    if cast.times_two_to_the:
        number += f" × 2^{cast.times_two_to_the}"
    fates, *following = _fates(cast.stored)
    for fate in following:
        fates = translated("{fates}; {next}", fates=fates, next=fate)
    return translated("The number {number} is {fates}.", number=number, fates=fates)


def _fates(stored_by_format: Mapping[str, Stored]) -> Iterator[str]:
    """Yield what stands behind "is" for each fate, such as "too large for fp16".

    If the number is exact in none of them, those that round it are not listed: it is rounded in all
    that remain.
    """
    formats: dict[str, list[str]] = {}  # the names of the formats, by the number's fate in them
    for fmt, stored in stored_by_format.items():
        if stored.fate not in formats:
            formats[stored.fate] = []
        formats[stored.fate].append(NAMES[fmt])
    listed_by_fate = {fate: _listed_formats(names) for fate, names in formats.items()}
    if "too large" in formats:
        yield translated("too large for {formats}", formats=listed_by_fate["too large"])
    if "too small" in formats:
        yield translated("too small for {formats}", formats=listed_by_fate["too small"])
    if "exact" not in formats:
        yield translated("exact in none of them")
        return
    if "rounded" in formats:
        yield translated("rounded in {formats}", formats=listed_by_fate["rounded"])
    yield translated("exact in {formats}", formats=listed_by_fate["exact"])


def _listed_formats(names: Sequence[str]) -> str:
    """Return the names in a row, such as "fp16 and bf16"; "all eight" for all formats."""
    return translated("all eight") if len(names) == len(NAMES) else listed(names)


def _event(stored: Stored) -> str:
    """Return a few words on what storing changed, such as "overflow: infinity" or "exact"."""
    kind = floats.kind(stored.bits, stored.fmt)
    if stored.fate == "too large":
        # A saturating cast, and E2M1 always, stores the largest number. Others: infinity or NaN.
        if kind == "normal":
            return translated("overflow: held at {largest}", largest=f"{stored.value:g}")
        return (
            translated("overflow: infinity") if kind == "infinity" else translated("overflow: NaN")
        )
    if stored.fate == "too small":
        return translated("underflow: 0")
    if kind == "infinity":
        return translated("infinity")
    if kind == "NaN":
        return kind
    if kind == "subnormal":
        return translated("subnormal, {error}", error=_error(stored))
    return _error(stored)


def _error(stored: Stored) -> str:
    """Return in words how far the stored number is from the typed one, or "exact"."""
    if stored.fate == "exact":
        return translated("exact")
    error = float(Fraction(stored.value) - Fraction(stored.x))
    if error == 0:
        # The exact error is not 0, but as a float it is: 5e-324 is the smallest float above 0.
        return translated("error below 5e-324")
    return translated("error {error}", error=f"{error:+.3g}")
