"""Exercises in *Beyond* of notebook 07; `check` imports them by name, and has the others.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import math

import torch

from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function, outcome
from course_utils.engine.judging.agreement import is_dense

# Each wrong rule fails at a weight of its own, so that the advice is on that rule.
WEIGHTS_AND_UPDATES = [
    (1.0, 0.001),
    (1.0, 0.01),
    (1.0, 0.005),
    (1.0, 0.003),
    (1.25, 0.0055),
    (0.30078125, 0.0025),
    (0.01904296875, 0.0001),
    (1.9921875, 0.0045),
    (96.0, 0.3),
    (2.0**-20, 2.0**-27),
    (1.0078125, 0.003),
    (1.0, 2.0**-8),  # from here on, half a gap exactly
    (1.0078125, 2.0**-8),
    (3.0, 2.0**-7),
]
# The advice if a reader's function uses a name that makes the cast itself.
NO_CAST = "A cast measures it. Here it is to be predicted, from the size of the gap."


@function(
    WEIGHTS_AND_UPDATES,
    without={"bfloat16": NO_CAST, "stored": NO_CAST},
    hints=(
        "From 1 to 2 the gap is 2^-7, from 2 to 4 twice that, and from 1/2 to 1 half of it.",
        "math.floor(math.log2(weight)) is the exponent of the power of two at or below the weight.",
        "weight / gap is an integer. If it is odd, the weight's fraction ends in 1, and the next "
        "number's in 0: then half a gap is enough.",
    ),
)
def moves(weight: Number, update: Number) -> Answers:
    """The check of a reader's my_moves(weight, update): whether the update moves a bf16 weight."""
    if floats.stored(weight, "bf16") != weight:  # no case has one, but a reader's call may
        raise ValueError(f"The weight has to be a number of bf16, and {weight} is none.")
    gap = floats.spacing(weight, "bf16")
    yield (
        floats.stored(weight + update, "bf16") != weight,
        "Fourteen weights from 2^-20 to 96, three of them with exactly half a gap.",
    )
    yield (
        weight + update != weight,
        "Rounded to bf16, which has 7 fraction bits, the sum may be the weight again.",
    )
    yield update >= gap, "Above half a gap the next number is nearer, so that is enough."
    yield (
        update > gap / 4,
        "bf16 has 7 fraction bits: the gap after 1 is 2^-7, and half of it 2^-8.",
    )
    exponent = math.log2(weight)  # from 2^e on, half a gap is 2^(e - 8)
    yield (
        update > 2.0 ** (math.ceil(exponent) - 8),
        "The gap is that of the power of two at or below the weight: round log2 down.",
    )
    yield update > 2.0**-8, "The gap depends on the weight: half of it is 2^-8 only from 1 to 2."
    yield (
        update > 2.0 ** (int(exponent) - 8),
        "int() rounds towards 0, so it rounds a negative exponent up. Take math.floor.",
    )
    yield (
        update > 2.0**-8 * weight,
        "The gap stays the same from one power of two to the next, although the weight grows.",
    )
    fraction_ends_in_1 = weight / gap % 2 == 1
    yield (
        update > gap / 2 or fraction_ends_in_1,
        "The fraction's last bit decides only where update is exactly half a gap.",
    )
    yield update >= gap / 2, "Half a gap may go to the weight itself: whose fraction ends in 0?"
    yield update > gap / 2, "Half a gap may go to the next number: whose fraction ends in 0?"


# fp16's largest number is 65,504. From 65,520 on, half a gap above it, a cast gives infinity.
LARGEST = (1.0, 3e-5, 300.0, 65_504.0, 1e6, 1.9998, 1.99951171875, 65_519.0, 65_520.0)


@function(
    [(largest,) for largest in LARGEST],
    hints=(
        "The scale is 2.0 ** n. Look for the largest n with 2.0 ** n * largest below 65,520.",
        "math.log2(65_520 / largest) is that n before it is rounded: round it down.",
        "If 2.0 ** n * largest is exactly 65,520, it is infinite. Then take half of the scale.",
    ),
)
def loss_scale(largest: Number) -> Answers:
    """The check of a reader's my_loss_scale(largest): the largest power of two that fp16 bears."""
    # Multiplied by it, the largest gradient has to stay finite when it is stored in fp16.
    right = 2.0 ** math.ceil(math.log2(2**17 / largest))  # too large, and halved until it fits
    while floats.overflows(right * largest, "fp16"):
        right /= 2
    yield right, "Nine gradients, and at four of them fp16's limit is very near."
    yield (
        2.0**15,
        "That is right for a largest gradient of 1. Smaller ones can be scaled up further.",
    )
    yield math.log2(right), "That is the exponent. The scale is 2 to that power."
    yield 2 * right, "With that scale the largest gradient becomes infinite."
    yield 65_504 / largest, "A power of two is wanted, because it changes no digit of a gradient."
    yield 65_520 / largest, "A power of two is wanted, and the product has to stay below 65,520."
    yield (
        2.0**15 / largest,
        "That is no power of two for most gradients. Round 65,520 / largest down to one.",
    )
    yield (
        2.0 ** int(math.log2(65_504 / largest)),
        "int() rounds towards 0, so it rounds a negative exponent up. Take math.floor.",
    )
    yield (
        2.0 ** (15 - math.floor(math.log2(largest))),
        "The digits count, too: 1.9998 · 2^15 is above 65,520, so take half of that scale.",
    )
    yield (
        right if right * largest <= 65_504 else right / 2,
        "Between 65,504 and 65,520, fp16 rounds down to 65,504, which is still finite.",
    )
    yield (
        2.0 ** math.floor(math.log2(65_520 / largest)),
        "65,520 itself is infinite already. The product has to stay below it.",
    )


