"""What the precision lab draws: gradients under a format's reach, and below them the share lost at each scale."""

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
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 368
LOWEST, HIGHEST = -52, 28  # powers of two, from edge to edge of the histogram
HISTOGRAM = (64, 44, 920, 116)  # left, top, width, height
SHARES = (
    64,
    228,
    920 * MOST / (HIGHEST - LOWEST),
    96,
)  # a power of two is as wide as in the histogram
MANY = 1000  # more gradients than any bin has: a scale of its own for each state would move without a word
CLASSES = ("fate-lost", "fate-subnormal", "fate-normal", "fate-lost")  # of `words.zones`


def view(asked: Scaling, found: Found, guesses: Sequence[Guess]) -> View:
    """Before Show the unscaled gradients and the marks; then the scaled ones, and what each scale loses."""
    gradients = found.gradients.over(asked.mean_over)
    drawn = [*_gradients(asked, gradients), *_shares(asked, gradients, guesses)]
    said = words.meaning(asked, gradients) if asked.shown else words.question(asked, gradients)
    if asked.shown and guesses:
        said = f"{marks.farthest(guesses)} {said}"
    return View(svg.picture(WIDTH, HEIGHT, *drawn), said)


def _gradients(asked: Scaling, gradients: Gradients) -> Iterator[str]:
    """The gradients in the colours of their fates, below the zones of the format."""
    powers = Axis(
        LOWEST,
        HIGHEST,
        "size of a gradient",
        "2^{:g}".format,
        linear=True,
        marks=range(-48, HIGHEST + 1, 8),
    )
    plot = Plot(*HISTOGRAM, powers, Axis(0.5, MANY, most_marks=4))
    scale = f" × 2^{asked.power}" if asked.shown and asked.power else ""
    title = f"How many gradients of each size{scale}"
    yield plot.frame()
    yield svg.text(0, 14, title, class_="strong")
    yield svg.text(
        plot.right,
        14,
        f"after {asked.after} steps, mean over {asked.mean_over:,}",
        class_="small faint end",
    )
    zones = words.zones(asked.fmt)
    for (name, begin, end), class_ in zip(zones, CLASSES, strict=True):
        left, right = (plot.x(min(max(edge, LOWEST), HIGHEST)) for edge in (begin, end))
        if right > left:
            yield svg.rect(left, plot.top - 20, right - left, 18, class_=class_)
            ink = "on-dark" if class_ == "fate-lost" else "on-light"
            if width_of(name, "small") < right - left - 8:
                yield svg.element(
                    "g", fitted(left + 4, plot.top - 7, name, right, "small"), class_=ink
                )
        if LOWEST < end < HIGHEST:
            yield plot.line([(end, MANY), (end, 0.5)], "fate-edge")
    scaled = [(begin + asked.power * asked.shown, count) for begin, count in gradients.bins]
    for (_, begin, end), class_ in zip(zones, CLASSES, strict=True):
        if alike := [bin_ for bin_ in scaled if begin <= bin_[0] + BIN / 2 < end]:
            yield plot.line(_outline(alike), class_)
    if scale:
        yield plot.line(_outline(gradients.bins), "leader")


def _outline(bins: Sequence[tuple[Number, int]]) -> list[Point]:
    """Up and down again over each bin, since between two of them there may be a gap."""
    return [
        place
        for begin, count in bins
        if LOWEST <= begin <= HIGHEST - BIN
        for place in ((begin, 0.5), (begin, count), (begin + BIN, count), (begin + BIN, 0.5))
    ]


def _shares(asked: Scaling, gradients: Gradients, guesses: Sequence[Guess]) -> Iterator[str]:
    """The share that is lost at each scale, once it is asked for, and the marks for the two cliffs."""
    scales = Axis(0, MOST, "loss scale", "2^{:g}".format, linear=True, marks=range(0, MOST + 1, 8))
    plot = Plot(*SHARES, scales, Axis(0, 100, "", "{:g} %".format, linear=True, most_marks=2))
    yield plot.frame("Share of the gradients that is lost, by loss scale")
    tracks = [
        marks.Track((plot.left, plot.bottom - rise), (plot.right, plot.bottom - rise))
        for rise in (66, 22)
    ]
    if asked.shown:
        shares = gradients.shares(asked.fmt)
        yield plot.line(
            [(n, 100 * (zero + beyond)) for n, (zero, beyond) in enumerate(shares)], "line measured"
        )
        for power in gradients.cliffs(asked.fmt):
            yield plot.line([(power, 0), (power, 100)], "fate-edge")
        yield svg.dot(*plot.at(asked.power, 100 * sum(shares[asked.power])), 7, class_="measured")
        yield from marks.offs(guesses, asked, "guess", tracks)
    yield marks.drawn("guess", asked, tracks)
    for track, name in zip(
        tracks, ("no zero from here on", "none too large up to here"), strict=True
    ):
        yield fitted(plot.right + 98, track.start[1] + 4, name, WIDTH, "strong")
