"""The exercises of notebook 01."""

import math
import operator
import random
from collections.abc import Iterator
from numbers import Real

import numpy as np
import torch

from course_utils import floats
from course_utils.checks.sentences import IN_PLACE, NO_NUMBER, advice_on_kind, name_of, shown, stopped
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, judge_function, judge_value, no_function


def spelled(answer: object) -> Verdict:
    """-6.5 in fp16, as a string of 16 bits."""
    if answer is not ... and not isinstance(answer, str):
        return Verdict(
            "not yet", f'Write the 16 bits as a string, in quotes: "0 00000 ...", not {shown(answer)}.'
        )
    if isinstance(answer, str):
        bits = "".join(answer.replace("_", "").split()).removeprefix("0b")
        if set(bits) <= {"0", "1"} and len(bits) != 16:
            return Verdict("not yet", f"fp16 has 16 bits: 1 + 5 + 10. {len(bits)} came.")
        answer = bits if set(bits) <= {"0", "1"} else answer
    return judge_value(
        answer,
        f"{floats.encode(-6.5, 'fp16'):016b}",
        wanted="16 bits, each a 0 or a 1: the sign, 5 of the exponent, 10 of the fraction",
        tempting={
            f"{floats.encode(6.5, 'fp16'):016b}": "That is +6.5: the first bit says minus.",
            f"{floats.encode(-6.5, 'bf16'):016b}": "That is bf16, with 8 exponent bits and bias 127. fp16 has 5 and 15.",
            "1000101010000000": "The exponent field holds the exponent plus the bias: 2 + 15.",
            "1100100101000000": "The bias is 15, not 16: half of 2^5, less 1.",
            "1100010000000101": "The fraction begins right behind the point: 101 first, then the zeros.",
            "1100011101000000": "The leading 1 of 1.101 is not stored; the fraction begins after the point.",
        },
        because="-6.5 = -1.101 (binary) × 2^2: sign 1, exponent 2 + 15 = 10001, fraction 1010000000.",
    )


def block_gib(answer: object) -> Verdict:
    """GiB of the two weight matrices of GPT-3's feed-forward block, in bf16."""
    one = torch.empty(4 * 12288, 12288, dtype=torch.bfloat16, device="meta")
    size = 2 * one.nbytes
    return judge_value(
        answer,
        size / 2**30,
        wanted="the GiB of two matrices in bf16",
        tempting={
            size / 2 / 10**9: "That is one matrix, and in GB. The block has two, and a GiB is 2^30 bytes.",
            size / 10**9: "That is in GB, 10^9 bytes. A GiB is 2^30 bytes.",
            size / 2**31: "That is one matrix; the block has two, up and down.",
            size / 2**29: "That is 4 bytes a number, which is fp32; bf16 takes 2.",
            size / 2**20: "That is in MiB.",
            size: "That is in bytes. A GiB is 2^30 of them.",
            size / 2**27: "That is in bits, 8 a byte; divide by 8.",
            size
            / 2**32: "The block is four times as wide inside: each matrix has 4 × 12288 × 12288 numbers.",
        },
        because="2 matrices × 4 × 12288 × 12288 numbers × 2 bytes = 2^30 × 2.25 bytes.",
    )


def decoded(answer: object) -> Verdict:
    """A reader's decode(bits, exponent_bits, fraction_bits) on every pattern of fp16 and bf16."""

    patterns = torch.arange(2**16, dtype=torch.int32).to(torch.uint16)
    read_by_torch = {
        exponent_bits: patterns.view(kind).double().tolist()
        for exponent_bits, kind in ((5, torch.float16), (8, torch.bfloat16))
    }

    def oracle(bits: int, exponent_bits: int, fraction_bits: int) -> float:
        return read_by_torch[exponent_bits][bits]

    def no_subnormals(bits: int, e: int, m: int) -> float:
        sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
        return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - (2 ** (e - 1) - 1))

    def kind(bits: int, e: int) -> str:
        return floats.kind(bits, "fp16" if e == 5 else "bf16")

    def one_exponent_too_low(bits: int, e: int, m: int) -> float:
        return oracle(bits, e, m) / (2 if kind(bits, e) == "subnormal" else 1)

    def subnormals_only_by_exponent(bits: int, e: int, m: int) -> float:
        return oracle(bits | 1 << m, e, m) if bits >> m & (2**e - 1) == 0 else oracle(bits, e, m)

    def endless(bits: int, e: int, m: int) -> float:
        no_number = kind(bits, e) in ("infinity", "NaN")
        return no_subnormals(bits, e, m) if no_number else oracle(bits, e, m)

    def nan_left_out(bits: int, e: int, m: int) -> float:
        return math.inf if kind(bits, e) == "NaN" else oracle(bits, e, m)

    def without_sign(bits: int, e: int, m: int) -> float:
        return abs(oracle(bits, e, m))

    def bias_too_large(bits: int, e: int, m: int) -> float:
        return oracle(bits, e, m) / 2

    def always_fp16(bits: int, e: int, m: int) -> float:
        return oracle(bits, 5, 10)

    def zero_without_sign(bits: int, e: int, m: int) -> float:
        return oracle(bits, e, m) or 0.0

    # Those to talk about come first: two normal numbers, zero, a subnormal, infinity, NaN, and -0.0.
    tellings = ((bits, 5, 10) for bits in (0x3C00, 0xC500, 0, 1, 0x7C00, 0x7E00, 0x8000))
    other_widths = (0x3F80, 8, 7)
    every = ((bits, e, m) for e, m in ((5, 10), (8, 7)) for bits in range(2**16))
    return judge_function(
        answer,
        oracle,
        [*tellings, other_widths, *every],
        tempting={
            no_subnormals: "An exponent field of 0 drops the leading 1, and one of all ones is no number at all.",
            one_exponent_too_low: "Subnormals use 2^(1 - bias), not 2^(0 - bias).",
            subnormals_only_by_exponent: "An exponent field of 0 drops the leading 1: what is left is 0 and a fraction.",
            endless: "An exponent field of all ones is infinity, or NaN where the fraction is not 0.",
            nan_left_out: "All ones is infinity only where the fraction is 0; with any other fraction it is NaN.",
            without_sign: "The first bit is the sign: 1 says minus.",
            bias_too_large: "The bias is one less than half the exponent field's 2^bits: 15 for 5 bits.",
            always_fp16: "That is fp16 again. The widths of the fields are given: use them for the bias too.",
            zero_without_sign: "Zero has a sign too.",
        },
        because="All 131,072 patterns of fp16 and bf16.",
    )