# The largest magnitude of each step so far, the newest at the end, and how many of the last ones
# count. The scale brings the largest of these to 448, the largest number of E4M3.
HISTORIES = [
    ([48.0, 40.0, 3.0, 64.0, 32.0, 8.0, 4.0, 5.0], 3),
    ([7.0, 0.5, 2.0], 4),
    ([0.02, 0.05, 0.01], 1),
    ([1e4, 3e4, 2e4, 1e3, 500.0, 700.0], 5),
]


@function(
    HISTORIES,
    tolerance=1e-6,
    hints=(
        "history[-length:] has the last `length` numbers, or all of them if there are fewer.",
        "The scale is multiplied with the tensor, and the largest of these numbers has to become "
        "448.",
    ),
)
def delayed_scale(history: list[float], length: int) -> Answers:
    """The check of a reader's my_delayed_scale(history, length): the scale for the next step."""
    # The newest has the age 1, so these are the last `length`, or all if there are fewer.
    last = [largest for age, largest in enumerate(reversed(history), 1) if age <= length]
    right = 448 / max(last)
    yield right, "Four histories, one of them shorter than what it is asked for."
    yield (
        1 / right,
        "That is the inverse, by which the product is multiplied to take the scale off.",
    )
    yield (
        448 / history[-1],
        "That trusts the newest step alone. The largest of the last ones counts.",
    )
    yield 448 / max(history), "Old steps have to be forgotten: only the last `length` count."
    yield 448 / max(history[:length]), "Those are the oldest. The newest stands last."
    yield (
        outcome(lambda: 448 / sorted(history)[-length]),
        "The last `length` steps are wanted, in the order of time. Do not sort all of them.",
    )
    yield 448 / min(last), "With that scale all but the smallest would be cut off at 448."
    yield 448 * len(last) / sum(last), "The mean is too small: the largest would be cut off at 448."
    yield 57_344 / max(last), "57,344 is the largest number of E5M2. E4M3's is 448."
    yield 448 / max(history[-length - 1 :]), "That counts a step that is one too old."
    # With fewer steps than `length` the index is below 0, and counts from the end.
    yield (
        448 / max(history[len(history) - length :]),
        "At the beginning there are fewer steps than `length`: then all of them count.",
    )


# Each number has a draw, an integer from 0 to 65,535, which is added to the number's 32 bits. If
# the lower 16 bits carry into the upper 16, which are bf16's, the number is rounded away from 0.
NUMBERS_AND_DRAWS = [
    (
        torch.tensor([1.001, -1.001, 3.14159, 0.0123, -255.3, 1.0, -7e-5, 0.1]),
        torch.tensor([60_000, 50_000, 20_000, 44_000, 3, 65_535, 30_000, 11], dtype=torch.int32),
    ),
    # 1.00390625 is half-way between two numbers of bf16, so this draw reaches 65,536 exactly.
    (torch.tensor([[1.00390625], [2.5]]), torch.tensor([[2**15], [0]], dtype=torch.int32)),
]


def _in_bf16(result: object, *_case: object) -> object:
    """Return a tensor of bf16's numbers in bf16, and any other result as it is.

    So an answer also counts as right if its numbers are rounded to bf16's, but lie in a wider
    format. Each `read` gets the result and the arguments of its case; this one needs no arguments.
    """
    if isinstance(result, torch.Tensor) and is_dense(result) and result.is_floating_point():
        narrow = result.bfloat16()
        if torch.equal(narrow.to(result.dtype), result):
            return narrow
    return result


