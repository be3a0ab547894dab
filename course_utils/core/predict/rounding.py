"""What a format makes of a number by its size alone: zero, a subnormal, a normal number, or too large."""

import math
from functools import cache
from typing import NamedTuple

from course_utils.core import floats
from course_utils.core.say import Number


class Edges(NamedTuple):
    """Where one fate ends and the next begins, in sizes before rounding."""

    zero_to: float  # the largest size that becomes zero
    normal_from: float
    beyond_from: float  # the smallest size that is beyond the largest number


@cache
def rounding_edges(fmt: str) -> Edges:
    """Zero: up to half the smallest subnormal. Beyond the largest number: half a step further, and its tie if odd.

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
    if not floats.overflows(
        beyond, fmt
    ):  # the tie goes to the even neighbour, which in E4M3 is the largest
        beyond = math.nextafter(beyond, math.inf)
    return Edges(f.smallest_subnormal / 2, f.smallest_normal - f.smallest_subnormal / 2, beyond)


def lossless_powers(smallest: Number, largest: Number, fmt: str) -> range:
    """The powers of two that scale sizes from 2^smallest to 2^largest so that none becomes zero or too large.

    >>> lossless_powers(-40.5, -21.6, "fp16")
    range(16, 38)
    """
    edges = rounding_edges(fmt)
    least = math.floor(math.log2(edges.zero_to) - smallest) + 1
    return range(least, math.ceil(math.log2(edges.beyond_from) - largest))


def checked_scale(scale: Number) -> Number:
    """The scale, if it is a finite number above 0."""
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"A loss scale is a finite number above 0; got {scale}.")
    return scale
