"""A power that is written as the page writes it, 2^k, is told how Python writes it: 2**k."""

import math

import torch

from course_utils.engine.judging.powers import POWER
from tests.engine.test_checks import CHECKS


def with_a_caret_in_the_masks(bits, exponent_bits, fraction_bits):
    sign = bits >> (exponent_bits + fraction_bits)
    exponent = bits >> fraction_bits & (2 ^ exponent_bits - 1)
    fraction = bits & (2 ^ fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    return (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)


def with_a_caret_of_a_float(bits, exponent_bits, fraction_bits):
    sign = bits >> (exponent_bits + fraction_bits)
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    fraction = bits & (2**fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    return (-1) ** sign * (1 + fraction / 2**fraction_bits) * (2.0 ^ (exponent - bias))


def with_a_caret_below_normal(bits, exponent_bits, fraction_bits):
    sign = (-1) ** (bits >> (exponent_bits + fraction_bits))
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    fraction = bits & (2**fraction_bits - 1)
    bias = 2 ** (exponent_bits - 1) - 1
    if exponent == 0:
        return sign * fraction * (2 ^ (1 - bias - fraction_bits))
    if exponent == 2**exponent_bits - 1:
        return math.nan if fraction else sign * math.inf
    return sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)


def with_a_caret_of_t(p, g, m, v, t, lr, decay):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - lr * (m / (1 - 0.9 ^ t)) / ((v / (1 - 0.999 ^ t)) ** 0.5 + 1e-8), m, v


def divided_by_a_caret(bits, exponent_bits, fraction_bits):
    return bits / (2 ^ 2)


def with_exclusive_or_for_a_mask(bits, exponent_bits, fraction_bits):
    """It is right: it clears the fields to the left with ^."""
    sign = bits >> (exponent_bits + fraction_bits)
    rest = bits ^ sign << (exponent_bits + fraction_bits)
    exponent = rest >> fraction_bits
    fraction = rest ^ exponent << fraction_bits
    bias = 2 ** (exponent_bits - 1) - 1
    return (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)


def unsigned(bits, exponent_bits, fraction_bits):
    """It forgets the sign, a listed mistake, and uses ^ as it should."""
    return abs(with_exclusive_or_for_a_mask(bits, exponent_bits, fraction_bits) + (bits ^ bits))


def told(check, answer):
    verdict = CHECKS[check](answer)
    assert verdict.status == "not yet", verdict
    return verdict.words


def test_a_wrong_number_of_a_function_with_a_caret_is_told_how_a_power_is_written():
    words = told("by_formula", with_a_caret_in_the_masks)
    assert "; expected " in words
    assert words.endswith(POWER)
    assert told("decoded", with_a_caret_below_normal).endswith(POWER)


def test_an_error_that_a_caret_raises_is_told_how_a_power_is_written():
    words = told("by_formula", with_a_caret_of_a_float)
    said = "with TypeError: unsupported operand type(s) for ^: 'float' and 'int'."
    assert words.endswith(f"{said} {POWER}")
    assert told("adamw_step", with_a_caret_of_t).endswith(POWER)
    of_zero = told("by_formula", divided_by_a_caret)
    assert "ZeroDivisionError" in of_zero
    assert of_zero.endswith(POWER)
    of_tensors = told("adamw_step", lambda p, g, m, v, t, lr, decay: (torch.ones(2) ^ t, m, v))
    assert "bitwise_xor" in of_tensors
    assert of_tensors.endswith(POWER)


def test_what_a_caret_is_right_for_is_told_nothing_of_powers():
    verdict = CHECKS["by_formula"](with_exclusive_or_for_a_mask)
    assert verdict.right
    assert POWER not in verdict.words
    words = told("by_formula", unsigned)
    assert words.endswith("The first bit is the sign: 1 says minus.")
    without = told("by_formula", lambda bits, e, m: 2.0)  # whose source is a part of a line
    assert POWER not in without
    assert POWER not in told("by_formula", lambda bits, e, m: bits + "a^b")
