"""Answers to the exercises of notebook 01."""

import functools
import math
from fractions import Fraction

import numpy as np
import torch

from course_utils.checks import floats as check
from tests.tried import Check, Tried


def ieee(bits, e, m, *, leading=1, exponent_of_zero=1, infinity=math.inf, nan=math.nan, bias_more=0):
    """A decoder with one thing at a time done wrongly."""
    sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
    bias = 2 ** (e - 1) - 1 + bias_more
    if exponent == 2**e - 1:
        return nan if fraction else (-1) ** sign * infinity
    if exponent == 0:
        return (-1) ** sign * (1 - leading + fraction / 2**m) * 2.0 ** (exponent_of_zero - bias)
    return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - bias)


def by_ldexp(bits, e, m):
    """Another right way, in integers up to the end."""
    negative, magnitude = divmod(bits, 2 ** (e + m))
    exponent, fraction = divmod(magnitude, 2**m)
    if exponent == 2**e - 1:
        return math.nan if fraction else math.copysign(math.inf, 0.5 - negative)
    whole, least = (fraction + 2**m, exponent) if exponent else (fraction, 1)
    return math.copysign(math.ldexp(whole, least - 2 ** (e - 1) + 1 - m), 0.5 - negative)


def all_normal(bits, e, m):
    sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
    return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - 2 ** (e - 1) + 1)


def without_infinity(bits, e, m):
    return all_normal(bits, e, m) if bits >> m & (2**e - 1) == 2**e - 1 else ieee(bits, e, m)


def stops_at(fraction_bits, step, *, exponent=math.ceil, times=1):
    return times * 2.0 ** (fraction_bits + 1 + exponent(math.log2(step)))


def scale_to(limit):
    return lambda x: limit / x.abs().max().item() if x.any() else 1.0


def nearest(bits):
    """Right but for NaN."""
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def is_nan(bits):
    return bits & 0x7FFFFFFF > 0x7F800000


TRIED: dict[Check, Tried] = {
    check.spelled: Tried(
        right=["0b1100011010000000", "1_10001_1010000000", "1100 0110 1000 0000"],
        wrong=[
            ("0 10001 1010000000", "the first bit says minus"),
            ("1 10000001 1010000", "bias 127"),
            ("1 00010 1010000000", "plus the bias"),
            ("1 10010 0101000000", "15, not 16"),
            ("1 10001 1101000000", "is not stored"),
            ("1 10001 0000000101", "right behind the point"),
            ("1 10001 101", "9 came"),
            ("", "0 came"),
            (1100011010000000, "as a string, in quotes"),
            (-6.5, "as a string, in quotes"),
        ],
    ),
    check.block_gib: Tried(
        right=[np.float32(2.25), torch.tensor(2.25), Fraction(9, 4)],
        wrong=[
            (2.415919104, "10^9"),
            (2.415919104 / 2, "in GB"),
            (1.125, "one matrix"),
            (4.5, "bf16 takes 2"),
            (2304, "MiB"),
            (2.25 * 2**30, "in bytes"),
            (18, "in bits"),
            (0.5625, "four times as wide"),
            (2.2, "Wanted"),
            ("2.25 GiB", "without quotes"),
        ],
    ),
    check.decoded: Tried(
        right=[
            by_ldexp,
        ],
        wrong=[
            (functools.partial(ieee, exponent_of_zero=0), "2^(1 - bias)"),
            (functools.partial(ieee, leading=0), "drops the leading 1"),
            (functools.partial(ieee, nan=math.inf), "with any other fraction it is NaN"),
            (functools.partial(ieee, bias_more=1), "The bias is one less"),
            (all_normal, "drops the leading 1"),
            (without_infinity, "is infinity, or NaN"),
            (lambda b, e, m: abs(ieee(b, e, m)), "1 says minus"),
            (lambda b, e, m: ieee(b, 5, 10), "The widths of the fields are given"),
            (lambda b, e, m: ieee(b, e, m) or 0, "Zero has a sign too"),
        ],
    ),
    check.stall: Tried(
        right=[
            lambda m, step: stops_at(m, step),
            lambda m, step: int(stops_at(m, step)) or stops_at(m, step),
        ],
        wrong=[
            (lambda m, step: 2.0 ** (m + 1), "steps of 1"),
            (lambda m, step: step * 2.0 ** (m + 1), "power of two"),
            (functools.partial(stops_at, exponent=math.floor), "Round the exponent up"),
            (functools.partial(stops_at, times=0.5), "to twice that"),
            (functools.partial(stops_at, times=2), "goes to the even number"),
        ],
    ),
    check.scale_for_e4m3: Tried(
        right=[
            scale_to(448),
            lambda x: np.float32(448) / np.abs(x.numpy()).max() if x.any() else np.float32(1),
            lambda x: 448 / x.abs().max().clamp(min=1e-30),
        ],
        wrong=[
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
        ],
    ),
    check.bf16_by_integers: Tried(
        right=[
            lambda bits: np.uint16(bits >> 16 | 0x40 if is_nan(bits) else nearest(bits)),
            lambda bits: 0x7FFF if is_nan(bits) else nearest(bits),
        ],
        wrong=[
            (lambda bits: bits >> 16, "rounds towards zero"),
            (lambda bits: (bits + 0x8000) >> 16, "every tie up"),
            (lambda bits: (bits + 0x7FFF) >> 16, "every tie down"),
            (nearest, "must stay a NaN"),
            (lambda bits: 0x7FC0 if bits >> 23 & 0xFF == 0xFF else nearest(bits), "all ones as well"),
            (
                lambda bits: bits >> 16 | 0x40 if bits >> 23 & 0xFF == 0xFF else nearest(bits),
                "all ones as well",
            ),
            (lambda bits: (bits >> 16 | 0x40 if is_nan(bits) else nearest(bits)) << 16, "32 bits still"),
            (lambda bits: bits / 65_536, "One integer"),
        ],
    ),
}
