"""What the precision lab says: the account of what a format makes of gradients, and how the training went."""

import math

from course_utils import predict
from course_utils.labs.precision.asked import SCALER, Found, Gradients, Scaling
from course_utils.quantities import Ledger, Number

ZERO, SUBNORMAL, NORMAL, BEYOND = predict.FATES

# The account.


def share_text(share: Number) -> str:
    """In percent, with as many digits as keep it apart from none and from all.

    >>> [share_text(share) for share in (0, 0.4706, 0.00015, 0.9997, 1e-30, 1)]
    ['0', '47.1 %', '0.015 %', '99.97 %', '< 0.0001 %', '100 %']
    """
    if share in (0, 1):
        return "100 %" if share else "0"
    least = 100 * min(share, 1 - share)
    if least < 1e-4:
        return "< 0.0001 %" if share < 0.5 else "> 99.9999 %"
    return f"{100 * share:.{max(1, math.ceil(-math.log10(least)) + (share < 0.5))}f} %"


def size_text(size: Number) -> str:
    """A power of two as one, whatever else in full, or beyond a million in three digits.

    >>> size_text(2.0**-25), size_text(65520.0), size_text(2.0**128), size_text(2.0**128 * (1 - 2**-8))
    ('2^-25', '65,520', '2^128', '3.39e38')
    """
    mantissa, _ = math.frexp(size)
    if mantissa == 0.5:
        return f"2^{math.log2(size):.0f}"
    return f"{size:.3g}".replace("e+", "e") if size > 1e6 else f"{size:,.0f}"


def account(asked: Scaling, gradients: Gradients | None) -> list[list[str]]:
    """A row for each fate: where it is, its share by the edges and by a log-normal, and its count by torch's cast."""
    f, edges = asked.format, predict.rounding_edges(asked.fmt)
    zero, normal = size_text(edges.zero_to), size_text(f.smallest_normal)
    where = {ZERO: f"up to {zero}", SUBNORMAL: f"{zero} to {normal}", NORMAL: f"from {normal}"}
    where[BEYOND] = f"{'from' if f.has_infinity else 'above'} {size_text(edges.beyond_from)}"
    too_large = "to infinity" if f.has_infinity else f"held at {f.max:g}"
    head = [f"in {f.label}", f"|g| × 2^{asked.power} is"]
    rows = [[too_large if fate == BEYOND else fate, place] for fate, place in where.items()]
    if gradients is None:
        return [[*head, "predicted, and counted: needs a kernel"], *([*row, ""] for row in rows)]
    fates = gradients.fates[asked.fmt]
    shares = predict.lognormal_fates(*gradients.fit, asked.fmt, asked.scale)
    head += ["predicted: edges", "log-normal", "counted: torch's cast"]
    for row, fate in zip(rows, where, strict=True):
        row += [_counted(fates.predicted, fate), share_text(shares[fate]), _counted(fates.measured, fate)]
    return [head, *rows]


def _counted(counts: Ledger, fate: str) -> str:
    return f"{counts[fate]:,} = {share_text(counts[fate] / counts.total)}" if counts[fate] else "0"


def formula(asked: Scaling, gradients: Gradients) -> str:
    """The log-normal's share lost to zero, with the numbers filled in."""
    (mu, sigma), edge = gradients.fit, math.log2(predict.rounding_edges(asked.fmt).zero_to)
    z = ((edge - asked.power) * math.log(2) - mu) / sigma
    said = share_text(predict.lognormal_fates(mu, sigma, asked.fmt, asked.scale)[ZERO])
    return (
        f"to zero, if ln |g| ~ N({mu:.2f}, {sigma:.2f}):  Φ((ln 2^{edge:.0f} − ln 2^{asked.power} − ({mu:.2f})) / {sigma:.2f})"
        f" = Φ({z:.2f}) {'' if said[0] in '<>' else '= '}{said}"
    )


# What it means.


def meaning(asked: Scaling, gradients: Gradients | None) -> str:
    """What the format loses, and what would help."""
    if gradients is None:
        f = asked.format
        return (
            f"In {f.label} there are sizes from {size_text(f.smallest_subnormal)} to {size_text(f.max)}. "
            "Which real gradients it loses, torch's cast says: that needs a kernel."
        )
    return f"{_what_is_lost(asked, gradients)} {_what_helps(asked, gradients)}"


def _what_is_lost(asked: Scaling, gradients: Gradients) -> str:
    counted, f = gradients.fates[asked.fmt].measured, asked.format
    share = {fate: share_text(count / counted.total) for fate, count in counted.items()}
    at = f"At scale 2^{asked.power}" if asked.power else "Without a scale"
    becomes = {ZERO: "0", BEYOND: "infinity" if f.has_infinity else f"{f.max:g}, its largest"}
    lost = [
        f"{share[fate]} of these gradients into {what}" for fate, what in becomes.items() if counted[fate]
    ]
    if lost:
        return f"{at} {f.label} turns {' and '.join(lost)}."
    fewer = f", but {share[SUBNORMAL]} are subnormal and keep fewer digits" if counted[SUBNORMAL] else ""
    return f"{at} {f.label} loses none of these gradients{fewer}."


def _what_helps(asked: Scaling, gradients: Gradients) -> str:
    f, edges, (smallest, largest) = asked.format, predict.rounding_edges(asked.fmt), gradients.ends
    powers = predict.lossless_powers(smallest, largest, asked.fmt)
    too_large = gradients.fates[asked.fmt].measured[BEYOND]
    if not powers:
        over, reach = largest - smallest, math.log2(edges.beyond_from / edges.zero_to)
        none = (
            "No scale keeps all"
            if over >= reach
            else "No power of two keeps all, though a scale between two would"
        )
        return f"{none}: these gradients span {over:.1f} powers of two, {f.label} {reach:.1f}."
    if powers.start <= 0 and not too_large:
        begins = size_text(f.smallest_subnormal)
        return f"It needs no scale: its numbers begin at {begins}, these gradients at 2^{smallest:.0f}."
    spoils = (
        "A single one spoils the step: with a constant scale the weights end in NaN; "
        "GradScaler skips the step and halves the scale. "
    )
    least, greatest = max(powers.start, 0), powers[-1]
    scales = f"scales 2^{least} to 2^{greatest}" if least < greatest else f"scale 2^{greatest}"
    return f"{spoils if too_large and f.has_infinity else ''}None is lost at {scales}."


def table(found: Found) -> list[list[str]]:
    """How each mix was trained, and how many of its own gradients were 0; empty before any was."""
    head = ["", "steps", "loss", "first scale", "last scale", "steps skipped", "zeros at first", "at last"]
    rows = []
    for mix, steps in found.runs.items():
        ends = steps[0], steps[-1]
        scales = [f"2^{math.log2(step.scale):.0f}" for step in ends]
        zeros = [share_text(step.zero_share) if math.isfinite(step.loss) else "" for step in ends]
        skipped = f"{sum(step.skipped for step in steps)}" if mix == SCALER else ""
        rows.append([mix, f"{len(steps)}", f"{steps[-1].loss:.3g}", *scales, skipped, *zeros])
    return [head, *rows] if rows else []
