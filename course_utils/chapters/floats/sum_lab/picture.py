"""The picture: each format's gaps, beside them the sum, below them the numbers around it."""

import math
from collections.abc import Iterator

from course_utils.chapters.floats.sum_lab.asked import FORMATS, MOST, Ones, guesses, predicted, sums
from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import marks, svg
from course_utils.engine.labs.draw.naming import Curve, names
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 356


def _as_power(n: int) -> str:
    """Return a power of two as the axes have it: 256, which has nine bits, is "2^8"."""
    return f"2^{n.bit_length() - 1}"


POWERS = Axis(1, 2**MOST, words=_as_power, marks=[16**n for n in range(7)])  # 2^0, 2^4, … 2^24
# left, top, width, height, and both axes
PLOT = Plot(584, 50, 400, 200, POWERS, POWERS)

# The columns of the formats, to the left of the plot.
COLUMNS_LEFT = 84
COLUMNS_RIGHT = 518
COLUMN = 138  # wide
BESIDE_NAME = 42  # from a column's left to what stands behind the format's name
PREDICTED_AT = PLOT.bottom + 20
MEASURED_AT = PLOT.bottom + 38
COLUMN_X = {fmt: COLUMNS_LEFT + (COLUMN + 10) * number for number, fmt in enumerate(FORMATS)}
# In each column, the vertical line along which the reader moves a mark.
TRACKS = [marks.Track((x + 8, PLOT.bottom), (x + 8, PLOT.top)) for x in COLUMN_X.values()]

# The ruler at the bottom, with the numbers around the sum.
LEFT = 44
RULER = 330
TICK = 9
TICK_TOP = RULER - TICK
TICK_BOTTOM = RULER + TICK
ONE = 115  # from one whole number to the next
EIGHTHS = range(-24, 41)  # of a one, away from the sum: from three below it to five above it
SUM_X = LEFT - ONE * EIGHTHS[0] / 8  # where the sum is, three ones to the right of LEFT
ONE_IS_LOST = template(
    "In {format}, {ones} times 1 makes {total}. "
    "There the gap is 2^{power}: half of it is 1, so 1 more is lost."
)
ONE_COUNTS = template(
    "In {format}, {ones} times 1 makes {total}. There the gap is 2^{power}: 1 more counts."
)
RULER_WORDS = {  # by whether all numbers are drawn, and whether one more 1 is lost
    (True, False): template("Every number that {format} has near {total}: + 1 counts"),
    (True, True): template("Every number that {format} has near {total}: + 1 falls back"),
    (False, False): template("Some of the numbers that {format} has near {total}: + 1 counts"),
    (False, True): template("Some of the numbers that {format} has near {total}: + 1 falls back"),
}


def view(asked: Ones, found: object) -> View:
    """Draw what is added and the reader's marks; after *Show*, also the sums and their ends.

    `found` is what every lab's view is given; this lab needs nothing beyond the answers.
    """
    ones = 2**asked.power
    drawn = [
        PLOT.frame(translated("The sum")),
        svg.text(PLOT.right, PLOT.bottom + 36, "ones added", class_="faint end"),
        PLOT.line([(1, 1), (ones, ones)], "line dashed"),
    ]
    for n in POWERS.ticks:
        y = PLOT.y(n)
        drawn.append(svg.text(COLUMNS_LEFT - 8, y + 4, _as_power(n), class_="end small"))
        drawn.append(svg.polyline([(COLUMNS_LEFT, y), (COLUMNS_RIGHT, y)], class_="grid"))
    for fmt, level in zip(FORMATS, asked.guess, strict=True):
        drawn += _column(fmt, level, is_shown=asked.shown)
    drawn.append(svg.text(COLUMNS_LEFT, 14, _title(asked), class_="strong"))
    if asked.shown:
        drawn += _sum(asked)
        drawn += _ruler(asked)
    drawn += _names(asked)
    if asked.shown:
        drawn += marks.words_beside(guesses(asked), asked, "guess", TRACKS)
    drawn.append(marks.drawn("guess", asked, TRACKS))
    return View(svg.picture(WIDTH, HEIGHT, *drawn), _meaning(asked))


def _title(asked: Ones) -> str:
    """Return the headline: a question, or after Show what is drawn."""
    if asked.shown:
        return translated("The gap at each size; grey: half of it is 1 or more")
    return translated("Where does it stop?")


def _column(fmt: str, level: int | None, *, is_shown: bool) -> Iterator[str]:
    """Draw a format's head, and below it its gaps or, before *Show*, the reader's guess."""
    x = COLUMN_X[fmt]
    fraction = translated("{count} fraction bits", count=floats.FORMATS[fmt].fraction_bits)
    yield svg.text(x, PLOT.top - 16, fmt, class_="strong")
    yield svg.text(x + BESIDE_NAME, PLOT.top - 16, fraction, class_="small faint")
    if is_shown:
        yield from _gaps(fmt, x)
    elif level is not None:
        ones = 2**level
        yield svg.text(x + 22, PLOT.y(ones) + 4, f"{ones:,}", class_="small strong")


