"""A typed number, exactly, and the bits in which each format stores it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from course_utils.core import floats
from course_utils.core.say.language import translated
from course_utils.engine.labs.fields import choice, tick, typed, whole

Exact = float | Fraction
NUMBER_IN_QUESTION = {
    "0.15625?": "0.15625",
    "0.1 exact?": "0.1",
    "257 in bf16?": "257",
    "464 in E4M3?": "464",
    "465?": "465",
    "65519 in fp16?": "65519",
    "65520?": "65520",
    "1e-8?": "1e-8",
    "2^-24?": "2^-24",
    "inf?": "inf",
    "nan?": "nan",
}
PRESETS = {
    question: {"number": number, "times_two_to_the": 0}
    for question, number in NUMBER_IN_QUESTION.items()
}
EXAMPLES = (
    "0.1",
    "-3 * 2^-24",
    "-0",
    "1e400",
    "448",
    "1e-45",
    "fp16 0x7c01",
    "e4m3 0x7f",
    "-inf",
    "nan",
)

# What can be typed: a decimal number; a power of two, with a factor or only a sign in front of it;
# or a pattern of bits in a format.
# Matches 65519, -0.5, .5 and -3e-8.
_DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?"
# Matches what may stand in front of a power: "3 * ", "-0.5×", a sign alone, or nothing.
_FACTOR = rf"(?P<factor>{_DECIMAL}) *[*×] *|(?P<sign>[+-]?)"
# Matches 2^-24, -2^10 and 3 * 2 ** -24.
_POWER = rf"(?:{_FACTOR})2 *(?:\^|\*\*) *(?P<exponent>[+-]?\d{{1,4}})"
# Matches "fp16 0x7c01" and "e4m3 0b01111111".
_PATTERN = rf"(?P<fmt>{'|'.join(floats.FORMATS)}) *(?P<bits>0x[0-9a-f]+|0b[01]+)"


def is_nan(x: Exact) -> bool:
    """Whether x is NaN. `math.isnan` fails for a fraction that is too large for a float."""
    return x != x  # only NaN differs from itself


@dataclass(frozen=True)
class Cast:
    """A typed number times a power of two, which is to be stored in some formats.

    A saturating cast stores what is too large as the format's largest number.
    """

    number: str = typed("number", "0.1", examples=EXAMPLES, width_px=260)
    # Of `whole`: its label, its default, the least and the most.
    times_two_to_the: int = whole("times 2^k", 0, -170, 140, width_px=560)
    saturate: bool = tick("saturating casts", False)
    formats: str = choice("formats", ("all eight", "fp32, bf16, fp16"), "all eight")

    def __post_init__(self) -> None:
        """Raise a ValueError if the typed text is no number."""
        typed_number(self.number)

    @cached_property
    def x(self) -> Exact:
        """The typed number times 2^k."""
        x = typed_number(self.number)
        if isinstance(x, Fraction):
            return x * Fraction(2) ** self.times_two_to_the
        return x  # zero, infinity or NaN, which a power of two does not change

    @property
    def format_names(self) -> list[str]:
        """The names of the formats in which the number is to be stored."""
        if self.formats == "all eight":
            return list(floats.FORMATS)
        return self.formats.split(", ")

    @cached_property
    def stored(self) -> dict[str, "Stored"]:
        """The stored number by the format's name. E2M1, which has no NaN, is left out for a NaN."""
        stored = {}
        for fmt in self.format_names:
            if floats.FORMATS[fmt].has_nan or not is_nan(self.x):
                stored[fmt] = Stored(fmt, self._bits(fmt), self.x)
        return stored

    def _bits(self, fmt: str) -> int:
        """Return the pattern of bits in this format.

        Many patterns are a NaN. One that was typed as a pattern of this format keeps its bits.
        """
        pattern = re.fullmatch(_PATTERN, self.number.strip().lower(), re.ASCII)
        if pattern and pattern["fmt"] == fmt and is_nan(self.x):
            return int(pattern["bits"], base=0)
        return floats.encode(self.x, fmt, saturate=self.saturate)


@dataclass(frozen=True)
class Stored:
    """A number x as a format stores it: in a pattern of bits."""

    fmt: str
    bits: int
    x: Exact

    @cached_property
    def value(self) -> float:
        """The number that the bits stand for."""
        return floats.decode(self.bits, self.fmt)

    @cached_property
    def fate(self) -> str:
        """What storing did to the number: "NaN", "exact", "too large", "too small" or "rounded"."""
        if is_nan(self.x):
            return "NaN"
        if self.value == self.x:
            return "exact"
        if floats.overflows(self.x, self.fmt):
            return "too large"
        if self.value == 0:  # though x is not 0
            return "too small"
        return "rounded"


def typed_number(words: str) -> Exact:
    """Return the typed number exactly: 0.1 is one tenth here, which no float is.

    If the text is no number, raise a ValueError.

    >>> typed_number("0.1"), typed_number("-3 * 2^-24"), typed_number("fp16 0x7c00")
    (Fraction(1, 10), Fraction(-3, 16777216), inf)
    """
    typed_text = words.strip().lower().replace("−", "-")  # a minus sign, as in copied text
    if len(typed_text) > 60:
        refused = translated(
            "That is {count} characters long; 60 are enough for any number here.",
            count=len(typed_text),
        )
        raise ValueError(refused)
    pattern = re.fullmatch(_PATTERN, typed_text, re.ASCII)
    if pattern:
        value = floats.decode(int(pattern["bits"], base=0), pattern["fmt"])
        if value and math.isfinite(value):
            return Fraction(value)
        return value  # zero with its sign, infinity or NaN, none of which is a fraction
    power = re.fullmatch(_POWER, typed_text, re.ASCII)
    if power:
        factor = power["factor"] or f"{power['sign']}1"  # "-1" for -2^10
        number = Fraction(factor) * Fraction(2) ** int(power["exponent"])
        return _with_sign_of_zero(number, factor)
    if re.fullmatch(_DECIMAL, typed_text, re.ASCII):
        return _with_sign_of_zero(Fraction(typed_text), typed_text)
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", typed_text):
        return float(typed_text)
    refused = translated(
        "“{typed}” is not a number yet. Type one like 0.15625, -3e-8, 2^-24, inf or nan, "
        "or a bit pattern like fp16 0x3c01.",
        typed=words.strip(),
    )
    raise ValueError(refused)


def _with_sign_of_zero(number: Fraction, written: str) -> Exact:
    """Return the number; zero becomes a float with the written sign, as a fraction cannot be -0."""
    return number if number else float(written)


def flipped(key: str, cast: Cast) -> Mapping[str, object]:
    """Return the values of the controls after the bit with this key has been flipped.

    The key is "format:place", such as "fp16:9"; places count from the right. The control `number`
    gets the format's new number: in decimal if that is exact, otherwise as a bit pattern.
    """
    fmt, place = key.split(":")
    bits = cast.stored[fmt].bits ^ (1 << int(place))  # ^ flips the bit that is 1 in the brackets
    value = floats.decode(bits, fmt)
    number = repr(value)
    # Not equal, if repr has rounded the value to a shorter decimal, or if the value is NaN.
    if typed_number(number) != value:
        number = f"{fmt} 0x{bits:x}"
    return {"number": number, "times_two_to_the": 0}
