"""The memory of one step, moment by moment: what is held, stacked over the step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from course_utils.chapters.gradients.step_over_time import COLUMNS, Step, held_text, highest
from course_utils.chapters.gradients.timeline_lab import words
from course_utils.chapters.gradients.timeline_lab.asked import (
    EIGHTHS,
    HELD,
    HELD_AT_EIGHTHS,
    MOMENTS,
    Asked,
    Found,
    moment_text,
)
from course_utils.core.datasheets import machine_named
from course_utils.core.predict.storages import Held
from course_utils.core.say import Guess, Number
from course_utils.core.say import decimal_bytes_text as short
from course_utils.core.say.language import template, translated
from course_utils.core.say.wording import letters_wide
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import fitted, scale_words, width_of
from course_utils.engine.labs.draw.lines import Point
from course_utils.engine.labs.draw.marks import Track
from course_utils.engine.labs.draw.svg import picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
HEIGHT = 334
# Recomputing is a part of "backward".
PHASES = (template("forward"), template("loss"), template("backward"), template("optimizer"))
# The edges of the plot: bytes over the time of the step.
LEFT = 62
RIGHT = 716
TOP = 50
SCALE_RIGHT = 132  # the words on the scale stand above the axis, up to here
BOTTOM = 306
# Beside the plot, the list of the parts that are held at the chosen moment.
SIDE = 742
ROW = 20  # from a line of the list to the next
LETTER_HEIGHT = 13  # of a number on the axis, with some space
ROUND = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)  # the upper edge is one of these times a power of ten
HEADROOM = 1.02  # times what is drawn highest: the upper edge leaves space for a ring there
MOST_MEMORY = 1.5  # if the memory ends above this many times the fullest moment, it is not drawn


def view(asked: Asked, found: Found) -> View:
    """Draw the step's memory and the chosen moment.

    As long as the reader has to guess, only the step's phases and the marks are drawn.
    """
    step = asked.step
    measured = found.get(asked.timeline)
    memory = machine_named(asked.machine).bytes
    scale = Scale(step.most, memory)
    drawn = [fitted(0, 16, words.title(asked, step), WIDTH, "strong large")]
    held = None
    table = []
    if not asked.hides:
        held = step.at(asked.moment / MOMENTS).held
        drawn += _revealed(asked, step, scale, measured)
        table = words.table(asked, step, measured)
    drawn += _phases(step)
    drawn += _listed(asked, held, memory)
    drawn += _marks(asked, scale)
    if held:
        drawn += _fullest(step, scale)  # its ring is seen on a mark, too
    return View(picture(WIDTH, HEIGHT, *drawn), words.meaning(asked, step, guessed(asked)), table)


def _revealed(
    asked: Asked, step: Step, scale: "Scale", measured: Sequence[int] | None
) -> Iterator[str]:
    """Yield the parts of the picture that would give away the answer to the guess.

    `measured` has the bytes at each operation of a real step, or is None if none was measured.
    """
    yield _stacked(step, scale)
    yield from _numbers(scale)
    yield _words_on_scale(scale)
    yield from _end_of_memory(scale)
    if measured:
        yield from _measured(asked, measured, scale)
    yield from _now(step, asked)


def guessed(asked: Asked) -> list[Guess]:
    """Return each mark that the reader has set, beside the percentage that is predicted."""
    if not asked.ask:
        return []
    step = asked.step
    if asked.ask == HELD:
        names = HELD_AT_EIGHTHS
        held = [step.at(n / 8).held.total for n in range(len(EIGHTHS))]
        percents = [100 * nbytes / step.most for nbytes in held]
    else:
        names = [template("the fullest moment, in % of the step's time")]
        percents = [step.fullest.percent]

    levels = getattr(asked, asked.ask)  # the field with the marks has this name
    guesses = []
    for name, level, percent in zip(names, levels, percents, strict=True):
        if level is not None:
            guesses.append(Guess(name, level, percent, kind="calculated", digits=2, unit="percent"))
    return guesses


@dataclass(frozen=True)
class Scale:
    """The vertical scale of the plot, from 0 bytes at its bottom to `full` bytes at its top."""

    most: int  # bytes at the fullest moment
    memory: int  # bytes of the machine

    @property
    def has_memory(self) -> bool:
        """Whether the memory's end is low enough to be drawn."""
        return self.memory <= MOST_MEMORY * self.most

    def y(self, nbytes: Number) -> Number:
        """Return the vertical place in the picture at which a number of bytes is drawn."""
        return BOTTOM - (BOTTOM - TOP) * nbytes / self.full

    @cached_property
    def full(self) -> Number:
        """The bytes at the upper edge: the smallest round number above all that is drawn.

        With a round number, the scale stays the same while the peak moves a little.
        """
        highest_drawn = max(self.most, self.memory) if self.has_memory else self.most
        least = HEADROOM * highest_drawn
        power = 10 ** math.floor(math.log10(least))  # the power of ten at or below it
        return next(round(factor * power) for factor in ROUND if factor * power >= least)

    @property
    def ticks(self) -> list[int]:
        """Round numbers of bytes, from the first above 0 to the upper edge."""
        power = 10 ** math.floor(math.log10(self.full))
        gaps = [factor * power for factor in (2, 1, 0.5, 0.2)]
        gap = next(gap for gap in gaps if self.full / gap >= 3)  # the widest with at least three
        return [round(gap * n) for n in range(1, math.floor(self.full / gap) + 1)]


