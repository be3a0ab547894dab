"""What the precision lab draws: a histogram of gradients over the reach of each format, and beside it loss over steps."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from statistics import NormalDist

from course_utils import floats, predict
from course_utils.labs.draw import svg
from course_utils.labs.draw.lettering import columns, fitted, key
from course_utils.labs.draw.lines import Point, thinned
from course_utils.labs.draw.plot import Axis, EndName, Plot, names_beside
from course_utils.labs.lab import View
from course_utils.labs.precision import words
from course_utils.labs.precision.asked import BIN, FORMATS, MIXES, STEPS, Found, Gradients, Scaling
from course_utils.quantities import Number

WIDTH, HEIGHT = 1000, 430
LEFT_PART = 640  # the gradients; the losses stand beside them
HISTOGRAM = (44, 166, 500, 138)  # left, top, width, height
LOWEST, HIGHEST = -48, 24  # powers of two, from edge to edge of the histogram
BARS_AT, BAR, BAR_HEIGHT, SHARES_AT = 332, 20, 16, 558
LOSSES, NAMES_AT = (700, 46, 142, 342), 852
SUMS = 19  # that two digits can have, and the model tells apart
CLASSES = ("mix-fp32", "mix-autocast", "mix-constant", "mix-scaler", "mix-alone", "mix-master")
CLASS_OF = dict(zip(MIXES, CLASSES, strict=True))


def view(asked: Scaling, found: Found) -> View:
    """The account, the histogram over the formats, the curves, and a table of the training."""
    gradients = found.gradients
    counts = Axis(0, 1, words=lambda _: "", linear=True)  # until there are any
    if gradients:
        counts = Axis(0, 1.1 * max(count for _, count in gradients.bins), linear=True, most_marks=3)
    powers = Axis(LOWEST, HIGHEST, "", "2^{:g}".format, linear=True, marks=range(LOWEST, HIGHEST + 1, 8))
    plot = Plot(*HISTOGRAM, powers, counts)
    rows = words.account(asked, gradients)
    classes = ("strong", "formula", "formula", "formula", "measured-words")[: len(rows[0])]
    drawn = [
        columns(rows, 0, 14, LEFT_PART, classes, step=20),
        plot.frame(),
        *_titles(asked, plot),
        *_edges(asked, plot),
        *(_histogram(asked, gradients, plot) if gradients else ()),
        *_formats(asked, gradients, plot),
        *_curves(asked, found),
    ]
    return View(svg.picture(WIDTH, HEIGHT, *drawn), words.meaning(asked, gradients), words.table(found))


# The histogram.


def _titles(asked: Scaling, plot: Plot) -> Iterator[str]:
    layer = f"layer {asked.layer}" if asked.layer else "all layers"
    title = f"Gradients of {layer} after {asked.after} steps, × 2^{asked.power}: how many of each size"
    yield fitted(plot.left, plot.top - 24, title, LEFT_PART, "strong")
    fates = [("fate-lost", "lost"), ("fate-subnormal", "subnormal"), ("fate-normal", "normal")]
    yield key(fates, plot.left, plot.top - 7)
    yield svg.text(plot.right, plot.top - 7, "blue: log-normal; thin: unscaled", class_="small faint end")


def _histogram(asked: Scaling, gradients: Gradients, plot: Plot) -> Iterator[str]:
    yield fitted(0, 116, words.formula(asked, gradients), LEFT_PART, "small formula")
    scaled = [(begin + asked.power, count) for begin, count in gradients.bins]
    for fate, alike in groupby(scaled, lambda bin_: _fate_at(asked.fmt, bin_[0] + BIN / 2)):
        yield plot.line(_outline(list(alike)), fate)
    if asked.power:
        yield plot.line(_outline(gradients.bins), "leader")
    mu, sigma = (n / math.log(2) for n in gradients.fit)  # in powers of two
    normal, total = NormalDist(mu + asked.power, sigma), sum(count for _, count in gradients.bins)
    powers = [normal.mean + n / 8 * sigma for n in range(-32, 33)]
    curve = [(power, BIN * total * normal.pdf(power)) for power in powers if LOWEST <= power <= HIGHEST]
    yield plot.line(curve, "line predicted")


@lru_cache(maxsize=4096)
def _fate_at(fmt: str, power: Number) -> str:
    edges, size = predict.rounding_edges(fmt), 2.0**power
    if size <= edges.zero_to or size >= edges.beyond_from:
        return "fate-lost"
    return "fate-subnormal" if size < edges.normal_from else "fate-normal"


def _outline(bins: Sequence[tuple[Number, int]]) -> list[Point]:
    tops = [(power, count) for begin, count in bins for power in (begin, begin + BIN)]
    return [(tops[0][0], 0), *tops, (tops[-1][0], 0)]


# The formats.


def _edges(asked: Scaling, plot: Plot) -> Iterator[str]:
    """Where one fate ends and the next begins, down to the format's bar, and behind the other bars."""
    bottom = BARS_AT + BAR * FORMATS.index(asked.fmt)
    for edge in map(math.log2, predict.rounding_edges(asked.fmt)):
        if LOWEST < edge < HIGHEST:
            x = plot.x(edge)
            for top, end in ((plot.top, plot.bottom + 4), (BARS_AT - 6, bottom)):  # through no words
                yield svg.polyline([(x, top), (x, end)], class_="fate-edge")


