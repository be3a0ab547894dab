"""What the optimizer lab draws: the paths over lines of equal loss, and beside them loss and step length over steps."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from course_utils.labs import optimizer_words as words
from course_utils.labs.lettering import fitted
from course_utils.labs.lines import apart, pieces_inside, spread, thinned
from course_utils.labs.optimizer_race import PREDICTED, Asked
from course_utils.labs.panel import View
from course_utils.labs.surfaces import EDGE, Point, Surface
from course_utils.labs.svg import StepPlot, dot, picture, polyline, rect, text
from course_utils.quantities import Number

WIDTH, HEIGHT, TOP = 940, 562, 156
SIDE, LEFT = 360, 2  # of the square in which the paths are
NAMES_AT = LEFT + SIDE + 22
PLOT_LEFT, PLOT_WIDTH, PLOT_HEIGHT, SECOND_TOP = 532, 300, 140, TOP + 220
COLUMNS = (0, 104, 280, 448, 676, 850)
GAP = 17  # between two names
RINGS = 8
LOSSES, LENGTHS = (1e-12, 1e6), (1e-9, 1e4)  # what the axes reach at most


def view(asked: Asked) -> View:
    """The account, the paths, both curves, and a table."""
    whole = replace(asked, step=asked.steps)  # what is the same at every step that one looks at is drawn once
    drawn = [*_account(asked), _map(asked), _curves(whole), _moment(asked, *_plots(whole))]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(asked), words.table(asked))


def _account(asked: Asked) -> Iterator[str]:
    """Prediction beside measurement, with the numbers filled in."""
    rows = list(words.account(asked)) if set(PREDICTED) & set(asked.racing) else []
    classes = ("strong", "formula", "formula", "", "formula", "measured-words")
    for number, cells in enumerate(rows):
        for x, end, cell, class_ in zip(COLUMNS, (*COLUMNS[1:], WIDTH + 8), cells, classes, strict=True):
            yield fitted(x, 16 + 22 * number, cell, end - 8, class_ if number else "faint")
    y = 82
    lr = (
        f"lr = {asked.settings.lr:.4g}, one for all: SGD and momentum multiply the gradient by it; "
        "the other four divide the gradient by its size first, so to them it is a length."
    )
    yield text(0, y, lr, class_="small")
    others = [name for name in asked.racing if name not in PREDICTED]
    if others:
        yield text(0, y + 22, "first step", class_="small faint")
    for place, name in enumerate(others):
        x, run = COLUMNS[1] + 210 * place, asked.descents[name]
        yield text(x, y + 22, name, class_="small")
        predicted, measured = (
            f"{asked.first_length(name):.4g}",
            f"{run.lengths[0]:.4g}" if run.lengths else "gone",
        )
        yield fitted(x + 58, y + 22, predicted, x + 128, "small formula")
        yield fitted(x + 134, y + 22, measured, x + 204, "small measured-words")


# The paths.


def _at(point: Point) -> Point:
    """Where a place on the surface lies in the picture."""
    x, y = point
    return LEFT + SIDE * (x + EDGE) / (2 * EDGE), TOP + SIDE * (EDGE - y) / (2 * EDGE)


def _lines(points: Sequence[Point], class_: str, least: Number = 1.0) -> Iterator[str]:
    for piece in pieces_inside([_at(point) for point in points], LEFT, TOP, SIDE):
        yield polyline(apart(piece, least), class_=class_)


@lru_cache(maxsize=64)
def _ground(surface: Surface) -> str:
    levels = [surface.loss(*surface.start) * 4.0**power for power in range(-6, 3)]
    contours = [points for level in levels for points in surface.contour(level)]
    lines = [line for points in contours for line in _lines(points, "contour", least=4)]
    crosses = [_cross(_at(minimum), "start") for minimum in surface.minima]
    return "".join([rect(LEFT, TOP, SIDE, SIDE, class_="contour"), *lines, *crosses])


def _map(asked: Asked) -> str:
    parts = [
        text(LEFT, TOP - 26, f"Paths to step {asked.step}", class_="strong"),
        text(LEFT, TOP - 8, "x, y from -2 to 2; lines of equal loss; + is the minimum", class_="small faint"),
        _ground(asked.surface),
    ]
    ends = {}
    for name, run in asked.descents.items():
        points = run.points[: asked.step + 1]
        parts += _lines(points, f"line path {name.lower()}")
        ends[name] = _at(points[-1])
    x, y = _at(asked.surface.start)
    parts += [dot(x, y, 6, class_="start"), text(x + 10, y - 8, "start", class_="small")]
    return "".join([*parts, *_named_ends(asked, ends)])


def _cross(place: Point, class_: str, turned: bool = False) -> str:
    x, y = place
    arms = ((5, 5), (5, -5)) if turned else ((6, 0), (0, 6))
    return "".join(polyline([(x - a, y - b), (x + a, y + b)], class_=class_) for a, b in arms)


def _named_ends(asked: Asked, ends: dict[str, Point]) -> Iterator[str]:
    """Each at the place that it has come to, with its name beside the frame; who is outside is marked at the edge."""
    edges = {n: (_within(x, LEFT, LEFT + SIDE), _within(y, TOP, TOP + SIDE)) for n, (x, y) in ends.items()}
    heights = spread([y + 4 for _, y in edges.values()], TOP + 8, TOP + SIDE, GAP)
    for (name, edge), height in zip(edges.items(), heights, strict=True):
        inside = edge == ends[name]
        yield polyline([edge, (NAMES_AT - 4, height - 4)], class_="leader")
        yield dot(*edge, 5, class_=name.lower()) if inside else _cross(edge, "pointed", turned=True)
        yield dot(NAMES_AT + 4, height - 4, 5, class_=name.lower())
        fate = "diverges" if words.why_it_diverges(asked, name) else "is outside"
        said, class_ = (name, "small") if inside else (f"{name} {fate}", "small alarm")
        yield fitted(NAMES_AT + 14, height, said, PLOT_LEFT - 50, class_)  # where its axis has numbers


def _within(value: Number, low: Number, high: Number) -> Number:
    return min(max(value, low), high)


# The curves.


@lru_cache(maxsize=16)
def _plots(asked: Asked) -> tuple[StepPlot, StepPlot]:
    runs = asked.descents.values()
    losses = _reach([loss for run in runs for loss in run.losses], LOSSES)
    lengths = _reach([length for run in runs for length in run.lengths], LENGTHS)
    place, steps = (PLOT_WIDTH, PLOT_HEIGHT), (0, asked.steps)
    return StepPlot(PLOT_LEFT, TOP, *place, steps, losses), StepPlot(
        PLOT_LEFT, SECOND_TOP, *place, steps, lengths
    )


def _reach(values: Sequence[Number], most: tuple[Number, Number]) -> tuple[Number, Number]:
    """Whole powers of ten around the values, as far as the axes reach."""
    seen = [value for value in values if value > 0] or [1.0]
    low, high = (math.log10(_within(value, *most)) for value in (min(seen), max(seen)))
    return 10.0 ** math.floor(low), 10.0 ** max(math.ceil(high), math.floor(low) + 1)


@lru_cache(maxsize=16)
def _curves(asked: Asked) -> str:
    losses, lengths = _plots(asked)
    parts = [
        losses.frame("Loss", "", _what_is_predicted(asked), "{:.0f}".format, _power),
        lengths.frame("Length of each step", "steps", "|Δp|", "{:.0f}".format, _power),
    ]
    for name, run in asked.descents.items():
        for plot, values, first in ((losses, run.losses, 0), (lengths, run.lengths, 1)):
            parts += _curve(plot, values, first, f"line {name.lower()}")
    return "".join([*parts, *_predictions(asked, losses), *_names(asked, losses, lengths)])


def _curve(plot: StepPlot, values: Sequence[Number], first: int, class_: str) -> Iterator[str]:
    """From that step on; what lies below the axis is left out."""
    for above, places in groupby(thinned(values), lambda n: values[n] >= plot.y_range[0]):
        if above:
            yield polyline([plot.at(n + first, values[n]) for n in places], class_=class_)


def _power(value: Number) -> str:
    return f"{value:g}" if 1e-3 <= value <= 1e3 else f"1e{math.log10(value):.0f}"


def _what_is_predicted(asked: Asked) -> str:
    if not asked.surface.quadratic or not set(PREDICTED) & set(asked.racing):
        return ""
    return "dashed: where noise is predicted to hold it" if asked.sigma else "rings: predicted"


def _predictions(asked: Asked, plot: StepPlot) -> Iterator[str]:
    low, high = plot.y_range
    for name in PREDICTED if asked.surface.quadratic else ():
        if name not in asked.racing:
            continue
        if asked.sigma:
            floor = asked.predicted_floor(name)
            if low < floor < high:
                ends = [plot.at(asked.steps / 2, floor), plot.at(asked.steps, floor)]
                yield polyline(ends, class_="line predicted dashed")
            continue
        for n in range(1, RINGS + 1):
            step = n * asked.steps // RINGS
            loss = asked.predicted_loss(name, step)
            if low < loss < high:
                yield dot(*plot.at(step, loss), 5, class_="ring")


def _names(asked: Asked, losses: StepPlot, lengths: StepPlot) -> Iterator[str]:
    """Each curve's name at its end; where it ended before the others, after how many steps."""
    right = PLOT_LEFT + PLOT_WIDTH
    for plot, which in ((losses, "losses"), (lengths, "lengths")):
        ends = {n: (len(run.lengths), getattr(run, which)) for n, run in asked.descents.items()}
        places = {name: plot.at(step, values[-1]) for name, (step, values) in ends.items() if values}
        early = [name for name in places if ends[name][0] < asked.steps]
        gone = {name: places.pop(name) for name in early}
        heights = spread([y + 14 for _, y in gone.values()], plot.top + 14, plot.top + PLOT_HEIGHT + 14, GAP)
        for (name, (x, y)), height in zip(gone.items(), heights, strict=True):
            yield _cross((x, y), "pointed", turned=True)
            yield text(x + 8, height, f"{name} at {ends[name][0]}", class_="small alarm")
        heights = spread([y + 4 for _, y in places.values()], plot.top + 6, plot.top + PLOT_HEIGHT + 4, GAP)
        for (name, (x, y)), height in zip(places.items(), heights, strict=True):
            yield polyline([(x, y), (right + 12, height - 4)], class_="leader")
            yield dot(right + 16, height - 4, 5, class_=name.lower())
            yield text(right + 26, height, name, class_="small")


def _moment(asked: Asked, *plots: StepPlot) -> str:
    """The step that is looked at, in both plots."""
    parts = []
    for plot, which in zip(plots, ("losses", "lengths"), strict=True):
        x = plot.x(asked.step)
        parts.append(polyline([(x, plot.top), (x, plot.top + PLOT_HEIGHT)], class_="leader"))
        for name, run in asked.descents.items():
            place = asked.step - (which == "lengths")
            values = getattr(run, which)
            if 0 <= place < len(values):
                parts.append(dot(*plot.at(asked.step, values[place]), 4, class_=name.lower()))
    return "".join(parts)