def _x(share: Number) -> Number:
    """Return the horizontal place in the picture of a share of the step's time."""
    return LEFT + (RIGHT - LEFT) * share


def _column_x(column: Number) -> Number:
    """Return the horizontal place of a column's left edge; with n + 0.5, of its middle."""
    return _x(column / COLUMNS)


def _horizontal(left: Number, right: Number, y: Number, class_: str) -> str:
    return polyline([(left, y), (right, y)], class_=class_)


def _vertical(x: Number, bottom: Number, class_: str) -> str:
    return polyline([(x, TOP), (x, bottom)], class_=class_)


def _stacked(step: Step, scale: Scale) -> str:
    """Draw the parts of the memory as areas, one on top of the other, from column to column."""
    areas = []
    below = [0] * COLUMNS  # the bytes, in each column, of all parts that are drawn already
    for place, part in enumerate(Held._fields):
        above = [low + moment.held[place] for low, moment in zip(below, step.columns, strict=True)]
        if above != below:  # else no column holds any of this part
            areas.append(polyline(_outline(below, above, scale), class_=f"part {part}"))
        below = above
    return "".join(areas)


def _outline(below: Sequence[int], above: Sequence[int], scale: Scale) -> list[Point]:
    """Return an area's corners: to the right along the upper edge, back along the lower one."""
    return [*_edge(above, scale), *reversed(_edge(below, scale))]


def _edge(heights: Sequence[int], scale: Scale) -> list[Point]:
    """Return an edge's corners, from left to right, with none between columns of one height.

    The edge is made of steps, one for each column. `heights` are in bytes.
    """
    corners = []
    for column, height in enumerate(heights):
        y = scale.y(height)
        if column == 0 or heights[column - 1] != height:
            corners.append((_column_x(column), y))
        if column == COLUMNS - 1 or heights[column + 1] != height:
            corners.append((_column_x(column + 1), y))
    return corners


def _numbers(scale: Scale) -> Iterator[str]:
    """Draw the axis of bytes. A number is left out where the end of the memory has its own."""
    for nbytes in scale.ticks:
        y = scale.y(nbytes)
        yield _horizontal(LEFT - 4, LEFT, y, "axis")
        if not scale.has_memory or abs(y - scale.y(scale.memory)) > LETTER_HEIGHT:
            yield text(LEFT - 6, y + 4, short(nbytes), class_="end small faint")


def _words_on_scale(scale: Scale) -> str:
    """Write how many bytes the plot's height is, such as "scale: 0 to 100 GB".

    Models with very different peaks are drawn equally high, so only these words tell them apart.
    """
    scale_text = translated("scale: 0 to {most}", most=short(scale.full))
    # Chinese letters reach below the line, where the number at the axis's end stands.
    higher = 4 if letters_wide(scale_text) > len(scale_text) else 0
    return scale_words(0, TOP - 8 - higher, scale_text, SCALE_RIGHT, "bytes")


def _end_of_memory(scale: Scale) -> Iterator[str]:
    """Draw a line where the memory ends, if this lies inside the picture."""
    if scale.has_memory:
        y = scale.y(scale.memory)
        for class_ in ("cut", "line"):  # a wide line in the page's colour, and a thin one on it
            yield _horizontal(LEFT, RIGHT, y, class_)
        yield fitted(0, y + 4, short(scale.memory), LEFT - 4, "small strong")