def _formats(asked: Scaling, gradients: Gradients | None, plot: Plot) -> Iterator[str]:
    """What each holds, and how much of the gradients it loses."""
    for number, name in enumerate(FORMATS):
        f, y, focus = floats.FORMATS[name], BARS_AT + BAR * number, " in-focus" * (name == asked.fmt)
        sizes = f.smallest_subnormal, f.smallest_normal, f.max
        least, normal, most = (plot.x(math.log2(size)) for size in sizes)
        yield svg.text(0, y + 13, f.label, class_="strong" if focus else "")
        yield svg.rect(normal, y, most - normal, BAR_HEIGHT, class_=f"fate-normal{focus}")
        if least < normal:
            yield svg.rect(least, y, normal - least, BAR_HEIGHT, class_=f"fate-subnormal{focus}")
        reach = f"{words.size_text(f.smallest_subnormal)} to {words.size_text(f.max)}"
        yield svg.element("g", svg.text(normal + 8, y + 12, reach, class_="small"), class_="on-light")
        if gradients:
            counted = gradients.fates[name].measured
            lost = words.share_text((counted[words.ZERO] + counted[words.BEYOND]) / counted.total)
            yield svg.text(SHARES_AT, y + 12, lost, class_="small measured-words")
    if gradients:
        yield svg.text(SHARES_AT + 8, BARS_AT - 10, "lost", class_="small faint")


# The curves.


def _curves(asked: Scaling, found: Found) -> Iterator[str]:
    steps_axis = Axis(0, STEPS, "steps", linear=True, most_marks=3)
    plot = Plot(*LOSSES, steps_axis, Axis(1e-3, 10, f"ring: an even guess, ln {SUMS}"))
    yield plot.frame("Loss, trained in")
    yield svg.dot(*plot.at(0, math.log(SUMS)), 5, class_="ring")
    names = []
    for mix in [mix for mix in asked.mixes if mix in found.runs]:
        run = [step.loss for step in found.runs[mix]]
        losses = [loss for loss in run if math.isfinite(loss)]
        places = [(n, losses[n]) for n in thinned(losses)]
        yield plot.line(places, f"line {CLASS_OF[mix]}")
        end, failed = plot.at(*places[-1]), len(losses) < len(run)
        if failed:
            yield svg.cross(*end, class_="pointed")
        name = mix.replace("the scale", f"2^{found.power}").replace("fp32 master", "master")
        said = "NaN" if failed else f"{losses[-1]:.2g}"
        names.append(EndName(end, f"{name} {said}", CLASS_OF[mix], "small alarm" if failed else "small"))
    yield from names_beside(names, NAMES_AT, WIDTH, plot.top + 6, plot.bottom + 4)
    if not names:
        yield svg.text(plot.left + 8, plot.top + 20, "Press Train.", class_="small faint")
