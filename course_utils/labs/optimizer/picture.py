"""The paths over lines of equal loss, and beside them the loss and the length of each step."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from course_utils.labs.draw.lettering import columns, fitted
from course_utils.labs.draw.lines import pieces_inside, simplified, thinned
from course_utils.labs.draw.plot import Axis, EndName, Plot, names_beside
from course_utils.labs.draw.svg import cross, dot, picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.optimizer import words
from course_utils.labs.optimizer.asked import EDGE, LEAST, Race
from course_utils.predict.descents import Point, Surface
from course_utils.quantities import Number

WIDTH, HEIGHT, TOP, SIDE = 1000, 394, 114, 276
PLOT_LEFT, PLOT_SIZE, SECOND_TOP = 466, (402, 112), 258
MOST = 1e6  # that is drawn
RINGS = 8
Curves = Mapping[str, Mapping[int, Number]]
ACROSS = Axis(-EDGE, EDGE, linear=True)
PATHS = Plot(2, TOP, SIDE, SIDE, ACROSS, ACROSS)


def view(race: Race, found: object) -> View:
    """The table, the paths, and both plots."""
    return View(picture(WIDTH, HEIGHT, *_table(race), *_paths(race), *_plots(race)), words.meaning(race))


def _table(race: Race) -> Iterator[str]:
    """The predictions beside the measurements, and a line on the optimizers that cannot be predicted."""
    if race.linear:
        classes = ("strong", "formula", "formula", "", "formula", "measured-words")
        yield columns(words.rows(race), 0, 14, WIDTH, classes, step=20, gap=24)
    if race.dividing:
        below = 38 + 20 * len(race.linear) if race.linear else 14
        yield fitted(0, below, words.of_those_who_divide(race), WIDTH)


# The paths.


def _lines(points: Sequence[Point], class_: str, least: Number = 1.0) -> Iterator[str]:
    places = [
        (PATHS.left + SIDE * (x + EDGE) / (2 * EDGE), TOP + SIDE * (EDGE - y) / (2 * EDGE)) for x, y in points
    ]
    for piece in pieces_inside(places, PATHS.left, TOP, SIDE):
        yield polyline(simplified(piece, least), class_=class_)


@lru_cache(maxsize=64)
def _ground(surface: Surface) -> str:
    levels = [surface.loss(*surface.start) * 4.0**power for power in range(-6, 3)]
    contours = [points for level in levels for points in surface.contour(level)]
    drawn = [line for points in contours for line in _lines(points, "contour", least=4)]
    minima = [cross(*PATHS.at(*minimum), class_="start") for minimum in surface.minima]
    return "".join([rect(PATHS.left, TOP, SIDE, SIDE, class_="contour"), *drawn, *minima])


def _paths(race: Race) -> Iterator[str]:
    title = f"Paths to step {race.step}, x and y from -2 to 2"
    yield text(PATHS.left, TOP - 8, title, class_="strong")
    yield _ground(race.ground)
    names = []
    for name, run in race.descents.items():
        points = run.points[: race.step + 1]
        yield from _lines(points, f"line {name.lower()}")
        place, inside = PATHS.at(*points[-1]), max(map(abs, points[-1])) <= EDGE
        yield dot(*place, 5, class_=name.lower()) if inside else cross(*place, class_="pointed")
        names.append(EndName(place, name, name.lower()))
    x, y = PATHS.at(*race.ground.start)
    yield dot(x, y, 6, class_="start")
    yield text(x + 10, y - 8, "start", class_="small")
    yield from names_beside(names, PATHS.right + 12, PLOT_LEFT - 48, TOP + 8, PATHS.bottom - 2)


# The plots: of each that races, values by step.


def _plots(race: Race) -> Iterator[str]:
    runs = race.descents.items()
    losses = {name: dict(enumerate(run.losses)) for name, run in runs}
    lengths = {name: dict(enumerate(run.lengths, start=1)) for name, run in runs if run.lengths}
    steps = Axis(0, race.steps, words="step {}".format, linear=True)
    upper = Plot(PLOT_LEFT, TOP, *PLOT_SIZE, replace(steps, words="".format), _reach(losses))
    lower = Plot(PLOT_LEFT, SECOND_TOP, *PLOT_SIZE, steps, _reach(lengths))
    yield from _curves(race, upper, "Loss", losses)
    yield from _predictions(race, upper)
    yield from _curves(race, lower, "Length of each step", lengths)


def _reach(curves: Curves) -> Axis:
    """The powers of ten around the values, within the plots' limits."""
    found = [min(max(value, LEAST), MOST) for values in curves.values() for value in values.values()] or [1.0]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    return Axis(10.0**low, 10.0 ** max(high, low + 1))


def _curves(race: Race, plot: Plot, title: str, curves: Curves) -> Iterator[str]:
    """The curves, with a dot at the step that is looked at, and a cross where one has diverged."""
    yield plot.frame(title)
    yield polyline([(plot.x(race.step), plot.top), (plot.x(race.step), plot.bottom)], class_="leader")
    names = []
    for name, values in curves.items():
        points = list(values.items())
        points = [points[n] for n in thinned(list(values.values()))]
        yield plot.line([point for point in points if point[1] >= plot.y_axis.low], f"line {name.lower()}")
        if plot.y_axis.low <= values.get(race.step, 0) <= plot.y_axis.high:
            yield dot(*plot.at(race.step, values[race.step]), 4, class_=name.lower())
        last, gone = max(values), max(values) < race.steps
        yield cross(*plot.at(last, values[last]), class_="pointed") if gone else ""
        said = (f"{name} at {last}", "small alarm") if gone else (name, "small")
        names.append(EndName(plot.at(race.steps, values[last]), said[0], name.lower(), said[1]))
    yield from names_beside(names, plot.right + 12, WIDTH, plot.top + 6, plot.bottom + 4)


def _predictions(race: Race, plot: Plot) -> Iterator[str]:
    """Rings at the predicted losses, on a parabola without noise."""
    if race.noise or not race.linear or not race.ground.quadratic:
        return
    yield text(plot.right, plot.top - 8, "rings: predicted", class_="faint small end")
    for name in race.linear:
        for step in (n * race.steps // RINGS for n in range(1, RINGS + 1)):
            loss = race.predicted_loss(name, step)
            inside = plot.y_axis.low < loss < plot.y_axis.high
            yield dot(*plot.at(step, loss), 5, class_="ring") if inside else ""
