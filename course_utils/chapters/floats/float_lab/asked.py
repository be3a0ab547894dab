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
QUESTIONS = (
    *("0.15625?", "0.1 exact?", "257 in bf16?", "464 in E4M3?", "465?", "65519 in fp16?", "65520?"),
    *("1e-8?", "2^-24?", "inf?", "nan?"),
)  # each begins with its number
PRESETS = {
    words: {"number": re.split("[ ?]", words)[0], "times_two_to_the": 0} for words in QUESTIONS
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
_POWER = rf"(?:({_DECIMAL}) *[*×] *|([+-]?))2 *(?:\^|\*\*) *([+-]?\d{{1,4}})"
_PATTERN = rf"({'|'.join(floats.FORMATS)}) *(0x[0-9a-f]+|0b[01]+)"


@dataclass(frozen=True)
class Cast:
    """A number as it was typed, times a power of two; and whether formats hold what is too large at their largest."""

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
        return x * Fraction(2) ** self.times_two_to_the if isinstance(x, Fraction) else x

    @property
    def named(self) -> list[str]:
        """The formats that are asked for."""
        return [*floats.FORMATS] if self.formats == "all eight" else self.formats.split(", ")

    @cached_property
    def stored(self) -> dict[str, "Stored"]:
        """What each format keeps of it; E2M1 has no NaN, and is left out there."""
        names = [fmt for fmt in self.named if floats.FORMATS[fmt].has_nan or self.x == self.x]
        return {fmt: Stored(fmt, self._bits(fmt), self.x) for fmt in names}

    def _bits(self, fmt: str) -> int:
        typed = re.fullmatch(_PATTERN, self.number.strip().lower(), re.ASCII)
        if typed and typed[1] == fmt and self.x != self.x:
            return int(typed[2], base=0)  # one NaN of many, and it stays as it was typed
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
        if self.x != self.x:
            return "NaN"
        if self.value == self.x:
            return "exact"
        if floats.overflows(self.x, self.fmt):
            return "too large"
        return "rounded" if self.value else "too small"


def typed_number(words: str) -> Exact:
    """What was typed, exactly: 0.1 is one tenth here, and no float yet.

    >>> typed_number("0.1"), typed_number("-3 * 2^-24"), typed_number("fp16 0x7c00")
    (Fraction(1, 10), Fraction(-3, 16777216), inf)
    """
    said = words.strip().lower().replace("−", "-")
    if len(said) > 60:
        raise ValueError(f"That is {len(said)} characters long; 60 are enough for any number here.")
    if match := re.fullmatch(_PATTERN, said, re.ASCII):
        value = floats.decode(int(match[2], base=0), match[1])
        return Fraction(value) if value and math.isfinite(value) else value
    # Of a zero the float is taken: a fraction has no negative one.
    if match := re.fullmatch(_POWER, said, re.ASCII):
        factor = match[1] or f"{match[2]}1"
        return Fraction(factor) * Fraction(2) ** int(match[3]) or float(factor)
    if re.fullmatch(r"[+-]?(inf|infinity|nan)", said):
        return float(said)
    if re.fullmatch(_DECIMAL, said, re.ASCII):
        return Fraction(said) or float(said)
    raise ValueError(
        f"“{words.strip()}” is not a number yet. Type one like 0.15625, -3e-8, 2^-24, inf or nan, "
        "or a bit pattern like fp16 0x3c01."
    )


def flipped(key: str, cast: Cast) -> Mapping[str, object]:
    """The controls after one bit of one format has been flipped: a number that is the pattern's own, or the pattern."""
    fmt, place = key.split(":")
    bits = cast.stored[fmt].bits ^ 1 << int(place)
    value = floats.decode(bits, fmt)
    number = repr(value)
    return {
        "number": number if typed_number(number) == value else f"{fmt} 0x{bits:x}",
        "times_two_to_the": 0,
    }
