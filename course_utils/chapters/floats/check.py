"""The exercises of notebook 01.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake. The decorator makes the check
that a notebook calls with the reader's answer.

In some cases a listed mistake equals the right answer. It explains a reader's error only if it
agrees with what their function returned in every case so far.
"""

import functools
import math
from collections.abc import Sequence

import torch

from course_utils.chapters.floats.beyond_check import (  # noqa: F401  exercises, too
    bf16_by_integers,
    shared_scale,
    spelled,
    stall,
)
from course_utils.chapters.floats.patterns import (
    by_the_formula,
    pattern_in_words,
    patterns,
    patterns_of_each_kind,
)
from course_utils.chapters.floats.slips_check import of_bytes, of_ends, of_formula
from course_utils.core import measure
from course_utils.core.accountant import BYTES
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, function, outcome
from course_utils.engine.judging.agreement import is_number, plain


@function(
    patterns,
    case_words=pattern_in_words,
    hints=(
        "Cut the other two fields out, too. The fraction is the last fraction_bits bits: keep them "
        "with &.",
        "The exponent is bits >> fraction_bits without the sign: & (2**exponent_bits - 1). "
        "Subtract the bias.",
        "Multiply three factors: (-1) ** sign, 1 + fraction / 2**fraction_bits, and "
        "2.0 ** (exponent - bias).",
    ),
)
def by_formula(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """The check of a reader's value(bits, exponent_bits, fraction_bits), by the formula alone."""
    right = by_the_formula(bits, exponent_bits, fraction_bits)
    yield right, "The formula, on patterns of five formats."

    sign = (-1) ** (bits >> (exponent_bits + fraction_bits))
    exponent = bits >> fraction_bits & (2**exponent_bits - 1)
    fraction = bits & (2**fraction_bits - 1)
    significand = 1 + fraction / 2**fraction_bits
    bias = 2 ** (exponent_bits - 1) - 1
    power = 2.0 ** (exponent - bias)

    without_one = sign * fraction / 2**fraction_bits * power
    yield without_one, "The leading 1 is not stored: add it to the fraction."
    bias_too_large_by_1 = right / 2
    yield bias_too_large_by_1, "The bias is 2**(exponent_bits - 1) - 1: 15 for 5 bits, 127 for 8."
    yield abs(right), "The first bit is the sign: 1 says minus."
    undivided = sign * (1 + fraction) * power
    yield (
        undivided,
        "F is an integer. Divide it by 2**fraction_bits to get the digits after the point.",
    )
    unbiased = sign * significand * 2.0**exponent
    yield unbiased, "The bias is missing: the exponent field counts from 0, the exponent does not."
    sign_and_exponent = bits >> fraction_bits
    sign_in_exponent = sign * significand * 2.0 ** (sign_and_exponent - bias)
    yield (
        sign_in_exponent,
        "Your exponent contains the sign bit. Keep the rest, with & (2**exponent_bits - 1).",
    )
    by_ieee = right
    if exponent == 0:
        by_ieee = sign * fraction / 2**fraction_bits * 2.0 ** (1 - bias)
    elif exponent == 2**exponent_bits - 1:
        by_ieee = math.nan if fraction else sign * math.inf
    yield by_ieee, "Zero, infinity and NaN come later. Here the formula alone is wanted."
    yield -abs(right), "Python reads -1**s as -(1**s), which is always -1: write (-1)**s."
    with_127 = sign * significand * 2.0 ** (exponent - 127)
    yield with_127, "127 is the bias of 8 exponent bits; it is 2**(exponent_bits - 1) - 1."
    yield from of_formula(bits, exponent_bits, fraction_bits)


# The formats whose every pattern torch reads, by their numbers of exponent bits and fraction bits.
READ_BY_TORCH = {(5, 10): "fp16", (8, 7): "bf16", (5, 2): "e5m2", (4, 3): "e4m3"}


@functools.cache
def _every_value(name: str) -> list[float]:
    """Return the value of each pattern as torch reads it, but those of E4M3 by the IEEE's rules.

    A reader's function gets no format's name, and so cannot know that E4M3 has rules of its own.
    """
    numbers = measure.every_value(name)
    if name == "e4m3":
        # By the IEEE's rules, an exponent of all ones is infinity, or NaN if the fraction is not 0.
        # Of each sign there are eight such patterns, the last ones.
        first_special = 0b0_1111_000
        numbers[first_special : first_special + 8] = [math.inf] + 7 * [math.nan]
        numbers[-8:] = [-math.inf] + 7 * [math.nan]
    return numbers


DIVIDE_FIRST = (
    "Zero has a sign, too. The integer 0 has none, so divide before you multiply by the sign: "
    "(-1)**sign * (fraction / 2**fraction_bits)."
)


@function(
    patterns_of_each_kind,
    case_words=pattern_in_words,
    hints=(
        "Begin with your function of turn 2. Look at the exponent field first, which is 0, all "
        "ones, or in between.",
        "A field of 0 has no leading 1, and the exponent 1 - bias. An integer 0 has no sign, so "
        "for -0.0 divide first: (-1)**sign * (fraction / 2**fraction_bits).",
        "All ones are math.inf with its sign if the fraction is 0, and math.nan otherwise.",
    ),
)
def decoded(bits: int, exponent_bits: int, fraction_bits: int) -> Answers:
    """The check of a reader's decode(bits, exponent_bits, fraction_bits): as torch reads them."""
    numbers = _every_value(READ_BY_TORCH[exponent_bits, fraction_bits])
    right = numbers[bits]
    yield right, "It agrees with torch in fp16, bf16 and E5M2, on patterns of each kind."

    by_formula_alone = by_the_formula(bits, exponent_bits, fraction_bits)
    yield (
        by_formula_alone,
        "An exponent field of 0 drops the leading 1, and one of all ones is no number.",
    )
    is_below_normal = (bits >> fraction_bits) % 2**exponent_bits == 0
    subnormals_halved = right / 2 if is_below_normal else right
    yield subnormals_halved, "Subnormals use 2.0**(1 - bias), not 2.0**(0 - bias)."
    # The exponent field 1 has the same power of two as 0 has, but a leading 1.
    with_one = numbers[bits | 1 << fraction_bits] if is_below_normal else right
    yield with_one, "An exponent field of 0 drops the leading 1: what is left is 0.F."
    is_special = not math.isfinite(right)
    yield (
        by_formula_alone if is_special else right,
        "An exponent field of all ones is infinity, or NaN where the fraction is not 0.",
    )
    yield (
        math.inf if math.isnan(right) else right,
        "All ones are infinity only where the fraction is 0. With any other fraction it is NaN.",
    )
    yield (
        math.nan if is_special else right,
        "All ones are NaN only where the fraction is not 0. With the fraction 0 it is infinity.",
    )
    yield abs(right), "The first bit is the sign: 1 says minus."
    yield right / 2, "The bias is 2**(exponent_bits - 1) - 1: 15 for 5 bits, 127 for 8."
    yield _every_value("fp16")[bits], "That is fp16 again. Take the widths that are given."
    # As if 15 had been subtracted in place of this format's bias.
    with_15 = right * 2.0 ** (2 ** (exponent_bits - 1) - 1 - 15)
    yield with_15, "15 is the bias of 5 exponent bits; it is 2**(exponent_bits - 1) - 1."
    # -0.0 is false, as any zero is, and then 0.0 is taken.
    yield right or 0.0, DIVIDE_FIRST
    without_sign = abs(right) if math.isinf(right) else right
    yield without_sign, "Infinity has a sign, too: -math.inf if the first bit is 1."


def _numbers_above_zero(exponent_bits: int, fraction_bits: int) -> list[float]:
    """List some finite numbers above zero, with the format's smallest and largest among them."""
    bias = 2 ** (exponent_bits - 1) - 1
    smallest_subnormal = 2.0**-fraction_bits * 2.0 ** (1 - bias)
    numbers = [smallest_subnormal, 2 * smallest_subnormal]
    # The exponent field 0 is that of subnormals, and all ones that of infinity and NaN.
    for exponent in range(1, 2**exponent_bits - 1):
        for fraction in (0, 2**fraction_bits - 1):
            bits = exponent << fraction_bits | fraction
            numbers.append(by_the_formula(bits, exponent_bits, fraction_bits))
    return numbers


@function(
    # fp16 comes last: what its largest number is, is still to be guessed when this turn is taken.
    [(5, 2), (8, 7), (8, 23), (5, 10)],
    gives=("smallest", "largest"),
    case_words=lambda exponent_bits, fraction_bits: translated(
        "For {exponent} exponent bits and {fraction} fraction bits",
        exponent=exponent_bits,
        fraction=fraction_bits,
    ),
    hints=(
        "Write down both patterns. The smallest has exponent field 0 and the fraction 0…01; the "
        "largest has the field one below all ones, and the fraction 1…1.",
        "Field 0 means 2.0 ** (1 - bias), without a leading 1. Its last fraction bit is worth "
        "2.0 ** -fraction_bits.",
        "The largest exponent equals the bias, and 1.11…1 is 2 - 2.0 ** -fraction_bits.",
    ),
)
def ends(exponent_bits: int, fraction_bits: int) -> Answers:
    """The check of a reader's ends(…): by IEEE, the smallest number above zero and the largest."""
    numbers = _numbers_above_zero(exponent_bits, fraction_bits)
    smallest = min(numbers)
    largest = max(numbers)
    yield (
        (smallest, largest),
        "Exponent field 0 with fraction 0…01; the field below all ones with 1…1.",
    )
    yield (largest, smallest), "The smallest comes first."
    bias = 2 ** (exponent_bits - 1) - 1
    yield (
        (2.0 ** (1 - bias), largest),
        "That is the smallest normal number. The subnormals go on, down to fraction 0…01.",
    )
    yield (smallest / 2, largest), "Subnormals use 2.0**(1 - bias), not 2.0**(0 - bias)."
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
        "That pattern means infinity. The largest number is one gap below.",
    )
    yield (
        (-largest, largest),
        "That is the most negative number. The smallest above zero is wanted.",
    )
    yield from of_ends(exponent_bits, fraction_bits, smallest, largest)


