"""What a format makes of a number, by the number's size alone.

The number becomes zero, a subnormal or a normal number, or it is too large.
"""

import math
from functools import cache
from typing import NamedTuple

from course_utils.core import floats
from course_utils.core.say import Number


class Edges(NamedTuple):
    """The sizes, before rounding, at which one kind of result ends and the next begins."""

    zero_to: float  # the largest size that becomes zero
    normal_from: float  # the smallest size that becomes a normal number
    beyond_from: float  # the smallest size that is too large


@cache
def rounding_edges(fmt: str) -> Edges:
    """Return the edges between zero, subnormals, normals, and what is too large for the format.

    What is at most half the smallest subnormal becomes zero. A number is too large from half a gap
    above the format's largest number on. Exactly at that edge, the tie goes to the even one of the
    two neighbours.

    >>> edges = rounding_edges("fp16")
    >>> edges.zero_to == 2**-25, edges.beyond_from
    (True, 65520.0)
    """
    f = floats.format_named(fmt)
    if fmt == "fp64":
        raise ValueError(
            "The edges of fp64 are no fp64 numbers. Ask for a smaller format, fp32 for example."
        )
    beyond = f.max + floats.spacing(f.max, fmt) / 2
    if not floats.overflows(beyond, fmt):  # in E4M3 the largest number is the even neighbour
        beyond = math.nextafter(beyond, math.inf)  # the next larger fp64
    half_gap = f.smallest_subnormal / 2
    return Edges(half_gap, f.smallest_normal - half_gap, beyond)


def lossless_powers(smallest: Number, largest: Number, fmt: str) -> range:
    """Return the powers p for which numbers times 2^p become neither zero nor too large in `fmt`.

    The numbers, gradients for example, have sizes from 2^smallest to 2^largest, and 2^p is the
    loss scale.

    >>> lossless_powers(-40.5, -21.6, "fp16")
    range(16, 38)
    """
    edges = rounding_edges(fmt)
    # `zero_to` itself becomes zero, so the least power lifts `smallest` above it. `beyond_from` is
    # too large itself, so the range ends at the first power that lifts `largest` there.
    least = math.floor(math.log2(edges.zero_to) - smallest) + 1
    end = math.ceil(math.log2(edges.beyond_from) - largest)
    return range(least, end)


def checked_scale(scale: Number) -> Number:
    """Return the scale itself. ValueError if it is not a finite number above 0."""
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"A loss scale is a finite number above 0; got {scale}.")
    return scale
