"""The bit patterns that notebook 01's exercises ask for, and their values by the formula."""

import random
from collections.abc import Iterator

from course_utils.core.say.language import translated


def by_the_formula(bits: int, exponent_bits: int, fraction_bits: int) -> float:
    """Return (-1)^sign × 1.fraction × 2^(exponent - bias), adding up the fields bit by bit.

    This holds for normal numbers. Here it is applied to every pattern, those of zero, infinity and
    NaN among them.
    """
    significand = 1.0
    for place in range(fraction_bits):
        if bits >> place & 1:  # the bit at this place, counted from the right
            significand += 2.0 ** (place - fraction_bits)

    bias = 2 ** (exponent_bits - 1) - 1
    exponent = -bias
    for place in range(exponent_bits):
        if bits >> (fraction_bits + place) & 1:
            exponent += 2**place

    is_negative = bits >> (fraction_bits + exponent_bits)  # the sign bit, 1 or 0
    magnitude = significand * 2.0**exponent
    return -magnitude if is_negative else magnitude


def patterns() -> Iterator[tuple[int, int, int]]:
    """Yield bit patterns, each with its format's number of exponent bits and of fraction bits.

    First come the patterns of known numbers, then those of special values, then random ones. In the
    first no field is 0 but the sign, and 2.0 ** (E - bias) is not 2.0 * (E - bias).
    """
    # 5 and 10 bits are fp16, 8 and 23 fp32, 8 and 7 bf16, 4 and 3 E4M3; 5 and 2 below are E5M2.
    yield 0b0_01101_0100000000, 5, 10  # 0.3125
    yield 0xC500, 5, 10  # -5
    yield 0b0_01111100_01 << 21, 8, 23  # 0.15625; the other 21 bits of its fraction are 0
    yield 0x4049, 8, 7  # 3.140625
    yield 0x38, 4, 3  # 1
    for bits in (0, 1, 0x7C00, 0x7E00):  # zero, the smallest subnormal, infinity, NaN
        yield bits, 5, 10
    generator = random.Random(0)
    for _ in range(50):
        for exponent_bits, fraction_bits in ((5, 10), (8, 7), (8, 23), (5, 2)):
            bits = generator.getrandbits(1 + exponent_bits + fraction_bits)
            yield bits, exponent_bits, fraction_bits


def pattern_in_words(bits: int, exponent_bits: int, fraction_bits: int) -> str:
    """Return the beginning of a verdict's sentence, with the pattern as its three fields.

    >>> pattern_in_words(0x3C00, 5, 10)
    'For the bits 0 01111 0000000000 (sign, exponent, fraction)'
    """
    width = 1 + exponent_bits + fraction_bits
    digits = f"{bits:0{width}b}"
    exponent = digits[1 : 1 + exponent_bits]
    fraction = digits[1 + exponent_bits :]
    return translated(
        "For the bits {bits} (sign, exponent, fraction)",
        bits=f"{digits[0]} {exponent} {fraction}",
    )


def patterns_of_each_kind() -> Iterator[tuple[int, int, int]]:
    """Yield fp16's patterns of each kind of number, bf16's 1, then random ones of three formats."""
    # 1, -5, zero, the smallest subnormal, infinity, NaN, -0.0 and -infinity.
    for bits in (0x3C00, 0xC500, 0, 1, 0x7C00, 0x7E00, 0x8000, 0xFC00):
        yield bits, 5, 10
    yield 0x3F80, 8, 7
    generator = random.Random(0)
    for _ in range(100):
        for exponent_bits, fraction_bits in ((5, 10), (8, 7), (5, 2)):
            bits = generator.getrandbits(1 + exponent_bits + fraction_bits)
            yield bits, exponent_bits, fraction_bits
