"""Answers to the exercises of notebook 01."""

import numpy as np

from course_utils.chapters.floats import check
from tests.engine.tried import Check, Tried


def scale_to(limit):
    def scale(x):
        if not x.any():
            return 1.0
        return limit / x.abs().max().item()

    return scale


def scale_by_numpy(x):
    largest = np.abs(x.numpy()).max()
    return np.float32(448) / largest if largest else np.float32(1)


def scale_by_largest(x):
    """As if no number were below zero."""
    return 448 / max(x.max().item(), 1e-9)


def scale_by_smallest(x):
    """As if no number were above zero."""
    return 448 / max(-x.min().item(), 1e-9)


def by_digits(bits, exponent_bits, fraction_bits):
    digits = f"{bits:0{1 + exponent_bits + fraction_bits}b}"
    sign = int(digits[0])
    exponent = int(digits[1 : 1 + exponent_bits], base=2)
    bias = 2 ** (exponent_bits - 1) - 1
    significand = 1
    worth = 1
    for digit in digits[1 + exponent_bits :]:
        worth /= 2
        significand += int(digit) * worth
    return (-1) ** sign * significand * 2.0 ** (exponent - bias)


def ends_as_tuple(exponent_bits, fraction_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    step = 1 / 2**fraction_bits
    smallest = 2.0 ** (1 - bias) * step
    largest = (2 - step) * 2.0**bias
    return smallest, largest


TRIED: dict[Check, Tried] = {
    check.by_formula: Tried(
        right=(by_digits,),
        wrong=(
            (lambda bits, e, m: "1.0", "One plain number is wanted"),
            (
                lambda bits, e, m: 1.0,
                "For the bits 1 10001 0100000000 (sign, exponent, fraction), your function gave 1;",
            ),
        ),
    ),
    check.ends: Tried(
        right=(ends_as_tuple, lambda e, m: list(ends_as_tuple(e, m))),
        wrong=(
            (lambda e, m: ends_as_tuple(e, m)[1], "gave 65,504;"),
            (
                lambda e, m: ends_as_tuple(5, 10),
                "With exponent_bits = 8 and fraction_bits = 7, your function gave",
            ),
        ),
    ),
    check.scale_for_e4m3: Tried(
        right=(
            scale_to(448),
            scale_by_numpy,
            lambda x: 448 / x.abs().max().clamp(min=1e-30),
        ),
        wrong=(
            (lambda x: x.abs().max() / 448, "the number to divide by"),
            (lambda x: -448 / x.abs().max(), "changes every sign"),
            (lambda x: 448 / x.abs().max(), "of zeros needs a scale too"),
            (lambda x: 448 / x.abs().max().item(), "of zeros needs a scale too"),
            (scale_by_largest, "the largest magnitude"),
            (scale_by_smallest, "may be above it"),
            (lambda x: 448 / -x.min() if x.any() else 1.0, "may be above it"),
            (lambda x: 448 / x.std() if x.any() else 1.0, "; expected "),
            (scale_to(464), "for only 3 % more room below"),
            (scale_to(65_504), "fp16's limit"),
            (scale_to(57_344), "E5M2's limit"),
            (scale_to(240), "other E4M3s"),
            (lambda x: 1.0, "depends on the tensor"),
            (lambda x: 448 / x.abs_().max(), "Change nothing in place"),
            (lambda x: 448 / x.abs(), "One plain number"),
        ),
    ),
}
