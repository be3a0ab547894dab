"""Gradients under the zones of a format, and below them the share that is lost at each scale."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.mixed_precision.precision_lab import words
from course_utils.chapters.mixed_precision.precision_lab.asked import (
    BIN,
    MOST,
    Found,
    Gradients,
    Scaling,
)
from course_utils.core.say import Guess, Number
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 368
LOWEST = -52  # the powers of two at the edges of the histogram
HIGHEST = 28
HISTOGRAM = (64, 44, 920, 116)  # left, top, width, height
# A power of two is as wide as in the histogram.
SHARES = (64, 228, 920 * MOST / (HIGHEST - LOWEST), 96)
# The upper end of the axis, above every bin of every state. If each state had an end of its own,
# the axis would change unnoticed.
MANY = 1000
NO_GRADIENTS = 0.5  # the lower end of the axis: it is logarithmic, so it cannot begin at 0
CLASSES = ("fate-lost", "fate-subnormal", "fate-normal", "fate-lost")  # of the zones in `words`
Bins = Sequence[tuple[Number, int]]


def view(asked: Scaling, found: Found, guesses: Sequence[Guess]) -> View:
    """Draw the gradients, and below them the marks that the reader sets as guesses.

    Once `asked.shown`, the gradients are scaled, and the share that is lost at each scale is drawn.
    """
    gradients = found.gradients.over(asked.mean_over)
    drawn = [*_gradients(asked, gradients), *_shares(asked, gradients, guesses)]
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked, gradients, guesses))


def _meaning(asked: Scaling, gradients: Gradients, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture: a question, or after Show what is lost."""
    if not asked.shown:
        return words.question(asked)
    if not guesses:
        return words.meaning(asked, gradients)
    return in_a_row(marks.summed_up(guesses), words.meaning(asked, gradients))


def _gradients(asked: Scaling, gradients: Gradients) -> Iterator[str]:
    """Draw the gradients in the colours of what becomes of them, below the format's zones."""
    powers = Axis(
        LOWEST,
        HIGHEST,
        translated("size of a gradient"),
        "2^{:g}".format,
        linear=True,
        marks=range(-48, HIGHEST + 1, 8),
    )
    plot = Plot(*HISTOGRAM, powers, Axis(NO_GRADIENTS, MANY, most_marks=4))
    title = translated("How many gradients of each size")
    if asked.drawn_power:
        title = translated("How many gradients of each size × 2^{power}", power=f"{asked.power}")
    which = translated(
        "after {steps} steps, mean over {count}",
        steps=f"{asked.after}",
        count=f"{asked.mean_over:,}",
    )
    yield plot.frame()
    yield svg.text(0, 14, title, class_="strong")
    yield svg.text(plot.right, 14, which, class_="small faint end")
    zones = words.zones(asked.fmt)
    for (name, begin, end), class_ in zip(zones, CLASSES, strict=True):
        yield from _zone(plot, name, begin, end, class_)
    scaled = [(begin + asked.drawn_power, count) for begin, count in gradients.bins]
    for (_, begin, end), class_ in zip(zones, CLASSES, strict=True):
        # A bin belongs to the zone in which its middle lies.
        in_zone = [(left, count) for left, count in scaled if begin <= left + BIN / 2 < end]
        if in_zone:
            yield plot.line(_outline(in_zone), class_)
    if asked.drawn_power:  # the gradients as they were without the scale
        yield plot.line(_outline(gradients.bins), "leader")


def _zone(plot: Plot, name: str, begin: Number, end: Number, class_: str) -> Iterator[str]:
    """Draw a zone: a bar above the plot, with the name if it fits, and a line at the zone's end."""
    left = plot.x(max(begin, LOWEST))
    right = plot.x(min(end, HIGHEST))
    if right > left:  # otherwise the zone lies outside the plot
        yield svg.rect(left, plot.top - 20, right - left, 18, class_=class_)
        if width_of(name, "small") < right - left - 8:
            lettering = fitted(left + 4, plot.top - 7, name, right, "small")
            ink = "on-dark" if class_ == "fate-lost" else "on-light"
            yield svg.element("g", lettering, class_=ink)
    if LOWEST < end < HIGHEST:
        yield plot.line([(end, MANY), (end, NO_GRADIENTS)], "fate-edge")


def _outline(bins: Bins) -> list[Point]:
    """Return the points of a line that goes up and down at each bin, as there may be gaps."""
    points = []
    for begin, count in bins:
        end = begin + BIN
        if begin >= LOWEST and end <= HIGHEST:
            points.append((begin, NO_GRADIENTS))
            points.append((begin, count))
            points.append((end, count))
            points.append((end, NO_GRADIENTS))
    return points


def _shares(asked: Scaling, gradients: Gradients, guesses: Sequence[Guess]) -> Iterator[str]:
    """Draw the marks for the two cliffs, and after Show the share that is lost at each scale."""
    scales = Axis(
        0, MOST, translated("loss scale"), "2^{:g}".format, linear=True, marks=range(0, MOST + 1, 8)
    )
    percent = Axis(0, 100, words="{:g} %".format, linear=True, most_marks=2)
    plot = Plot(*SHARES, scales, percent)
    yield plot.frame(translated("Share of the gradients that is lost, by loss scale"))
    lower_cliff = _track(plot, plot.bottom - 66)
    upper_cliff = _track(plot, plot.bottom - 22)
    tracks = [lower_cliff, upper_cliff]
    if asked.shown:
        yield from _lost(plot, asked, gradients)
        yield from marks.words_beside(guesses, asked, "guess", tracks)
    yield marks.drawn("guess", asked, tracks)
    names = translated("no zero from here on"), translated("none too large up to here")
    for track, level, name in zip(tracks, asked.guess, names, strict=True):
        if level is not None or not asked.shown:  # otherwise its mark is left out
            yield _beside(plot, track, name)


def _track(plot: Plot, y: Number) -> marks.Track:
    """Return a horizontal line across the plot, along which the reader moves a mark."""
    return marks.Track((plot.left, y), (plot.right, y))


def _beside(plot: Plot, track: marks.Track, name: str) -> str:
    """Draw the name of a cliff at the right of its mark's track.

    In between there is space for the words beside a mark that is at the end of the track.
    """
    _, y = track.start
    return fitted(plot.right + 98, y + 4, name, WIDTH, "strong")


def _lost(plot: Plot, asked: Scaling, gradients: Gradients) -> Iterator[str]:
    """Draw the share that is lost by scale, a line at each cliff, and a dot at the chosen scale."""
    curve = []
    for power, (zero, beyond) in enumerate(gradients.shares(asked.fmt)):
        curve.append((power, 100 * (zero + beyond)))
    yield plot.line(curve, "line measured")
    for power in gradients.cliffs(asked.fmt):
        yield plot.line([(power, 0), (power, 100)], "fate-edge")
    x, y = plot.at(*curve[asked.power])
    yield svg.dot(x, y, 7, class_="measured")