def _tensors() -> list[tuple[torch.Tensor]]:
    """Return tensors: small gradients, large activations, numbers with a huge outlier, zeros."""
    normal = torch.randn(4096, generator=torch.Generator().manual_seed(0))
    gradients = normal * 1e-3
    activations = normal * 1e4
    # The outlier is below zero, so the largest number is not the largest magnitude.
    with_outlier = torch.cat([normal, torch.tensor([-5000.0])])
    zeros = torch.zeros(8)
    return [(gradients,), (activations,), (with_outlier,), (zeros,)]


def _read_scale(scale: object, x: torch.Tensor) -> object:
    """Return the reader's scale as a plain number.

    For a tensor of zeros, every scale that one can divide by again is right. Each of them is read
    as 1.0, which is the course's answer there.
    """
    scale = plain(scale)
    can_be_divided_by = is_number(scale) and 0 < abs(scale) < math.inf
    if can_be_divided_by and not x.any():
        return 1.0
    return scale


# Numbers other than 448, E4M3's largest, to which a reader's scale may lead the largest magnitude,
# with the advice.
OTHER_LIMITS = {
    256: "256 is E4M3's largest power of two, and its largest number is 448. Let the largest "
    "magnitude land on 448.",
    240: "That is where other kinds of E4M3 end, the IEEE's and fnuz. This one goes to 448.",
    464: "At 464 the largest is rounded down to 448. It is 3 % off then, for only 3 % more room "
    "below. Let the largest land on 448 itself.",
    57_344: "That is E5M2's limit. E4M3 goes to 448.",
    65_504: "That is fp16's limit. E4M3 goes to 448.",
}


