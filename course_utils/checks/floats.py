"""The exercises of notebook 01."""

import functools
import math
import random
from collections.abc import Iterator

import torch

from course_utils import floats
from course_utils.checks.accountant import tensor_bytes  # noqa: F401  a term of the accountant
from course_utils.checks.judging import Answers, function
from course_utils.checks.judging.agreement import plain
from course_utils.checks.scales import scale_for_e4m3, shared_scale  # noqa: F401  exercises, too


def _by_the_formula(bits: int, exponent_bits: int, fraction_bits: int) -> float:
    """Bit by bit, from the right: each fraction bit is worth half of the one before it."""
    significand, exponent = 1.0, -(2 ** (exponent_bits - 1) - 1)
    for place in range(fraction_bits):
        significand += (bits >> place & 1) * 2.0 ** (place - fraction_bits)
    for place in range(exponent_bits):
        exponent += (bits >> (fraction_bits + place) & 1) * 2**place
    minus = bits >> (fraction_bits + exponent_bits)
    return (-significand if minus else significand) * 2.0**exponent


def _some_patterns() -> Iterator[tuple[int, int, int]]:
    """1, -5 and others, each in another format; then patterns of no normal number; then random ones."""
    yield from ((0x3C00, 5, 10), (0xC500, 5, 10))
    yield from ((0b0_01111100_01 << 21, 8, 23), (0x4049, 8, 7), (0x38, 4, 3))
    yield from ((bits, 5, 10) for bits in (0, 1, 0x7C00, 0x7E00))
    draw = random.Random(0)
    widths = ((5, 10), (8, 7), (8, 23), (5, 2))
    yield from ((draw.getrandbits(1 + e + m), e, m) for _ in range(50) for e, m in widths)


@function(_some_patterns)
def by_formula(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """A reader's value(bits, exponent_bits, fraction_bits): the formula, whatever the pattern."""
    right = _by_the_formula(bits, exponent_bits, fraction_bits)
    yield right, "The formula, on patterns of five formats."
    sign, bias = bits >> (exponent_bits + fraction_bits), 2 ** (exponent_bits - 1) - 1
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    power, fraction = 2.0 ** (exponent - bias), bits & (2**fraction_bits - 1)
    without_one = (-1) ** sign * fraction / 2**fraction_bits * power
    yield without_one, "The leading 1 is not stored: add it to the fraction."
    yield right / 2, "The bias is 2^(exponent bits - 1) - 1: 15 for 5 bits, 127 for 8."
    yield abs(right), "The first bit is the sign: 1 says minus."
    undivided = (-1) ** sign * (1 + fraction) * power
    yield undivided, "F is an integer. Divide it by 2^(fraction bits) to get what stands after the point."
    others = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0**exponent
    yield others, "The bias is missing: the exponent field counts from 0, the exponent does not."
    unmasked = bits >> fraction_bits
    signed = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (unmasked - bias)
    yield signed, "Your exponent contains the sign bit. Keep the rest, with & (2**exponent_bits - 1)."
    ends = {0: (-1) ** sign * fraction / 2**fraction_bits * 2.0 ** (1 - bias)}
    ends[2**exponent_bits - 1] = math.nan if fraction else (-1) ** sign * math.inf
    yield ends.get(exponent, right), "Zero, infinity and NaN come next. Here the formula alone is wanted."
    yield -abs(right), "Python reads -1**s as -(1**s), which is always -1: write (-1)**s."
    with_127 = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - 127)
    yield with_127, "127 is the bias of 8 exponent bits; it is 2^(exponent bits - 1) - 1."


@function([(5, 10), (8, 7), (8, 23), (5, 2)])
def ends(exponent_bits: int, fraction_bits: int) -> Answers:
    """A reader's ends(exponent_bits, fraction_bits): the smallest number above zero and the largest, by the IEEE rules."""
    bias, least = 2 ** (exponent_bits - 1) - 1, 2.0**-fraction_bits
    of_exponent_0 = [fraction * least * 2.0 ** (1 - bias) for fraction in (1, 2)]
    others = [
        _by_the_formula(exponent << fraction_bits | fraction, exponent_bits, fraction_bits)
        for exponent in range(1, 2**exponent_bits - 1)
        for fraction in (0, 2**fraction_bits - 1)
    ]
    numbers = sorted(of_exponent_0 + others)
    smallest, largest = numbers[0], numbers[-1]
    yield (smallest, largest), "Exponent field 0 with fraction 0…01; the field below all ones with 1…1."
    yield (largest, smallest), "The smallest comes first."
    normal = (2.0 ** (1 - bias), largest)
    yield normal, "That is the smallest normal number. The subnormals go on, down to fraction 0…01."
    yield (smallest / 2, largest), "Subnormals use 2^(1 - bias), not 2^(0 - bias)."
    yield (smallest, 2.0**bias), "The exponent is right. With the fraction 1…1 its factor is nearly 2, not 1."
    yield (smallest, 2 * largest), "All ones means infinity or NaN. The largest number has the field below."
    yield (smallest, 2.0 ** (bias + 1)), "Infinity begins there. The largest number is one step below it."
    yield (-largest, largest), "That is the most negative number. The smallest above zero is wanted."


