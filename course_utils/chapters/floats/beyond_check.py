"""Exercises in *Beyond* of notebook 01; `check` imports them by name, and has the others.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import functools
import math
import random
from collections.abc import Iterator

from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, NotYetError, function, value
from course_utils.engine.judging.agreement import plain
from course_utils.engine.judging.sentences import shown


def _without_spaces(answer: object) -> str:
    """Return the reader's bits without spaces, underscores and 0b, such as "1100011010000000".

    Raise a NotYetError if the answer is no string, or is all 0s and 1s, but not 16 of them.
    """
    if not isinstance(answer, str):
        raise NotYetError(
            f'Write the 16 bits as a string, in quotes: "0 01111 ...", not {shown(answer)}.'
        )
    bits = "".join(answer.replace("_", "").split()).removeprefix("0b")
    # An answer with other characters is simply wrong, and the verdict says what is wanted.
    if len(bits) != 16 and set(bits) <= {"0", "1"}:
        raise NotYetError(f"16 bits are wanted, 1 + 5 + 10; yours are {len(bits)}.")
    return bits


@value(
    wanted="16 bits, each a 0 or a 1: the sign, five of the exponent, ten of the fraction",
    read=_without_spaces,
    hints=(
        "In binary, 6.5 is 110.1. Move the point until a single 1 is in front of it, and count "
        "the moves: that is the exponent.",
        "The exponent field holds 2 plus the bias, 15. The fraction is what comes after the "
        "leading 1, with zeros behind it.",
    ),
)
def spelled() -> Answers:
    """The check of a reader's bits of -6.5 in fp16."""
    in_fp16 = f"{floats.encode(-6.5, 'fp16'):016b}"
    in_bf16 = f"{floats.encode(-6.5, 'bf16'):016b}"
    yield in_fp16, "6.5 is 1.101 (binary) × 2^2, so the exponent field is 2 + 15, and F begins 101."
    yield f"0{in_fp16[1:]}", "That is +6.5. The first bit is the sign: 1 says minus."
    yield in_bf16, "That is bf16, with 8 exponent bits and a bias of 127. fp16 has 5, and 15."
    # Each of these is a sign, five bits of the exponent, and ten of the fraction. The right one is
    # 1 10001 1010000000.
    yield (
        _without_spaces("1 00010 1010000000"),
        "The exponent field holds the exponent plus the bias: 2 + 15.",
    )
    yield (
        _without_spaces("1 01111 1010000000"),
        "That field is the bias alone, which stands for 2^0. Add the exponent, 2.",
    )
    yield _without_spaces("1 10010 1010000000"), "The bias is 15, not 16: it is 2**(5 - 1) - 1."
    yield (
        _without_spaces("1 10001 0000000101"),
        "The fraction begins right after the point: 101 first, and then the zeros.",
    )
    yield (
        _without_spaces("1 10001 1101000000"),
        "The leading 1 of 1.101 is not stored: the fraction begins after the point.",
    )
    yield (
        _without_spaces("1 10001 1000000000"),
        "That is -6. The fraction is all that follows the first 1 of 110.1, not its last 1 alone.",
    )


@functools.cache
def _where_the_sum_stops(fraction_bits: int, number: float) -> float:
    """Add the number again and again, and round each sum, until it no longer changes.

    With 7 fraction bits, a sum of ones stops at 256. Between two powers of two, where all gaps are
    equal, each addition adds as much as the one before it. Such additions are skipped, because the
    notebook also asks for the sum of a clock in fp32, which would take 31 million of them.
    """
    total = 0.0
    after = number  # the total after one more addition
    while after != total:
        added = after - total
        total = after
        # frexp's exponent is one more than that of the power of two at or below the sum.
        next_power = 2.0 ** math.frexp(total + number)[1]
        # The gaps divide the way from next_power / 2 to next_power into 2^fraction_bits parts.
        gap = next_power / 2 ** (fraction_bits + 1)
        after = round((total + number) / gap) * gap  # Python rounds a tie to the even neighbour
        adds_the_same_again = after > total and after - total == added
        if adds_the_same_again:
            # As many more additions as leave the sum below next_power, from which on the gap is
            # twice as large.
            additions_below_next_power = max(0, math.ceil((next_power - after) / added) - 1)
            after += additions_below_next_power * added
    return total


# Fraction bits, and what is added again and again. Each number comes with two formats.
SUMS = [
    (fraction_bits, number)
    for number in (1.0, 0.5, 2.0**-9, 3.0, 5.0, 0.75, 1000.0)
    for fraction_bits in (7, 10)
]


