"""The exercises of notebook 01."""

import math
import random
from collections.abc import Callable, Iterator

import torch

from course_utils import floats
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, judge_function, judge_value


def spelled(answer: object) -> Verdict:
    """-6.5 in fp16, as a string of 16 bits."""
    if isinstance(answer, str):
        answer = "".join(answer.replace("_", "").split())
    return judge_value(
        answer,
        f"{floats.encode(-6.5, 'fp16'):016b}",
        tempting={
            f"{floats.encode(6.5, 'fp16'):016b}": "That is +6.5: the first bit says minus.",
            f"{floats.encode(-6.5, 'bf16'):016b}": "That is bf16, with 8 exponent bits and bias 127. fp16 has 5 and 15.",
            "1000101010000000": "The exponent field holds the exponent plus the bias: 2 + 15.",
            "1100011101000000": "The leading 1 of 1.101 is not stored; the fraction begins after the point.",
        },
        because="-6.5 = -1.101 (binary) × 2^2: sign 1, exponent 2 + 15 = 10001, fraction 1010000000.",
    )


def block_gib(answer: object) -> Verdict:
    """GiB of the two weight matrices of GPT-3's feed-forward block, in bf16."""
    one = torch.empty(4 * 12288, 12288, dtype=torch.bfloat16, device="meta")
    size = 2 * one.nbytes
    answer = float(answer) if isinstance(answer, int) and not isinstance(answer, bool) else answer
    return judge_value(
        answer,
        size / 2**30,
        tempting={
            size / 10**9: "That is in GB, 10^9 bytes. A GiB is 2^30 bytes.",
            size / 2**31: "That is one matrix; the block has two, up and down.",
            size / 2**29: "That is 4 bytes a number, which is fp32; bf16 takes 2.",
            size / 2**20: "That is in MiB.",
        },
        because="2 matrices × 4 × 12288 × 12288 numbers × 2 bytes = 2^30 × 2.25 bytes.",
    )


def decoded(answer: Callable[[int, int, int], object]) -> Verdict:
    """A reader's decode(bits, exponent_bits, fraction_bits) on every pattern of fp16 and bf16."""

    def oracle(bits: int, exponent_bits: int, fraction_bits: int) -> float:
        return floats.decode(bits, "fp16" if exponent_bits == 5 else "bf16")

    def no_subnormals(bits: int, e: int, m: int) -> float:
        sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
        return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - (2 ** (e - 1) - 1))

    def leading_one_gone_but_exponent_zero(bits: int, e: int, m: int) -> float:
        sign, fraction = bits >> (e + m), bits & (2**m - 1)
        return (-1) ** sign * fraction / 2**m * 2.0 ** (0 - (2 ** (e - 1) - 1))

    # A normal number, zero, a subnormal, infinity and NaN come first: they are the ones to talk about.
    tellings = ((bits, 5, 10) for bits in (0x3C00, 0, 1, 0x8000, 0x7C00, 0x7E00))
    every = ((bits, e, m) for e, m in ((5, 10), (8, 7)) for bits in range(2**16))
    return judge_function(
        answer,
        oracle,
        [*tellings, *every],
        tempting={
            no_subnormals: "An exponent field of 0 drops the leading 1, and one of all ones is no number at all.",
            leading_one_gone_but_exponent_zero: "Subnormals use 2^(1 - bias), not 2^(0 - bias).",
        },
        because="All 131,072 patterns of fp16 and bf16.",
    )


def stall(answer: Callable[[int, float], object]) -> Verdict:
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

    def times_step(fraction_bits: int, step: float) -> float:
        return step * 2.0 ** (fraction_bits + 1)

    return judge_function(
        answer,
        oracle,
        [(m, step) for step in (1.0, 0.5, 2.0**-9, 3.0, 5.0, 0.75, 1.25, 1000.0) for m in (7, 10, 2)],
        tempting={
            power_of_two: "That is for steps of 1. What counts is the step beside the spacing.",
            times_step: "That holds where the step is a power of two. For others, look for the power of two "
            "at which the step is no more than half a spacing.",
        },
        because="The sum stops at the first power of two whose spacing is at least twice the step.",
    )


def _rounded(x: float, fraction_bits: int) -> float:
    """x to so many fraction bits, ties to even, with no limit to the exponent."""
    spacing = 2.0 ** (math.frexp(x)[1] - 1 - fraction_bits)
    return round(x / spacing) * spacing


def scale_for_e4m3(answer: Callable[[torch.Tensor], object]) -> Verdict:
    """A reader's scale for a tensor, by what E4M3 makes of the scaled tensor."""
    for name, x in _tensors():
        try:
            scale = answer(x.clone())
        except Exception as error:
            return Verdict("not yet", f"On {name} your function stopped with {type(error).__name__}: {error}")
        if scale is ...:
            return NOT_ATTEMPTED
        scale = scale.item() if isinstance(scale, torch.Tensor) and scale.numel() == 1 else scale
        if not isinstance(scale, int | float):
            return Verdict("not yet", f"On {name} it returned {type(scale).__name__}, and not one number.")
        complaint = _complaint(x, float(scale))
        if complaint:
            return Verdict("not yet", f"On {name}, {complaint}")
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


def _complaint(x: torch.Tensor, scale: float) -> str:
    """What is wrong with that scale, or nothing."""
    if not math.isfinite(scale) or scale <= 0:
        return (
            f"the scale is {scale}. Nothing can be divided by it again: a tensor of zeros needs a scale too."
        )
    largest = (x.double() * scale).abs().max().item()
    if largest > 448 * (1 + 1e-6):
        return f"the largest scaled magnitude is {largest:.4g}, beyond E4M3's 448. Is it the magnitude that you took?"
    if 0 < largest < 447:
        return f"the largest scaled magnitude is {largest:.4g}: there is room up to 448, and the small values need it."
    return ""


def bf16_by_integers(answer: Callable[[int], object]) -> Verdict:
    """A reader's fp32 pattern to bf16 pattern, in integers, against rounding by exact fractions."""

    def oracle(bits: int) -> int:
        return floats.encode(floats.decode(bits, "fp32"), "bf16")

    def truncated(bits: int) -> int:
        return bits >> 16

    def half_up(bits: int) -> int:
        return (bits + 0x8000) >> 16

    def judged(bits: int) -> object:
        result = answer(bits)
        kept = isinstance(result, int) and 0 <= result < 2**16 and floats.kind(result, "bf16") == "NaN"
        # Which of the NaNs it is, is a matter of taste.
        return oracle(bits) if kept and floats.kind(bits, "fp32") == "NaN" else result

    judged.__name__ = answer.__name__
    draw = random.Random(0)
    ties = [0x3F808000, 0x3F818000, 0x3F80C000, 0x3F807FFF, 0x7F7F8000, 0x7F7F7FFF, 0x00008000, 0x80018000]
    nans = [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F80FFFF]
    cases = [0x3F800000, *ties, 0x7F800000, 0xFF800000, *nans, *(draw.getrandbits(32) for _ in range(5000))]
    return judge_function(
        judged,
        oracle,
        [(bits,) for bits in cases],
        tempting={
            truncated: "Dropping 16 bits rounds towards zero (and can turn NaN into infinity). Round to nearest.",
            half_up: "That sends every tie up. A tie goes to the pattern that ends in 0.",
        },
        because="5,017 patterns: ties, infinities, NaN and random ones.",
    )