@function(
    _tensors,
    tolerance=1e-3,
    read=_read_scale,
    hints=(
        "The largest magnitude is x.abs().max(). After the multiplication it should be 448.",
        "A tensor of zeros has no magnitude to divide by. Any scale but 0 will do for it, such as "
        "1.0.",
    ),
)
def scale_for_e4m3(x: torch.Tensor) -> Answers:
    """The check of a reader's scale for E4M3: the largest magnitude has to land on its 448."""
    largest = x.abs().max().item()
    right = 448 / largest if largest else 1.0  # in place of 1.0, `_read_scale` accepts others
    yield (
        right,
        "The largest magnitude lands on 448, so nothing overflows and no exponent is wasted.",
    )
    for limit, advice in OTHER_LIMITS.items():
        yield right * limit / 448, advice
    yield 1 / right, "That is the number to divide by. What is wanted is the number to multiply by."
    yield -right, "That changes every sign. Take the largest magnitude."
    # For zeros this divides by 0: `outcome` returns the error that a reader's function raises, too.
    signed = outcome(lambda: 448 / x.max().item())
    yield signed, "Take the largest magnitude: the number farthest from zero may be below it."
    lowest = outcome(lambda: 448 / -x.min().item())
    yield lowest, "Take the largest magnitude: the number farthest from zero may be above it."
    yield 1.0, "The scale depends on the tensor: take its largest magnitude."
    yield (
        2.0 ** math.floor(math.log2(right)),
        "A power of two rounds nothing, but it lets the largest magnitude end between 224 and 448. "
        "Here it has to land on 448.",
    )
    # The mistakes below forget the tensor of zeros alone, for which Python's 448 / 0.0 raises an
    # error and torch's is infinite. For all other tensors they come to the right scale.
    advice_on_zeros = (
        "A tensor of zeros needs a scale too: any number that can be divided by again."
    )
    yield outcome(lambda: 448 / largest), advice_on_zeros
    for of_zeros in (math.inf, 0.0):
        yield right if largest else of_zeros, advice_on_zeros


