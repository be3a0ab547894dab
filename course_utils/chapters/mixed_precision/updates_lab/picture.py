"""What the updates lab draws: the share of lost updates over a training, and the updates of one step."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.mixed_precision.updates_lab.asked import ASKED_AT, STEPS, Asked, Found
from course_utils.core.say import Guess
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 330
SHARES, UPDATES = (60, 48, 420, 220), (650, 48, 334, 220)  # left, top, width, height
LOWEST, HIGHEST = -12, 8  # powers of two of half a step
MOST = 3500  # updates in a bin, above all that there are


def view(asked: Asked, found: Found, guesses: Sequence[Guess]) -> View:
    """Before Show two frames and the marks."""
    drawn = [*_shares(asked, found, guesses), *_updates(asked, found)]
    if not asked.shown:
        said = "Training in bf16 alone: how many of the updates are lost, step after step? Set the marks, then Show."
        return View(svg.picture(WIDTH, HEIGHT, *drawn), said)
    step = found.steps[asked.step - 1]
    said = f"{marks.farthest(guesses)} In step {asked.step}, {100 * step.still:.1f} % of the updates move no weight."
    return View(svg.picture(WIDTH, HEIGHT, *drawn), said.strip())


def _shares(asked: Asked, found: Found, guesses: Sequence[Guess]) -> Iterator[str]:
    steps = Axis(0, STEPS, "step", linear=True, marks=range(0, STEPS + 1, 50))
    plot = Plot(*SHARES, steps, Axis(0, 100, "", "{:g} %".format, linear=True, most_marks=4))
    yield plot.frame("Share of the updates that are lost")
    tracks = [marks.Track(plot.at(step, 0), plot.at(step, 100)) for step in ASKED_AT]
    if asked.shown:
        for class_, share in (("line predicted", "below"), ("line measured", "still")):
            yield plot.line(
                [(n, 100 * getattr(one, share)) for n, one in enumerate(found.steps, 1)], class_
            )
        yield svg.dot(
            *plot.at(asked.step, 100 * found.steps[asked.step - 1].still), 7, class_="measured"
        )
        yield from marks.offs(guesses, asked, "guess", tracks)
    yield marks.drawn("guess", asked, tracks, through=True)


def _updates(asked: Asked, found: Found) -> Iterator[str]:
    """How many updates of that step there are of each size, in the colours of their fates."""
    powers, name = range(LOWEST, HIGHEST + 1, 4), "update ÷ half a step of its weight"
    sizes = Axis(LOWEST, HIGHEST, name, "2^{:g}".format, linear=True, marks=powers)
    plot = Plot(*UPDATES, sizes, Axis(0, MOST, linear=True, most_marks=4))
    yield plot.frame(
        f"The updates of step {asked.step}" if asked.shown else "The updates of one step"
    )
    yield plot.line([(0, 0), (0, MOST)], "fate-edge")
    for begin, count in found.steps[asked.step - 1].bins if asked.shown else ():
        if LOWEST <= begin < HIGHEST:
            left, top, right = plot.x(begin), plot.y(count), plot.x(begin + 1)
            fate = "fate-lost" if begin < 0 else "fate-normal"
            yield svg.rect(left, top, right - left, plot.bottom - top, class_=fate)
    yield svg.text(plot.x(0) - 10, plot.top + 14, "lost", class_="strong end")
    yield svg.text(plot.x(0) + 10, plot.top + 14, "arrive", class_="strong")
