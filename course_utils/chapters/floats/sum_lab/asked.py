"""How many ones are added, in which format, and where the sum stops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from course_utils.core import floats
from course_utils.core.say import Guess
from course_utils.engine.labs.fields import choice, drawn, reveal, whole

FORMATS = ("bf16", "fp16", "fp32")
MOST = 26  # ones, as a power of two
PRESETS: Mapping[str, Mapping[str, object]] = {
    "can bf16 count to 4,096?": {"fmt": "bf16", "power": 12},
    "what is different at 128?": {"fmt": "bf16", "power": 7},
    "can fp32 count tokens?": {"fmt": "fp32", "power": MOST},
}
MARKS = [f"where the sum stops in {fmt}" for fmt in FORMATS]


@dataclass(frozen=True)
class Ones:
    """2^power ones, added in a format; and the power of two at which the reader expects each format to stop."""

    fmt: str = choice("format", FORMATS, "bf16")
    power: int = whole("ones added: 2^", MOST, 0, MOST, play=True, width_px=330)
    guess: Sequence[int | None] = drawn(
        "your marks",
        marks=MARKS,
        levels=MOST + 1,
        says=lambda _, level: f"2^{level} = {2**level:,}",
    )
    shown: bool = reveal()


@cache
def sums(fmt: str) -> Sequence[int]:
    """The sums of 1, 2, 4, … 2^MOST ones, each stored before the next 1 is added.

    From one power of two to the next, the numbers of a format are equally far apart. So what becomes of the first 1
    there becomes of all of them, and one addition stands for all.
    """
    totals = [1]
    for power in range(MOST):
        kept = floats.stored(totals[-1] + 1, fmt) - totals[-1]
        totals.append(totals[-1] + int(kept) * 2**power)
    return totals


def predicted(fmt: str) -> int:
    """2^(fraction bits + 1): from there on, half a step is 1."""
    return 2 ** (floats.FORMATS[fmt].fraction_bits + 1)


def guesses(asked: Ones, found: object = None) -> list[Guess]:
    """Each mark that is set, beside where the sum stops."""
    levels = zip(FORMATS, asked.guess, strict=True)
    said = [(fmt, 2**level) for fmt, level in levels if level is not None]
    return [Guess(f"where a sum of ones in {fmt} stops", ones, sums(fmt)[-1]) for fmt, ones in said]
