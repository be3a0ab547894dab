"""The share of lost updates over a training, and the sizes of the updates of one step."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.mixed_precision.updates_lab.asked import ASKED_AT, STEPS, Asked, Found
from course_utils.core.say import Guess
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.naming import Box, Curve, names
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 330
SHARES = (60, 48, 420, 220)  # left, top, width, height
UPDATES = (650, 48, 334, 220)
# The sizes that are drawn go from 2^LOWEST to 2^HIGHEST half gaps.
LOWEST = -12
HIGHEST = 8
MOST = 3500  # the end of the axis; no bin has so many updates


def view(asked: Asked, found: Found, guesses: Sequence[Guess]) -> View:
    """Draw two frames and the reader's marks, and after Show also what was measured."""
    drawn = [*_shares(asked, found, guesses), *_updates(asked, found)]
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked, found, guesses))


def _meaning(asked: Asked, found: Found, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture: what to do, or after Show the share of lost updates."""
    if not asked.shown:
        return translated(
            "Training in bf16 alone: how many of the updates are lost, step after step? "
            "Set the marks, then Show."
        )
    percent = 100 * found.steps[asked.step - 1].still
    lost = translated(
        "In step {step}, {percent} % of the updates move no weight.",
        step=f"{asked.step}",
        percent=f"{percent:.1f}",
    )
    return in_a_row(marks.summed_up(guesses), lost)


def _shares(asked: Asked, found: Found, guesses: Sequence[Guess]) -> Iterator[str]:
    """Draw the marks of the guesses, each on a vertical track.

    After Show the curves are drawn, too, and how far off each guess was.
    """
    steps = Axis(0, STEPS, translated("step"), linear=True, marks=range(0, STEPS + 1, 50))
    percent = Axis(0, 100, words="{:g} %".format, linear=True, most_marks=4)
    plot = Plot(*SHARES, steps, percent)
    yield plot.frame(translated("Share of the updates that are lost"))
    tracks = [marks.Track(plot.at(step, 0), plot.at(step, 100)) for step in ASKED_AT]
    if asked.shown:
        yield from _curves(plot, asked, found, _taken(asked, tracks))
    # With `through`, a line connects the marks that are set.
    yield marks.drawn("guess", asked, tracks, through=True)
    if asked.shown:  # above that line, which would strike the words through
        yield from marks.words_beside(guesses, asked, "guess", tracks)


def _curves(plot: Plot, asked: Asked, found: Found, taken: Sequence[Box]) -> Iterator[str]:
    """Draw the predicted and the measured share over all steps, and a dot at the present step.

    Their names keep out of the boxes that are taken.
    """
    predicted = []
    measured = []
    for number, step in enumerate(found.steps, 1):
        predicted.append((number, 100 * step.below))
        measured.append((number, 100 * step.still))
    yield plot.line(measured, "line measured")
    yield plot.line(predicted, "line predicted dashed")  # above, since they are often the same
    x, y = plot.at(*measured[asked.step - 1])
    yield svg.dot(x, y, 7, class_="measured")
    curves = [
        Curve(translated("measured"), measured, "measured-words"),
        Curve(translated("predicted"), predicted, "formula"),
    ]
    yield from names(plot, curves, taken)


def _taken(asked: Asked, tracks: Sequence[marks.Track]) -> list[Box]:
    """Return the boxes that the marks may fill, each with the words beside it."""
    boxes = []
    for track, level in zip(tracks, asked.guess, strict=True):
        if level is not None:
            x, y = track.at(level / 100)
            # Left, top, right, bottom: the mark and, at its right, the words.
            boxes.append(Box(x - 10, y - 10, x + 90, y + 10))
    return boxes


def _updates(asked: Asked, found: Found) -> Iterator[str]:
    """Draw how many updates of the step have each size. Lost ones have a colour of their own."""
    sizes = Axis(
        LOWEST,
        HIGHEST,
        translated("update ÷ half a gap of its weight"),
        "2^{:g}".format,
        linear=True,
        marks=range(LOWEST, HIGHEST + 1, 4),
    )
    plot = Plot(*UPDATES, sizes, Axis(0, MOST, linear=True, most_marks=4))
    title = translated("How many updates of each size, in one step")
    if asked.shown:
        title = translated("How many updates of each size, in step {step}", step=f"{asked.step}")
    yield plot.frame(title)
    yield plot.line([(0, 0), (0, MOST)], "fate-edge")  # at 2^0 half gaps, below which one is lost
    if asked.shown:
        for begin, count in found.steps[asked.step - 1].bins:
            if LOWEST <= begin < HIGHEST:
                yield _bar(plot, begin, count)
    edge = plot.x(0)
    yield svg.text(edge - 10, plot.top + 14, translated("lost"), class_="strong end")
    yield svg.text(edge + 10, plot.top + 14, translated("arrive"), class_="strong")


def _bar(plot: Plot, begin: int, count: int) -> str:
    """Draw one bin of the histogram, which begins at this power of two."""
    left = plot.x(begin)
    top = plot.y(count)
    right = plot.x(begin + 1)
    fate = "fate-lost" if begin < 0 else "fate-normal"
    return svg.rect(left, top, right - left, plot.bottom - top, class_=fate)
