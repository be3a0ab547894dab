"""The lab's settings: a format, a loss scale, and gradients; and where these have their cliffs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.core.say.language import template
from course_utils.engine.labs.fields import choice, drawn, reveal, said_is
from course_utils.engine.labs.powers import power_of_two

FORMATS = ("fp32", "bf16", "fp16", "e5m2", "e4m3")
AFTER = (0, 50, 100, 200)
MICRO_BATCH = 100  # pairs of digits
BATCHES = (MICRO_BATCH, 102_400, 1_638_400, 6_553_600)  # pairs of digits
MOST = 56  # the loss scales of the lab are 2^0 to 2^56
# Gradients are counted at scales from 2^LEAST on: the largest batch has 2^16 micro-batches, and the
# gradients of its mean are those of a micro-batch at the scale 2^-16.
LEAST = -16
BIN = 1 / 4  # the width of a histogram's bin, in powers of two
CLIFFS = (
    template("lowest scale with no zero"),
    template("highest scale with none too large"),
)
# Gradients of a large batch, without a scale. Each preset changes one or two of these values.
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
    """A format, a loss scale 2^power, and which gradients: after how many steps, of which batch."""

    guess: Sequence[int | None] = drawn(
        "cliffs",
        marks=CLIFFS,
        levels=MOST + 1,
        says=lambda mark, level: f"2^{level}",
        about=("fmt", "after", "mean_over"),
    )
    power: int = power_of_two(
        "loss scale", 0, MOST, play=True, width_px=395, when=said_is("shown", True)
    )
    shown: bool = reveal()
    fmt: str = choice("format", {floats.FORMATS[name].label: name for name in FORMATS}, "fp16")
    after: int = choice("gradients after steps", {f"{n}": n for n in AFTER}, 0)
    mean_over: int = choice("loss is a mean over", {f"{n:,}": n for n in BATCHES}, 1_638_400)

    @property
    def drawn_power(self) -> int:
        """The power of two by which the picture multiplies the gradients: 0 before Show."""
        return self.power if self.shown else 0


@dataclass(frozen=True)
class Gradients:
    """The unscaled gradients of a micro-batch, and how many of them a cast loses at each scale.

    Gradients that are 0 are left out.
    """

    bins: Sequence[tuple[Number, int]]  # the power of two at which a bin begins, and its count
    ends: tuple[Number, Number]  # log2 of the size of the smallest and of the largest gradient
    # By format, a pair for each scale 2^LEAST, …, 2^MOST: how many gradients become zero, and how
    # many infinite.
    lost: Mapping[str, Sequence[tuple[int, int]]]

    def over(self, mean_over: int) -> "Gradients":
        """Return the gradients of a loss that is a mean over `mean_over` pairs of digits.

        They are the gradients of a micro-batch, each divided by the number of micro-batches, which
        is a power of two. In `lost` the scales from 2^0 to 2^MOST are left.
        """
        halvings = round(math.log2(mean_over / MICRO_BATCH))
        first = -halvings - LEAST  # the place of the scale 2^-halvings, which is 2^0 from now on
        end = first + MOST + 1
        smallest, largest = self.ends
        return replace(
            self,
            bins=tuple((begin - halvings, count) for begin, count in self.bins),
            ends=(smallest - halvings, largest - halvings),
            lost={fmt: counts[first:end] for fmt, counts in self.lost.items()},
        )

    def shares(self, fmt: str) -> list[tuple[Number, Number]]:
        """Return two shares for each scale from 2^0 on: what becomes zero, and what infinite.

        Only the gradients that `over` returns have these scales.
        """
        total = sum(count for _, count in self.bins)
        return [(zero / total, beyond / total) for zero, beyond in self.lost[fmt]]

    def cliffs(self, fmt: str) -> tuple[int, int]:
        """Return the smallest power of two without a zero, and the largest without an infinity.

        Both are from 0 to MOST. Only the gradients that `over` returns have these scales.
        """
        # The scales are 2^0, 2^1, … Those with a zero come first, so their number is the power of
        # the first scale without one. Those with an infinity come last.
        scales_with_zeros = 0
        scales_with_infinities = 0
        for zero, beyond in self.lost[fmt]:
            if zero > 0:
                scales_with_zeros += 1
            if beyond > 0:
                scales_with_infinities += 1
        lowest = min(scales_with_zeros, MOST)
        highest = max(MOST - scales_with_infinities, 0)
        return lowest, highest


@dataclass(frozen=True)
class Found:
    """The gradients of a micro-batch of 100 pairs; None until they are computed."""

    gradients: Gradients | None = None
