"""The picture: the share of the peak that squares reach, and every product's time by its roof."""

from collections.abc import Iterator, Sequence

from course_utils.chapters.flops.roof_lab.asked import SQUARES, Roofed
from course_utils.core import predict
from course_utils.core.say import Guess, number_text, seconds_text
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.naming import Box, Curve, names
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 310
N = Axis(200, 5500, "n", number_text, marks=SQUARES)
PERCENT = Axis(0, 100, template("% of the peak"), linear=True)
# left, top, width, height, and both axes
SHARES = Plot(52, 52, 560, 218, N, PERCENT)
ALL = (722, 52, 245, 218)  # left, top, width, height
DOT = 4  # the radius of a product's point
# The n at which roof and forecast are drawn: 16 in each of the four doublings from 256 to 4,096.
ALONG = [round(SQUARES[0] * 2 ** (step / 16)) for step in range(65)]
ROOF = "roof"
FORECAST = "c + roof / e"
TRACKS = [marks.Track(SHARES.at(n, 0), SHARES.at(n, 100)) for n in SQUARES]


def view(asked: Roofed, guesses: Sequence[Guess]) -> View:
    """Draw the squares, and beside them all products; before *Show*, only roof and forecast."""
    drawn = [
        *_squares(asked),
        *_all_products(asked),
        marks.drawn("shares", asked, TRACKS, through=True),
    ]
    if asked.shown:
        drawn += marks.words_beside(guesses, asked, "shares", TRACKS)
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked, guesses))


def _squares(asked: Roofed) -> Iterator[str]:
    """Draw the share of the peak over n: by roof, by forecast and, after *Show*, as recorded."""
    c, e = asked.c_and_e
    # With c = 0 and e = 1, the forecast is the roof.
    roof = [(n, asked.forecast(n, c=0, e=1)) for n in ALONG]
    forecast = [(n, asked.forecast(n, c, e)) for n in ALONG]
    yield SHARES.frame(translated("Products of n × n matrices"))
    yield SHARES.line(roof, "line")
    # The roof's name is above its end. Beside the forecast, words on the guesses may stand.
    yield svg.text(SHARES.right, SHARES.top - 8, ROOF, class_="small strong faint end")
    if asked.shown:  # c and e are explained below the lab, after Show
        dashed = translated("dashed: {formula}", formula=FORECAST)
        yield SHARES.line(forecast, "line predicted dashed")
        yield svg.text(SHARES.right, SHARES.top - 26, dashed, class_="small formula end")
        for n in SQUARES:
            x, y = SHARES.at(n, asked.recorded(n))
            yield svg.dot(x, y, 6, class_="measured")


def _all_products(asked: Roofed) -> Iterator[str]:
    """Draw the forecast's time by the roof and, after *Show*, a dot for each product.

    A product's roof, to the right, is the least time that the machine's peaks allow. Upwards is the
    time that it took.
    """
    roofs = {}
    for b, d, k in asked.seconds_by_size:
        roofs[b, d, k] = predict.matmul_seconds(b, d, k, asked.machine, asked.dtype)
    # The factors leave space around the points. Upwards there is more, because no product is faster
    # than its roof, and many are slower.
    low = min(roofs.values()) / 2
    high = max(roofs.values()) * 4
    x_axis = Axis(low, high, translated("time by the roof"), seconds_text, rescales=True)
    y_axis = Axis(low, 4 * high, translated("time"), seconds_text, rescales=True)
    plot = Plot(*ALL, x_axis, y_axis)

    c, e = asked.c_and_e  # of the forecast c + roof / e, in seconds and as a share
    # Times by the roof from `low` to `high`, at equal distances on the logarithmic axis.
    along = [low * (high / low) ** (step / 40) for step in range(41)]
    yield plot.frame(translated("All products"))
    forecast = [(roof_s, c + roof_s / e) for roof_s in along]
    yield plot.line([(low, low), (high, high)], "line")
    curves = [Curve(ROOF, [(low, low), (high, high)], "faint strong")]
    dots = []  # the boxes that they fill, where no name is written
    if asked.shown:
        yield plot.line(forecast, "line predicted dashed")
        curves.insert(0, Curve(FORECAST, forecast, "formula"))
        for size, seconds in asked.seconds_by_size.items():
            x, y = plot.at(roofs[size], seconds)
            dots.append(Box(x - DOT, y - DOT, x + DOT, y + DOT))
            yield svg.dot(x, y, DOT, class_="measured past")
    yield from names(plot, curves, dots)


def _meaning(asked: Roofed, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture: what to do, or after Show how far off the forecast is."""
    if not asked.shown:
        return translated(
            "The line is the roof. Draw the share that each product reaches, then press Show."
        )
    c, e = asked.c_and_e
    error_percent, worst_factor = asked.errors(asked.seconds_by_size, c, e)
    forecast = translated(
        "{c} + roof / {e} against what {recorder} recorded, {count} products: "
        "median error {error} %, worst factor {factor}.",
        c=seconds_text(c),
        e=f"{e:g}",
        recorder=asked.recording.source.by,
        count=f"{len(asked.seconds_by_size):,}",
        error=error_percent,
        factor=worst_factor,
    )
    return in_a_row(marks.summed_up(guesses), forecast)
