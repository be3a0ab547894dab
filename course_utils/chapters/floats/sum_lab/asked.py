"""How many ones are added, in which format, and where the sum stops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from course_utils.core import floats
from course_utils.core.say import Guess
from course_utils.core.say.language import template
from course_utils.engine.labs.fields import choice, drawn, reveal
from course_utils.engine.labs.powers import power_of_two

FORMATS = ("bf16", "fp16", "fp32")
MOST = 26  # at most 2^26 ones are added
PRESETS: Mapping[str, Mapping[str, object]] = {
    "can bf16 count to 4,096?": {"fmt": "bf16", "power": 12},
    "what is different at 128?": {"fmt": "bf16", "power": 7},
    "can fp32 count tokens?": {"fmt": "fp32", "power": MOST},
}
MARKS = (
    template("where the sum stops in bf16"),
    template("where the sum stops in fp16"),
    template("where the sum stops in fp32"),
)
QUESTIONS = (
    template("where a sum of ones in bf16 stops"),
    template("where a sum of ones in fp16 stops"),
    template("where a sum of ones in fp32 stops"),
)


def _level_in_words(_mark: int, level: int) -> str:
    """Return what screen readers say of a mark at this level, such as "2^8 = 256"."""
    return f"2^{level} = {2**level:,}"


@dataclass(frozen=True)
class Ones:
    """2^power ones, to be added in a format, and the reader's guess where each format's sum stops.

    A guess is the exponent of a power of two, or None while its mark is not set.
    """

    fmt: str = choice("format", FORMATS, "bf16")
    power: int = power_of_two("ones added", MOST, MOST, play=True, width_px=400)
    guess: Sequence[int | None] = drawn(
        "your marks",
        marks=MARKS,
        levels=MOST + 1,
        says=_level_in_words,
    )
    shown: bool = reveal()


@cache
def sums(fmt: str) -> Sequence[int]:
    """Return the sums of 1, 2, 4, … 2^MOST ones, which are added one by one.

    Each sum is rounded to the format before the next 1 is added. In bf16 the last sums are all 256.
    To save time, only the first addition after each power of two is computed, and all additions up
    to the next power are taken to gain as much. This holds because the format has every whole
    number up to 2^(fraction bits + 1): until then each addition gains 1. There the sum stops, so
    every further addition is the same one, and gains 0.
    """
    total = 1
    totals = [total]
    for power in range(MOST):
        gain = floats.stored(total + 1, fmt) - total  # 1 or 0
        total += int(gain) * 2**power  # from 2^power ones to twice as many
        totals.append(total)
    return totals


def predicted(fmt: str) -> int:
    """Return 2^(fraction bits + 1), where the sum should stop: half a gap is 1 there."""
    fraction_bits = floats.FORMATS[fmt].fraction_bits
    return 2 ** (fraction_bits + 1)


def guesses(asked: Ones, found: object = None) -> list[Guess]:
    """Return a guess for each mark that is set, with the sum at which the format really stops.

    `found` is what the method `guesses` of every lab is given; this lab needs nothing of it.
    """
    guesses = []
    for fmt, question, level in zip(FORMATS, QUESTIONS, asked.guess, strict=True):
        if level is not None:
            guesses.append(Guess(question, said=2**level, measured=sums(fmt)[-1]))
    return guesses
