"""Lines made fit for a picture: cut at a frame, and without points that nobody sees."""

from collections.abc import Sequence
from itertools import pairwise

from course_utils.core.say import Number

Point = tuple[Number, Number]


def pieces_inside(
    places: Sequence[Point], left: Number, top: Number, side: Number
) -> list[list[Point]]:
    """The parts of a line that lie in a square, each from edge to edge."""
    pieces: list[list[Point]] = []
    for start, end in pairwise(places):
        part = _inside(start, end, (left, top), side)
        if part is None:
            continue
        if pieces and pieces[-1][-1] == part[0]:
            pieces[-1].append(part[1])
        else:
            pieces.append(list(part))
    return pieces


def _inside(start: Point, end: Point, corner: Point, side: Number) -> tuple[Point, Point] | None:
    first, last = 0.0, 1.0  # as shares of the way from start to end
    for a, b, low in zip(start, end, corner, strict=True):
        if low <= a <= low + side and low <= b <= low + side:
            continue
        if a == b:
            return None
        shares = (low - a) / (b - a), (low + side - a) / (b - a)
        first, last = max(first, min(shares)), min(last, max(shares))
    if first >= last:
        return None
    (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
    begun = start if first == 0 else (x + first * dx, y + first * dy)
    return begun, end if last == 1 else (x + last * dx, y + last * dy)


def simplified(places: Sequence[Point], least: Number = 1.0) -> list[Point]:
    """The points without those that lie on the one before; the last point stays.

    >>> simplified([(0, 0), (0.1, 0), (5, 0), (5.1, 0)])
    [(0, 0), (5, 0), (5.1, 0)]
    """
    kept = [places[0]]
    for place in places[1:-1]:
        if abs(place[0] - kept[-1][0]) + abs(place[1] - kept[-1][1]) >= least:
            kept.append(place)
    return [*kept, *places[1:][-1:]]
