"""What the precision lab draws: a histogram of gradients over the reach of each format, and beside it loss over steps."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from statistics import NormalDist

import torch

from course_utils import floats, predict
from course_utils.labs import precision_words as words
from course_utils.labs.lines import spread, thinned
from course_utils.labs.panel import View
from course_utils.labs.precision_asked import CONSTANT, FORMATS, SCALER, Asked, Runs, fates_in, log_sizes
from course_utils.labs.precision_words import BEYOND, NORMAL, SUBNORMAL, ZERO
from course_utils.labs.svg import StepPlot, dot, picture, polyline, rect, text
from course_utils.precision import WIDTHS
from course_utils.quantities import Number

WIDTH, HEIGHT, TOP = 1000, 578, 216
LEFT, HIST_WIDTH, HIST_HEIGHT = 44, 468, 170
LOWEST, HIGHEST, BINS_A_POWER = -48, 24, 4  # powers of two, from edge to edge of the histogram
BAR_TOP, BAR, BAR_HEIGHT = TOP + HIST_HEIGHT + 30, 27, 19
SHARES_AT = LEFT + HIST_WIDTH + 18
PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT = 650, TOP - 32, 172, 320
NAMES_AT, GAP = PLOT_LEFT + PLOT_WIDTH + 14, 17
STEPS, LOSSES = 200, (1e-3, 10.0)
COLUMNS = (0, 124, 290, 460, 612)
CLASSES = {
    "fp32": "mix-fp32",
    "bf16 autocast": "mix-autocast",
    CONSTANT: "mix-constant",
    SCALER: "mix-scaler",
    "bf16 alone": "mix-alone",
    "bf16 + fp32 master": "mix-master",
}


def view(asked: Asked, runs: Runs) -> View:
    """The account, the histogram over the formats, the curves, and a table of the training."""
    drawn = [*_account(asked), *_histogram(asked), *_formats(asked), *_curves(runs)]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(asked, runs), words.table(runs))


def _account(asked: Asked) -> Iterator[str]:
    """Prediction beside measurement."""
    total = f"{asked.fates.measured.total:,} in {floats.FORMATS[asked.fmt].label}"
    head = [total, f"|g| × 2^{asked.power} is", "predicted: edges", "log-normal", "counted: torch's cast"]
    for x, cell in zip(COLUMNS, head, strict=True):
        yield text(x, 16, cell, class_="faint")
    classes = ("strong", "formula", "formula", "formula", "measured-words")
    for number, cells in enumerate(words.account(asked)):
        for x, cell, class_ in zip(COLUMNS, cells, classes, strict=True):
            yield text(x, 38 + 21 * number, cell, class_=class_)
    yield text(0, 128, words.formula(asked), class_="small formula")


# The histogram.


def _x(power: Number) -> Number:
    """Where 2^power lies; beyond the axis, at its edge."""
    inside = min(max(power, LOWEST), HIGHEST)
    return LEFT + HIST_WIDTH * (inside - LOWEST) / (HIGHEST - LOWEST)


@lru_cache(maxsize=64)
def _bins(after: int, layer: int) -> tuple[tuple[Number, int], ...]:
    """(the power of two at which it begins, how many) for each bin that is not empty, unscaled."""
    places = (log_sizes(after, layer) * BINS_A_POWER).floor()
    begins, counts = torch.unique_consecutive(places, return_counts=True)
    return tuple(zip((begins / BINS_A_POWER).tolist(), counts.tolist(), strict=True))


def _histogram(asked: Asked) -> Iterator[str]:
    bottom = TOP + HIST_HEIGHT
    yield text(0, TOP - 58, words.which(asked), class_="strong")
    yield text(
        0,
        TOP - 41,
        "blue: the log-normal with their mean and spread; thin line: unscaled",
        class_="small faint",
    )
    for power in range(LOWEST, HIGHEST + 1, 8):
        yield polyline([(_x(power), TOP), (_x(power), bottom)], class_="grid")
        yield text(_x(power), bottom + 17, f"2^{power}", class_="middle small")
    bins = _bins(asked.after, asked.layer)
    most = 1.1 * max(count for _, count in bins)
    scaled = [(begin + asked.power, count) for begin, count in bins]
    for fate, alike in groupby(scaled, lambda bin_: _fate_at(asked.fmt, bin_[0] + 0.5 / BINS_A_POWER)):
        yield polyline(_outline(list(alike), most), class_=fate)
    if asked.power:
        yield polyline(_outline(bins, most), class_="leader")
    yield polyline(_fit(asked, most), class_="line predicted")
    yield from _edges(asked)


@lru_cache(maxsize=4096)
def _fate_at(fmt: str, power: Number) -> str:
    edges = predict.rounding_edges(fmt)
    size = 2.0**power
    if size <= edges.zero_to or size >= edges.beyond_from:
        return "fate-lost"
    return "fate-subnormal" if size < edges.normal_from else "fate-normal"


def _outline(bins: Sequence[tuple[Number, int]], most: Number) -> list[tuple[Number, Number]]:
    places, bottom = [], TOP + HIST_HEIGHT
    for begin, count in bins:
        y = bottom - HIST_HEIGHT * count / most
        places += [(_x(begin), y), (_x(begin + 1 / BINS_A_POWER), y)]
    return [(places[0][0], bottom), *places, (places[-1][0], bottom)]


def _fit(asked: Asked, most: Number) -> list[tuple[Number, Number]]:
    mu, sigma = (n / math.log(2) for n in asked.fit)  # in powers of two
    normal, per_bin = NormalDist(mu + asked.power, sigma), asked.fates.measured.total / BINS_A_POWER
    powers = [normal.mean + n / 8 * sigma for n in range(-32, 33)]
    inside = [power for power in powers if LOWEST <= power <= HIGHEST]
    heights = [min(HIST_HEIGHT, HIST_HEIGHT * normal.pdf(p) * per_bin / most) for p in inside]
    return [(_x(p), TOP + HIST_HEIGHT - h) for p, h in zip(inside, heights, strict=True)]


def _edges(asked: Asked) -> Iterator[str]:
    """Where one fate ends and the next begins, and each one's share above its part of the axis."""
    zero, normal, beyond = (math.log2(edge) for edge in predict.rounding_edges(asked.fmt))
    gaps = [(BAR_TOP + BAR * n, BAR - BAR_HEIGHT) for n in range(FORMATS.index(asked.fmt) + 1)]
    for edge in (zero, normal, beyond):
        if LOWEST < edge < HIGHEST:
            x = _x(edge)
            yield polyline([(x, TOP), (x, TOP + HIST_HEIGHT + 4)], class_="fate-edge")
            for bottom, gap in gaps:  # down to its bar, but through no words
                yield polyline([(x, bottom - gap), (x, bottom)], class_="fate-edge")
    counted = asked.fates.measured
    share = {fate: words.share_text(counted[fate] / counted.total) for fate in predict.FATES}
    upper, lower = TOP - 22, TOP - 6
    if zero > LOWEST:
        yield text(
            (_x(LOWEST) + _x(zero)) / 2,
            upper,
            f"to zero {share[ZERO]}",
            class_="small middle" + " alarm" * bool(counted[ZERO]),
        )
        yield text((_x(zero) + _x(normal)) / 2, lower, f"subnormal {share[SUBNORMAL]}", class_="small middle")
    yield text((_x(normal) + _x(beyond)) / 2, upper, f"normal {share[NORMAL]}", class_="small middle")
    if beyond < HIGHEST:
        said = f"{words.beyond_text(asked.fmt)} {share[BEYOND]}"
        yield text(_x(HIGHEST), lower, said, class_="small end" + " alarm" * bool(counted[BEYOND]))