def stall(answer: object) -> Verdict:
    """Where a running sum of equal positive steps stops, for any number of fraction bits."""

    def oracle(fraction_bits: int, step: float) -> float:
        total = 0.0
        while True:
            after = _rounded(total + step, fraction_bits)
            if after == total:
                return total
            total = after

    def power_of_two(fraction_bits: int, step: float) -> float:
        return 2.0 ** (fraction_bits + 1)

    def spacing_of_one_step(fraction_bits: int, step: float) -> float:
        return 2.0 ** (fraction_bits + 1 + math.floor(math.log2(step)))

    def times_step(fraction_bits: int, step: float) -> float:
        return step * 2.0 ** (fraction_bits + 1)

    def still_moving(fraction_bits: int, step: float) -> float:
        return oracle(fraction_bits, step) / 2

    def after_the_tie(fraction_bits: int, step: float) -> float:
        return oracle(fraction_bits, step) * 2

    return judge_function(
        answer,
        oracle,
        [(m, step) for step in (1.0, 0.5, 2.0**-9, 3.0, 5.0, 0.75, 1.25, 1000.0) for m in (7, 10, 2)],
        tempting={
            power_of_two: "That is for steps of 1. What counts is the step beside the spacing.",
            spacing_of_one_step: "Rounded down, where the step is still more than half a spacing: the sum goes on. "
            "Round the exponent up.",
            still_moving: "There a step is still more than half a spacing: the sum goes on, to twice that.",
            after_the_tie: "It stops before: half a spacing is a tie, and a tie goes to the even number, which is the sum.",
            times_step: "That holds where the step is a power of two. For others, look for the power of two "
            "at which the step is no more than half a spacing.",
        },
        because="The sum stops at the first power of two whose spacing is at least twice the step.",
    )


def _rounded(x: float, fraction_bits: int) -> float:
    """x to so many fraction bits, ties to even, with no limit to the exponent."""
    spacing = 2.0 ** (math.frexp(x)[1] - 1 - fraction_bits)
    return round(x / spacing) * spacing


def scale_for_e4m3(answer: object) -> Verdict:
    """A reader's scale for a tensor, by what E4M3 makes of the scaled tensor."""
    if not callable(answer):
        return no_function(answer)
    for name, x in _tensors():
        given = x.clone()
        scale, error = call(answer, given)
        if scale is ...:
            return NOT_ATTEMPTED
        if error:
            said = f"{name_of(answer)} {stopped(answer, error)} {'' if x.any() else ZEROS}".strip()
        elif not torch.equal(given, x):
            said = f"{name_of(answer)} {IN_PLACE}"
        else:
            said = _complaint(x, scale)
        if said:
            return Verdict("not yet", f"On {name}, {said}")
    return Verdict(
        "right", "The largest magnitude lands on 448, so nothing overflows and no exponent is wasted."
    )


def _tensors() -> Iterator[tuple[str, torch.Tensor]]:
    draw = torch.Generator().manual_seed(0)
    normal = torch.randn(4096, generator=draw)
    yield "small gradients (normal, 1e-3)", normal * 1e-3
    yield "large activations (normal, 1e4)", normal * 1e4
    yield "one huge negative outlier", torch.cat([normal, torch.tensor([-5000.0])])
    yield "a tensor of zeros", torch.zeros(8)


ZEROS = "A tensor of zeros needs a scale too: any number that can be divided by again."


