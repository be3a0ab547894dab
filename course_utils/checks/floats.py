"""The exercises of notebook 01."""

import math
import operator
import random
from collections.abc import Iterator
from numbers import Real

import torch

from course_utils import floats
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, judge_function, judge_value, name_of


def spelled(answer: object) -> Verdict:
    """-6.5 in fp16, as a string of 16 bits."""
    if isinstance(answer, str):
        answer = "".join(answer.replace("_", "").split()).removeprefix("0b")
        if answer and set(answer) <= {"0", "1"} and len(answer) != 16:
            return Verdict("not yet", f"fp16 has 16 bits: 1 + 5 + 10. {len(answer)} came.")
    elif answer is not ...:
        return Verdict("not yet", f'Write the 16 bits as a string, in quotes: "0 00000 ...", not {answer!r}.')
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
    if isinstance(answer, str):
        return Verdict("not yet", f"Write a plain number, without quotes or a unit, not {answer!r}.")
    return judge_value(
        answer,
        size / 2**30,
        tempting={
            size / 2 / 10**9: "That is one matrix, and in GB. The block has two, and a GiB is 2^30 bytes.",
            size / 10**9: "That is in GB, 10^9 bytes. A GiB is 2^30 bytes.",
            size / 2**31: "That is one matrix; the block has two, up and down.",
            size / 2**29: "That is 4 bytes a number, which is fp32; bf16 takes 2.",
            size / 2**20: "That is in MiB.",
        },
        because="2 matrices × 4 × 12288 × 12288 numbers × 2 bytes = 2^30 × 2.25 bytes.",
    )


def decoded(answer: object) -> Verdict:
    """A reader's decode(bits, exponent_bits, fraction_bits) on every pattern of fp16 and bf16."""

    def oracle(bits: int, exponent_bits: int, fraction_bits: int) -> float:
        return floats.decode(bits, "fp16" if exponent_bits == 5 else "bf16")

    def no_subnormals(bits: int, e: int, m: int) -> float:
        sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
        return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - (2 ** (e - 1) - 1))

    def one_exponent_too_low(bits: int, e: int, m: int) -> float:
        if floats.kind(bits, "fp16" if e == 5 else "bf16") == "subnormal":
            return oracle(bits, e, m) / 2
        return oracle(bits, e, m)

    def zero_without_sign(bits: int, e: int, m: int) -> float:
        return oracle(bits, e, m) or 0.0

    # Those to talk about come first: two normal numbers, zero, a subnormal, infinity, NaN, and -0.0.
    tellings = ((bits, 5, 10) for bits in (0x3C00, 0xC500, 0, 1, 0x7C00, 0x7E00, 0x8000))
    every = ((bits, e, m) for e, m in ((5, 10), (8, 7)) for bits in range(2**16))
    return judge_function(
        answer,
        oracle,
        [*tellings, *every],
        tempting={
            no_subnormals: "An exponent field of 0 drops the leading 1, and one of all ones is no number at all.",
            one_exponent_too_low: "Subnormals use 2^(1 - bias), not 2^(0 - bias).",
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

    return judge_function(
        answer,
        oracle,
        [(m, step) for step in (1.0, 0.5, 2.0**-9, 3.0, 5.0, 0.75, 1.25, 1000.0) for m in (7, 10, 2)],
        tempting={
            power_of_two: "That is for steps of 1. What counts is the step beside the spacing.",
            spacing_of_one_step: "Rounded down, where the step is still more than half a spacing: the sum goes on. "
            "Round the exponent up.",
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
    if answer is ...:
        return NOT_ATTEMPTED
    if not callable(answer):
        return Verdict("not yet", f"A function is wanted here, not {answer!r}.")
    for name, x in _tensors():
        scale, stumble = call(answer, x.clone())
        if stumble:
            return Verdict("not yet", f"On {name}, {name_of(answer)} {stumble}")
        if scale is ...:
            return NOT_ATTEMPTED
        scale = scale.item() if isinstance(scale, torch.Tensor) and scale.numel() == 1 else scale
        if not isinstance(scale, Real):  # NumPy's numbers are
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
    if not math.isfinite(scale) or scale == 0:
        return (
            f"the scale is {scale}. Nothing can be divided by it again: a tensor of zeros needs a scale too."
        )
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
    if largest > 464:
        return f"the largest scaled magnitude is {largest:.4g}, beyond E4M3's 448. Is it the magnitude that you took?"
    if 0 < largest < 447:
        return f"the largest scaled magnitude is {largest:.4g}: there is room up to 448, and the small values need it."
    return ""


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

    def judged(bits: int) -> object:
        result = answer(bits)
        if result is ...:
            return result
        result = operator.index(result)  # whose message says that a float is none
        kept = 0 <= result < 2**16 and floats.kind(result, "bf16") == "NaN"
        # Which of the NaNs it is, is a matter of taste.
        return oracle(bits) if kept and floats.kind(bits, "fp32") == "NaN" else result

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
            truncated: "Dropping 16 bits rounds towards zero (and can turn NaN into infinity). Round to nearest.",
            half_up: "That sends every tie up. A tie goes to the pattern that ends in 0.",
            half_down: "That sends every tie down. A tie goes to the pattern that ends in 0.",
        },
        because=f"{len(cases):,} patterns: ties, infinities, NaN and random ones.",
    )
