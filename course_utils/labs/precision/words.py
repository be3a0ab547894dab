"""What the precision lab says: what a format makes of gradients, and which loss scales lose none."""

import math

from course_utils import floats, predict
from course_utils.floats import Format
from course_utils.labs.precision.asked import Gradients, Scaling
from course_utils.quantities import Ledger, Number, listed

ZERO, SUBNORMAL, NORMAL, BEYOND = predict.FATES


def share_text(share: Number) -> str:
    """A share in percent. Two decimals tell one gradient of a few thousand from none, and all but one from all.

    >>> [share_text(share) for share in (0, 0.4706, 0.0002, 0.9997, 1)]
    ['0.00 %', '47.06 %', '0.02 %', '99.97 %', '100.00 %']
    """
    return f"{100 * share:.2f} %"


def size_text(size: Number) -> str:
    """The smallest or largest size of a format: a small one as a power of two.

    >>> size_text(2.0**-25), size_text(65520.0), size_text(2.0**128 * (1 - 2**-8))
    ('2^-25', '65,520', '3.3895e+38')
    """
    return f"2^{math.log2(size):.0f}" if size < 1 else f"{size:,.5g}"


def rows(asked: Scaling, gradients: Gradients) -> list[list[str]]:
    """A row for each fate: where it is, its share by the edges and by a log-normal, and its count by torch's cast."""
    f, edges, fates = floats.FORMATS[asked.fmt], predict.rounding_edges(asked.fmt), gradients.fates[asked.fmt]
    zero, normal = size_text(edges.zero_to), size_text(f.smallest_normal)
    beyond = f"{'from' if f.has_infinity else 'above'} {size_text(edges.beyond_from)}"
    shares = predict.lognormal_fates(*gradients.fit, asked.fmt, 2.0**asked.power)
    columns = [
        (f"in {f.label}", *(_name(fate, f) for fate in predict.FATES)),
        (f"|g| × 2^{asked.power} is", f"up to {zero}", f"{zero} to {normal}", f"from {normal}", beyond),
        ("predicted: edges", *_counted(fates.predicted)),
        ("log-normal", *map(share_text, shares.values())),
        ("counted: torch's cast", *_counted(fates.measured)),
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _name(fate: str, f: Format) -> str:
    if fate != BEYOND:
        return fate
    return "to infinity" if f.has_infinity else f"to {f.max:g}"


def _counted(counts: Ledger) -> list[str]:
    return [f"{count:,} = {share_text(count / counts.total)}" if count else "0" for count in counts.values()]


def formula(asked: Scaling, gradients: Gradients) -> str:
    """The log-normal's share lost to zero, with the numbers filled in."""
    (mu, sigma), edge = gradients.fit, math.log2(predict.rounding_edges(asked.fmt).zero_to)
    share = predict.lognormal_fates(mu, sigma, asked.fmt, 2.0**asked.power)[ZERO]
    return (
        f"to zero, if ln |g| ~ N({mu:.2f}, {sigma:.2f}):  "
        f"Φ((ln 2^{edge:.0f} − ln 2^{asked.power} − ({mu:.2f})) / {sigma:.2f}) = {share_text(share)}"
    )


def meaning(asked: Scaling, gradients: Gradients) -> str:
    """What the format loses, and the scales at which it loses nothing."""
    f = floats.FORMATS[asked.fmt]
    counted = gradients.fates[asked.fmt].measured
    lost = [
        f"{share_text(counted[fate] / counted.total)} of these gradients {_name(fate, f)}"
        for fate in (ZERO, BEYOND)
        if counted[fate]
    ]
    said = f"turns {listed(lost)}" if lost else "loses none of these gradients"
    if counted[BEYOND] and f.has_infinity:
        said += ". One infinity spoils a step: GradScaler skips it, and without that the weights end in NaN"
    at = f"At scale 2^{asked.power}" if asked.power else "Without a scale"
    return f"{at} {f.label} {said}. {_lossless(asked.fmt, *gradients.ends)}"


def _lossless(fmt: str, smallest: Number, largest: Number) -> str:
    powers, edges = predict.lossless_powers(smallest, largest, fmt), predict.rounding_edges(fmt)
    if 0 in powers:
        return "It needs no scale."
    if powers:
        range_ = f"from scale 2^{powers[0]} to scale 2^{powers[-1]}"
        return f"Of the weights' gradients none is lost {range_}; activations' can overflow before."
    span, room = largest - smallest, math.log2(edges.beyond_from / edges.zero_to)
    but = ", but a scale between two loses none" if span < room else ""
    return f"Every power of two loses some{but}: the gradients span {span:.1f} powers of two, {floats.FORMATS[fmt].label} {room:.1f}."
