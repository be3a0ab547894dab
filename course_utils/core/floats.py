"""Number formats, bit by bit: what a pattern of bits means, and which pattern a number becomes.

A format is three fields side by side: a sign bit, an exponent, a fraction. Nothing here relies on
how the computer's own floats round: `encode` works on exact fractions, `decode` is the formula.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Rational, Real
from typing import NamedTuple


@dataclass(frozen=True)
class Format:
    """A number format: a sign bit, `exponent_bits` and `fraction_bits`.

    Patterns beyond the largest number may stand for infinity and NaN.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bytes_per_number: int | float
    # IEEE formats give the whole largest exponent to infinity and NaN. The small ones cannot
    # afford that: E4M3 gives one pattern to NaN, E2M1 gives none to either.
    has_infinity: bool = True
    has_nan: bool = True

    @property
    def label(self) -> str:
        """The name as papers write it: the small formats in capitals, all others as they are.

        >>> FORMATS["e4m3"].label, FORMATS["bf16"].label
        ('E4M3', 'bf16')
        """
        return self.name.upper() if self.name.startswith("e") else self.name

    @cached_property
    def bits(self) -> int:
        """Bits that carry information: 1 + exponent + fraction. Of tf32's 32 stored bits, 19 do."""
        return 1 + self.exponent_bits + self.fraction_bits

    @cached_property
    def bias(self) -> int:
        """The number subtracted from the exponent field, so that exponents can be negative."""
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number, which all subnormals share."""
        return 1 - self.bias

    @cached_property
    def max_bits(self) -> int:
        """The pattern of the largest finite number, as a whole number.

        Above it are only the patterns of infinity and NaN.
        """
        if self.has_infinity:
            special = 2**self.fraction_bits  # patterns with the largest exponent: infinity and NaN
        elif self.has_nan:
            special = 1  # pattern: E4M3's NaN
        else:
            special = 0
        all_ones = 2 ** (self.bits - 1) - 1  # the highest pattern, in all bits but the sign
        return all_ones - special

    @property
    def nan_bits(self) -> int | None:
        """The pattern that NaN is stored as; None if the format has no NaN."""
        if not self.has_nan:
            return None
        after_the_largest = self.max_bits + 1  # infinity's pattern, if the format has infinity
        if self.has_infinity:  # IEEE: infinity's pattern with the first fraction bit set ("quiet")
            return after_the_largest + 2 ** (self.fraction_bits - 1)
        return after_the_largest  # E4M3: all ones

    @property
    def max(self) -> float:
        """The largest finite number."""
        exponent, steps = self.largest
        return math.ldexp(steps, exponent - self.fraction_bits)  # steps * 2^(...)

    @cached_property
    def largest(self) -> tuple[int, int]:
        """(exponent, steps): the largest number as steps * 2^(exponent - fraction bits).

        So `steps` is the significand as a whole number, its leading one included. In fp16 the pair
        is (15, 2047), because 65504 is 2047 * 2^(15 - 10).
        """
        exponent, fraction = divmod(self.max_bits, 2**self.fraction_bits)
        return exponent - self.bias, 2**self.fraction_bits + fraction

    @property
    def smallest_normal(self) -> float:
        """2^(1 - bias): the smallest number with a leading one, and so with full precision."""
        return 2.0**self.min_exponent

    @property
    def smallest_subnormal(self) -> float:
        """2^(1 - bias - fraction bits): the smallest number above zero."""
        return 2.0 ** (self.min_exponent - self.fraction_bits)

    @property
    def epsilon(self) -> float:
        """2^-(fraction bits): from 1 to the next number."""
        return 2.0**-self.fraction_bits


FORMATS = {
    f.name: f
    for f in (
        Format("fp64", 11, 52, bytes_per_number=8),
        Format("fp32", 8, 23, bytes_per_number=4),
        Format("tf32", 8, 10, bytes_per_number=4),  # 19 bits used, kept in 32
        Format("fp16", 5, 10, bytes_per_number=2),
        Format("bf16", 8, 7, bytes_per_number=2),
        Format("e4m3", 4, 3, bytes_per_number=1, has_infinity=False),
        Format("e5m2", 5, 2, bytes_per_number=1),
        Format("e2m1", 2, 1, bytes_per_number=0.5, has_infinity=False, has_nan=False),
    )
}


class Fields(NamedTuple):
    """The three fields of a pattern, each as an unsigned integer."""

    sign: int
    exponent: int
    fraction: int


def format_named(fmt: str) -> Format:
    """The format of that name. ValueError, with the names there are, if there is none."""
    if fmt not in FORMATS:
        raise ValueError(
            f"There is no number format {fmt!r} here. There are: {', '.join(FORMATS)}."
        )
    return FORMATS[fmt]


def fields(bits: int, fmt: str) -> Fields:
    """A pattern cut into sign | exponent | fraction.

    >>> fields(0b0_01111100_01000000000000000000000, "fp32")
    Fields(sign=0, exponent=124, fraction=2097152)
    """
    f = format_named(fmt)
    # A bool is an int in Python, and is no pattern. NumPy's integers are an Integral, too.
    if isinstance(bits, bool) or not isinstance(bits, Integral) or not 0 <= bits < 2**f.bits:
        raise ValueError(
            f"A pattern of {fmt} is an integer of {f.bits} bits, from 0 to {2**f.bits - 1}; "
            f"got {bits!r}."
        )
    # Each division cuts off the lowest bits as the remainder.
    sign_and_exponent, fraction = divmod(int(bits), 2**f.fraction_bits)
    sign, exponent = divmod(sign_and_exponent, 2**f.exponent_bits)
    return Fields(sign, exponent, fraction)


def kind(bits: int, fmt: str) -> str:
    """What a pattern is: "zero", "subnormal", "normal", "infinity" or "NaN"."""
    _, exponent, fraction = fields(bits, fmt)
    return _kind(format_named(fmt), exponent, fraction)


def _kind(f: Format, exponent: int, fraction: int) -> str:
    """What these two fields mean: "zero", "subnormal", "normal", "infinity" or "NaN"."""
    without_sign = exponent << f.fraction_bits | fraction  # the pattern, but for its sign bit
    if without_sign > f.max_bits:  # above the pattern of the largest finite number
        return "infinity" if f.has_infinity and fraction == 0 else "NaN"
    if exponent == 0:
        return "subnormal" if fraction else "zero"
    return "normal"


def decode(bits: int, fmt: str) -> float:
    """The value of a pattern: (-1)^sign * 1.fraction * 2^(exponent - bias).

    The exceptions are NaN, infinity, and subnormals with zero.

    >>> decode(0b0_01111100_01000000000000000000000, "fp32")
    0.15625
    """
    f = format_named(fmt)
    sign, exponent, fraction = fields(bits, fmt)
    match _kind(f, exponent, fraction):
        case "NaN":
            return math.nan
        case "infinity":
            magnitude = math.inf
        case "zero" | "subnormal":  # no leading one, and the smallest exponent
            significand = 0 + fraction / 2**f.fraction_bits
            magnitude = significand * 2.0 ** (1 - f.bias)
        case _:
            significand = 1 + fraction / 2**f.fraction_bits
            magnitude = significand * 2.0 ** (exponent - f.bias)
    return (-1) ** sign * magnitude


def encode(x: Real, fmt: str, *, saturate: bool = False) -> int:
    """The pattern whose value is nearest to x; of two equally near, the one that ends in 0.

    If x is beyond the largest number, the pattern is infinity's where the format has one, NaN's in
    E4M3, and the largest number's in E2M1, which has neither. With `saturate`, it is the largest
    number's in every format.

    >>> f"{encode(0.15625, 'fp32'):032b}"
    '00111110001000000000000000000000'
    """
    f = format_named(fmt)
    x = _exact(x)  # a fraction, or a float, which alone can be -0, infinity or NaN
    if isinstance(x, float):
        is_negative = math.copysign(1, x) < 0  # true of -0.0, too
    else:
        is_negative = x < 0
    sign = 1 if is_negative else 0
    # The sign is the highest bit, and the magnitude's pattern fills the bits below it.
    return sign << (f.bits - 1) | _encode_magnitude(abs(x), f, saturate)


def _encode_magnitude(magnitude: float | Fraction, f: Format, saturate: bool) -> int:
    """The pattern of a number that is not negative. ValueError for NaN, if the format has none."""
    if magnitude != magnitude:  # NaN
        if f.nan_bits is None:
            raise ValueError(
                f"{f.name} has no NaN: every one of its {2**f.bits} patterns is a number."
            )
        return f.nan_bits
    exponent, steps = _rounded(magnitude, f)  # steps * 2^(exponent - fraction bits)
    # Pairs of an exponent and steps; the steps are compared only if the exponents are equal.
    if (exponent, steps) > f.largest:
        if saturate or not f.has_nan:
            return f.max_bits  # the pattern of the largest number
        return f.max_bits + 1  # infinity, and NaN in E4M3
    if steps < 2**f.fraction_bits:  # subnormal, or zero: the exponent field is 0
        return steps
    fraction = steps - 2**f.fraction_bits  # without the leading one
    return (exponent + f.bias) << f.fraction_bits | fraction


def _rounded(magnitude: float | Fraction, f: Format) -> tuple[int, int]:
    """(exponent, steps): the magnitude, rounded to steps * 2^(exponent - fraction bits).

    The exponent may be beyond the format's largest.
    """
    if magnitude == math.inf:
        exponent, _ = f.largest
        return exponent + 1, 0  # beyond the largest number, and no more has to be known
    magnitude = Fraction(magnitude)
    exponent = max(_floor_log2(magnitude), f.min_exponent)  # the subnormals share the smallest one
    step = Fraction(2) ** (exponent - f.fraction_bits)
    steps = round(magnitude / step)  # Python rounds a tie to the even neighbour, as IEEE does
    if steps == 2 ** (f.fraction_bits + 1):  # rounded up to the next power of two
        return exponent + 1, steps // 2  # the same number, with a leading one
    return exponent, steps


def _floor_log2(magnitude: Fraction) -> int:
    """The largest e with 2^e <= magnitude; for zero, less than any exponent in use."""
    if magnitude == 0:
        return -(10**6)
    # The magnitude lies between 2^(e - 1) and 2^(e + 1), so the answer is e or e - 1.
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return e if magnitude >= Fraction(2) ** e else e - 1


def _exact(x: Real) -> float | Fraction:
    """x without any rounding, as a float or a fraction, also if x is one of NumPy's numbers."""
    if not isinstance(x, Real):
        raise ValueError(
            f"Only a plain number can be encoded, not {type(x).__name__}; "
            "of a tensor's element, take .item()."
        )
    if isinstance(x, Rational):
        return Fraction(int(x.numerator), int(x.denominator))
    # As a float, zero keeps its sign; infinity and NaN are no fractions.
    if isinstance(x, float) or x == 0 or not math.isfinite(x):
        return float(x)
    # x may be wider than a float, such as NumPy's longdouble.
    numerator, denominator = x.as_integer_ratio()
    return Fraction(int(numerator), int(denominator))


