"""What the precision lab says: what a format makes of gradients, and which loss scales lose none."""

import math

from course_utils.chapters.mixed_precision.precision_lab.asked import MOST, Gradients, Scaling
from course_utils.core import floats, predict
from course_utils.core.say import Number, listed


def share_text(share: Number) -> str:
    """A share in percent. Two decimals tell one gradient of a few thousand from none, and all but one from all.

    >>> [share_text(share) for share in (0, 0.4706, 0.0002, 0.9997, 1)]
    ['0 %', '47.06 %', '0.02 %', '99.97 %', '100 %']
    """
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{100 * share:.2f} %"


def size_text(size: Number) -> str:
    """The smallest or largest size of a format: a small one as a power of two.

    >>> size_text(2.0**-25), size_text(65520.0), size_text(2.0**128 * (1 - 2**-8))
    ('2^-25', '65,520', '3.3895e+38')
    """
    return f"2^{math.log2(size):.0f}" if size < 1 else f"{size:,.5g}"


def zones(fmt: str) -> list[tuple[str, Number, Number]]:
    """What becomes of a size: each fate in words, with the powers of two from which and up to which it is that."""
    f, edges = floats.FORMATS[fmt], predict.rounding_edges(fmt)
    zero, normal, beyond = map(math.log2, edges)
    too_large = "infinite" if f.has_infinity else f"cut to {f.max:g}"
    return [
        (f"becomes 0, up to {size_text(edges.zero_to)}", -math.inf, zero),
        ("loses digits", zero, normal),
        (f"normal in {f.label}", normal, beyond),
        (
            f"{too_large}, {'from' if f.has_infinity else 'above'} {size_text(edges.beyond_from)}",
            beyond,
            math.inf,
        ),
    ]


def question(asked: Scaling, gradients: Gradients) -> str:
    """What is to be guessed, without a measured number."""
    label = floats.FORMATS[asked.fmt].label
    return (
        f"A loss scale moves all gradients to the right. From which scale on does none become 0 in {label}, "
        "and up to which is none too large? Set both marks, then Show."
    )


def meaning(asked: Scaling, gradients: Gradients) -> str:
    """What the format loses at this scale, and the scales at which it loses nothing."""
    f = floats.FORMATS[asked.fmt]
    beyond = "to infinity" if f.has_infinity else f"to {f.max:g}"
    shares = zip(gradients.shares(asked.fmt)[asked.power], ("to zero", beyond), strict=True)
    lost = [f"{share_text(share)} of these gradients {way}" for share, way in shares if share]
    said = f"turns {listed(lost)}" if lost else "loses none of these gradients"
    at = f"At scale 2^{asked.power}" if asked.power else "Without a scale"
    return f"{at} {f.label} {said}. {_lossless(asked.fmt, gradients)}"


def _lossless(fmt: str, gradients: Gradients) -> str:
    least, most = gradients.cliffs(fmt)
    if least == 0 and most == MOST:
        return "It needs no scale."
    if least <= most:
        return f"None is lost from scale 2^{least} to scale 2^{most}."
    span = gradients.ends[1] - gradients.ends[0]
    covered = math.log2(
        predict.rounding_edges(fmt).beyond_from / predict.rounding_edges(fmt).zero_to
    )
    label = floats.FORMATS[fmt].label
    spans = f"the gradients span {span:.1f} powers of two, {label} {covered:.1f}"
    fits = ", but a scale between two of them would lose none" if span < covered else ""
    return f"Every power of two loses some: {spans}{fits}."