def _gaps(fmt: str, x: Number) -> Iterator[str]:
    """Write the format's gap at every fourth power of two, and below them where its sum stops.

    A box marks the sizes at which half a gap is 1 or more.
    """
    stop = predicted(fmt)
    largest = floats.FORMATS[fmt].max
    top = PLOT.y(largest)  # the top of the plot, if the axis ends below the largest number
    yield svg.rect(x, top, COLUMN, PLOT.y(stop) - top, class_="limit")
    right = x + COLUMN - 3
    for n in POWERS.ticks:
        if n <= largest:
            power = math.log2(floats.spacing(n, fmt))
            yield svg.text(right, PLOT.y(n) - 3, f"2^{power:g}", class_="small end")
    measured = sums(fmt)[-1]
    yield svg.text(x, PREDICTED_AT, f"{stop:,}", class_="formula")
    yield svg.text(x, MEASURED_AT, f"{measured:,}", class_="measured-words")


def _sum(asked: Ones) -> Iterator[str]:
    """Draw the sum as a curve over the number of ones.

    Also write the names of the two rows of numbers that `_gaps` has written below the columns.
    """
    totals = sums(asked.fmt)[: asked.power + 1]
    points = [(2**power, total) for power, total in enumerate(totals)]
    yield PLOT.line(points, "line measured")
    x = PLOT.x(2**asked.power)
    y = PLOT.y(totals[-1])
    yield svg.dot(x, y, class_="measured")
    yield svg.text(COLUMNS_LEFT - 12, PREDICTED_AT, translated("predicted"), class_="faint end")
    yield svg.text(COLUMNS_LEFT - 12, MEASURED_AT, translated("by adding"), class_="faint end")


def _names(asked: Ones) -> Iterator[str]:
    """Name the dashed line and, after *Show*, the format's sum."""
    ones = 2**asked.power
    dashed = Curve(translated("if no 1 were lost"), [(1, 1), (ones, ones)], "faint strong")
    if not asked.shown:
        return names(PLOT, [dashed])
    totals = sums(asked.fmt)[: asked.power + 1]
    points = [(2**power, total) for power, total in enumerate(totals)]
    added = Curve(translated("in {format}", format=asked.fmt), points, "measured-words")
    is_any_lost = totals[-1] < ones  # only then is the dashed line seen
    return names(PLOT, [added, dashed] if is_any_lost else [added])


def _ruler(asked: Ones) -> Iterator[str]:
    """Draw the format's numbers around the sum, and whether one more 1 counts or is lost."""
    total = sums(asked.fmt)[asked.power]
    for eighths in EIGHTHS:
        number = total + eighths / 8
        if floats.stored(number, asked.fmt) == number:
            x = SUM_X + ONE * eighths / 8
            yield svg.polyline([(x, TICK_TOP), (x, TICK_BOTTOM)], class_="start")
    one_is_lost = floats.stored(total + 1, asked.fmt) == total
    # Ticks are drawn at eighths. With a gap of 1/4 above the sum, numbers below it may be 1/8
    # apart, because below a power of two they are half as far apart as above it.
    all_are_drawn = floats.spacing(total, asked.fmt) >= 1 / 4
    sentence = RULER_WORDS[all_are_drawn, one_is_lost]
    words = translated(sentence, format=asked.fmt, total=f"{total:,}")
    words_class = "small alarm" if one_is_lost else "small strong"
    yield svg.text(LEFT, TICK_TOP - 9, words, class_=words_class)
    next_x = SUM_X + ONE
    yield svg.text(SUM_X, TICK_BOTTOM + 14, f"{total:,}", class_="middle small")
    yield svg.text(next_x, TICK_BOTTOM + 14, f"{total + 1:,}", class_="middle small")
    yield svg.dot(SUM_X, RULER, class_="measured")
    if one_is_lost:
        yield svg.cross(next_x, RULER, class_="pointed")


def _meaning(asked: Ones) -> str:
    """Return the text below the picture: what to do, or after Show where the sum stops."""
    ones = f"{2**asked.power:,}"
    if not asked.shown and asked.power == 0:
        return translated(
            "1 is added once, and the sum is stored. Set a mark for each format, then press Show."
        )
    if not asked.shown:
        return translated(
            "1 is added {ones} times, and each sum is stored. "
            "Set a mark for each format, then press Show.",
            ones=ones,
        )
    total = sums(asked.fmt)[asked.power]
    gap_power = math.log2(floats.spacing(total, asked.fmt))
    # A sum stops where the gap is 2, so the gap is never larger: above 2^0 it is 2^1.
    why = ONE_IS_LOST if gap_power > 0 else ONE_COUNTS
    stored = translated(
        why, format=asked.fmt, ones=ones, total=f"{total:,}", power=f"{gap_power:g}"
    )
    return in_a_row(stored, marks.summed_up(guesses(asked)))
