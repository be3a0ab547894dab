"""The steps of each format, beside them the sum over the ones, and below them the numbers around the sum."""

import math
from collections.abc import Iterator

from course_utils.chapters.floats.sum_lab.asked import FORMATS, MOST, Ones, guesses, predicted, sums
from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 356
POWERS = Axis(
    1, 2**MOST, words=lambda n: f"2^{n.bit_length() - 1}", marks=[16**n for n in range(7)]
)
PLOT = Plot(584, 50, 400, 200, POWERS, POWERS)
FIRST, END, COLUMN = 84, 518, 138  # of the formats, from left to right, and how wide each is
LEFT, RULER, TICK = 44, 330, 9  # the numbers around the sum
ONE, EIGHTHS = 115, range(-24, 41)  # how wide 1 is there, and how far they go


def view(asked: Ones, found: object) -> View:
    """What is added and the reader's marks; what comes of it only when it is to be shown."""
    columns = {fmt: FIRST + (COLUMN + 10) * number for number, fmt in enumerate(FORMATS)}
    tracks = [marks.Track((x + 8, PLOT.bottom), (x + 8, PLOT.top)) for x in columns.values()]
    drawn = [
        PLOT.frame("The sum"),
        svg.text(PLOT.right, PLOT.bottom + 36, "ones added", class_="faint end"),
        PLOT.line([(1, 1), (2**asked.power, 2**asked.power)], "line dashed"),
    ]
    for n in POWERS.ticks:
        drawn.append(svg.text(FIRST - 8, PLOT.y(n) + 4, POWERS.words(n), class_="end small"))
        drawn.append(svg.polyline([(FIRST, PLOT.y(n)), (END, PLOT.y(n))], class_="grid"))
    for (fmt, x), level in zip(columns.items(), asked.guess, strict=True):
        said = f"{floats.FORMATS[fmt].fraction_bits} fraction bits"
        drawn.append(svg.text(x, PLOT.top - 16, fmt, class_="strong"))
        drawn.append(svg.text(x + COLUMN, PLOT.top - 16, said, class_="small faint end"))
        if asked.shown:
            drawn += _steps(fmt, x)
        elif level is not None:
            drawn.append(
                svg.text(x + 22, PLOT.y(2**level) + 4, f"{2**level:,}", class_="small strong")
            )
    title = (
        "The step at each size; grey: half of it is 1 or more"
        if asked.shown
        else "Where does it stop?"
    )
    drawn.append(svg.text(FIRST, 14, title, class_="strong"))
    if asked.shown:
        drawn += [*_sum(asked), *marks.offs(guesses(asked), asked, "guess", tracks)]
    return View(
        svg.picture(WIDTH, HEIGHT, *drawn, marks.drawn("guess", asked, tracks)), _meaning(asked)
    )


def _steps(fmt: str, x: Number) -> Iterator[str]:
    """From one number of the format to the next, at every fourth power of two; and where its sum stops."""
    stop, largest = predicted(fmt), floats.FORMATS[fmt].max
    yield svg.rect(x, PLOT.y(largest), COLUMN, PLOT.y(stop) - PLOT.y(largest), class_="limit")
    for n in (n for n in POWERS.ticks if n <= largest):
        step = f"2^{math.log2(floats.spacing(n, fmt)):g}"
        yield svg.text(x + COLUMN - 3, PLOT.y(n) - 3, step, class_="small end")
    yield svg.text(x, PLOT.bottom + 20, f"{stop:,}", class_="formula")
    yield svg.text(x, PLOT.bottom + 38, f"{sums(fmt)[-1]:,}", class_="measured-words")


def _sum(asked: Ones) -> Iterator[str]:
    """Its way up, and where one more 1 takes it, among the numbers that the format has there."""
    fmt, reached = asked.fmt, sums(asked.fmt)[: asked.power + 1]
    yield PLOT.line([(2**power, total) for power, total in enumerate(reached)], "line measured")
    yield svg.dot(*PLOT.at(2**asked.power, reached[-1]), class_="measured")
    for row, name in enumerate(("predicted", "by adding")):
        yield svg.text(FIRST - 12, PLOT.bottom + 20 + 18 * row, name, class_="faint end")
    total, start = reached[-1], LEFT - ONE * EIGHTHS[0] / 8
    for eighths in EIGHTHS:
        x, number = start + ONE * eighths / 8, total + eighths / 8
        if floats.stored(number, fmt) == number:
            yield svg.polyline([(x, RULER - TICK), (x, RULER + TICK)], class_="start")
    lost = floats.stored(total + 1, fmt) == total
    are_all_drawn = (
        floats.spacing(total, fmt) >= 1 / 4
    )  # below a power of two they are half as far apart
    which = "Every number" if are_all_drawn else "Some of the numbers"
    said = f"{which} that {fmt} has near {total:,}: + 1 {'falls back' if lost else 'counts'}"
    yield svg.text(LEFT, RULER - TICK - 9, said, class_="small alarm" if lost else "small strong")
    for number, x in ((total, start), (total + 1, start + ONE)):
        yield svg.text(x, RULER + TICK + 14, f"{number:,}", class_="middle small")
    yield svg.dot(start, RULER, class_="measured")
    yield svg.cross(start + ONE, RULER, class_="pointed") if lost else ""


def _meaning(asked: Ones) -> str:
    ones, total = 2**asked.power, sums(asked.fmt)[asked.power]
    if not asked.shown:
        return f"1 is added {ones:,} times, and each sum is stored. Set a mark for each format, then press Show."
    power = math.log2(floats.spacing(total, asked.fmt))
    why = "half a step is 1, and 1 more is lost" if power > 0 else "1 more counts"
    said = f"In {asked.fmt}, {ones:,} times 1 makes {total:,}. There a step is 2^{power:g}: {why}."
    return f"{said} {marks.farthest(guesses(asked))}".strip()
