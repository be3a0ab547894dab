"""Answers to the exercises of notebook 01."""

import math

import numpy as np

from course_utils.checks import floats as check
from tests.tried import Check, Tried


def stops_at(fraction_bits, step):
    return 2.0 ** (fraction_bits + 1 + math.ceil(math.log2(step)))


def scale_to(limit):
    return lambda x: limit / x.abs().max().item() if x.any() else 1.0


def nearest(bits):
    """Right but for NaN."""
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def is_nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


TRIED: dict[Check, Tried] = {
    check.spelled: Tried(
        right=("0b1100011010000000", "1_10001_1010000000", "1100 0110 1000 0000"),
        wrong=(
            ("0 10001 1010000000", "the first bit says minus"),
            ("1 10001 101", "9 came"),
            ("", "0 came"),
            (-6.5, "as a string, in quotes"),
        ),
    ),
    check.block_gib: Tried(
        right=(np.float32(2.25),),
        wrong=(
            *((2.2, "close, but"), (3, "too large. Wanted"), (1, "too small")),
            ("2.25 GiB", "without quotes or a unit"),
        ),
    ),
    check.stall: Tried(right=(stops_at, lambda *case: int(stops_at(*case)) or stops_at(*case))),
    check.scale_for_e4m3: Tried(
        right=(
            scale_to(448),
            lambda x: np.float32(448) / np.abs(x.numpy()).max() if x.any() else np.float32(1),
            lambda x: 448 / x.abs().max().clamp(min=1e-30),
        ),
        wrong=(
            (lambda x: x.abs().max() / 448, "the inverse"),
            (lambda x: -448 / x.abs().max(), "turns every sign"),
            (lambda x: 448 / x.abs().max(), "of zeros needs a scale too"),
            (lambda x: 448 / x.abs().max().item(), "of zeros needs a scale too"),
            (lambda x: 448 / max(x.max().item(), 1e-9), "the largest magnitude"),
            (lambda x: 448 / x.std() if x.any() else 1.0, "the largest magnitude"),
            (scale_to(460), "nothing is gained"),
            (scale_to(65_504), "fp16's limit"),
            (scale_to(57_344), "E5M2's limit"),
            (scale_to(240), "another E4M3"),
            (lambda x: 1.0, "room up to 448"),
            (lambda x: 448 / x.abs_().max(), "Change nothing in place"),
            (lambda x: 448 / x.abs(), "One plain number"),
        ),
    ),
    check.bf16_by_integers: Tried(
        right=(
            lambda bits: np.uint16(bits >> 16 | 0x40 if is_nan(bits) else nearest(bits)),
            lambda bits: 0x7FFF if is_nan(bits) else nearest(bits),
        ),
        wrong=(
            (lambda bits: 0x7FC0 if bits >> 23 & 0xFF == 0xFF else nearest(bits), "all ones as well"),
            (lambda bits: bits / 65_536, "One integer"),
        ),
    ),
}
