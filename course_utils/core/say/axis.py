"""The axis of the picture of guesses: where a number lies on it, and which numbers are named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.core.say.closeness import whole_judged_by

MOST_TICKS = 7
LEFT, RIGHT = 6, 94  # the ends of the axis, in percent of the width
# The ends of an axis on which some number has no place: 0 is shown left of it, numbers below 0
# left of that, and infinity right.
AFTER_ZERO, BEFORE_INFINITY = 16, 86
WITH_A_PREFIX = ("GB", "TFLOP/s")  # units that `in_words` writes with a prefix of its own


@dataclass(frozen=True)
class Axis:
    """Where numbers lie between the left and the right end of the picture, in percent.

    For a share, the axis is linear from `lowest` 0 to `highest`, the whole. For all else it is
    logarithmic, and `lowest` and `highest` are exponents of ten. Numbers that have no place on the
    axis are shown at the ends of the picture.
    """

    lowest: float
    highest: float
    is_linear: bool
    left: float = LEFT
    right: float = RIGHT

    def at(self, x: float) -> float:
        """Return the place of a number; an end of the picture if the number is not on the axis."""
        if not self.is_linear and x <= 0:
            return LEFT if x == 0 else LEFT / 2
        if x == math.inf:
            return RIGHT
        on_axis = x if self.is_linear else math.log10(x)
        share = (on_axis - self.lowest) / (self.highest - self.lowest)
        share_within = min(1.0, max(0.0, share))
        return self.left + (self.right - self.left) * share_within

    def unit_for(self, unit: str) -> str:
        """Return the unit of the picture's numbers; the space behind it keeps its prefix.

        So 0.6 GB stands beside 2.42 GB, and is not 600 MB. Where numbers are a thousand times as
        large as others, or all are below 1, each is said in the unit that fits its size.

        >>> Axis(-0.5, 0.7, is_linear=False).unit_for("GB"), Axis(-4, 3, False).unit_for("GB")
        ('GB ', 'GB')
        """
        is_near = self.lowest >= -3 and self.highest >= 0 and self.highest - self.lowest <= 4
        return f"{unit} " if is_near and unit in WITH_A_PREFIX else unit

    @property
    def ticks(self) -> list[float]:
        """The numbers that are named on the axis: at most MOST_TICKS."""
        if self.is_linear:
            return [self.highest * n / 4 for n in range(5)]  # such as 0, 25, 50, 75 and 100 %
        if self.highest - self.lowest <= 2:
            digits = (1, 2, 5)
        else:
            digits = (1,)
        ticks = []
        for power in range(math.floor(self.lowest), math.ceil(self.highest) + 1):
            if power >= 308:  # from here on a tick may be too large for a float
                break
            for digit in digits:
                x = digit * 10.0**power  # 0 if the power is too small for a float
                if x > 0 and self.lowest <= math.log10(x) <= self.highest:
                    ticks.append(x)
        every = math.ceil(len(ticks) / MOST_TICKS)  # of more ticks, each second or third is taken
        return ticks[::every]


def axis_for(numbers: Sequence[float], unit: str) -> Axis:
    """Return the axis that has a place for these numbers, which are in that unit."""
    # On a linear axis, shares that are all small would be in one place: they have no whole here.
    whole = whole_judged_by(max(numbers, default=0), unit)
    if whole and all(x >= 0 for x in numbers):
        return Axis(0, whole, is_linear=True)
    logs = [math.log10(x) for x in numbers if 0 < x < math.inf] or [0.0]  # or else the log of 1
    middle = (min(logs) + max(logs)) / 2
    # Half the axis. 0.5 of the numbers' range would end at the numbers, so with 0.6 a tenth is free
    # at either end; and the axis has at least 1.2 powers of ten.
    half = max(0.6, 0.6 * (max(logs) - min(logs)))
    return Axis(
        middle - half,
        middle + half,
        is_linear=False,
        left=AFTER_ZERO if any(x <= 0 for x in numbers) else LEFT,
        right=BEFORE_INFINITY if math.inf in numbers else RIGHT,
    )
