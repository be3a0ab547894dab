"""The ways over lines of equal loss, and beside them the loss that each optimizer ends with, by its learning rate."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from course_utils.chapters.optimizers.descents import Point, Ravine
from course_utils.chapters.optimizers.optimizer_lab.asked import (
    FALLING,
    LINEAR,
    LONG,
    NOBODY,
    RATES,
    SHORT,
    STEPS,
    Race,
)
from course_utils.core.say import Number, listed
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import columns, fitted
from course_utils.engine.labs.draw.lines import pieces_inside, simplified
from course_utils.engine.labs.draw.plot import Axis, Plot
from course_utils.engine.labs.draw.svg import cross, dot, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT, TOP, SIDE = 1000, 342, 26, 312
EDGE = 2.0  # the ways are drawn from -2 to 2 in both parameters
LOWEST, HIGHEST = 1e-9, 100.0  # losses that are drawn; one beyond is drawn at the edge
ACROSS = Axis(-EDGE, EDGE, linear=True)
WAYS = Plot(2, TOP, SIDE, SIDE, ACROSS, ACROSS)
RATE, LOSS = Axis(RATES[0], RATES[-1], "learning rate lr"), Axis(LOWEST, HIGHEST)
BY_RATE = Plot(386, TOP, 320, 272, RATE, LOSS)
TABLE_AT, TABLE_STEP = 728, 24
TRACK = marks.Track((BY_RATE.left, BY_RATE.bottom - 14), (BY_RATE.right, BY_RATE.bottom - 14))


def view(race: Race, found: object) -> View:
    """Both plots, the table of the lowest losses, and perhaps a mark for a guess."""
    parts = [*_ways(race), *_losses(race), *_table(race)]
    if race.guessed != NOBODY:
        parts += [marks.drawn("guess", race, [TRACK])]
        parts += marks.offs(race.guesses, race, "guess", [TRACK]) if race.shown else _question(race)
    return View(picture(WIDTH, HEIGHT, *parts), _meaning(race))


# The ways.


def _lines(points: Sequence[Point], class_: str, least: Number = 1.0) -> Iterator[str]:
    places = [
        (WAYS.left + SIDE * (x + EDGE) / (2 * EDGE), TOP + SIDE * (EDGE - y) / (2 * EDGE))
        for x, y in points
    ]
    for piece in pieces_inside(places, WAYS.left, TOP, SIDE):
        yield polyline(simplified(piece, least), class_=class_)


@lru_cache(maxsize=64)
def _ground(ravine: Ravine) -> str:
    levels = [ravine.loss(*ravine.start) * 4.0**power for power in range(-6, 3)]
    drawn = [line for level in levels for line in _lines(ravine.contour(level), "contour", least=4)]
    return "".join([rect(WAYS.left, TOP, SIDE, SIDE, class_="contour"), *drawn])


def _ways(race: Race) -> Iterator[str]:
    yield fitted(WAYS.left, TOP - 8, _which_steps(race), WAYS.right, "strong")
    yield _ground(race.ground)
    yield cross(*WAYS.at(0, 0), 7, class_="start")
    for name in race.racing:
        points = race.descent(name)[: race.step + 1]
        if not points:
            continue  # lost long before the last steps
        yield from _lines(points, f"line {name.lower()}")
        place, inside = WAYS.at(*points[-1]), max(map(abs, points[-1])) <= EDGE
        yield dot(*place, 5, class_=name.lower()) if inside else cross(*place, class_="pointed")
    x, y = WAYS.at(*race.ground.start)
    yield dot(x, y, 6, class_="start")
    yield text(x + 10, y - 8, "start", class_="small")


def _which_steps(race: Race) -> str:
    if race.run == SHORT:
        return f"{race.step} steps at lr = {race.lr:g}"
    before = race.steps - STEPS
    rate = f"an lr that began at {race.lr:g}" if race.run == FALLING else f"lr = {race.lr:g}"
    return f"Steps {before:,} to {before + race.step:,} at {rate}"


# How low they come.


def _losses(race: Race) -> Iterator[str]:
    """Each optimizer's curve, with a dot at the learning rate of the ways, and what the formulas give."""
    yield BY_RATE.frame(_which_loss(race))
    for name in race.racing:
        if name == race.hidden:
            continue
        limit, rates = race.limit(name), race.drawn_rates
        if name in LINEAR:
            rates = sorted([*[lr for lr in rates if lr < limit], 0.99 * limit, 1.05 * limit])
        yield BY_RATE.line([(lr, race.end_loss(name, lr)) for lr in rates], f"line {name.lower()}")
        if name in LINEAR and race.run != FALLING:
            yield BY_RATE.line([(limit, LOWEST), (limit, HIGHEST)], "line predicted dashed")
        elif name == "RMSProp" and race.run == LONG:
            yield BY_RATE.line(_settled(race), "line predicted dashed")
        yield dot(*BY_RATE.at(race.lr, race.end_loss(name, race.lr)), 5, class_=name.lower())
    yield BY_RATE.line([(race.lr, LOWEST), (race.lr, HIGHEST)], "leader")


def _which_loss(race: Race) -> str:
    """What the curves show: one that swings may be low at the very last step by chance."""
    more = ", lr falling" if race.run == FALLING else " steps"
    return f"Largest loss of the last {race.last_steps:,}{more}"


