"""A number as it is typed, exactly, and what each format keeps of it."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from course_utils.core import floats
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

_DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?"
_FACTOR = rf"(?P<factor>{_DECIMAL}) *[*×] *|(?P<sign>[+-]?)"
_POWER = rf"(?:{_FACTOR})2 *(?:\^|\*\*) *(?P<exponent>[+-]?\d{{1,4}})"
_PATTERN = rf"(?P<fmt>{'|'.join(floats.FORMATS)}) *(?P<bits>0x[0-9a-f]+|0b[01]+)"


def is_nan(x: Exact) -> bool:
    """Whether x is NaN. `math.isnan` fails for a fraction that is too large for a float."""
    return x != x


@dataclass(frozen=True)
class Cast:
    """A typed number times a power of two, which is to be stored in some formats.

    A saturating cast stores what is too large as the format's largest number.
    """

    number: str = typed("number", "0.1", examples=EXAMPLES, width_px=260)
    times_two_to_the: int = whole("times 2^k", 0, -170, 140, width_px=560)
    saturate: bool = tick("saturating casts", False)
    formats: str = choice("formats", ("all eight", "fp32, bf16, fp16"), "all eight")

    def __post_init__(self) -> None:
        """Raise a sentence if what was typed is no number."""
        typed_number(self.number)

    @cached_property
    def x(self) -> Exact:
        """The typed number times 2^k."""
        x = typed_number(self.number)
        if isinstance(x, Fraction):
            return x * Fraction(2) ** self.times_two_to_the
        return x  # zero, infinity or NaN, which a power of two does not change

    @property
    def named(self) -> list[str]:
        """The formats that are asked for."""
        if self.formats == "all eight":
            return list(floats.FORMATS)
        return self.formats.split(", ")

    @cached_property
    def stored(self) -> dict[str, "Stored"]:
        """What each format keeps of the number. E2M1 has no NaN, and keeps nothing of one."""
        stored = {}
        for fmt in self.named:
            if floats.FORMATS[fmt].has_nan or not is_nan(self.x):
                stored[fmt] = Stored(fmt, self._bits(fmt), self.x)
        return stored

    def _bits(self, fmt: str) -> int:
        """The pattern of bits in that format. A NaN that was typed as a pattern keeps it."""
        pattern = re.fullmatch(_PATTERN, self.number.strip().lower(), re.ASCII)
        if pattern and pattern["fmt"] == fmt and is_nan(self.x):
            return int(pattern["bits"], base=0)
        return floats.encode(self.x, fmt, saturate=self.saturate)


@dataclass(frozen=True)
class Stored:
    """The pattern of bits in which a format keeps a number."""

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
        return "rounded" if self.value else "too small"


def typed_number(words: str) -> Exact:
    """Read what was typed exactly: 0.1 is one tenth here, which no float is.

    >>> typed_number("0.1"), typed_number("-3 * 2^-24"), typed_number("fp16 0x7c00")
    (Fraction(1, 10), Fraction(-3, 16777216), inf)
    """
    said = words.strip().lower().replace("−", "-")
    if len(said) > 60:
        raise ValueError(f"That is {len(said)} characters long; 60 are enough for any number here.")
    pattern = re.fullmatch(_PATTERN, said, re.ASCII)
    if pattern:
        value = floats.decode(int(pattern["bits"], base=0), pattern["fmt"])
        if value and math.isfinite(value):
            return Fraction(value)
        return value
    power = re.fullmatch(_POWER, said, re.ASCII)
    if power:
        factor = power["factor"] or f"{power['sign']}1"
        number = Fraction(factor) * Fraction(2) ** int(power["exponent"])
        return _with_sign_of_zero(number, factor)
    if re.fullmatch(_DECIMAL, said, re.ASCII):
        return _with_sign_of_zero(Fraction(said), said)
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", said):
        return float(said)
    raise ValueError(
        f"“{words.strip()}” is not a number yet. Type one like 0.15625, -3e-8, 2^-24, inf or nan, "
        "or a bit pattern like fp16 0x3c01."
    )


def _with_sign_of_zero(number: Fraction, written: str) -> Exact:
    """Return the number; but zero as a float, because a fraction cannot be -0."""
    return number if number else float(written)


def flipped(key: str, cast: Cast) -> Mapping[str, object]:
    """Return the controls after one bit of one format has been flipped.

    They hold the format's new number: in decimal if that is exact, or else as a bit pattern.
    """
    fmt, place = key.split(":")
    bits = cast.stored[fmt].bits ^ 1 << int(place)
    value = floats.decode(bits, fmt)
    number = repr(value)
    if typed_number(number) != value:
        number = f"{fmt} 0x{bits:x}"
    return {"number": number, "times_two_to_the": 0}
