"""What the precision lab is asked for: a format, a loss scale, gradients of a batch; and where the cliffs are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.engine.labs.fields import choice, drawn, reveal, said_is, whole

FORMATS = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
AFTER = (0, 50, 100, 200)
BATCHES = (
    100,
    102_400,
    1_638_400,
    6_553_600,
)  # pairs of digits, which come in micro-batches of 100
MOST = 56  # the largest power of two that a gradient is multiplied by
LEAST = -16  # and the smallest: a micro-batch's share of the largest batch
BIN = 1 / 4  # of a histogram of gradients, in powers of two
CLIFFS = ("lowest scale with no zero", "highest scale with none too large")
_LARGE = {"fmt": "fp16", "power": 0, "after": 0, "mean_over": 1_638_400, "shown": True}
PRESETS: Mapping[str, Mapping[str, object]] = {
    "where are the cliffs?": _LARGE | {"shown": False, "guess": (None, None)},
    "a small batch?": _LARGE | {"mean_over": 100},
    "does 2^10 help?": _LARGE | {"power": 10},
    "what is too far?": _LARGE | {"power": 40},
    "200 steps later?": _LARGE | {"after": 200},
    "bf16?": _LARGE | {"fmt": "bf16"},
    "fp8?": _LARGE | {"fmt": "e4m3", "power": 29},
}


@dataclass(frozen=True)
class Scaling:
    """The format in focus, a loss scale 2^power, and which gradients: after how many steps, of which batch."""

    guess: Sequence[int | None] = drawn(
        "cliffs", marks=CLIFFS, levels=MOST + 1, says=lambda mark, level: f"2^{level}"
    )
    power: int = whole("loss scale 2^", 0, 0, MOST, play=True, when=said_is("shown", True))
    shown: bool = reveal()
    fmt: str = choice("format", {floats.FORMATS[name].label: name for name in FORMATS}, "fp16")
    after: int = choice("gradients after steps", {f"{n}": n for n in AFTER}, 0)
    mean_over: int = choice("loss is a mean over", {f"{n:,}": n for n in BATCHES}, 1_638_400)


@dataclass(frozen=True)
class Gradients:
    """The unscaled gradients of a batch of 100 as a histogram, and how many of the scaled ones a cast loses."""

    bins: Sequence[
        tuple[Number, int]
    ]  # the power of two at which one begins, and how many are in it
    ends: tuple[Number, Number]  # log2 of the smallest and of the largest; zeros are left out
    lost: Mapping[
        str, Sequence[tuple[int, int]]
    ]  # by format, from scale 2^LEAST on: to zero, to infinity

    def over(self, mean_over: int) -> "Gradients":
        """The same gradients for a loss that is a mean over `mean_over` pairs. Each is smaller by that factor."""
        halved = round(math.log2(mean_over / BATCHES[0]))
        first, last = -halved - LEAST, MOST + 1 - halved - LEAST
        return replace(
            self,
            bins=tuple((begin - halved, count) for begin, count in self.bins),
            ends=tuple(end - halved for end in self.ends),
            lost={fmt: counts[first:last] for fmt, counts in self.lost.items()},
        )

    def shares(self, fmt: str) -> list[tuple[Number, Number]]:
        """The shares that become zero and infinite, at each scale from 2^0 on; for gradients that `over` returned."""
        total = sum(count for _, count in self.bins)
        return [(zero / total, beyond / total) for zero, beyond in self.lost[fmt]]

    def cliffs(self, fmt: str) -> tuple[int, int]:
        """The smallest power of two without a zero, and the largest without an infinity, from 0 to MOST."""
        counts = self.lost[fmt]
        zeros, beyond = (sum(one[fate] > 0 for one in counts) for fate in (0, 1))
        return min(zeros, MOST), max(MOST - beyond, 0)


@dataclass(frozen=True)
class Found:
    """The gradients of a micro-batch of 100 pairs."""

    gradients: Gradients | None = None
