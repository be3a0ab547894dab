"""A plot: its two axes, even in the value or in its logarithm, and names that keep apart."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from course_utils.core.say import Number
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.svg import polyline, text

_ROUND = [n * 10**power for power in range(7) for n in (1, 2, 5)]


@dataclass(frozen=True)
class Axis:
    """From low to high. It is marked at `marks`, or else at powers of ten, or on a linear one at round numbers."""

    low: Number
    high: Number
    name: str = ""
    words: Callable[[Number], str] = "{:g}".format
    linear: bool = False
    marks: Sequence[Number] = ()
    most_marks: int = 6

    def share(self, value: Number) -> Number:
        """How far along the axis a value lies, from 0 to 1. Values beyond an end count as the end."""
        low, high, at = self.low, self.high, value
        if not self.linear:
            low, high, at = (
                math.log(low),
                math.log(high),
                math.log(value) if value > 0 else -math.inf,
            )
        return min(1.0, max(0.0, (at - low) / (high - low)))

    @property
    def ticks(self) -> Sequence[Number]:
        """The values that have a mark."""
        if self.marks:
            return [mark for mark in self.marks if self.low <= mark <= self.high]
        if self.linear:
            gap = next(n for n in _ROUND if self.high - self.low <= self.most_marks * n)
            return list(range(gap * math.ceil(self.low / gap), math.floor(self.high) + 1, gap))
        low, high = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        step = max(1, math.ceil((high - low + 1) / self.most_marks))
        return [10.0**power for power in range(low, high + 1, step)]


@dataclass(frozen=True)
class Plot:
    """Where a value lies in the picture, and the frame around it."""

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
        """The horizontal place of a value."""
        return self.left + self.width * self.x_axis.share(value)

    def y(self, value: Number) -> Number:
        """The vertical place of a value."""
        return self.top + self.height * (1 - self.y_axis.share(value))

    def at(self, x: Number, y: Number) -> Point:
        """The place of a point."""
        return self.x(x), self.y(y)

    def line(self, points: Iterable[Point], class_: str) -> str:
        """A line through points, in the axes' units."""
        return polyline([self.at(*point) for point in points], class_=class_)

    def frame(self, title: str = "") -> str:
        """The grid, its numbers as far as there is space for them, what the axes are, and a title above.

        Above the plot it takes 26 and a line of the title, below it 40.
        """
        parts = [
            fitted(
                self.left, self.top - (26 if self.y_axis.name else 8), title, self.right, "strong"
            ),
            fitted(self.left, self.top - 8, self.y_axis.name, self.right, "faint"),
            text(self.right, self.bottom + 36, self.x_axis.name, class_="faint end"),
        ]
        free_from = -math.inf
        for value in self.x_axis.ticks:
            x, words = self.x(value), self.x_axis.words(value)
            half = width_of(words, "small") / 2
            parts.append(polyline([(x, self.top), (x, self.bottom)], class_="grid"))
            if x - half > free_from:
                parts.append(text(x, self.bottom + 18, words, class_="middle small"))
                free_from = x + half + 4
        for value in self.y_axis.ticks:
            y = self.y(value)
            parts.append(polyline([(self.left, y), (self.right, y)], class_="grid"))
            parts.append(text(self.left - 6, y + 4, self.y_axis.words(value), class_="end small"))
        return "".join(parts)