def _settled(race: Race) -> Sequence[Point]:
    """RMSProp's loss by the formula, from the smallest learning rate to where the picture ends."""
    most = min(RATES[-1], math.sqrt(HIGHEST / race.settled_loss(1.0)))
    return [(lr, race.settled_loss(lr)) for lr in (RATES[0], most)]


def _table(race: Race) -> Iterator[str]:
    """Who races, in which colour; and once its curve is drawn, the limit of its lr, its lowest loss, and where."""
    rows = [("", "limit", "lowest", "at lr")]
    for row, name in enumerate(race.racing, 1):
        yield dot(TABLE_AT + 5, TOP + 9 + TABLE_STEP * row, class_=name.lower())
        if name == race.hidden:
            rows.append((name, "?", "?", "?"))
            continue
        loss, lr = race.lowest(name)
        rows.append((name, _limit_text(race, name), _loss_text(loss), f"{lr:g}"))
    yield columns(
        rows, TABLE_AT + 18, TOP + 14, WIDTH, ("strong", "formula", "", ""), step=TABLE_STEP, gap=10
    )


def _limit_text(race: Race, name: str) -> str:
    """The limit by its formula. For a falling rate, and for AdamW in the long run, there is no formula here."""
    if race.run == FALLING or (race.run == LONG and name == "AdamW"):
        return "–"
    return f"{race.limit(name):.2g}" if race.limit(name) < math.inf else "none"


# What there is to say.


def _question(race: Race) -> Iterator[str]:
    for row, line in enumerate(
        (
            "Drag the mark to",
            "the largest lr with which",
            f"{race.guessed} ends lower",
            "than it began",
        )
    ):
        yield fitted(TABLE_AT, BY_RATE.bottom - 67 + 21 * row, line, WIDTH, "strong")


def _meaning(race: Race) -> str:
    diverging = [
        why for name in race.racing if name != race.hidden and (why := why_it_diverges(race, name))
    ]
    if race.shown and race.guessed != NOBODY:
        said = [_found(race, race.guessed), marks.farthest(race.guesses), *diverging]
    else:
        said = [*diverging, _leading(race)]
    return " ".join(one for one in said if one)


def _found(race: Race, name: str) -> str:
    subject, measured = _subject(name), race.measured_limit(name)
    if measured == RATES[-1]:
        return f"After {race.run}, {subject} has come down at every lr, up to {measured:g}, where this axis ends."
    if race.run == LONG and name == "RMSProp":
        loss = race.settled_loss(1.0) * 8
        return (
            f"In the long run {subject}'s loss is {loss:.4g} × lr²/8. That is the {race.first_loss:.3g} of the start "
            f"at lr = {race.limit(name):.3g}; measured: {measured:#.3g}."
        )
    if name not in LINEAR or race.run == FALLING:
        return f"After {race.run}, {subject} ends lower than it began up to lr = {measured:#.2g} or so."
    side = f"2(1 + {race.momentum:g})" if name == "momentum" else "2"
    formula = f"{side}/{race.steepness} = {race.limit(name):.4g}"
    return f"{subject} comes down up to lr = {formula}; measured: {measured:#.3g}."


def _subject(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"


def why_it_diverges(race: Race, name: str) -> str:
    """The reason in numbers, or an empty string."""
    if race.lr <= race.limit(name) * (
        1 + 1e-9
    ):  # at the limit itself the error neither grows nor shrinks
        return ""
    if name not in LINEAR:
        return f"{name} ends higher than it began: it goes to and fro by lr/2 = {race.lr / 2:g}."
    if race.run == FALLING and race.end_loss(name, race.lr) < math.inf:
        return ""  # its error grew at first, and shrank when lr was below the limit
    mu = race.momentum if name == "momentum" else 0.0
    a = race.lr * race.steepness
    return f"{_subject(name)} diverges: lr × {race.steepness} = {a:.6g} > {2 * (1 + mu):g}, so its error grows."


def _leading(race: Race) -> str:
    """Who is lowest at the step that is looked at; at the run's end, by the measure of the curves."""
    return _ending_lowest(race) if race.step == STEPS else _lowest_so_far(race)


def _ending_lowest(race: Race) -> str:
    losses = {name: race.end_loss(name, race.lr) for name in race.racing}
    least = min(losses.values())
    if least == math.inf:
        return "Nobody is left."
    best = [name for name, loss in losses.items() if loss == least]
    ends, whose = ("ends", "its") if len(best) == 1 else ("end", "their")
    what = f"largest loss of the last {race.last_steps:,} steps is {_loss_text(least)}"
    if len(race.racing) == 1:
        return f"At lr = {race.lr:g}, {best[0]}'s {what}."
    return f"At lr = {race.lr:g}, {listed(best)} {ends} lowest: {whose} {what}."


def _lowest_so_far(race: Race) -> str:
    ways = {name: race.descent(name) for name in race.racing}
    losses = {
        name: race.ground.loss(*way[race.step])
        for name, way in ways.items()
        if race.step < len(way)
    }
    if not losses:
        return "Nobody is left."
    least = min(losses.values())
    best = [name for name, loss in losses.items() if loss == least]
    who = f"{listed(best)} {'has' if len(best) == 1 else 'have'}"
    what = "the least loss" if len(race.racing) > 1 else "this loss"
    step = race.steps - STEPS + race.step
    return f"At lr = {race.lr:g}, after {step:,} steps, {who} {what}: {_loss_text(least)}."


def _loss_text(loss: Number) -> str:
    return f"{loss:.2g}" if loss >= LOWEST else f"< {LOWEST:.0e}"
