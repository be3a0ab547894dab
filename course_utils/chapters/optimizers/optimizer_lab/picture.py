"""The paths over lines of equal loss, and each optimizer's loss at the end by learning rate."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from course_utils.chapters.optimizers.descents import Point, Ravine
from course_utils.chapters.optimizers.optimizer_lab import words
from course_utils.chapters.optimizers.optimizer_lab.asked import (
    LINEAR,
    LONG,
    NOBODY,
    RATES,
    Race,
)
from course_utils.core.say import Number
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import columns, fitted
from course_utils.engine.labs.draw.lines import pieces_inside, simplified
from course_utils.engine.labs.draw.naming import Box, Curve, names
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.draw.svg import cross, dot, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 342
TOP = 26
SIDE = 312
EDGE = 2.0  # the paths are drawn from -EDGE to EDGE in both parameters
# The losses that are drawn; one that lies beyond them is drawn at the edge.
LOWEST = words.LOWEST
HIGHEST = 100.0
PARAMETER = Axis(-EDGE, EDGE, linear=True)
# left, top, width, height, and both axes
PATHS = Plot(2, TOP, SIDE, SIDE, PARAMETER, PARAMETER)
RATE = Axis(RATES[0], RATES[-1], template("learning rate lr"))
LOSS = Axis(LOWEST, HIGHEST)
BY_RATE = Plot(386, TOP, 320, 272, RATE, LOSS)
TABLE_LEFT = 728
TABLE_STEP = 24
# The line on which the mark of a guess moves, and the box around it, in which no name is written.
TRACK_Y = BY_RATE.bottom - 14
TRACK = marks.Track((BY_RATE.left, TRACK_Y), (BY_RATE.right, TRACK_Y))
AROUND_TRACK = Box(BY_RATE.left, TRACK_Y - 14, BY_RATE.right, BY_RATE.bottom)


def view(race: Race, found: object) -> View:
    """Draw both plots, the table of the lowest losses, and the mark if the reader guesses.

    `found` is what a lab knows beyond the answers. This lab computes all that it draws, so it does
    not look at it.
    """
    parts = [*_paths(race), *_losses(race), *_table(race)]
    if race.guessed != NOBODY:
        parts.append(marks.drawn("guess", race, [TRACK]))
        if race.shown:
            parts += marks.words_beside(race.guesses, race, "guess", [TRACK])
        else:
            parts += _question(race)
            parts += _rate_beside_the_mark(race)
    return View(picture(WIDTH, HEIGHT, *parts), words.meaning(race))


# The paths.


def _lines(points: Sequence[Point], class_: str, least: Number = 1.0) -> Iterator[str]:
    """Draw a line through the points (x, y), cut at the frame, in as many pieces as lie inside.

    A point nearer than `least` pixels to the one before is left out.
    """
    places = []  # computed here, because PATHS.at would move points beyond the frame to its edge
    for x, y in points:
        right = SIDE * (x + EDGE) / (2 * EDGE)
        down = SIDE * (EDGE - y) / (2 * EDGE)
        places.append((PATHS.left + right, TOP + down))
    for piece in pieces_inside(places, PATHS.left, TOP, SIDE):
        yield polyline(simplified(piece, least), class_=class_)


@lru_cache(maxsize=64)
def _ground(ravine: Ravine) -> str:
    """Draw the frame with lines of equal loss: from line to line the loss is four times as high."""
    first_loss = ravine.loss(*ravine.start)
    drawn = [rect(PATHS.left, TOP, SIDE, SIDE, class_="contour")]
    for power in range(-6, 3):
        contour = ravine.contour(first_loss * 4.0**power)
        drawn += _lines(contour, "contour", least=4)
    return "".join(drawn)


def _paths(race: Race) -> Iterator[str]:
    """Draw each optimizer's path down the ravine, up to the present step."""
    yield fitted(PATHS.left, TOP - 8, words.title_of_paths(race), PATHS.right, "strong")
    yield _ground(race.ground)
    yield cross(*PATHS.at(0, 0), 7, class_="start")
    for name in race.racing:
        points = race.descent(name)[: race.step + 1]
        # Of a long run the last 100 steps are drawn. An optimizer that was lost before has none.
        if points:
            yield from _lines(points, f"line {name.lower()}")
            yield _end(points[-1], name)
    x, y = PATHS.at(*race.ground.start)
    yield dot(x, y, 6, class_="start")
    yield text(x + 10, y - 8, translated("start"), class_="small")


def _end(point: Point, name: str) -> str:
    """Draw a dot where a path ends, or a cross at the frame if the path has left the picture."""
    x, y = PATHS.at(*point)  # on the frame if the point lies beyond it
    is_inside = max(map(abs, point)) <= EDGE
    if is_inside:
        return dot(x, y, 5, class_=name.lower())
    return cross(x, y, class_="pointed")