# The accountant's term.

TORCH_DTYPES = measure.DTYPES | {"int64": torch.int64, "bool": torch.bool}
SHAPES = [
    ((4, 6, 10), "bf16"),
    ((3, 5), "fp32"),
    ((), "fp64"),
    ((12288, 49152), "fp16"),
    ((6, 0), "int64"),
    ((5,), "bool"),
]


@function(
    SHAPES,
    case_words=lambda shape, dtype: translated(
        "For the shape {shape} in {dtype}", shape=shape, dtype=dtype
    ),
    unit="bytes",
    hints=(
        "How many numbers does a tensor of shape (2, 3, 4) hold? Multiply its sizes.",
        "Each number takes BYTES[dtype] bytes.",
    ),
)
def tensor_bytes(shape: Sequence[int], dtype: str) -> Answers:
    """The check of a reader's tensor_bytes(shape, dtype): the bytes of a tensor's numbers."""
    # On the device "meta", a tensor has no memory, however large it is.
    right = torch.empty(shape, dtype=TORCH_DTYPES[dtype], device="meta").nbytes
    numbers = right // BYTES[dtype]
    yield (
        right,
        "It agrees with torch on six tensors, also where there are no dimensions or no numbers.",
    )
    yield numbers, "That is how many numbers there are. Each takes BYTES[dtype] bytes."
    yield 4 * numbers, "Not every number takes 4 bytes: ask BYTES[dtype]."
    yield sum(shape) * BYTES[dtype], "The sizes are multiplied, not added."
    yield right * 8, "That is in bits. BYTES says bytes."
    none_without_dimensions = right if shape else 0
    yield none_without_dimensions, "A tensor without dimensions holds one number."
    yield from of_bytes(shape, dtype)
