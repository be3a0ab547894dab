"""The memory of one step, moment by moment: what is held, stacked over the step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from course_utils.chapters.gradients.step_over_time import COLUMNS, Step, highest
from course_utils.chapters.gradients.timeline_lab import words
from course_utils.chapters.gradients.timeline_lab.asked import EIGHTHS, HELD, MOMENTS, Asked, Found
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.core.say import Guess, Number
from course_utils.core.say import decimal_bytes_text as short
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import fitted, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.marks import Track
from course_utils.engine.labs.draw.svg import dot, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH, HEIGHT = 1000, 334
PHASES = ("forward", "loss", "backward", "optimizer")  # recomputing is a part of the way back
LEFT, RIGHT, TOP, BOTTOM = 62, 716, 50, 306  # of the step, whose time goes to the right
SIDE, ROW = 742, 20  # where what is held at the moment is listed, line by line
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # what the upper edge may be, times a power of ten
HEADROOM = 1.02  # over the fullest moment, so that its ring is in the picture
MOST_MEMORY = 1.5  # times the fullest moment: a memory that ends higher up is not drawn


def view(asked: Asked, found: Found) -> View:
    """The step with its moment; before a guess is revealed, only its phases and the marks."""
    step, measured = asked.step, found.get(asked.timeline)
    scale, guesses = (
        Scale(step.fullest.held.total, machine_named(asked.machine).bytes),
        guessed(asked),
    )
    drawn = [fitted(0, 16, words.title(asked, step), WIDTH, "strong large")]
    now = None if asked.hides else step.at(asked.moment / MOMENTS).held
    if now:
        drawn += [
            _stacked(asked.step, scale),
            *_numbers(scale),
            *_limits(scale),
            *_measured(asked, measured, scale),
        ]
        drawn += [*_now(step, asked), *_fullest(step, scale)]
    drawn += [*_phases(step), *_listed(now, scale.memory), *_marks(asked, scale)]
    table = words.table(asked, step, measured) if now else []
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(asked, step, guesses), table)


def guessed(asked: Asked) -> list[Guess]:
    """Each mark that is set, beside what the timeline says there."""
    if not asked.ask:
        return []
    step, levels = asked.step, getattr(asked, asked.ask)
    if asked.ask == HELD:
        shares = [
            100 * step.at(n / 8).held.total / step.fullest.held.total for n in range(len(EIGHTHS))
        ]
        names = [f"{name}, in % of the most" for name in EIGHTHS]
    else:
        shares, names = [100 * step.fullest.share], ["the fullest moment, in % of the step's time"]
    pairs = zip(names, levels, shares, strict=True)
    return [
        Guess(name, level, share, "calculated", 2)
        for name, level, share in pairs
        if level is not None
    ]


@dataclass(frozen=True)
class Scale:
    """Where bytes lie in the picture, from the fullest moment and the end of the memory."""

    most: int
    memory: int

    @property
    def has_memory(self) -> bool:
        """Whether the memory's end is low enough to be drawn."""
        return self.memory <= MOST_MEMORY * self.most

    def y(self, nbytes: Number) -> Number:
        """The height of so many bytes."""
        return BOTTOM - (BOTTOM - TOP) * nbytes / self.full

    @cached_property
    def full(self) -> Number:
        """The bytes at the upper edge: a round number, so that the scale stays while the peak moves a little."""
        least = HEADROOM * max(self.most, self.memory if self.has_memory else 1)
        power = 10 ** math.floor(math.log10(least))
        return next(round(one * power) for one in ROUND if one * power >= least)

    @property
    def ticks(self) -> list[int]:
        """Round numbers of bytes, from the first above 0 to the upper edge."""
        power = 10 ** math.floor(math.log10(self.full))
        step = next(one * power for one in (2, 1, 0.5, 0.2) if self.full / (one * power) >= 3)
        return [round(step * n) for n in range(1, math.floor(self.full / step) + 1)]


def _x(share: Number) -> Number:
    return LEFT + (RIGHT - LEFT) * share


def _stacked(step: Step, scale: Scale) -> str:
    """The parts, one over the other, in steps from column to column."""
    below, areas = [0] * COLUMNS, []
    for place, part in enumerate(Held._fields):
        above = [low + moment.held[place] for low, moment in zip(below, step.columns, strict=True)]
        if above != below:
            areas.append(polyline(_outline(below, above, scale), class_=f"part {part}"))
        below = above
    return "".join(areas)


def _outline(below: Sequence[int], above: Sequence[int], scale: Scale) -> list[Point]:
    """An area's corners: along its upper edge to the right, and back along its lower one. Equal heights need no corner."""
    corners = []
    for heights, way in ((above, range(COLUMNS)), (below, range(COLUMNS - 1, -1, -1))):
        places = list(way)
        for n, place in enumerate(places):
            first, last = (place, place + 1) if places[0] == 0 else (place + 1, place)
            y = scale.y(heights[place])
            if n == 0 or heights[places[n - 1]] != heights[place]:
                corners.append((_x(first / COLUMNS), y))
            if n == COLUMNS - 1 or heights[places[n + 1]] != heights[place]:
                corners.append((_x(last / COLUMNS), y))
    return corners


