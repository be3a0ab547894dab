"""Names of curves, written where the curves run, at the place where there is the most space."""

from bisect import bisect
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from course_utils.core.say import Number
from course_utils.engine.labs.draw.lettering import width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.plot import Plot
from course_utils.engine.labs.draw.svg import text

_PLACES = 24  # that are tried along a curve, on each of its sides
_HEIGHT = 14  # of a name
_GAP = 4  # between a curve and its name
_ENOUGH = 24  # more space than this is no better
_SAMPLES = 5  # the points of each curve that are looked at beside a name


class Box(NamedTuple):
    """A rectangle of the picture."""

    left: Number
    top: Number
    right: Number
    bottom: Number

    def meets(self, other: "Box") -> bool:
        """Whether the two overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


class Curve(NamedTuple):
    """A curve's name, its points from left to right in units of the axes, and the name's class."""

    name: str
    points: Sequence[Point]
    class_: str = "strong"


def names(plot: Plot, curves: Sequence[Curve], taken: Sequence[Box] = ()) -> Iterator[str]:
    """Write each curve's name above or below it, where the other curves are farthest away.

    No name is written into a box that is taken, and none where it finds no space.
    """
    lines = [[plot.at(x, y) for x, y in curve.points] for curve in curves]
    taken = list(taken)
    for curve, line in zip(curves, lines, strict=True):
        class_ = f"{curve.class_} small halo"
        width = width_of(curve.name, class_)
        others = [other for other in lines if other is not line]
        free = []  # pairs of a place's space and the place itself
        for box in _boxes_along(plot, line, width):
            if not any(box.meets(other) for other in taken):
                free.append((_space(box, line, others), box))
        if free:
            _, best = max(free, key=lambda space_and_box: space_and_box[0])
            taken.append(best)
            baseline = best.bottom - 3  # with space below for letters such as p
            yield text(best.left, baseline, curve.name, class_=class_)


def _boxes_along(plot: Plot, line: Sequence[Point], width: Number) -> Iterator[Box]:
    """Yield the places for a name: those above and below the line that lie in the plot."""
    for place in range(_PLACES + 1):
        # From the plot's left edge on, in equal steps, until the name ends at the right edge.
        left = plot.left + (plot.width - width) * place / _PLACES
        heights = _heights(line, left, left + width)
        if not heights:  # the line does not run between the name's edges
            continue
        for top in (min(heights) - _GAP - _HEIGHT, max(heights) + _GAP):
            if plot.top <= top and top + _HEIGHT <= plot.bottom:
                yield Box(left, top, left + width, top + _HEIGHT)


def _space(box: Box, line: Sequence[Point], others: Sequence[Sequence[Point]]) -> Number:
    """Return how good a place is: how far other lines are from the box, less how far its own is.

    All distances are vertical. Of the other lines the nearest counts, and of its own the mean.
    """
    least = _ENOUGH
    for other in others:
        for y in _heights(other, box.left, box.right):
            distance = max(box.top - y, y - box.bottom)  # below 0 if the line runs through the box
            least = min(least, distance)
    middle = (box.top + box.bottom) / 2
    own = _heights(line, box.left, box.right)  # not empty: `_boxes_along` has seen to that
    mean_distance = sum(abs(y - middle) for y in own) / len(own)
    return least - mean_distance


def _heights(line: Sequence[Point], left: Number, right: Number) -> list[Number]:
    """Return the vertical places of the line at _SAMPLES points between `left` and `right`.

    Points at which there is no line are left out.
    """
    heights = []
    for sample in range(_SAMPLES):
        y = _height_at(line, left + (right - left) * sample / (_SAMPLES - 1))
        if y is not None:
            heights.append(y)
    return heights


def _height_at(line: Sequence[Point], x: Number) -> Number | None:
    """Return the line's vertical place at x; None before its first point and behind its last."""
    number = bisect(line, x, key=lambda point: point[0])
    if not 0 < number < len(line):
        return None
    left, y = line[number - 1]  # the points on both sides of x
    right, to_y = line[number]
    # At the same share of the way from y to to_y as x is between the two points.
    return y + (to_y - y) * (x - left) / (right - left)