@function(
    SUMS,
    hints=(
        "The sum stops where the number is at most half a gap, because a tie goes back to the "
        "sum. From 2**e on, the gap is 2**(e - fraction_bits).",
        "So look for the smallest e with number <= 2**(e - fraction_bits - 1), and solve for e: "
        "e >= fraction_bits + 1 + log2(number).",
        "e is an integer, so it is rounded up: math.ceil(math.log2(number)).",
    ),
)
def stall(fraction_bits: int, number: float) -> Answers:
    """The check of a reader's stop(fraction_bits, number), by a loop that adds and rounds."""
    # The number is added again and again, until the sum no longer changes.
    total = _where_the_sum_stops(fraction_bits, number)
    yield total, "From the first power of two on at which the number is at most half a gap."
    of_ones = 2.0 ** (fraction_bits + 1)  # where the sum of ones stops
    power = 2.0 ** math.floor(math.log2(number))  # the power of two at or below the number
    yield of_ones, "That is right for ones. Compare the number with half a gap."
    yield of_ones / number, "A smaller number is lost sooner, so the sum stops at a smaller value."
    advice_on_rounding = (
        "Round the exponent up. At your value the number is still more than half a gap."
    )
    yield of_ones * power, advice_on_rounding
    yield of_ones * 2.0 ** round(math.log2(number)), advice_on_rounding
    yield total / 2, "There the number is more than half a gap: the sum goes on, to twice that."
    yield (
        2 * of_ones * power,
        "Half a gap is a tie, and that tie goes back to the sum. So it stops here already, and not "
        "at the next power of two.",
    )
    yield (
        number * of_ones,
        "That holds for powers of two alone. The gap changes only at powers of two, so the sum "
        "stops at one.",
    )


class Pattern(int):
    """An integer that shows itself in hexadecimal."""

    def __repr__(self) -> str:
        return hex(self)


def _fp32_patterns() -> Iterator[tuple[Pattern]]:
    """Yield fp32 patterns: 1, numbers between ties, ties, infinities, NaNs, random ones."""
    # bf16 keeps the upper four digits. A lower half of 8000 is exactly half a gap.
    ties = (0x3F808000, 0x3F818000, 0x7F7F8000, 0x00008000, 0x80018000)
    no_numbers = (0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F80FFFF)
    one = 0x3F800000
    no_ties = (0x3F80C000, 0x3F807FFF, 0x7F7F7FFF)  # three quarters of a gap; just below a tie
    for bits in (one, *no_ties, *ties, *no_numbers):
        yield (Pattern(bits),)
    generator = random.Random(0)
    for _ in range(1000):
        yield (Pattern(generator.getrandbits(32)),)


def _nearest_bf16(bits: int) -> Pattern:
    """Return the bf16 pattern of an fp32 pattern, which is rounded as an exact fraction."""
    return Pattern(floats.encode(floats.decode(bits, "fp32"), "bf16"))


def _read_pattern(result: object, bits: int) -> object:
    """Return the reader's integer as a pattern, which a sentence shows in hexadecimal.

    bf16 has many NaNs. If `bits`, the fp32 pattern of the case, is a NaN, any NaN of bf16 is right,
    and is returned as the course's. A whole float, such as 16256.0, counts as an integer. Any other
    answer is returned unchanged.
    """
    result = plain(result)
    if isinstance(result, float) and result.is_integer():
        result = int(result)
    if not isinstance(result, int) or isinstance(result, bool):
        return result
    is_pattern = 0 <= result < 2**16
    if is_pattern and floats.kind(bits, "fp32") == floats.kind(result, "bf16") == "NaN":
        return _nearest_bf16(bits)
    return Pattern(result)


