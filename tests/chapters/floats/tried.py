"""Answers to the exercises of notebook 01."""

import numpy as np

from course_utils.chapters.floats import check
from tests.engine.tried import Check, Tried


def scale_to(limit):
    return lambda x: limit / x.abs().max().item() if x.any() else 1.0


def bit_by_bit(bits, exponent_bits, fraction_bits):
    digits = f"{bits:0{1 + exponent_bits + fraction_bits}b}"
    significand = 1 + sum(int(bit) / 2**n for n, bit in enumerate(digits[1 + exponent_bits :], 1))
    exponent = int(digits[1 : 1 + exponent_bits], 2) - 2 ** (exponent_bits - 1) + 1
    return (-1) ** int(digits[0]) * significand * 2.0**exponent


def ends_in_one_line(exponent_bits, fraction_bits):
    bias = 2 ** (exponent_bits - 1) - 1
    return 2.0 ** (1 - bias) / 2**fraction_bits, (
        2 ** (fraction_bits + 1) - 1
    ) / 2**fraction_bits * 2.0**bias


TRIED: dict[Check, Tried] = {
    check.by_formula: Tried(
        right=(bit_by_bit,),
        wrong=(
            (lambda bits, e, m: "1.0", "One plain number is wanted"),
            (lambda bits, e, m: 1.0, "expected -5.0"),
        ),
    ),
    check.ends: Tried(
        right=(ends_in_one_line, lambda e, m: list(ends_in_one_line(e, m))),
        wrong=(
            (lambda e, m: ends_in_one_line(e, m)[1], "gave 65504"),
            (lambda e, m: ends_in_one_line(5, 10), "(8, 7) gave"),
        ),
    ),
    check.scale_for_e4m3: Tried(
        right=(
            scale_to(448),
            lambda x: np.float32(448) / np.abs(x.numpy()).max() if x.any() else np.float32(1),
            lambda x: 448 / x.abs().max().clamp(min=1e-30),
        ),
        wrong=(
            (lambda x: x.abs().max() / 448, "the number to divide by"),
            (lambda x: -448 / x.abs().max(), "changes every sign"),
            (lambda x: 448 / x.abs().max(), "of zeros needs a scale too"),
            (lambda x: 448 / x.abs().max().item(), "of zeros needs a scale too"),
            (lambda x: 448 / max(x.max().item(), 1e-9), "the largest magnitude"),
            (lambda x: 448 / max(-x.min().item(), 1e-9), "may be above it"),
            (lambda x: 448 / -x.min() if x.any() else 1.0, "may be above it"),
            (lambda x: 448 / x.std() if x.any() else 1.0, "; expected "),
            (scale_to(464), "nothing is gained"),
            (scale_to(65_504), "fp16's limit"),
            (scale_to(57_344), "E5M2's limit"),
            (scale_to(240), "other E4M3s"),
            (lambda x: 1.0, "depends on the tensor"),
            (lambda x: 448 / x.abs_().max(), "Change nothing in place"),
            (lambda x: 448 / x.abs(), "One plain number"),
        ),
    ),
}