def _measured(asked: Asked, measured: Sequence[int], scale: Scale) -> Iterator[str]:
    """Draw the most bytes that a real step held in each column: a line through their middles."""
    heights = highest(measured, asked.machine, asked.dtype, asked.timeline)
    points = [(_column_x(n + 0.5), scale.y(nbytes)) for n, nbytes in enumerate(heights)]
    yield polyline(points, class_="line measured")
    x, y = points[COLUMNS // 8]  # the word stands above the line there, but inside the plot
    y = max(y - 8, TOP + 12)
    yield text(x, y, translated("measured"), class_="measured-words small halo middle")


def _fullest(step: Step, scale: Scale) -> Iterator[str]:
    """Draw a ring on the fullest moment, and name this moment above the plot."""
    x = _x(step.fullest.share)
    yield marks.ring(x, scale.y(step.most))
    name = translated(
        "fullest: {bytes}, {moment}",
        bytes=held_text(step.most),
        moment=words.when(step.fullest),
    )
    half = width_of(name, "small strong") / 2
    # The name is centred on the ring, but does not run beyond the plot's right edge, nor into the
    # words on the scale at the left.
    middle = min(x, RIGHT - half)
    yield text(max(SCALE_RIGHT + 10, middle - half), TOP - 8, name, class_="small strong")


def _phases(step: Step) -> Iterator[str]:
    """Draw the axes, and a line where each phase begins, with its name if there is space."""
    yield text(LEFT - 6, BOTTOM + 4, "0", class_="end small")
    yield polyline([(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], class_="axis")
    begun = [(name, step.phases[name]) for name in PHASES if name in step.phases]
    end_of_step = ("", 1)  # no name, at the share 1 of the step's time
    # A phase ends where the next one begins.
    for (name, begin), (_, end) in pairwise([*begun, end_of_step]):
        x = _x(begin)
        words_on_phase = translated(name)
        yield _vertical(x, BOTTOM + 22, "grid")
        if width_of(words_on_phase, "small") + 8 <= _x(end) - x:
            yield text(x + 4, BOTTOM + 18, words_on_phase, class_="small faint")


def _now(step: Step, asked: Asked) -> Iterator[str]:
    """Draw the chosen moment: a line through the plot, and the operation that runs then."""
    share = asked.moment / MOMENTS
    yield _vertical(_x(share), BOTTOM, "moment")
    yield fitted(SIDE, TOP, moment_text(asked.moment), WIDTH, "strong")
    yield fitted(SIDE, TOP + 19, words.when(step.at(share)), WIDTH, "faint")


def _listed(asked: Asked, held: Held | None, memory: int) -> Iterator[str]:
    """List the parts of the memory with their colours and bytes, as far as the step has them.

    While the bytes are still to be guessed, `held` is None, and they are left out.
    """
    x = SIDE + 22
    y = TOP + 45
    for place, part in enumerate(Held._fields):
        if part not in asked.timeline.parts_held:
            continue
        is_empty = held is not None and held[place] == 0
        class_ = "faint" if is_empty else ""
        yield rect(SIDE, y - 12, 14, 14, class_=f"part {part}")
        yield text(x, y, translated(words.PARTS.get(part, part)), class_=class_)
        if held is not None:
            yield text(WIDTH, y, held_text(held[place]), class_="end")
        y += ROW

    last_row = y - ROW
    y = last_row + 8
    yield _horizontal(SIDE, WIDTH, y, "axis")
    if held is not None:
        total_class = "end alarm" if held.total > memory else "end strong"
        yield text(x, y + ROW, translated("together"), class_="strong")
        yield text(WIDTH, y + ROW, held_text(held.total), class_=total_class)
    yield text(x, y + 2 * ROW, translated("the GPU's memory"))
    yield text(WIDTH, y + 2 * ROW, short(memory), class_="end")


def _marks(asked: Asked, scale: Scale) -> Iterator[str]:
    """Draw the marks that the reader sets, if a guess is asked for."""
    if not asked.ask:
        return
    if asked.ask == HELD:
        top = scale.y(scale.most)
        places = [_x(n / 8) for n in range(len(EIGHTHS))]
        tracks = [Track((x, BOTTOM), (x, top)) for x in places]
    else:
        y = BOTTOM - 30
        tracks = [Track((LEFT, y), (RIGHT, y))]
    # asked.ask is also the name of the field that has these marks. A line goes through the marks of
    # what is held, because they are places along the step.
    yield marks.drawn(asked.ask, asked, tracks, through=asked.ask == HELD, in_percent=True)
