"""The precision lab's sentences on a format's zones, and on the loss scales that lose nothing."""

import math

from course_utils.chapters.mixed_precision.precision_lab.asked import MOST, Gradients, Scaling
from course_utils.core import floats, predict
from course_utils.core.say import Number
from course_utils.core.say.language import in_a_row, template, translated

# By whether there is a scale, whether some gradients become zero, and whether some are too large.
LOSSES = {
    (False, False, False): template("Without a scale {format} loses none of these gradients."),
    (False, False, True): template(
        "Without a scale {format} turns {beyond} of these gradients to {largest}."
    ),
    (False, True, False): template(
        "Without a scale {format} turns {to_zero} of these gradients to zero."
    ),
    (False, True, True): template(
        "Without a scale {format} turns {to_zero} of these gradients to zero "
        "and {beyond} of these gradients to {largest}."
    ),
    (True, False, False): template("At scale 2^{power} {format} loses none of these gradients."),
    (True, False, True): template(
        "At scale 2^{power} {format} turns {beyond} of these gradients to {largest}."
    ),
    (True, True, False): template(
        "At scale 2^{power} {format} turns {to_zero} of these gradients to zero."
    ),
    (True, True, True): template(
        "At scale 2^{power} {format} turns {to_zero} of these gradients to zero "
        "and {beyond} of these gradients to {largest}."
    ),
}
TOO_WIDE = template(
    "Every power of two loses some: "
    "the gradients span {gradients} powers of two, {format} {covered}."
)
BETWEEN_POWERS = template(
    "Every power of two loses some: the gradients span {gradients} powers of two, "
    "{format} {covered}, but a scale between two of them would lose none."
)


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
    too_large = translated(
        "infinite, from {size}" if f.has_infinity else "cut to {largest}, above {size}",
        largest=f"{f.max:g}",
        size=size_text(edges.beyond_from),
    )
    return [
        (
            translated("becomes 0, up to {size}", size=size_text(edges.zero_to)),
            -math.inf,
            zero,
        ),
        (translated("loses digits"), zero, normal),
        (translated("normal in {format}", format=f.label), normal, beyond),
        (too_large, beyond, math.inf),
    ]


def question(asked: Scaling) -> str:
    """Return the question that the reader guesses at. It gives away nothing that was measured."""
    label = floats.FORMATS[asked.fmt].label
    return translated(
        "A loss scale moves all gradients to the right. "
        "From which scale on does none become 0 in {format}, and up to which is none too large? "
        "Set both marks, then Show.",
        format=label,
    )


def meaning(asked: Scaling, gradients: Gradients) -> str:
    """Return a text on what is lost at the chosen scale, and on the scales that lose nothing."""
    return in_a_row(_loss(asked, gradients), _lossless(asked.fmt, gradients))


def _loss(asked: Scaling, gradients: Gradients) -> str:
    """Return a sentence on the shares of the gradients that become zero, and too large."""
    f = floats.FORMATS[asked.fmt]
    to_zero, beyond = gradients.shares(asked.fmt)[asked.power]
    largest = translated("infinity") if f.has_infinity else f"{f.max:g}"
    return translated(
        LOSSES[asked.power > 0, to_zero > 0, beyond > 0],
        power=f"{asked.power}",
        format=f.label,
        to_zero=share_text(to_zero),
        beyond=share_text(beyond),
        largest=largest,
    )


def _lossless(fmt: str, gradients: Gradients) -> str:
    """Return a sentence on the scales at which nothing is lost, or on why there are none."""
    lowest, highest = gradients.cliffs(fmt)
    if lowest == 0 and highest == MOST:  # from 2^0 on, none of the lab's scales loses a gradient
        return translated("It needs no scale.")
    if lowest <= highest:
        return translated(
            "None is lost from scale 2^{lowest} to scale 2^{highest}.",
            lowest=f"{lowest}",
            highest=f"{highest}",
        )
    smallest_power, largest_power = gradients.ends  # as powers of two
    span = largest_power - smallest_power
    edges = predict.rounding_edges(fmt)  # as sizes
    covered = math.log2(edges.beyond_from / edges.zero_to)
    # If they would fit, only a scale that is no power of two puts them there.
    return translated(
        BETWEEN_POWERS if span < covered else TOO_WIDE,
        gradients=f"{span:.1f}",
        format=floats.FORMATS[fmt].label,
        covered=f"{covered:.1f}",
    )