def _numbers(scale: Scale) -> Iterator[str]:
    """The axis of bytes. A number gives way to the end of the memory."""
    end = scale.y(scale.memory) if scale.has_memory else -HEIGHT
    for nbytes in scale.ticks:
        y = scale.y(nbytes)
        yield polyline([(LEFT - 4, y), (LEFT, y)], class_="axis")
        if abs(y - end) > 13:
            yield text(LEFT - 6, y + 4, short(nbytes), class_="end small faint")


def _limits(scale: Scale) -> Iterator[str]:
    """Where the memory ends, if that is in the picture."""
    if scale.has_memory:
        y = scale.y(scale.memory)
        for class_ in ("cut", "line"):
            yield polyline([(LEFT, y), (RIGHT, y)], class_=class_)
        yield fitted(0, y + 4, short(scale.memory), LEFT - 4, "small strong")


def _measured(asked: Asked, measured: Sequence[int] | None, scale: Scale) -> Iterator[str]:
    """What a real step held, over the prediction: of each column the most."""
    if measured:
        heights = highest(measured, asked.machine, asked.dtype, asked.timeline)
        points = [(_x((n + 0.5) / COLUMNS), scale.y(nbytes)) for n, nbytes in enumerate(heights)]
        yield polyline(points, class_="line measured")


def _fullest(step: Step, scale: Scale) -> Iterator[str]:
    """A ring on the fullest moment, and its name above."""
    x, y = _x(step.fullest.share), scale.y(step.fullest.held.total)
    name = f"fullest: {short(step.fullest.held.total)}, {words.when(step.fullest)}"
    half = width_of(name, "small strong") / 2
    yield dot(x, y, 6, class_="start")
    yield text(max(LEFT, min(x, RIGHT - half) - half), TOP - 8, name, class_="small strong")


def _phases(step: Step) -> Iterator[str]:
    """The axes, where each phase begins, and its name if there is space for it."""
    yield text(LEFT - 6, BOTTOM + 4, "0", class_="end small")
    yield polyline([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], class_="axis")
    begun = [(name, step.phases[name]) for name in PHASES if name in step.phases]
    for (name, begin), (_, end) in pairwise([*begun, ("", 1)]):
        x, right = _x(begin), _x(end)
        yield polyline([(x, TOP), (x, BOTTOM + 22)], class_="grid")
        if width_of(name, "small") + 8 <= right - x:
            yield text(x + 4, BOTTOM + 18, name, class_="small faint")


def _now(step: Step, asked: Asked) -> Iterator[str]:
    """The moment: a line through the step, and its operation."""
    x, now = _x(asked.moment / MOMENTS), step.at(asked.moment / MOMENTS)
    yield polyline([(x, TOP), (x, BOTTOM)], class_="moment")
    yield fitted(SIDE, TOP, f"at {asked.moment} % of the step", WIDTH, "strong")
    yield fitted(SIDE, TOP + 19, words.when(now), WIDTH, "faint")


def _listed(held: Held | None, memory: int) -> Iterator[str]:
    """The parts with their colours; and what is held of each, and together, unless that is still to be guessed."""
    for row, part in enumerate(Held._fields):
        y = TOP + 45 + ROW * row
        yield rect(SIDE, y - 12, 14, 14, class_=f"part {part}")
        yield text(
            SIDE + 22,
            y,
            words.PARTS.get(part, part),
            class_="" if held is None or held[row] else "faint",
        )
        if held is not None:
            yield text(WIDTH, y, short(held[row]), class_="end")
    y += 8
    yield polyline([(SIDE, y), (WIDTH, y)], class_="axis")
    if held is not None:
        yield text(SIDE + 22, y + ROW, "together", class_="strong")
        yield text(
            WIDTH,
            y + ROW,
            short(held.total),
            class_="end strong" if held.total <= memory else "end alarm",
        )
    yield text(SIDE + 22, y + 2 * ROW, "the machine's memory")
    yield text(WIDTH, y + 2 * ROW, short(memory), class_="end")


def _marks(asked: Asked, scale: Scale) -> Iterator[str]:
    """The marks of the guess that is asked for."""
    if not asked.ask:
        return
    tracks = [Track((LEFT, BOTTOM - 30), (RIGHT, BOTTOM - 30))]
    if asked.ask == HELD:
        tracks = [
            Track((_x(n / 8), BOTTOM), (_x(n / 8), scale.y(scale.most)))
            for n in range(len(EIGHTHS))
        ]
    yield marks.drawn(asked.ask, asked, tracks, through=asked.ask == HELD)
