"""The strip with the walk's steps above it, the elements row by row, and the steps along each dimension of a view."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from course_utils.chapters.tensors.walk_lab.asked import AS_IT_IS, OWNED, Steps, Walked
from course_utils.core.say import Guess, Number, listed
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import fitted
from course_utils.engine.labs.draw.svg import SHADES, dot, element, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH, LEFT, CELL, HIGH = 1000, 112, 37, 26
STRIP_AT, TRACK_AT, WALK_AT, STEPS_AT, ROW, LINE = 56, 102, 140, 196, 32, 20
TRACK = marks.Track((LEFT + CELL / 2, TRACK_AT), (LEFT + CELL * (OWNED - 0.5), TRACK_AT))
ROW_GAP = 8  # between two rows of the tensor
LIGHT = 32  # the first shade that dark letters are written on


def view(asked: Walked, guesses: Sequence[Guess]) -> View:
    """Before the reveal it has no more than the first row."""
    pairs, view_at = [*_pairs(asked)], STEPS_AT + ROW * (len(asked.dimensions) - 1)
    drawn = [*_strip(asked.gone), *_arcs(asked.gone), *_elements(asked, asked.gone)]
    if not asked.shown or guesses:
        drawn.append(marks.drawn("landing", asked, [TRACK]))
    if asked.shown:
        for number, steps in enumerate(asked.dimensions):
            drawn += _steps(asked, number, steps, view_at - ROW * number)
        drawn += [
            fitted(LEFT, view_at + 30 + LINE * i, said, WIDTH) for i, said in enumerate(pairs)
        ]
        if guesses and asked.lands_at < OWNED:
            drawn.append(dot(*TRACK.at(asked.lands_at / (OWNED - 1)), class_="predicted"))
    return View(picture(WIDTH, view_at + 20 + LINE * len(pairs), *drawn), _meaning(asked, guesses))


def _strip(gone: Sequence[int]) -> Iterator[str]:
    """Draw the storage as a strip; places that the walk has reached have a colour by their position."""
    yield text(0, STRIP_AT + 18, "storage", class_="faint")
    for place in range(OWNED):
        box = LEFT + CELL * place, STRIP_AT, CELL - 2, HIGH
        colour = shade(place, OWNED) if place in gone else "unseen"
        yield cell(f"{place}", colour, box, ringed=place == gone[-1])


def _arcs(gone: Sequence[int]) -> Iterator[str]:
    """Each step as an arc over the strip; red if it is not as long as the first."""
    for a, b in pairwise(gone):
        if a == b or max(a, b) >= OWNED:
            continue
        (x, to), high = (
            (LEFT + CELL * (place + 0.5) for place in (a, b)),
            min(48, 10 + 3 * abs(b - a)),
        )
        arc = [
            (x + share / 12 * (to - x), STRIP_AT - 4 - high * math.sin(math.pi * share / 12))
            for share in range(13)
        ]
        yield polyline(
            arc, class_="line predicted" if b - a == gone[1] - gone[0] else "line uneven"
        )


def _elements(asked: Walked, gone: Sequence[int]) -> Iterator[str]:
    """The elements row by row, each with its place, as far as the walk has gone."""
    yield text(0, WALK_AT + 18, "row by row", class_="faint")
    for number, index in enumerate(asked.indices):
        x, width = _span(asked, number, 1)
        if not index[-1]:
            yield text(x, WALK_AT - 5, f"{[*index[:-1]]}", class_="place")
        reached = number < len(gone)
        inside = reached and gone[number] < OWNED
        said = f"{gone[number]}" if inside else "out" if reached else ""
        colour = shade(gone[number], OWNED) if inside else "unseen"
        yield cell(said, colour, (x, WALK_AT, width - 2, HIGH), ringed=False)


def _span(asked: Walked, first: int, elements: int) -> tuple[Number, Number]:
    """Where so many elements from the first on stand, and how wide they are together."""
    row, rows = asked.sizes[-1], len(asked.places) // asked.sizes[-1]
    width = (CELL * OWNED - ROW_GAP * (rows - 1)) / len(asked.places)
    begin, end = (width * n + ROW_GAP * (n // row) for n in (first, first + elements - 1))
    return LEFT + begin, end + width - begin


def _steps(asked: Walked, number: int, steps: Steps, y: Number) -> Iterator[str]:
    """The steps along one dimension of the view, as far as the walk has gone, and what unites what they pass."""
    verdict = f"stride {steps.usual}" if steps.even else "uneven"
    yield fitted(
        0, y, f"dim {number}: {verdict}", LEFT - 8, "small formula" if steps.even else "small alarm"
    )
    for first in range(0, len(asked.places), steps.block) if steps.block > 1 else ():
        x, width = _span(asked, first, steps.block)
        yield polyline(
            [(x, y - 20), (x, y - 14), (x + width - 2, y - 14), (x + width - 2, y - 20)],
            class_="leader",
        )
    for _, to, length in steps.steps:
        if to <= asked.steps:
            words, same = _signed(length), length == steps.usual
            x, _ = _span(asked, to, 1)
            yield text(x, y, words, class_=f"middle small {'formula' if same else 'alarm'}")


def _pairs(asked: Walked) -> Iterator[str]:
    """Of each two neighbouring dimensions, whether they merge, as a view would need."""
    for i in () if asked.new == AS_IT_IS else range(len(asked.sizes) - 1):
        along, size, stride = asked.strides[i], asked.sizes[i + 1], asked.strides[i + 1]
        through = size * stride
        said = "equal, so they merge" if along == through else "they do not merge"
        yield f"dimensions {i} and {i + 1}: a step along {i} is {along}, a walk through {i + 1} is {size} × {stride} = {through}: {said}"


def _meaning(asked: Walked, guesses: Sequence[Guess]) -> str:
    if not asked.shown:
        at = f"place {asked.gone[0]}" if len(asked.gone) == 1 else f"places {listed(asked.gone)}"
        return (
            f"The walk has come to {at}. Set the mark where the next row begins, then press Show."
        )
    if max(asked.places) >= OWNED:
        return f"Place {max(asked.places)} is beyond the strip, which ends at {OWNED - 1}. torch refuses these strides."
    uneven = [number for number, steps in enumerate(asked.dimensions) if not steps.even]
    if uneven:
        along = uneven[-1]
        lengths = dict.fromkeys(length for *_, length in asked.dimensions[along].steps)
        said = f"Refused: {asked.new}. Along dimension {along} of {asked.viewed_as}, steps are {listed([*map(_signed, lengths)])} long."
    else:
        strides = tuple(steps.usual for steps in asked.dimensions)
        possible = "" if asked.new == AS_IT_IS else f"Possible: {asked.new}. "
        said = f"{possible}Along each dimension of {asked.viewed_as} all steps are equally long. Strides {strides}."
    landed = [
        f"The next row begins at place {guess.measured}; your mark is at {guess.said}. "
        for guess in guesses
    ]
    return "".join([*landed, said])


def cell(said: str, colour: str, box: tuple[Number, ...], *, ringed: bool) -> str:
    """A number of the storage, in the colour of its place."""
    x, y, width, height = box
    number = text(x + width / 2, y + height / 2 + 5, said, class_="middle small") if said else ""
    drawn = element("g", rect(*box), number, class_=colour)
    return drawn + (rect(*box, class_="pointed") if ringed else "")


@cache
def shade(place: int, owned: int) -> str:
    """The classes of its colour, and of letters that can be read on it."""
    number = round((SHADES - 1) * place / max(1, owned - 1))
    return f"shade-{number} {'on-light' if number >= LIGHT else 'on-dark'}"


def _signed(length: int) -> str:
    return f"{'−' if length < 0 else '+'}{abs(length)}"
