"""Lines made fit for a picture: cut at a frame, and without points that nobody sees."""

from collections.abc import Sequence
from itertools import pairwise

from course_utils.core.say import Number

Point = tuple[Number, Number]


def pieces_inside(
    places: Sequence[Point], left: Number, top: Number, side: Number
) -> list[list[Point]]:
    """Return the parts of a line in the square whose upper left corner is (left, top).

    A line that leaves the square and comes back has several parts, each as its points.
    """
    pieces: list[list[Point]] = []
    for start, end in pairwise(places):
        segment = _inside(start, end, (left, top), side)
        if segment is None:
            continue
        enters, leaves = segment
        # The piece before goes on where the line has not left the square in between.
        if pieces and pieces[-1][-1] == enters:
            pieces[-1].append(leaves)
        else:
            pieces.append([enters, leaves])
    return pieces


def _inside(start: Point, end: Point, corner: Point, side: Number) -> tuple[Point, Point] | None:
    """Return the ends of the part of a segment that lies in the square; None if none of it does.

    This is Liang and Barsky's algorithm.
    """
    # Where the segment enters and leaves the square, as shares of the way from start to end.
    enters = 0.0
    leaves = 1.0
    # First in x, between the square's left and right edge; then in y.
    for begins, ends, low in zip(start, end, corner, strict=True):
        high = low + side
        if low <= begins <= high and low <= ends <= high:
            continue  # both ends are between these two edges, which cut nothing off
        if begins == ends:
            return None  # the segment is parallel to these two edges, and outside
        length = ends - begins
        at_low = (low - begins) / length
        at_high = (high - begins) / length
        # The segment is in the square from its last entry on, until its first exit.
        enters = max(enters, min(at_low, at_high))
        leaves = min(leaves, max(at_low, at_high))
    if enters >= leaves:  # all of it is outside, or it only touches the square
        return None
    first = start if enters == 0 else _between(start, end, enters)
    last = end if leaves == 1 else _between(start, end, leaves)
    return first, last


def _between(start: Point, end: Point, share: Number) -> Point:
    """Return the point at that share of the way from start to end."""
    x, y = start
    to_x, to_y = end
    return x + share * (to_x - x), y + share * (to_y - y)


def simplified(places: Sequence[Point], least: Number = 1.0) -> list[Point]:
    """Return the points without those that are nearer than `least` to the last point that is kept.

    The distance of two points is the sum of those across and down. The first and the last point
    always stay.

    >>> simplified([(0, 0), (0.1, 0), (5, 0), (5.1, 0)])
    [(0, 0), (5, 0), (5.1, 0)]
    """
    first, *between = places
    kept = [first]
    if not between:
        return kept
    last = between.pop()
    for x, y in between:
        kept_x, kept_y = kept[-1]
        if abs(x - kept_x) + abs(y - kept_y) >= least:
            kept.append((x, y))
    kept.append(last)
    return kept