# The formats.


def _formats(asked: Asked) -> Iterator[str]:
    yield text(SHARES_AT + 8, BAR_TOP - 13, "lost", class_="small faint")
    for number, fmt in enumerate(FORMATS):
        f, y, focus = floats.FORMATS[fmt], BAR_TOP + BAR * number, " in-focus" if fmt == asked.fmt else ""
        least, normal, most = (math.log2(n) for n in (f.smallest_subnormal, f.smallest_normal, f.max))
        yield text(0, y + 14, f.label, class_="strong" if focus else "")
        yield rect(_x(normal), y, _x(most) - _x(normal), BAR_HEIGHT, class_=f"limit{focus}")
        if _x(least) < _x(normal):
            yield rect(_x(least), y, _x(normal) - _x(least), BAR_HEIGHT, class_=f"limit lighter{focus}")
        largest = f"{f.max:,.0f}" if f.max < 1e6 else f"2^{most:.0f}"
        reach = f"{words.power_text(f.smallest_subnormal)} to {largest}"
        yield text(_x(normal) + 8, y + 14, reach, class_="small")
        counted = fates_in(fmt, asked.power, asked.after, asked.layer).measured
        lost = words.share_text((counted[ZERO] + counted[BEYOND]) / counted.total)
        yield text(SHARES_AT, y + 14, lost, class_="small measured-words")
    y = BAR_TOP + BAR * len(FORMATS) + 14
    yield text(LEFT, y, "lighter: subnormal, fewer and fewer digits", class_="small faint")


# The curves.


def _curves(runs: Runs) -> Iterator[str]:
    plot = StepPlot(PLOT_LEFT, PLOT_TOP, PLOT_WIDTH, PLOT_HEIGHT, (0, STEPS), LOSSES)
    yield plot.frame("Loss", "steps", "ring: an even guess, ln 19", "{:.0f}".format, "{:g}".format)
    ends: dict[str, tuple[Number, Number]] = {}
    for mix, class_ in CLASSES.items():
        steps = list(runs.steps.get(mix, ()))
        losses = [step.loss for step in steps if math.isfinite(step.loss)]
        if not losses:
            continue
        places = [plot.at(n, losses[n]) for n in thinned(losses)]
        yield polyline(places, class_=f"line {class_}")
        ends[mix] = places[-1]
        if len(losses) < len(steps):
            x, y = places[-1]
            for a, b in ((5, 5), (5, -5)):
                yield polyline([(x - a, y - b), (x + a, y + b)], class_="pointed")
    yield dot(*plot.at(0, math.log(WIDTHS[-1])), 5, class_="ring")
    if not ends:
        yield text(PLOT_LEFT + 8, PLOT_TOP + 20, "Press Train.", class_="small faint")
    heights = spread([y + 4 for _, y in ends.values()], PLOT_TOP + 6, PLOT_TOP + PLOT_HEIGHT + 4, GAP)
    for (mix, place), height in zip(ends.items(), heights, strict=True):
        steps = runs.steps[mix]
        loss = steps[-1].loss
        yield polyline([place, (NAMES_AT - 4, height - 4)], class_="leader")
        yield dot(NAMES_AT, height - 4, 5, class_=CLASSES[mix])
        said = f"{loss:.2g}" if math.isfinite(loss) else "NaN"
        yield text(
            NAMES_AT + 9, height, f"{runs.name(mix)} {said}", class_="small" + " alarm" * (said == "NaN")
        )
