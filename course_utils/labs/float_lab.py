"""One number in eight formats: type it, scale it, or flip single bits."""

import math
import re
from collections.abc import Iterator
from fractions import Fraction

import ipywidgets as widgets

from course_utils import floats, measure
from course_utils.labs.panel import Panel, Progress, View
from course_utils.labs.svg import button, picture, rect, text
from course_utils.quantities import Number

NAMES = {name: f.label for name, f in floats.FORMATS.items()}
PRESETS = ("0.15625", "0.1", "257", "464", "465", "65519", "65520", "1e-8", "2^-24", "inf", "nan")


def float_lab() -> Panel:
    """The float lab."""
    number = widgets.Text(
        "0.1", description="number", continuous_update=True, layout=widgets.Layout(width="260px")
    )
    times_two_to_the = widgets.IntSlider(
        0, -170, 140, description="times 2^k", layout=widgets.Layout(width="360px")
    )
    saturate = widgets.Checkbox(
        False, description="saturating casts", indent=False, layout=widgets.Layout(width="auto")
    )
    return Panel(
        "Float lab",
        show,
        {"number": number, "times_two_to_the": times_two_to_the, "saturate": saturate},
        presets={words: {"number": words, "times_two_to_the": 0} for words in PRESETS},
        jobs={"Check every pattern against torch and ml_dtypes": check_every_pattern},
        pick=flipped,
    )


# From what was typed to numbers.

_DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?"
_POWER = rf"(?:({_DECIMAL}) *[*×] *|([+-]?))2 *(?:\^|\*\*) *([+-]?\d{{1,4}})"
_PATTERN = rf"({'|'.join(floats.FORMATS)}) *(0x[0-9a-f]+|0b[01]+)"


def typed_number(words: str) -> float | Fraction:
    """What was typed, exactly: 0.1 is one tenth here, and no float yet.

    >>> typed_number("0.1"), typed_number("-3 * 2^-24"), typed_number("fp16 0x7c00")
    (Fraction(1, 10), Fraction(-3, 16777216), inf)
    """
    said = words.strip().lower().replace("−", "-")
    if len(said) > 60:
        raise ValueError(f"That is {len(said)} characters long; 60 are enough for any number here.")
    if match := re.fullmatch(_PATTERN, said, re.ASCII):
        return floats.decode(int(match[2], base=0), match[1])
    if match := re.fullmatch(_POWER, said, re.ASCII):
        return Fraction(match[1] or f"{match[2]}1") * Fraction(2) ** int(match[3])
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", said):
        return float(said)
    if re.fullmatch(_DECIMAL, said, re.ASCII):
        exact = Fraction(said)
        return exact if exact or not said.startswith("-") else -0.0  # a fraction has no negative zero
    raise ValueError(
        f"“{words.strip()}” is not a number yet. Type one like 0.15625, -3e-8, 2^-24, inf or nan, "
        "or a bit pattern like fp16 0x3c01."
    )


def pattern(words: str, x: float | Fraction, fmt: str, saturate: bool) -> int | None:
    """The format's bits for x; None where it cannot say NaN. A pattern typed in this format stays as it is."""
    match = re.fullmatch(_PATTERN, words.strip().lower(), re.ASCII)
    if match and match[1] == fmt and floats.kind(int(match[2], base=0), fmt) == "NaN":
        return int(match[2], base=0)
    if x != x and not floats.FORMATS[fmt].has_nan:
        return None
    return floats.encode(x, fmt, saturate=saturate)


def scaled(words: str, power: int) -> float | Fraction:
    """The typed number times 2^power."""
    x = typed_number(words)
    return Fraction(x) * Fraction(2) ** power if power and finite(x) and x else x


def finite(x: float | Fraction) -> bool:
    """Whether x is a number with an end; a fraction always is, even one beyond every float."""
    return isinstance(x, Fraction) or math.isfinite(x)