@function(
    NUMBERS_AND_DRAWS,
    read=_in_bf16,
    hints=(
        "x.view(torch.int32) are the bits as integers. Adding to such an integer carries from the "
        "lower half into the upper one, which is a step to the next number of bf16.",
        "bits & ~0xFFFF makes the lower 16 bits 0.",
        "x.view(torch.float32) reads integers as fp32 again. If the lower half is 0, the cast by "
        ".bfloat16() changes nothing.",
    ),
)
def rounded_by_chance(x: torch.Tensor, draws: torch.Tensor) -> Answers:
    """The check of a reader's my_rounding(x, draws): bf16, up or down as the draws decide."""
    gaps, in_gaps = _in_gaps(x)
    near = in_gaps.trunc()  # the neighbour towards 0
    share = (in_gaps - near).abs() * 2**16  # of the gap, never below 0: the lower half of the bits

    def with_far(goes_away: torch.Tensor) -> torch.Tensor:
        """Return the neighbour away from 0 where `goes_away`, and elsewhere the other one."""
        return ((near + x.sign() * goes_away) * gaps).bfloat16()

    yield (
        with_far(share + draws >= 2**16),
        "Ten numbers, on both sides of 0: each goes where its draw sends it.",
    )
    yield x.bfloat16(), "That rounds to the nearest, whatever the draw is."
    yield with_far(share < 0), "That cuts the lower half off. First the draw has to be added to it."
    yield (
        (x.view(torch.int32) + draws).view(torch.float32).bfloat16(),
        "After the draw is added, cut the lower half off. bfloat16() alone rounds a second time.",
    )
    yield (x + draws).bfloat16(), "Add the draws to the bits, and not to the numbers."
    yield (
        with_far(draws >= 2**15),
        "That goes up half of the time, however far the number has come.",
    )
    yield (
        with_far(draws < share),
        "The chance is right, but the large draws are to go up, and yours are the small ones.",
    )
    yield (
        with_far(draws > share),
        "The chance is the wrong way round: what has come further has to go up more often.",
    )
    below = in_gaps.floor()
    goes_up = (in_gaps - below) * 2**16 + draws >= 2**16
    yield (
        ((below + goes_up.double()) * gaps).bfloat16(),
        "Below 0 the lower half counts away from 0, as the magnitude does.",
    )
    yield with_far(share + draws > 2**16), "A sum of exactly 65,536 goes up, too."


def _in_gaps(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gap of bf16 around each number, and the number as a multiple of it, in fp64."""
    # frexp's significand is from 1/2 to 1, so its exponent is one more than in 1.… × 2^e, and the
    # gap 2^(e - 7) is 2^(exponent - 8).
    _, exponents = torch.frexp(x)
    ones = torch.ones(x.shape, dtype=torch.float64)
    gaps = torch.ldexp(ones, exponents - 8)
    return gaps, x.double() / gaps


@function(
    [
        ((300, 500), (128, 128), 8, 32),
        ((4, 48), (1, 32), 4, 8),
        ((576, 7168), (128, 128), 8, 32),
        ((2880, 2880), (1, 32), 4, 8),
        ((5, 100), (1, 16), 4, 8),
    ],
    hints=(
        "Count the bits: number_bits for each number, and scale_bits for each block. Then 8 bits "
        "are a byte.",
        "From top to bottom there are math.ceil(rows / block_rows) blocks.",
        "The blocks are those from top to bottom, times those from left to right.",
    ),
)
def bytes_in_blocks(
    shape: tuple[int, int], block: tuple[int, int], number_bits: int, scale_bits: int
) -> Answers:
    """The check of a reader's my_bytes_in_blocks(…): the bytes of a matrix with block scales."""
    rows, columns = shape
    block_rows, block_columns = block
    numbers = rows * columns
    # Block by block, and not by the formula that a reader writes.
    down = len(range(0, rows, block_rows))
    across = len(range(0, columns, block_columns))

    def in_bytes(scales: int) -> Number:
        """Return the bytes of all numbers and of that many scales."""
        return (numbers * number_bits + scales * scale_bits) / 8

    right = in_bytes(down * across)
    yield right, "Five matrices, block by block; in some, the last blocks are not full."
    full = (rows // block_rows) * (columns // block_columns)
    yield in_bytes(full), "A block at an edge has a scale, too, although it is not full."
    together = math.ceil(numbers / (block_rows * block_columns))
    yield (
        in_bytes(together),
        "A block ends at the edge of the matrix, so round up on each side, and then multiply.",
    )
    yield 8 * right, "Those are bits. 8 bits are a byte."
    yield in_bytes(0), "Each block has a scale, too: scale_bits for each of them."
    yield in_bytes(numbers), "One scale is for a whole block, and not for each number."
    yield in_bytes(1), "That is one scale for the whole matrix. Each block has one."
    yield in_bytes(down), "There are blocks from left to right, too."
    yield in_bytes(across), "There are blocks from top to bottom, too."
    yield in_bytes(down + across), "Multiply the blocks of the two sides; do not add them."
