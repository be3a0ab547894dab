"""What the precision lab draws: a histogram of gradients over the reach of each format, and beside it loss over steps."""

import math
from collections.abc import Iterator, Sequence
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
COLUMNS = ("strong", "formula", "formula", "formula", "measured-words")
FATES = dict(zip(predict.FATES, ("fate-lost", "fate-subnormal", "fate-normal", "fate-lost"), strict=True))
CLASSES = ("mix-fp32", "mix-autocast", "mix-constant", "mix-scaler", "mix-alone", "mix-master")
CLASS_OF = dict(zip(MIXES, CLASSES, strict=True))


def view(asked: Scaling, found: Found) -> View:
    """The table, the histogram over the formats, and the curves."""
    gradients = found.gradients.over(asked.mean_over)
    most = max(count for _, count in gradients.bins)
    powers = Axis(LOWEST, HIGHEST, "", "2^{:g}".format, linear=True, marks=range(LOWEST, HIGHEST + 1, 8))
    plot = Plot(*HISTOGRAM, powers, Axis(0, 1.1 * most, linear=True, most_marks=3))
    drawn = [
        plot.frame(),
        *_formats(asked, gradients, plot),
        *_curves(asked, found),
        columns(words.rows(asked, gradients), 0, 14, LEFT_PART, COLUMNS, step=20),
        fitted(0, 116, words.formula(asked, gradients), LEFT_PART, "small formula"),
        *_histogram(asked, gradients, plot),
    ]
    return View(svg.picture(WIDTH, HEIGHT, *drawn), words.meaning(asked, gradients))


def _histogram(asked: Scaling, gradients: Gradients, plot: Plot) -> Iterator[str]:
    """The scaled gradients in the colours of their fates, and the log-normal that is fitted to them."""
    title = f"Gradients after {asked.after} steps, mean over {asked.mean_over:,}, × 2^{asked.power}: how many of each size"
    yield fitted(plot.left, plot.top - 24, title, LEFT_PART, "strong")
    fates = [("fate-lost", "lost"), ("fate-subnormal", "subnormal"), ("fate-normal", "normal")]
    yield key(fates, plot.left, plot.top - 7)
    yield svg.text(plot.right, plot.top - 7, "blue: log-normal; thin: unscaled", class_="small faint end")
    scaled = [(begin + asked.power, count) for begin, count in gradients.bins]
    for fate, alike in groupby(scaled, lambda bin_: predict.fate_of(2 ** (bin_[0] + BIN / 2), asked.fmt)):
        yield plot.line(_outline(list(alike)), FATES[fate])
    if asked.power:
        yield plot.line(_outline(gradients.bins), "leader")
    mu, sigma = (n / math.log(2) for n in gradients.fit)  # in powers of two
    normal, total = NormalDist(mu + asked.power, sigma), sum(count for _, count in scaled)
    powers = [normal.mean + n / 8 * sigma for n in range(-32, 33)]
    curve = [(power, BIN * total * normal.pdf(power)) for power in powers if LOWEST <= power <= HIGHEST]
    yield plot.line(curve, "line predicted")


def _outline(bins: Sequence[tuple[Number, int]]) -> list[Point]:
    tops = [(power, count) for begin, count in bins for power in (begin, begin + BIN)]
    return [(tops[0][0], 0), *tops, (tops[-1][0], 0)]


def _formats(asked: Scaling, gradients: Gradients, plot: Plot) -> Iterator[str]:
    """What each holds, how much of the gradients it loses, and where one fate ends and the next begins."""
    for edge in map(math.log2, predict.rounding_edges(asked.fmt)):
        if LOWEST < edge < HIGHEST:
            yield plot.line([(edge, plot.y_axis.high), (edge, 0)], "fate-edge")
    yield svg.text(SHARES_AT + 8, BARS_AT - 10, "lost", class_="small faint")
    for number, name in enumerate(FORMATS):
        f, y, focus = floats.FORMATS[name], BARS_AT + BAR * number, " in-focus" * (name == asked.fmt)
        sizes = f.smallest_subnormal, f.smallest_normal, f.max
        least, normal, most = (plot.x(math.log2(size)) for size in sizes)
        yield svg.text(0, y + 13, f.label, class_="strong" if focus else "")
        yield svg.rect(normal, y, most - normal, BAR_HEIGHT, class_=f"fate-normal{focus}")
        yield svg.rect(least, y, normal - least, BAR_HEIGHT, class_=f"fate-subnormal{focus}")
        reach = f"{words.size_text(f.smallest_subnormal)} to {words.size_text(f.max)}"
        yield svg.element("g", svg.text(normal + 8, y + 12, reach, class_="small"), class_="on-light")
        counted = gradients.fates[name].measured
        lost = words.share_text((counted[words.ZERO] + counted[words.BEYOND]) / counted.total)
        yield svg.text(SHARES_AT, y + 12, lost, class_="small measured-words")


def _curves(asked: Scaling, found: Found) -> Iterator[str]:
    """The loss of each mix that is ticked and was trained, as far as it is a number."""
    plot = Plot(*LOSSES, Axis(0, STEPS, "steps", linear=True, most_marks=3), Axis(1e-3, 10))
    yield plot.frame("Loss, trained in")
    yield svg.text(plot.left, 14, f"mean over {found.mean_over:,}", class_="small faint")
    names = []
    for mix in [mix for mix in asked.mixes if mix in found.losses]:
        losses = [loss for loss in found.losses[mix] if math.isfinite(loss)]
        failed = len(losses) < len(found.losses[mix])
        places = [(n, losses[n]) for n in thinned(losses)]
        yield plot.line(places, f"line {CLASS_OF[mix]}")
        end = plot.at(*places[-1])
        yield svg.cross(*end, class_="pointed") if failed else ""
        said = f"{mix.replace('the scale', f'2^{found.power}')} {'NaN' if failed else f'{losses[-1]:.2g}'}"
        names.append(EndName(end, said, CLASS_OF[mix], "small alarm" if failed else "small"))
    yield from names_beside(names, NAMES_AT, WIDTH, plot.top + 6, plot.bottom + 4)