def _complaint(x: torch.Tensor, came: object) -> str:
    """What is wrong with that scale, or nothing."""
    scale = _as_float(came)
    if scale is None:
        return f"it gave {shown(came)}. {advice_on_kind(came, 1.0)}"
    if not math.isfinite(scale) or scale == 0:
        advice = (
            (NO_NUMBER if math.isnan(scale) else "Nothing can be divided by it again.") if x.any() else ZEROS
        )
        return f"the scale is {scale:g}. {advice}"
    if scale < 0:
        return f"the scale is {scale:.4g}, and turns every sign. Take the largest magnitude."
    true_largest = x.double().abs().max().item()
    if math.isclose(scale, true_largest / 448, rel_tol=1e-6):
        return "that is the inverse: the number to divide by. What is wanted is the number to multiply by."
    largest = true_largest * scale
    if 448 * (1 + 1e-6) < largest <= 464 * (1 + 1e-6):
        return (
            f"the largest scaled magnitude is {largest:.4g}. Up to 464 it would round to 448, and no further off "
            "than that; but the largest number is 448, and nothing is gained beyond it."
        )
    for limit, words in OTHER_LIMITS.items():
        if math.isclose(largest, limit, rel_tol=1e-6):
            return f"the largest scaled magnitude is {limit:,}. {words} E4M3 goes to 448."
    if largest > 464:
        return f"the largest scaled magnitude is {largest:.4g}, beyond E4M3's 448. Is it the largest magnitude that you took?"
    if 0 < largest < 447:
        return f"the largest scaled magnitude is {largest:.4g}: there is room up to 448, and the small values need it."
    return ""


OTHER_LIMITS = {
    240: "That is the limit of another E4M3, which has infinities.",
    256: "That is a power of two, and not the largest number.",
    57_344: "That is E5M2's limit.",
    65_504: "That is fp16's limit.",
}


def _as_float(x: object) -> float | None:
    """One real number, of whatever type; None for anything else."""
    x = x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else x
    try:
        return (
            float(x) if isinstance(x, Real) and not isinstance(x, bool) else None
        )  # NumPy's numbers are Real
    except OverflowError:
        return math.inf


class Pattern(int):
    """An integer that shows itself in hexadecimal."""

    def __repr__(self) -> str:
        return hex(self)


def bf16_by_integers(answer: object) -> Verdict:
    """A reader's fp32 pattern to bf16 pattern, in integers, against rounding by exact fractions."""

    def oracle(bits: int) -> int:
        return Pattern(floats.encode(floats.decode(bits, "fp32"), "bf16"))

    def truncated(bits: int) -> int:
        return bits >> 16

    def half_up(bits: int) -> int:
        return (bits + 0x8000) >> 16

    def half_down(bits: int) -> int:
        return (bits + 0x7FFF) >> 16

    def without_nan(bits: int) -> int:
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

    def infinity_too(bits: int) -> int:
        return bits >> 16 | 0x40 if bits >> 23 & 0xFF == 0xFF else oracle(bits)

    def not_shifted(bits: int) -> int:
        return oracle(bits) << 16

    def judged(bits: int) -> object:
        result = answer(bits)
        if isinstance(result, float | np.floating):
            raise TypeError(f"{result} is a float. One integer is wanted, as // and >> give it.")
        try:
            result = operator.index(result)
        except TypeError:
            return result
        kept = 0 <= result < 2**16 and floats.kind(result, "bf16") == "NaN"
        # Which of the NaNs it is, is a matter of taste.
        return oracle(bits) if kept and floats.kind(bits, "fp32") == "NaN" else Pattern(result)

    if answer is ... or not callable(answer):
        return judge_function(answer, oracle, (), tempting={}, because="")
    judged.__wrapped__ = answer
    judged.__name__ = name_of(answer)
    draw = random.Random(0)
    ties = [0x3F80C000, 0x3F808000, 0x3F818000, 0x3F807FFF, 0x7F7F8000, 0x7F7F7FFF, 0x00008000, 0x80018000]
    nans = [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F80FFFF]
    cases = [0x3F800000, *ties, 0x7F800000, 0xFF800000, *nans, *(draw.getrandbits(32) for _ in range(5000))]
    return judge_function(
        judged,
        oracle,
        [(Pattern(bits),) for bits in cases],
        tempting={
            without_nan: "The rounding is right. A NaN whose ones are all among the bits that go must stay a NaN.",
            infinity_too: "Infinity's exponent is all ones as well. NaN is what has a fraction besides.",
            not_shifted: "Those are 32 bits still. bf16 is the upper 16: shift.",
            truncated: "Dropping 16 bits rounds towards zero (and can turn NaN into infinity). Round to nearest.",
            half_up: "That sends every tie up. A tie goes to the pattern that ends in 0.",
            half_down: "That sends every tie down. A tie goes to the pattern that ends in 0.",
        },
        because=f"{len(cases):,} patterns: ties, infinities, NaN and random ones.",
    )