# How low they come.


def _losses(race: Race) -> Iterator[str]:
    """Draw each optimizer's loss by learning rate, and mark the present learning rate."""
    yield BY_RATE.frame(words.title_of_curves(race))
    curves = []
    for name in race.racing:
        if name != race.hidden:
            curves.append(Curve(name, _curve(race, name)))
            yield from _loss_by_rate(race, name)
    yield _vertical(race.lr, "leader")
    yield from names(BY_RATE, curves, [AROUND_TRACK])  # no name where the guess's mark moves


def _loss_by_rate(race: Race, name: str) -> Iterator[str]:
    """Draw an optimizer's curve, the formula's prediction, and a dot at the present lr.

    For SGD and momentum the prediction is the limit of lr, which is a vertical line. For RMSProp's
    long run it is the loss. Otherwise there is no formula.
    """
    limit = race.limit(name)
    yield BY_RATE.line(_curve(race, name), f"line {name.lower()}")
    if name in LINEAR and not race.is_falling:
        # Not in the blue of predictions: AdamW's curve is blue and dashed, too.
        yield _vertical(limit, "line dashed")
    elif name == "RMSProp" and race.run == LONG:
        yield BY_RATE.line(_settled(race), "line predicted dashed")
    x, y = BY_RATE.at(race.lr, race.end_loss(name, race.lr))
    yield dot(x, y, 5, class_=name.lower())


def _curve(race: Race, name: str) -> list[Point]:
    """Return the points of an optimizer's curve: learning rates and losses."""
    rates = race.drawn_rates
    if name in LINEAR:
        # The curve ends just beyond the limit, where the loss shoots up.
        limit = race.limit(name)
        below = [lr for lr in rates if lr < limit]
        # 1 % below the limit and 5 % above it, so that the rise is seen, whatever the drawn rates.
        rates = sorted([*below, 0.99 * limit, 1.05 * limit])
    return [(lr, race.end_loss(name, lr)) for lr in rates]


def _vertical(lr: Number, class_: str) -> str:
    """Draw a vertical line at that learning rate."""
    return BY_RATE.line([(lr, LOWEST), (lr, HIGHEST)], class_)


def _settled(race: Race) -> Sequence[Point]:
    """Return the ends of a line: RMSProp's loss by the formula, up to the picture's edge.

    On two logarithmic axes a loss that grows as lr² is a straight line.
    """
    # The loss at lr = 1 is the factor of lr². At this lr the line leaves the picture.
    highest_drawn = math.sqrt(HIGHEST / race.settled_loss(1.0))
    rates = (RATES[0], min(RATES[-1], highest_drawn))
    return [(lr, race.settled_loss(lr)) for lr in rates]


def _table(race: Race) -> Iterator[str]:
    """Draw a row for each optimizer: colour, limit of lr, lowest loss, and the lr of this loss.

    As long as an optimizer's curve is hidden, its numbers are hidden, too.
    """
    rows = [("", translated("limit"), translated("lowest"), translated("at lr"))]
    for row, name in enumerate(race.racing, 1):
        yield dot(TABLE_LEFT + 5, TOP + 9 + TABLE_STEP * row, class_=name.lower())
        if name == race.hidden:
            rows.append((name, "?", "?", "?"))
        else:
            loss, lr = race.lowest(name)
            rows.append((name, words.limit_text(race, name), words.loss_text(loss), f"{lr:g}"))
    yield columns(
        rows,
        TABLE_LEFT + 18,
        TOP + 14,
        WIDTH,
        classes=("strong", "formula", "", ""),
        step=TABLE_STEP,
        gap=10,
    )


def _question(race: Race) -> Iterator[str]:
    """Yield the question that the mark answers, as lines of text for the picture."""
    question = translated(
        "Drag the mark to\nthe largest lr with which\n{optimizer} ends lower\nthan it began",
        optimizer=race.guessed,
    )
    for row, line in enumerate(question.split("\n")):
        yield fitted(TABLE_LEFT, BY_RATE.bottom - 67 + 21 * row, line, WIDTH, "strong")


def _rate_beside_the_mark(race: Race) -> Iterator[str]:
    """Yield the learning rate on which the mark of the guess is, once it is set."""
    (level,) = race.guess
    if level is None:
        return
    share = level / (len(RATES) - 1)
    x, y = TRACK.at(share)
    rate = f"lr = {RATES[level]:g}"
    if share < 0.5:
        yield text(x + marks.RADIUS + 4, y + 4, rate, class_="small strong halo")
    else:  # at the left of the mark, since there may be no room at its right
        yield text(x - marks.RADIUS - 4, y + 4, rate, class_="end small strong halo")
