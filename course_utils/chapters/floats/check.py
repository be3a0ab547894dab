"""The exercises of notebook 01."""

import math
import random
from collections.abc import Iterator, Sequence

import torch

from course_utils.core import measure
from course_utils.core.accountant import BYTES
from course_utils.engine.judging import Answers, function, outcome
from course_utils.engine.judging.agreement import is_number, plain


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
    yield (
        undivided,
        "F is an integer. Divide it by 2^(fraction bits) to get what stands after the point.",
    )
    others = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0**exponent
    yield others, "The bias is missing: the exponent field counts from 0, the exponent does not."
    unmasked = bits >> fraction_bits
    signed = (-1) ** sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (unmasked - bias)
    yield (
        signed,
        "Your exponent contains the sign bit. Keep the rest, with & (2**exponent_bits - 1).",
    )
    ends = {0: (-1) ** sign * fraction / 2**fraction_bits * 2.0 ** (1 - bias)}
    ends[2**exponent_bits - 1] = math.nan if fraction else (-1) ** sign * math.inf
    yield (
        ends.get(exponent, right),
        "Zero, infinity and NaN come next. Here the formula alone is wanted.",
    )
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
    yield (
        (smallest, largest),
        "Exponent field 0 with fraction 0…01; the field below all ones with 1…1.",
    )
    yield (largest, smallest), "The smallest comes first."
    normal = (2.0 ** (1 - bias), largest)
    yield normal, "That is the smallest normal number. The subnormals go on, down to fraction 0…01."
    yield (smallest / 2, largest), "Subnormals use 2^(1 - bias), not 2^(0 - bias)."
    yield (
        (smallest, 2.0**bias),
        "The exponent is right. With the fraction 1…1 its factor is nearly 2, not 1.",
    )
    yield (
        (smallest, 2 * largest),
        "All ones means infinity or NaN. The largest number has the field below.",
    )
    yield (
        (smallest, 2.0 ** (bias + 1)),
        "Infinity stands where that would be the next number. The largest is one gap below.",
    )
    yield (
        (-largest, largest),
        "That is the most negative number. The smallest above zero is wanted.",
    )


def _tensors() -> list[tuple[torch.Tensor]]:
    """Small gradients, large activations, one huge outlier below zero, and zeros."""
    normal = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    outlier = torch.cat([normal, torch.tensor([-5000.0])])
    return [(normal * 1e-3,), (normal * 1e4,), (outlier,), (torch.zeros(8),)]


def _scale(came: object, x: torch.Tensor) -> object:
    """As a number. Of zeros, one that can be divided by again stands for every other."""
    came = plain(came)
    divides = is_number(came) and 0 < abs(came) < math.inf
    return 1.0 if divides and not x.any() else came


OTHER_LIMITS = {
    240: "That is where other E4M3s end, the IEEE's and fnuz. This one goes to 448.",
    464: "Up to 464 all is rounded to 448, and nothing is gained. Let the largest land on 448 itself.",
    57_344: "That is E5M2's limit. E4M3 goes to 448.",
    65_504: "That is fp16's limit. E4M3 goes to 448.",
}


@function(_tensors, tolerance=1e-3, read=_scale)
def scale_for_e4m3(x: torch.Tensor) -> Answers:
    """A reader's scale for a tensor, so that its largest magnitude lands on E4M3's 448."""
    largest = x.abs().max().item()
    right = 448 / largest if largest else 1.0
    yield (
        right,
        "The largest magnitude lands on 448, so nothing overflows and no exponent is wasted.",
    )
    for limit, advice in OTHER_LIMITS.items():
        yield right * limit / 448, advice
    yield 1 / right, "That is the number to divide by. What is wanted is the number to multiply by."
    yield -right, "That changes every sign. Take the largest magnitude."
    signed = outcome(lambda: 448 / x.max().item())
    yield signed, "Take the largest magnitude: the number farthest from zero may be below it."
    lowest = outcome(lambda: 448 / -x.min().item())
    yield lowest, "Take the largest magnitude: the number farthest from zero may be above it."
    yield 1.0, "The scale depends on the tensor: take its largest magnitude."
    for of_zeros in (outcome(lambda: 448 / largest), right if largest else math.inf):
        yield (
            of_zeros,
            "A tensor of zeros needs a scale too: any number that can be divided by again.",
        )


# The accountant's term.

TORCH_DTYPES = measure.DTYPES | {name: getattr(torch, name) for name in ("int64", "bool")}
SHAPES = [
    ((4, 8), "bf16"),
    ((3, 5, 7), "fp32"),
    ((), "fp64"),
    ((12288, 49152), "fp16"),
    ((6, 0), "int64"),
]


@function([*SHAPES, ((5,), "bool")])
def tensor_bytes(shape: Sequence[int], dtype: str) -> Answers:
    """A reader's tensor_bytes(shape, dtype): what a tensor of that shape takes."""
    right, n = torch.empty(shape, dtype=TORCH_DTYPES[dtype], device="meta").nbytes, BYTES[dtype]
    numbers = right // n
    yield (
        right,
        "As torch counts six tensors, one without dimensions and one without numbers among them.",
    )
    yield numbers, "That is how many numbers there are. Each takes BYTES[dtype] bytes."
    yield 4 * numbers, "Not every number takes 4 bytes: ask BYTES[dtype]."
    yield sum(shape) * n, "The sizes are multiplied, not added."
    yield right * 8, "That is in bits. BYTES says bytes."
    yield math.prod(shape or (0,)) * n, "A tensor without dimensions holds one number."