def flipped(key: str, number: str, times_two_to_the: int, saturate: bool) -> dict[str, object]:
    """The controls after one bit of one format has been flipped: a number, or a pattern where it is NaN."""
    fmt, place = key.split(":")
    bits = pattern(number, scaled(number, times_two_to_the), fmt, saturate)
    if bits is None:
        raise ValueError(f"{NAMES[fmt]} has no NaN, so there are no bits to flip. Type a number first.")
    bits ^= 1 << int(place)
    words = f"{fmt} 0x{bits:x}" if floats.kind(bits, fmt) == "NaN" else repr(floats.decode(bits, fmt))
    return {"number": words, "times_two_to_the": 0}


# From numbers to the picture.

LEFT, BIT_WIDTH, BIT_HEIGHT, LINE, WIDTH = 58, 19, 20, 18, 940
FRACTION_X = LEFT + 9 * BIT_WIDTH + 6  # where every format's fraction begins


def show(number: str, times_two_to_the: int, saturate: bool) -> View:
    """The number in all eight formats."""
    x = scaled(number, times_two_to_the)
    rows = {fmt: pattern(number, x, fmt, saturate) for fmt in floats.FORMATS}
    drawn = [
        text(LEFT, 14, "sign", class_="strong"),
        text(FRACTION_X - 6, 14, "exponent", class_="strong end"),
        text(FRACTION_X, 14, "fraction", class_="strong"),
        rect(LEFT, 18, 36, 4, class_="sign"),
        rect(FRACTION_X - 6 - 80, 18, 80, 4, class_="exponent"),
        rect(FRACTION_X, 18, 68, 4, class_="fraction"),
    ]
    y = 26
    for fmt, bits in rows.items():
        drawn.append(draw_row(fmt, bits, x, y))
        y += BIT_HEIGHT + LINE * lines_below(fmt) + 14
    words = number.strip() + (f" × 2^{times_two_to_the}" if times_two_to_the else "")
    return View(picture(WIDTH, y, *drawn), meaning(words, x, rows))


def lines_below(fmt: str) -> int:
    """Long formats say so much that it takes two lines."""
    return 2 if floats.FORMATS[fmt].bits >= 32 else 1


def draw_row(fmt: str, bits: int | None, x: float | Fraction, y: Number) -> str:
    """One format: its bits, and below them the value as the formula, the step and the neighbours."""
    name = text(0, y + 15, NAMES[fmt], class_="strong large")
    if bits is None:
        words = f"{NAMES[fmt]} has no NaN: all {2 ** floats.FORMATS[fmt].bits} patterns are numbers"
        return name + text(LEFT, y + 15, words, class_="alarm")
    event, alarming = what_happened(fmt, bits, x)
    value = floats.decode(bits, fmt)
    formula = floats.formula(bits, fmt) + (
        f" {equals(value)} {digits(value)}" if math.isfinite(value) else ""
    )
    first = y + BIT_HEIGHT + 16
    last = first + LINE * (lines_below(fmt) - 1)
    parts = [
        name,
        *draw_bits(fmt, bits, y),
        text(WIDTH, y + 15, event, class_="alarm end" if alarming else "faint end"),
        text(LEFT, first, formula),
        text(WIDTH, last, surroundings(fmt, bits), class_="faint end"),
    ]
    return "".join(parts)


def draw_bits(fmt: str, bits: int, y: Number) -> Iterator[str]:
    """Every bit as a box to click: sign and exponent end where the fraction begins."""
    f = floats.FORMATS[fmt]
    width = BIT_WIDTH if f.bits <= 32 else BIT_WIDTH / 2
    for place in reversed(range(f.bits)):
        in_fraction = place < f.fraction_bits
        steps = f.fraction_bits - place - 1
        x = FRACTION_X + steps * width - (0 if in_fraction else 6)
        if place == f.bits - 1:
            field, worth = "sign", "one for minus"
        elif in_fraction:
            field, worth = "fraction", f"adds 2^{place - f.fraction_bits}"
        else:
            field, worth = "exponent", f"adds {2 ** (place - f.fraction_bits)}"
        on = bits >> place & 1
        yield button(
            rect(x, y, width - 1, BIT_HEIGHT, class_=field),
            text(x + (width - 1) / 2, y + 15, str(on), class_="middle" if width > 10 else "middle tiny"),
            key=f"{fmt}:{place}",
            row=fmt,
            label=f"{NAMES[fmt]} {field} bit, {worth}",
            on=bool(on),
        )


