"""The share of the peak over n, for products of n × n matrices, and the time of every product over the time that the roof promises."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.flops.roof_lab.asked import SQUARES, Roofed
from course_utils.core import predict
from course_utils.core.say import Guess, number_text, seconds_text
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 310
N, PERCENT = (
    Axis(200, 5500, "n", number_text, marks=SQUARES),
    Axis(0, 100, "% of the peak", linear=True),
)
SHARES = Plot(52, 52, 560, 218, N, PERCENT)
ALL = 722, 52, 245, 218  # left, top, width, height
ALONG = [round(SQUARES[0] * 2 ** (step / 16)) for step in range(65)]
TRACKS = [marks.Track(SHARES.at(n, 0), SHARES.at(n, 100)) for n in SQUARES]


def view(asked: Roofed, guesses: Sequence[Guess]) -> View:
    """Before the reveal, roof and forecast alone."""
    drawn = [*_squares(asked), *_all(asked), marks.drawn("shares", asked, TRACKS, through=True)]
    if asked.shown:
        drawn += marks.offs(guesses, asked, "shares", TRACKS)
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked, guesses))


def _squares(asked: Roofed) -> Iterator[str]:
    yield SHARES.frame("Products of n × n matrices")
    yield SHARES.line([(n, asked.forecast(n, 0, 1)) for n in ALONG], "line predicted")
    yield SHARES.line(
        [(n, asked.forecast(n, *asked.c_and_e)) for n in ALONG], "line predicted dashed"
    )
    if asked.shown:
        yield from (
            svg.dot(*SHARES.at(n, asked.recorded(n)), 6, class_="measured") for n in SQUARES
        )


def _all(asked: Roofed) -> Iterator[str]:
    """Every time beside what the roof promises."""
    roofs = {
        size: predict.matmul_seconds(*size, asked.machine, asked.dtype)
        for size in asked.seconds_by_size
    }
    low, high = min(roofs.values()) / 2, max(roofs.values()) * 4
    plot = Plot(
        *ALL,
        Axis(low, high, "time by the roof", seconds_text),
        Axis(low, 4 * high, "time", seconds_text),
    )
    (c, e), along = asked.c_and_e, [low * (high / low) ** (step / 40) for step in range(41)]
    yield plot.frame("All products")
    yield plot.line([(low, low), (high, high)], "line predicted")
    yield plot.line([(roof, c + roof / e) for roof in along], "line predicted dashed")
    if asked.shown:
        for size, seconds in asked.seconds_by_size.items():
            yield svg.dot(*plot.at(roofs[size], seconds), 4, class_="measured past")


def _meaning(asked: Roofed, guesses: Sequence[Guess]) -> str:
    (c, e), source = asked.c_and_e, asked.recording.source
    if not asked.shown:
        return "Solid: the roof. Dashed: c + roof / e. Draw the share that each product reaches, then press Show."
    errors = asked.errors_text(asked.seconds_by_size, c, e)
    said = f"{seconds_text(c)} + roof / {e:g} against what {source.by} recorded, {errors}."
    return f"{marks.farthest(guesses)} {said}".lstrip()
