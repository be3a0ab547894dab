"""The paths over lines of equal loss, and beside them the loss and the length of each step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from course_utils.descents import Point, Surface
from course_utils.labs.draw.lettering import columns, fitted, width_of
from course_utils.labs.draw.lines import apart, pieces_inside, thinned
from course_utils.labs.draw.plot import Axis, EndName, Plot, names_beside
from course_utils.labs.draw.svg import cross, dot, picture, polyline, rect, text
from course_utils.labs.lab import View
from course_utils.labs.optimizer import words
from course_utils.labs.optimizer.asked import EDGE, Race
from course_utils.quantities import Number

WIDTH, HEIGHT, TOP, SIDE = 1000, 394, 114, 276
PLOT_LEFT, PLOT_WIDTH, PLOT_HEIGHT, SECOND_TOP = 466, 402, 112, 258
LOSSES, LENGTHS = (1e-12, 1e6), (1e-9, 1e4)  # what the axes reach at most
RINGS = 8
ACROSS = Axis(-EDGE, EDGE, linear=True)
PATHS = Plot(2, TOP, SIDE, SIDE, ACROSS, ACROSS)


def view(race: Race, found: object) -> View:
    """The account, the paths, both curves, and a table."""
    whole = replace(race, step=race.steps)  # what is the same at every step that one looks at is drawn once
    drawn = [*_account(race), _paths(race), _curves(whole), *_moment(race, *_plots(whole))]
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(race), words.table(race))


def _account(race: Race) -> Iterator[str]:
    """Prediction beside measurement, with the numbers filled in, of those whose way is known beforehand."""
    if race.linear:
        classes = ("strong", "formula", "formula", "", "formula", "measured-words")
        yield columns(words.account(race), 0, 14, WIDTH, classes, step=20, gap=24)
    if race.dividing:
        below = 38 + 20 * len(race.linear) if race.linear else 14
        yield fitted(0, below, words.of_those_who_divide(race), WIDTH)


# The paths.


def _lines(points: Sequence[Point], class_: str, least: Number = 1.0) -> Iterator[str]:
    places = [
        (PATHS.left + SIDE * (x + EDGE) / (2 * EDGE), TOP + SIDE * (EDGE - y) / (2 * EDGE)) for x, y in points
    ]
    for piece in pieces_inside(places, PATHS.left, TOP, SIDE):
        yield polyline(apart(piece, least), class_=class_)


@lru_cache(maxsize=64)
def _ground(surface: Surface) -> str:
    levels = [surface.loss(*surface.start) * 4.0**power for power in range(-6, 3)]
    contours = [points for level in levels for points in surface.contour(level)]
    drawn = [line for points in contours for line in _lines(points, "contour", least=4)]
    minima = [cross(*PATHS.at(*minimum), class_="start") for minimum in surface.minima]
    return "".join([rect(PATHS.left, TOP, SIDE, SIDE, class_="contour"), *drawn, *minima])


def _paths(race: Race) -> str:
    title = f"Paths to step {race.step}"
    beside, x, y = PATHS.left + width_of(title, "strong") + 10, *PATHS.at(*race.ground.start)
    drawn = [
        text(PATHS.left, TOP - 8, title, class_="strong"),
        fitted(beside, TOP - 8, "x, y from -2 to 2; × is a minimum", PLOT_LEFT - 16, "faint small"),
        _ground(race.ground),
    ]
    names = []
    for name, run in race.descents.items():
        points = run.points[: race.step + 1]
        drawn += _lines(points, f"line {name.lower()}")
        place, inside = PATHS.at(*points[-1]), max(map(abs, points[-1])) <= EDGE
        drawn.append(dot(*place, 5, class_=name.lower()) if inside else cross(*place, class_="pointed"))
        fate = "diverges" if words.why_it_diverges(race, name) else "is outside"
        said = (name, "small") if inside else (f"{name} {fate}", "small alarm")
        names.append(EndName(place, said[0], name.lower(), said[1]))
    drawn += [dot(x, y, 6, class_="start"), text(x + 10, y - 8, "start", class_="small")]
    beside = names_beside(names, PATHS.right + 12, PLOT_LEFT - 48, TOP + 8, PATHS.bottom - 2)
    return "".join([*drawn, *beside])


# The curves.


@lru_cache(maxsize=16)
def _plots(race: Race) -> tuple[Plot, Plot]:
    runs = race.descents.values()
    losses = _reach([loss for run in runs for loss in run.losses], LOSSES)
    lengths = _reach([length for run in runs for length in run.lengths], LENGTHS)
    steps = Axis(0, race.steps, words=lambda step: f"step {step}", linear=True)
    unmarked, size = replace(steps, words=lambda step: ""), (PLOT_WIDTH, PLOT_HEIGHT)
    return Plot(PLOT_LEFT, TOP, *size, unmarked, losses), Plot(PLOT_LEFT, SECOND_TOP, *size, steps, lengths)


def _reach(values: Sequence[Number], most: tuple[Number, Number]) -> Axis:
    """Whole powers of ten around the values, as far as the axes reach."""
    seen = [min(max(value, most[0]), most[1]) for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(seen))), math.ceil(math.log10(max(seen)))
    return Axis(10.0**low, 10.0 ** max(high, low + 1), words=_power)


def _power(value: Number) -> str:
    return f"{value:g}" if 1e-3 <= value <= 1e3 else f"1e{math.log10(value):.0f}"


def _series(race: Race, losses: Plot, lengths: Plot) -> Iterator[tuple[Plot, str, int, Sequence[Number]]]:
    """Each curve: where, whose, from which step on, and its values."""
    for name, run in race.descents.items():
        yield losses, name, 0, run.losses
        yield lengths, name, 1, run.lengths


@lru_cache(maxsize=16)
def _curves(race: Race) -> str:
    losses, lengths = _plots(race)
    drawn, names = [losses.frame("Loss"), lengths.frame("Length of each step")], {losses: [], lengths: []}
    for plot, name, first, values in _series(race, losses, lengths):
        drawn += _curve(plot, values, first, f"line {name.lower()}")
        if values:
            ended, end = len(values) - 1 + first, values[-1]
            gone = ended < race.steps
            drawn.append(cross(*plot.at(ended, end), class_="pointed") if gone else "")
            said = (f"{name} at {ended}", "small alarm") if gone else (name, "small")
            names[plot].append(EndName(plot.at(race.steps, end), said[0], name.lower(), said[1]))
    for plot, named in names.items():
        drawn += names_beside(named, plot.right + 12, WIDTH, plot.top + 6, plot.bottom + 4)
    return "".join([*drawn, *_predictions(race, losses)])


def _curve(plot: Plot, values: Sequence[Number], first: int, class_: str) -> Iterator[str]:
    """From that step on; what lies below the axis is left out."""
    for above, places in groupby(thinned(values), lambda n: values[n] >= plot.y_axis.low):
        if above:
            yield plot.line([(n + first, values[n]) for n in places], class_)


def _predictions(race: Race, plot: Plot) -> Iterator[str]:
    linear, low, high = race.linear if race.ground.quadratic else [], plot.y_axis.low, plot.y_axis.high
    said = ["dashed: where noise is predicted to hold it" if race.noise else "rings: predicted"] * bool(
        linear
    )
    if any(loss < low for run in race.descents.values() for loss in run.losses):
        said.append(f"below {_power(low)}: not drawn")
    yield text(plot.right, plot.top - 8, "; ".join(said), class_="faint small end") if said else ""
    for name in linear:
        floor = race.predicted_floor(name)
        if race.noise and low < floor < high:
            yield plot.line([(race.steps / 2, floor), (race.steps, floor)], "line predicted dashed")
        for n in [] if race.noise else range(1, RINGS + 1):
            step = n * race.steps // RINGS
            loss = race.predicted_loss(name, step)
            yield dot(*plot.at(step, loss), 5, class_="ring") if low < loss < high else ""


def _moment(race: Race, losses: Plot, lengths: Plot) -> Iterator[str]:
    """The step that is looked at, in both plots."""
    for plot in (losses, lengths):
        yield polyline([(plot.x(race.step), plot.top), (plot.x(race.step), plot.bottom)], class_="leader")
    for plot, name, first, values in _series(race, losses, lengths):
        if first <= race.step < len(values) + first:
            yield dot(*plot.at(race.step, values[race.step - first]), 4, class_=name.lower())
