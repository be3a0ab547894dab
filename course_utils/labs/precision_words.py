"""What the precision lab says: the account of what a format makes of gradients, and how the training went."""

import math

from course_utils import floats, predict
from course_utils.labs.precision_asked import CONSTANT, SCALER, Asked, Runs
from course_utils.quantities import Number, count_text

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


def power_text(size: Number) -> str:
    """A power of two as one, whatever else in full.

    >>> power_text(2.0**-25), power_text(65520.0)
    ('2^-25', '65,520')
    """
    mantissa, exponent = math.frexp(size)
    return f"2^{exponent - 1}" if mantissa == 0.5 else f"{size:,.0f}"


def beyond_text(fmt: str) -> str:
    """What becomes of a number that is too large."""
    f = floats.FORMATS[fmt]
    return "to infinity" if f.has_infinity else f"held at {f.max:g}"


def account(asked: Asked) -> list[list[str]]:
    """A row for each fate: where it is, its share by the edges and by a log-normal, and its count by torch's cast."""
    f, predicted, measured = floats.FORMATS[asked.fmt], asked.fates.predicted, asked.fates.measured
    lognormal = predict.lognormal_fates(*asked.fit, asked.fmt, 2.0**asked.power)
    zero_to = predict.rounding_edges(asked.fmt).zero_to
    normal, beyond = power_text(f.smallest_normal), f.max + floats.spacing(f.max, asked.fmt) / 2
    far = f"above {beyond:.3g}" if f.max > 1e6 else f"{'from' if f.has_infinity else 'above'} {beyond:,.0f}"
    where = {
        ZERO: f"up to {power_text(zero_to)}",
        SUBNORMAL: f"{power_text(zero_to)} to {normal}",
        NORMAL: f"from {normal}",
        BEYOND: far.replace("e+", "e"),
    }
    named = {fate: beyond_text(asked.fmt) if fate == BEYOND else fate for fate in predict.FATES}
    return [
        [
            named[fate],
            where[fate],
            _counted(predicted[fate], predicted.total),
            share_text(lognormal[fate]),
            _counted(measured[fate], measured.total) + (", exactly" if asked.fates.exact else ""),
        ]
        for fate in predict.FATES
    ]


def _counted(count: int, total: int) -> str:
    return f"{count:,} = {share_text(count / total)}" if count else "0"


def formula(asked: Asked) -> str:
    """The log-normal's share lost to zero, with the numbers filled in."""
    (mu, sigma), edge = asked.fit, math.log2(predict.rounding_edges(asked.fmt).zero_to)
    z = ((edge - asked.power) * math.log(2) - mu) / sigma
    said = share_text(predict.lognormal_fates(mu, sigma, asked.fmt, 2.0**asked.power)[ZERO])
    return (
        f"to zero, if ln |g| ~ N({mu:.2f}, {sigma:.2f}):   Φ((ln 2^{edge:.0f} − ln 2^{asked.power} − ({mu:.2f})) / {sigma:.2f})"
        f" = Φ({z:.2f}) {'' if said[0] in '<>' else '= '}{said}"
    )


def which(asked: Asked) -> str:
    """Which gradients these are."""
    layer = f"of layer {asked.layer}" if asked.layer else "of all layers"
    when = f"after {asked.after} steps" if asked.after else "of the first step"
    return f"Gradients {layer}, {when}, × 2^{asked.power}"


# What it means.


def meaning(asked: Asked, runs: Runs) -> str:
    """What the format loses, what would help, and what GradScaler did."""
    return " ".join(filter(None, [_what_is_lost(asked), _what_helps(asked), _what_the_scaler_did(runs)]))


def _what_is_lost(asked: Asked) -> str:
    counted, f = asked.fates.measured, floats.FORMATS[asked.fmt]
    share = {fate: counted[fate] / counted.total for fate in predict.FATES}
    at = f"{f.label} at scale 2^{asked.power}" if asked.power else f"{f.label} without a scale"
    becomes = "infinity" if f.has_infinity else f"{f.max:g}, its largest"
    lost = [
        f"{_whole(share[fate])} of these gradients into {what}"
        for fate, what in ((ZERO, "0"), (BEYOND, becomes))
        if share[fate]
    ]
    if lost:
        return f"{at} turns {' and '.join(lost)}."
    fewer = (
        f", but {_whole(share[SUBNORMAL])} are subnormal and keep fewer digits" if share[SUBNORMAL] else ""
    )
    return f"{at} loses none of these gradients{fewer}."


def _whole(share: Number) -> str:
    percent = round(100 * share)
    if percent in (0, 100) and share < 1:
        return "over 99 %" if percent else "under 1 %"
    return "all" if share == 1 else f"{percent} %"


def scales_that_lose_none(asked: Asked) -> tuple[int, int]:
    """The least and the greatest power of two that keep all: the least is the greater where none does."""
    edges = predict.rounding_edges(asked.fmt)
    smallest, largest = asked.sizes[0].item(), asked.sizes[-1].item()
    least = math.floor(math.log2(edges.zero_to) - smallest) + 1
    return least, math.ceil(math.log2(edges.beyond_from) - largest) - 1


def _what_helps(asked: Asked) -> str:
    least, greatest = scales_that_lose_none(asked)
    smallest, largest = asked.sizes[0].item(), asked.sizes[-1].item()
    f, edges, counted = floats.FORMATS[asked.fmt], predict.rounding_edges(asked.fmt), asked.fates.measured
    if least > greatest:
        reach = math.log2(edges.beyond_from / edges.zero_to)
        which_scale = (
            "No scale" if largest - smallest >= reach else "No power of two, though a scale between two,"
        )
        return (
            f"{which_scale} keeps all: they reach over {largest - smallest:.1f} powers of two, "
            f"and {f.label} over {reach:.1f}."
        )
    if least <= 0 and not counted[BEYOND]:
        begins = power_text(f.smallest_subnormal)
        return f"It needs no scale: its numbers begin at {begins}, these gradients at 2^{smallest:.0f}."
    if counted[BEYOND] and f.has_infinity:
        spoils = "One spoils the step: a constant scale ends in NaN, GradScaler skips it and halves. "
    else:
        spoils = ""
    scales = (
        f"Scales 2^{max(least, 0)} to 2^{greatest} lose"
        if max(least, 0) < greatest
        else f"Scale 2^{greatest} loses"
    )
    return f"{spoils}{scales} none."


def _what_the_scaler_did(runs: Runs) -> str:
    steps = runs.steps.get(SCALER)
    if not steps:
        return ""
    skipped = sum(step.skipped for step in steps)
    return f"GradScaler skipped {skipped or 'none'} of {count_text(len(steps), 'step')}."


def table(runs: Runs) -> list[list[str]]:
    """How each mix was trained, and how many of its own gradients were 0; empty before any was."""
    head = ["", "steps", "loss", "first scale", "last scale", "steps skipped", "zeros at first", "at last"]
    rows = []
    for mix, steps in runs.steps.items():
        if not steps:
            continue
        first, last = steps[0], steps[-1]
        scales = [f"2^{math.log2(step.scale):.0f}" for step in (first, last)]
        zeros = [share_text(step.zero_share) if math.isfinite(step.loss) else "" for step in (first, last)]
        skipped = f"{sum(step.skipped for step in steps)}" if mix == SCALER else ""
        name = mix if mix != CONSTANT else f"{mix}, × 2^{runs.power}"
        rows.append([name, f"{len(steps)}", f"{last.loss:.3g}", *scales, skipped, *zeros])
    return [head, *rows] if rows else []
