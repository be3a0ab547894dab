"""A plot with two axes, linear or logarithmic; the numbers along them never overlap."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.svg import polyline, text

# 1, 2, 5, 10, 20, … 5,000,000.
_ROUND_GAPS = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
_SLACK = 1e-9  # by which the computed logarithm of a power of ten may miss the whole number


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, logarithmic unless it is `linear`.

    `marks` are the values with a tick. Without `marks`, a logarithmic axis has its ticks at powers
    of ten, and a linear axis at round numbers: in both cases roughly `most_marks` of them. `words`
    writes the number beside a tick.
    """

    low: Number
    high: Number
    name: str = ""  # in English; it is shown in the reader's language
    words: Callable[[Number], str] = "{:g}".format
    linear: bool = False
    marks: Sequence[Number] = ()
    most_marks: int = 6
    rescales: bool = False  # whether its ends change with the controls, and so stand in its title

    def share(self, value: Number) -> Number:
        """Return how far along the axis a value lies, from 0 to 1, also if it is beyond an end."""
        low = self.low
        high = self.high
        if not self.linear:
            low = math.log(low)
            high = math.log(high)
            value = math.log(value) if value > 0 else -math.inf  # below each end, so at share 0
        share = (value - low) / (high - low)
        return min(1.0, max(0.0, share))

    @property
    def title(self) -> str:
        """The axis's name; of an axis that rescales, with its ends: "time: 1 ms to 2 s"."""
        if not self.rescales:
            return translated(self.name)
        low = self.words(self.low)
        high = self.words(self.high)
        return translated("{name}: {low} to {high}", name=translated(self.name), low=low, high=high)

    @property
    def ticks(self) -> Sequence[Number]:
        """The values at which the axis has a tick."""
        if self.marks:
            return [mark for mark in self.marks if self.low <= mark <= self.high]
        if self.linear:
            return self._round_numbers()
        return self._powers_of_ten()

    def _round_numbers(self) -> list[int]:
        """Return the multiples of a round gap on the axis: about `most_marks` of them, or fewer."""
        length = self.high - self.low
        # The first gap of which `most_marks` are as long as the axis, or longer.
        gap = next(gap for gap in _ROUND_GAPS if length <= self.most_marks * gap)
        first = gap * math.ceil(self.low / gap)
        last = math.floor(self.high)
        return list(range(first, last + 1, gap))

    def _powers_of_ten(self) -> list[float]:
        """Return the axis's powers of ten; only each second, third, … if they are too many."""
        lowest = math.ceil(math.log10(self.low) - _SLACK)
        highest = math.floor(math.log10(self.high) + _SLACK)
        powers = highest - lowest + 1
        step = max(1, math.ceil(powers / self.most_marks))
        return [10.0**power for power in range(lowest, highest + 1, step)]


@dataclass(frozen=True)
class Plot:
    """A rectangle of the picture with two axes: where a value lies in it, and its frame."""

    left: Number
    top: Number
    width: Number
    height: Number
    x_axis: Axis
    y_axis: Axis

    @property
    def right(self) -> Number:
        """The plot's right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> Number:
        """The plot's lower edge."""
        return self.top + self.height

    def x(self, value: Number) -> Number:
        """Return the horizontal position of a value."""
        return self.left + self.width * self.x_axis.share(value)

    def y(self, value: Number) -> Number:
        """Return the vertical position of a value."""
        return self.top + self.height * (1 - self.y_axis.share(value))

    def at(self, x: Number, y: Number) -> Point:
        """Return the position of a point that is given in the units of the axes."""
        return self.x(x), self.y(y)

    def line(self, points: Iterable[Point], class_: str) -> str:
        """Return a line through points that are given in the units of the axes."""
        places = [self.at(x, y) for x, y in points]
        return polyline(places, class_=class_)

    def frame(self, title: str = "") -> str:
        """Return the grid, its numbers where there is space for them, the axes' names, and a title.

        The frame takes 40 units of the picture below the plot; above it, 26 and the title's line.
        """
        title_y = self.top - (26 if self.y_axis.name else 8)  # above the name, if there is one
        parts = [
            fitted(self.left, title_y, title, self.right, "strong"),
            self._axis_title(self.y_axis, self.left, self.top - 8),
            self._axis_title(self.x_axis, self.right, self.bottom + 36, "end"),
        ]
        parts += self._verticals()
        parts += self._horizontals()
        return "".join(parts)

    def _axis_title(self, axis: Axis, x: Number, y: Number, side: str = "") -> str:
        """Return the axis's title, which begins at x; with "end" for `side`, it ends there.

        screen.js marks the title of an axis that rescales for a while when its ends have changed,
        as it marks the words of `lettering.scale_words`, which look alike. It finds both by their
        `data-scale`, which is the name without the ends, so that it stays the same.
        """
        if axis.rescales:
            class_ = f"small strong faint {side}".rstrip()
            return text(x, y, axis.title, class_=class_, data_scale=axis.name)
        if side:
            return text(x, y, axis.title, class_=f"faint {side}")
        return fitted(x, y, axis.title, self.right, "faint")

    def _verticals(self) -> Iterator[str]:
        """Yield the vertical lines of the grid, without numbers that would touch the one before."""
        free_from = -math.inf  # the right end of the number before
        for value in self.x_axis.ticks:
            x = self.x(value)
            yield polyline([(x, self.top), (x, self.bottom)], class_="grid")
            words = self.x_axis.words(value)
            half = width_of(words, "small") / 2
            if x - half > free_from:
                yield text(x, self.bottom + 18, words, class_="middle small")
                free_from = x + half + 4  # with space between two numbers

    def _horizontals(self) -> Iterator[str]:
        """Yield the horizontal lines of the grid, each with its number."""
        for value in self.y_axis.ticks:
            y = self.y(value)
            yield polyline([(self.left, y), (self.right, y)], class_="grid")
            # 4 lower, so that the middle of the number is level with the line.
            yield text(self.left - 6, y + 4, self.y_axis.words(value), class_="end small")