@function(
    _fp32_patterns,
    read=_read_pattern,
    case_words=lambda bits: translated("With {arguments}", arguments=f"bits = {bits:#x}"),
    hints=(
        "Half a gap of bf16 is 0x8000. Adding nearly that much, 0x7FFF, rounds everything but the "
        "ties, and then bits >> 16 cuts.",
        "A tie has to go up if the half that is kept ends in 1: add bits >> 16 & 1 as well.",
        "Without its sign, bits & 0x7FFFFFFF, a NaN is above 0x7F800000, which is infinity. "
        "Return it before you round.",
    ),
)
def bf16_by_integers(bits: int) -> Answers:
    """The check of a reader's fp32 pattern to bf16 pattern, against rounding by exact fractions."""
    right = _nearest_bf16(bits)
    yield right, "It agrees with exact fractions, also on ties, infinities and NaNs."
    cut = bits >> 16
    ends_in_one = cut & 1
    nearest = (bits + 0x7FFF + ends_in_one) >> 16
    yield (
        nearest,
        "The rounding is right. But some NaNs are lost: 0x7F800001, for example, becomes infinity.",
    )
    # The mistake: every exponent of all ones, 0xFF, is taken for a NaN's. To keep it a NaN after
    # the cut, a bit of its fraction is set, which makes infinity a NaN, too.
    exponent = bits >> 23 & 0xFF
    no_infinity = cut | 0x40 if exponent == 0xFF else right
    yield (
        no_infinity,
        "Infinity's exponent is all ones, too. Only a NaN has a fraction that is not 0.",
    )
    # Every pattern above that of infinity is taken for a NaN. The NaN that a reader returns for it
    # may keep the upper bits, or always be the same.
    for nan in (cut | 0x40, cut | 1, 0x7FC0, 0x7FFF, 0xFFC0, 0xFFFF):
        yield (
            nan if bits > 0x7F800000 and floats.kind(bits, "fp32") != "NaN" else right,
            "With its sign bit, every number below zero is above 0x7F800000. Take the sign away "
            "first: bits & 0x7FFFFFFF.",
        )
    yield bits / 2**16, "One integer is wanted, as // and >> give it."
    yield right << 16, "Those are still 32 bits. bf16 is the upper 16: shift them down."
    yield cut, "Dropping 16 bits rounds towards zero. Add to them before you cut."
    yield (
        (bits + 0x8000) >> 16,
        "That sends every tie up. Where the half that is kept ends in 0, it stays.",
    )
    yield (
        (bits + 0x7FFF) >> 16,
        "That sends every tie down. Where the half that is kept ends in 1, a tie has to go up.",
    )
    yield right & 0x7FFF, "The first bit is the sign. It is kept as it is."


def _blocks() -> Iterator[tuple[list[float]]]:
    """Yield five blocks of numbers that share a scale."""
    yield ([256.0, 1.0],)  # the largest is a power of two
    yield ([1.0, 3.0, 0.1],)
    yield ([-500.0, 7.0],)
    yield ([3e-8, 1e-9],)
    generator = random.Random(0)
    yield ([generator.gauss(0, 1e-3) for _ in range(32)],)


@function(
    _blocks,
    hints=(
        "Begin with the largest magnitude: max(abs(x) for x in block).",
        "math.frexp(largest)[1] - 1 is its exponent, rounded down. The largest power of two in "
        "E4M3 has the exponent 8.",
        "The scale is 2.0 to the difference of the two exponents.",
    ),
)
def shared_scale(block: list[float]) -> Answers:
    """The check of a reader's scale(block): the power of two that OCP's rule gives to MXFP8."""
    # In MXFP8 the numbers of a block are divided by their scale, and stored in E4M3.
    largest = max(map(abs, block))
    power = -127  # the smallest of E8M0, the format of the scales
    while 2.0 ** (power + 1) <= largest:
        power += 1
    # 2^8 is the largest power of two in E4M3, and 448 its largest number.
    right = 2.0 ** (power - 8)
    yield right, "The power of two of the largest magnitude, divided by 2^8, E4M3's largest."
    yield largest / 448, "E8M0 has no fraction: the scale has to be a power of two."
    yield 448 / largest, "The scale is what the numbers are divided by, and a power of two."
    yield (
        largest / 256,
        "Divide the largest magnitude's power of two, not the magnitude itself.",
    )
    yield power - 8.0, "That is the exponent. The scale is 2 to that power."
    yield 2.0**power, "With that scale the largest becomes 1 to 2. E4M3 goes on to 2^8 and beyond."
    rounded_up = power + 1 if largest > 2.0**power else power
    yield 2.0 ** (rounded_up - 8), "OCP's rule rounds the exponent down. Yours rounds it up."
    yield (
        2.0 ** math.ceil(math.log2(largest / 448)),
        "That is Mishra et al.'s rule, by which nothing is above 448. OCP's rounds the exponent "
        "down, even where the largest then ends up above 448 and is cut off.",
    )
    yield 1 / right, "That is the inverse. The numbers are divided by the scale."
    yield 2 * right, "math.frexp(x)[1] is one more than the exponent: it is 9 for 256."
    yield (
        _scale_of_highest(block),
        "Take the largest magnitude: the number farthest from zero may be below it.",
    )


def _scale_of_highest(block: list[float]) -> Number:
    """Return the scale of a reader who takes the largest number, not the largest magnitude."""
    return 2.0 ** (math.floor(math.log2(max(block))) - 8)