@functools.cache
def _read_by_torch(exponent_bits: int) -> list[float]:
    patterns = torch.arange(2**16, dtype=torch.int32).to(torch.uint16)
    return patterns.view(torch.float16 if exponent_bits == 5 else torch.bfloat16).double().tolist()


def _patterns() -> Iterator[tuple[int, int, int]]:
    """First those that a verdict should name: two normal numbers, zero, a subnormal, infinity, NaN, -0.0, other widths."""
    yield from ((bits, 5, 10) for bits in (0x3C00, 0xC500, 0, 1, 0x7C00, 0x7E00, 0x8000))
    yield 0x3F80, 8, 7
    yield from ((bits, e, m) for e, m in ((5, 10), (8, 7)) for bits in range(2**16))


@function(_patterns)
def decoded(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """A reader's decode(bits, exponent_bits, fraction_bits) on every pattern of fp16 and bf16."""
    numbers = _read_by_torch(exponent_bits)
    right = numbers[bits]
    yield right, "All 131,072 patterns of fp16 and bf16."

    kind = floats.kind(bits, "fp16" if exponent_bits == 5 else "bf16")
    sign, ones = bits >> (exponent_bits + fraction_bits), 2**exponent_bits - 1
    exponent, fraction = bits >> fraction_bits & ones, bits & (2**fraction_bits - 1)
    normal = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - ones // 2)
    yield normal, "An exponent field of 0 drops the leading 1, and one of all ones is no number at all."
    yield right / (2 if kind == "subnormal" else 1), "Subnormals use 2^(1 - bias), not 2^(0 - bias)."
    with_one = numbers[bits | 1 << fraction_bits] if exponent == 0 else right
    yield with_one, "An exponent field of 0 drops the leading 1: what is left is 0 and a fraction."
    endless = normal if kind in ("infinity", "NaN") else right
    yield endless, "An exponent field of all ones is infinity, or NaN where the fraction is not 0."
    infinity = math.inf if kind == "NaN" else right
    yield infinity, "All ones is infinity only where the fraction is 0; with any other fraction it is NaN."
    yield abs(right), "The first bit is the sign: 1 says minus."
    yield right / 2, "The bias is 2^(exponent bits - 1) - 1: 15 for 5 bits, 127 for 8."
    as_fp16 = _read_by_torch(5)[bits]
    yield as_fp16, "That is fp16 again. The widths of the fields are given: use them for the bias too."
    yield right or 0.0, "Zero has a sign too."


class Pattern(int):
    """An integer that shows itself in hexadecimal."""

    def __repr__(self) -> str:
        return hex(self)


def _fp32_patterns() -> Iterator[tuple[Pattern]]:
    """1, ties, infinities, NaN and random ones."""
    ties = [0x3F80C000, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x7F7F8000, 0x7F7F7FFF, 0x00008000, 0x80018000]
    nans = [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F80FFFF]
    draw = random.Random(0)
    drawn = (draw.getrandbits(32) for _ in range(5000))
    return ((Pattern(bits),) for bits in [0x3F800000, *ties, 0x7F800000, 0xFF800000, *nans, *drawn])


def _pattern(came: object, bits: int) -> object:
    """An integer as a pattern. Any NaN stands for every other."""
    came = plain(came)
    if not isinstance(came, int):
        return came
    kept = floats.kind(bits, "fp32") == "NaN" and 0 <= came < 2**16 and floats.kind(came, "bf16") == "NaN"
    return Pattern(_bf16(bits) if kept else came)


def _bf16(bits: int) -> int:
    """The bf16 pattern of an fp32 pattern, by exact fractions."""
    return floats.encode(floats.decode(bits, "fp32"), "bf16")


@function(_fp32_patterns, read=_pattern)
def bf16_by_integers(bits: int) -> Answers:
    """A reader's fp32 pattern to bf16 pattern, in integers, against rounding by exact fractions."""
    right = Pattern(_bf16(bits))
    yield right, "5,015 patterns: ties, infinities, NaN and random ones."
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    yield nearest, "The rounding is right. A NaN with ones only in the lower 16 bits must stay a NaN."
    no_infinity = bits >> 16 | 0x40 if bits >> 23 & 0xFF == 0xFF else right
    yield no_infinity, "Infinity's exponent is all ones, too. Only a NaN has a fraction that is not 0."
    yield bits / 2**16, "One integer is wanted, as // and >> give it."
    yield right << 16, "Those are still 32 bits. bf16 is the upper 16: shift them down."
    cut = bits >> 16
    yield cut, "Dropping 16 bits rounds towards zero (and can turn NaN into infinity). Round to nearest."
    yield (bits + 0x8000) >> 16, "That sends every tie up. A tie goes to the pattern that ends in 0."
    yield (bits + 0x7FFF) >> 16, "That sends every tie down. A tie goes to the pattern that ends in 0."