def overflows(x: Real, fmt: str) -> bool:
    """Whether x, rounded to the format's precision, lies beyond its largest number.

    >>> overflows(65519, "fp16"), overflows(65520, "fp16")
    (False, True)
    """
    f = format_named(fmt)
    magnitude = abs(_exact(x))
    if magnitude != magnitude:  # NaN
        return False
    # Both are (exponent, significand as a whole number), so the exponents are compared first.
    return _rounded(magnitude, f) > f.largest


def stored(x: Real, fmt: str, *, saturate: bool = False) -> float:
    """The number that the format stores for x.

    >>> stored(257, "bf16")
    256.0
    """
    return decode(encode(x, fmt, saturate=saturate), fmt)


def spacing(x: Real, fmt: str) -> float:
    """Return the distance from x, as the format stores it, to the next number away from zero.

    It is 2^(e - fraction bits) for a number from 2^e up to 2^(e + 1). For 0 and for subnormals, e
    is that of the smallest normal number.

    >>> spacing(1, "fp16"), spacing(2048, "fp16")
    (0.0009765625, 2.0)
    """
    f = format_named(fmt)
    value = stored(x, fmt)
    if not math.isfinite(value):
        raise ValueError(f"{fmt} stores {x} as {value}, where numbers have no spacing.")
    exponent = max(_floor_log2(Fraction(abs(value))), f.min_exponent)
    return 2.0 ** (exponent - f.fraction_bits)


