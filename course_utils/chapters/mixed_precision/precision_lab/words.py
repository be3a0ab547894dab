"""The precision lab's sentences on a format's zones, and on the loss scales that lose nothing."""

import math

from course_utils.chapters.mixed_precision.precision_lab.asked import MOST, Gradients, Scaling
from course_utils.core import floats, predict
from course_utils.core.say import Number, listed


def share_text(share: Number) -> str:
    """Return a share in percent, with two decimals unless it is 0 % or 100 %.

    So 1 gradient of 5,000 is not shown as 0 %, and 4,999 of them are not shown as 100 %.

    >>> [share_text(share) for share in (0, 0.4706, 0.0002, 0.9997, 1)]
    ['0 %', '47.06 %', '0.02 %', '99.97 %', '100 %']
    """
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return f"{100 * share:.2f} %"


def size_text(size: Number) -> str:
    """Return a size at which a format's zones meet; below 1, as a power of two.

    >>> size_text(2.0**-25), size_text(65520.0), size_text(2.0**128 * (1 - 2**-8))
    ('2^-25', '65,520', '3.3895e+38')
    """
    if size < 1:
        return f"2^{math.log2(size):.0f}"
    return f"{size:,.5g}"


def zones(fmt: str) -> list[tuple[str, Number, Number]]:
    """Return the zones of a format, from the smallest numbers to the largest.

    A zone is (what becomes of a number in it, the power of two at which it begins, the power of two
    at which it ends).
    """
    f = floats.FORMATS[fmt]
    edges = predict.rounding_edges(fmt)
    # Up to where a number becomes zero; from where it is normal; from where it is too large.
    zero, normal, beyond = map(math.log2, edges)
    too_large = f"cut to {f.max:g}, above"
    if f.has_infinity:
        too_large = "infinite, from"
    return [
        (f"becomes 0, up to {size_text(edges.zero_to)}", -math.inf, zero),
        ("loses digits", zero, normal),
        (f"normal in {f.label}", normal, beyond),
        (f"{too_large} {size_text(edges.beyond_from)}", beyond, math.inf),
    ]


def question(asked: Scaling) -> str:
    """Return the question that the reader guesses at. It gives away nothing that was measured."""
    label = floats.FORMATS[asked.fmt].label
    return (
        "A loss scale moves all gradients to the right. "
        f"From which scale on does none become 0 in {label}, and up to which is none too large? "
        "Set both marks, then Show."
    )


def meaning(asked: Scaling, gradients: Gradients) -> str:
    """Return a text on what is lost at the chosen scale, and on the scales that lose nothing."""
    f = floats.FORMATS[asked.fmt]
    to_zero, beyond = gradients.shares(asked.fmt)[asked.power]
    lost = []
    if to_zero:
        lost.append(f"{share_text(to_zero)} of these gradients to zero")
    if beyond:
        largest = "infinity" if f.has_infinity else f"{f.max:g}"
        lost.append(f"{share_text(beyond)} of these gradients to {largest}")
    loses = f"turns {listed(lost)}" if lost else "loses none of these gradients"
    at = f"At scale 2^{asked.power}" if asked.power else "Without a scale"
    return f"{at} {f.label} {loses}. {_lossless(asked.fmt, gradients)}"


def _lossless(fmt: str, gradients: Gradients) -> str:
    """Return a sentence on the scales at which nothing is lost, or on why there are none."""
    lowest, highest = gradients.cliffs(fmt)
    if lowest == 0 and highest == MOST:  # from 2^0 on, none of the lab's scales loses a gradient
        return "It needs no scale."
    if lowest <= highest:
        return f"None is lost from scale 2^{lowest} to scale 2^{highest}."
    smallest_power, largest_power = gradients.ends  # as powers of two
    span = largest_power - smallest_power
    edges = predict.rounding_edges(fmt)  # as sizes
    covered = math.log2(edges.beyond_from / edges.zero_to)
    label = floats.FORMATS[fmt].label
    spans = f"the gradients span {span:.1f} powers of two, {label} {covered:.1f}"
    fits = ""
    if span < covered:  # they would fit, but only a scale that is no power of two puts them there
        fits = ", but a scale between two of them would lose none"
    return f"Every power of two loses some: {spans}{fits}."
