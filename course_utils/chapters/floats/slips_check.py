"""What natural slips lead to in the exercises of notebook 01, beside the mistakes in `check`.

Each function takes the arguments of an exercise's case, and yields wrong answers with the advice.
"""

import math
from collections.abc import Sequence

from course_utils.core.accountant import BYTES
from course_utils.engine.judging import Answers, outcome

MASK = "2**n is a single 1 with n zeros behind it. A mask that keeps n bits has n ones."


def of_formula(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """Yield wrong values of a pattern, where one factor of the formula is not what it should be."""
    sign_bit = bits >> (exponent_bits + fraction_bits)
    sign = (-1) ** sign_bit
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    fraction = bits & (2**fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    significand = 1 + fraction / 2**fraction_bits
    power = 2.0 ** (exponent - bias)
    # Of the fraction 0 and the sign -1, this is -0.0, and with the division at the end it is 0.
    without_one = sign * (fraction / 2**fraction_bits) * power
    yield without_one, "The leading 1 is not stored: add it to the fraction."
    yield sign_bit * significand * power, "The sign bit is 0 or 1, but the factor is 1 or -1."
    is_below_normal = exponent == 0
    yield (
        0.0 if is_below_normal else sign * significand * power,
        "Zero, infinity and NaN come later. Here the formula alone is wanted.",
    )
    yield sign * (1 + (bits & 2**fraction_bits) / 2**fraction_bits) * power, MASK
    for wrong_power, advice in _of_power(bits, exponent_bits, fraction_bits):
        yield sign * significand * wrong_power, advice
    for wrong_significand, advice in _of_significand(bits, fraction_bits):
        yield sign * wrong_significand * power, advice


def _of_power(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """Yield wrong values of 2^(exponent - bias)."""
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    yield (
        2.0 * (exponent - bias),
        "The exponent is a power of 2. In Python, a power is **, and * is a product.",
    )
    yield (
        2.0 ** (bias - exponent),
        "The larger the exponent field is, the larger is the number: which one is subtracted?",
    )
    yield 2.0 ** (exponent + bias), "The bias is subtracted from the field, and not added."
    bias_of_all_bits = 2**exponent_bits - 1
    yield (
        2.0 ** (exponent - bias_of_all_bits),
        "The bias is 2**(exponent_bits - 1) - 1: 15 for 5 bits, 127 for 8.",
    )
    one_bit_of_exponent = bits >> fraction_bits & 2**exponent_bits
    yield 2.0 ** (one_bit_of_exponent - bias), MASK
    last_bits = bits & (2**exponent_bits - 1)
    yield (
        2.0 ** (last_bits - bias),
        "The last bits are the fraction's. Shift them out first, with bits >> fraction_bits.",
    )


def _of_significand(bits: int, fraction_bits: int) -> Answers:
    """Yield wrong values of 1.F."""
    fraction = bits & (2**fraction_bits - 1)
    yield 1.0, "The fraction is lost: // rounds down to a whole number, and / does not."
    yield (
        1 + (bits >> fraction_bits) / 2**fraction_bits,
        "bits >> n drops the last n bits. The fraction is what & keeps of them.",
    )
    yield (
        float(f"1.{fraction}"),
        "F has binary digits: the first is worth a half, the second a quarter.",
    )
    yield (
        1 + fraction / (2**fraction_bits - 1),
        "The fraction's bits part the stretch from 1 to 2 into 2**fraction_bits steps.",
    )


def of_ends(exponent_bits: int, fraction_bits: int, smallest: float, largest: float) -> Answers:
    """Yield wrong ends of a format, whose right ends are `smallest` and `largest`."""
    bias = 2 ** (exponent_bits - 1) - 1
    smallest_normal = 2.0 ** (1 - bias)
    last_bit = 2.0**-fraction_bits
    neither = (
        "Neither is an end yet. Below the smallest normal number come subnormals, and the largest "
        "number has the fraction 1…1."
    )
    yield (smallest_normal, 2.0**bias), neither
    yield (smallest_normal, 2.0 ** (bias + 1)), neither
    yield (
        (smallest_normal, 2 * largest),
        "Below the smallest normal number come subnormals, and the largest exponent field is one "
        "below all ones.",
    )
    yield (
        (smallest / 2, 2 * largest),
        "Your bias is 1 too large. It is 2**(exponent_bits - 1) - 1.",
    )
    yield (
        (2.0**-bias, largest),
        "The exponent field 0 stands for 2.0**(1 - bias). And which fraction is the smallest "
        "above 0?",
    )
    yield (
        (smallest_normal * (1 + last_bit), largest),
        "An exponent field of 0 drops the leading 1: what is left is 0.F.",
    )
    yield (0.0, largest), "Zero is not above zero. What is the next number after it?"
    yield from _of_largest(smallest, bias, last_bit)
    yield (2.0**-24, 65_504.0), "Those are fp16's ends. Take the widths that are given."
    for other in (15, 127):
        yield (
            (2.0 ** (1 - other) * last_bit, (2 - last_bit) * 2.0**other),
            "The bias depends on the format: it is 2**(exponent_bits - 1) - 1.",
        )


def _of_largest(smallest: float, bias: int, last_bit: float) -> Answers:
    """Yield ends of which the largest is wrong; `last_bit` is what a fraction's last bit adds."""
    significand = "The largest significand is 1.1…1 in binary: 2 less what its last bit is worth."
    yield (smallest, (1 - last_bit) * 2.0 ** (bias + 1)), significand
    yield (
        (smallest, (1 + last_bit) * 2.0**bias),
        "That is the fraction 0…01. The largest number has the fraction 1…1.",
    )


def of_bytes(shape: Sequence[int], dtype: str) -> Answers:
    """Yield wrong numbers of bytes of a tensor with this shape and dtype."""
    each = BYTES[dtype]
    numbers = math.prod(shape)
    yield 2 * numbers, "The dtypes differ in their bytes: ask BYTES[dtype]."
    yield numbers * each / 8, "BYTES already says bytes, and not bits: nothing is divided by 8."
    yield (
        len(shape) * each,
        "len(shape) is how many dimensions there are. Multiply their sizes.",
    )
    yield (
        outcome(lambda: shape[0] * shape[1] * each),
        "A shape can have any number of dimensions: multiply all their sizes.",
    )
    yield (
        shape[0] * each if shape else None,
        "That has the first size alone. Does a return in the loop end it too early?",
    )
    yield (
        math.prod(shape * each),
        "In Python, a tuple times 2 has its parts twice. Take the product of the sizes first.",
    )
    yield 0, "A product that begins with 0 stays 0: begin with 1."
    yield (
        outcome(lambda: numbers * BYTES),
        "BYTES is a table with a row for each dtype: BYTES[…] looks one of them up.",
    )
    yield (
        outcome(lambda: BYTES["dtype"]),
        "In quotes, 'dtype' is a word. Without them, dtype is the argument.",
    )