def formula(bits: int, fmt: str) -> str:
    """The formula of a pattern's value, filled in; with "≈" if not all digits are shown.

    >>> formula(encode(0.15625, "fp32"), "fp32")
    '(-1)^0 × 1.25 × 2^(124 - 127) = 0.15625'
    """
    f = format_named(fmt)
    sign, exponent, fraction = fields(bits, fmt)
    match _kind(f, exponent, fraction):
        case "NaN":
            return f"exponent field {exponent}, fraction field {fraction}: NaN, not a number"
        case "infinity":
            minus = "-" if sign else ""
            return f"exponent field {exponent}, fraction field 0: {minus}infinity"
        case "normal":
            significand = 1 + fraction / 2**f.fraction_bits
        case _:  # zero or a subnormal
            significand = 0 + fraction / 2**f.fraction_bits
            exponent = 1  # that of the smallest normal number
    value = decode(bits, fmt)
    significand_text = repr(significand)
    value_text = f"{value:.17g}"
    # Fraction reads a decimal text exactly: so this asks whether no digit is left out.
    all_shown = Fraction(significand_text) == significand and Fraction(value_text) == value
    equals = "=" if all_shown else "≈"
    return f"(-1)^{sign} × {significand_text} × 2^({exponent} - {f.bias}) {equals} {value_text}"