def what_happened(fmt: str, bits: int, x: float | Fraction) -> tuple[str, bool]:
    """What storing x did to it, in words, and whether that is alarming."""
    value, kind = floats.decode(bits, fmt), floats.kind(bits, fmt)
    if x != x:
        return "NaN", False
    if floats.overflows(x, fmt) and (finite(x) or kind != "infinity"):
        held = (
            f"held at {digits(value)}" if len(digits(value)) <= 12 else "held"
        )  # the formula below spells it out
        return ("overflow: " + (kind if kind in ("NaN", "infinity") else held)), True
    if kind == "infinity":
        return "infinity", False
    error = Fraction(value) - Fraction(x)
    if value == 0 and x != 0:
        return "underflow: 0", True
    how = "exact" if error == 0 else f"error {short(error)}"
    return (f"subnormal, {how}" if kind == "subnormal" else how), False


def surroundings(fmt: str, bits: int) -> str:
    """The step between numbers here, and the numbers on either side."""
    value = floats.decode(bits, fmt)
    if not math.isfinite(value):
        return ""
    below, above = ("none" if n is None else few_digits(n, fmt) for n in floats.neighbours(value, fmt))
    return f"step {floats.spacing(value, fmt):.3g}, neighbours {below}, {above}"


def meaning(words: str, x: float | Fraction, rows: dict[str, int | None]) -> str:
    """One sentence on the whole picture."""
    if x != x:
        return f"{words} is not a number; every format that can say so keeps its largest exponent for it."
    values = {fmt: floats.decode(bits, fmt) for fmt, bits in rows.items() if bits is not None}
    exact = [NAMES[fmt] for fmt, value in values.items() if value == x]
    over = [NAMES[fmt] for fmt, value in values.items() if value != x and floats.overflows(x, fmt)]
    under = [NAMES[fmt] for fmt, value in values.items() if value == 0 and x != 0]
    said = [f"exact in {listed(exact)}" if exact else "exact in none of the eight"]
    rounded = [NAMES[fmt] for fmt in values if NAMES[fmt] not in (*exact, *over, *under)]
    said += [f"rounded in {listed(rounded)}"] if rounded and exact else []
    said += [f"too large for {listed(over)}"] if over else []
    said += [f"too small for {listed(under)}"] if under else []
    return f"{words} is {'; '.join(said)}."


def listed(names: list[str]) -> str:
    """a, b and c."""
    if len(names) == len(NAMES):
        return "all eight"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def digits(value: float) -> str:
    """The value in full, or in the 17 digits that tell it from its neighbours."""
    whole = not math.isfinite(value) or Fraction(repr(value)) == Fraction(value)
    return repr(value) if whole else f"{value:.17g}"


def equals(value: float) -> str:
    """= where the digits shown are all there are."""
    return "=" if Fraction(digits(value)) == Fraction(value) else "≈"


def few_digits(value: float, fmt: str) -> str:
    """The value in as many digits as the format can tell apart."""
    enough = max(3, 2 + int((floats.FORMATS[fmt].fraction_bits + 1) * math.log10(2)))
    return min(repr(value), f"{value:.{enough}g}", key=len)


def short(error: Fraction) -> str:
    """An error in three digits with its sign."""
    return f"{float(error):+.3g}" if float(error) else f"below {5e-324}"


# Two other libraries' opinion, on request.


def check_every_pattern(**_: object) -> Iterator[Progress]:
    """Decode and encode every pattern of every format up to 19 bits, and count where the libraries differ."""
    small = measure.SMALL_FORMATS
    patterns = sum(2 ** floats.FORMATS[fmt].bits for fmt in small)
    done = differ = 0
    for fmt in small:
        for bits, theirs in enumerate(measure.every_value(fmt)):
            ours = floats.decode(bits, fmt)
            same = ours == theirs and floats.encode(theirs, fmt) == bits
            differ += not (same or (ours != ours and theirs != theirs))
            done += 1
            if done % 4096 == 0:
                yield Progress(
                    done / patterns, f"{done:,} of {patterns:,} patterns, now {NAMES[fmt]}; {differ} differ."
                )
    yield Progress(1, f"All {done:,} patterns of {listed([NAMES[fmt] for fmt in small])}: {differ} differ.")
