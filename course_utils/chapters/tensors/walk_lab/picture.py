"""The strip with the walk's steps above it, the elements row by row, and the steps of a view."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from course_utils.chapters.tensors.walk_lab.asked import AS_IT_IS, OWNED, Steps, Walked
from course_utils.core.say import Guess, Number, listed
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.labs.draw import marks
from course_utils.engine.labs.draw.lettering import fitted
from course_utils.engine.labs.draw.svg import SHADES, dot, element, picture, polyline, rect, text
from course_utils.engine.labs.lab import View

WIDTH = 1000
LEFT = 112
CELL = 37  # from one place of the strip to the next
HIGH = 26  # the height of a cell
# How far from the top the rows of the picture are.
STRIP_AT = 56
TRACK_AT = 102
WALK_AT = 140
STEPS_AT = 196
STEPS_ROW = 32  # from one dimension's steps to the next
LINE = 20  # from one line of words to the next
ARC_PARTS = 12  # straight pieces, so short that they look like a curve
ROW_GAP = 8  # between two rows of the tensor
LIGHT = 32  # the first shade that dark letters are written on
MERGE = template(
    "{shape}, dimensions {dimension} and {following}: a step along {dimension} is {step}, "
    "a walk through {following} is {size} × {stride} = {walk}: equal, so they merge"
)
DO_NOT_MERGE = template(
    "{shape}, dimensions {dimension} and {following}: a step along {dimension} is {step}, "
    "a walk through {following} is {size} × {stride} = {walk}: they do not merge"
)
# The reader moves the mark from the middle of the strip's first place to that of its last.
TRACK = marks.Track((LEFT + CELL / 2, TRACK_AT), (LEFT + CELL * (OWNED - 0.5), TRACK_AT))


def view(asked: Walked, guesses: Sequence[Guess]) -> View:
    """Draw the strip, the walk and, after *Show*, the steps along each dimension of the view."""
    lines = list(_merging(asked))  # none before *Show*, when no view is tried
    last_row = STEPS_AT + STEPS_ROW * (len(asked.dimensions) - 1)
    drawn = [*_strip(asked.visited), *_arcs(asked.visited), *_elements(asked, asked.visited)]
    if not asked.shown or guesses:  # after *Show*, a mark that was not set needs no track
        drawn.append(marks.drawn("landing", asked, [TRACK]))
    if asked.shown:
        if lines:  # two shapes have dimensions then: that of the view, and the tensor's own
            whose = translated("view {shape}:", shape=asked.viewed_as)
            drawn.append(fitted(0, STEPS_AT - 17, whose, LEFT - 8, "small faint"))
        for dimension, steps in enumerate(asked.dimensions):
            y = last_row - STEPS_ROW * dimension  # the last dimension is at the top
            drawn += _steps(asked, dimension, steps, y)
        for number, line in enumerate(lines):
            drawn.append(fitted(LEFT, last_row + 30 + LINE * number, line, WIDTH))
        if guesses and asked.lands_at < OWNED:
            # Where the next row really begins, on the track of the reader's mark.
            x, y = TRACK.at(asked.lands_at / (OWNED - 1))
            drawn.append(dot(x, y, class_="predicted"))
    height = last_row + 20 + LINE * len(lines)
    return View(picture(WIDTH, height, *drawn), _meaning(asked, guesses))


def _strip(visited: Sequence[int]) -> Iterator[str]:
    """Draw the storage as a strip of places, in which those that the walk visited are coloured."""
    yield text(0, STRIP_AT + 18, translated("storage"), class_="faint")
    for place in range(OWNED):
        box = (LEFT + CELL * place, STRIP_AT, CELL - 2, HIGH)
        colour = shade(place, OWNED) if place in visited else "unseen"
        yield cell(str(place), colour, box, ringed=place == visited[-1])


def _arcs(visited: Sequence[int]) -> Iterator[str]:
    """Draw each step as an arc over the strip, in red if it is not as long as the first."""
    for start, end in pairwise(visited):
        if start == end or max(start, end) >= OWNED:
            continue  # a step that stays, or one that leaves the strip, has no arc
        length = end - start
        is_usual = length == visited[1] - visited[0]
        yield polyline(
            # The longer the step, the higher the arc, but none leaves the picture.
            _arc(start, end, height=min(48, 10 + 3 * abs(length))),
            class_="line predicted" if is_usual else "line uneven",
        )


def _arc(start: int, end: int, height: Number) -> list[tuple[Number, Number]]:
    """Return the points of an arc, half a sine wave, from one place of the strip to another."""
    x = LEFT + CELL * (start + 0.5)
    to_x = LEFT + CELL * (end + 0.5)
    points = []
    for part in range(ARC_PARTS + 1):
        share = part / ARC_PARTS
        up = height * math.sin(math.pi * part / ARC_PARTS)
        points.append((x + share * (to_x - x), STRIP_AT - 4 - up))
    return points


def _elements(asked: Walked, visited: Sequence[int]) -> Iterator[str]:
    """Draw the elements row by row, each with its place, as far as the walk has gone."""
    yield text(0, WALK_AT + 18, translated("row by row"), class_="faint")
    for number, index in enumerate(asked.indices):
        x, width = _span(asked, number, 1)
        if index[-1] == 0:  # the first element of a row, above which the row's index stands
            yield text(x, WALK_AT - 5, str(list(index[:-1])), class_="place")
        words = ""
        colour = "unseen"
        if number < len(visited):
            place = visited[number]
            is_inside = place < OWNED
            words = str(place) if is_inside else translated("out")
            if is_inside:
                colour = shade(place, OWNED)
        yield cell(words, colour, (x, WALK_AT, width - 2, HIGH), ringed=False)


def _span(asked: Walked, first: int, elements: int) -> tuple[Number, Number]:
    """Return where element number `first` begins, and how wide `elements` elements from there are.

    All elements together are as wide as the strip above them, which has OWNED places.
    """
    row_length = asked.sizes[-1]
    rows = len(asked.places) // row_length
    strip_width = CELL * OWNED
    gaps = ROW_GAP * (rows - 1)
    width = (strip_width - gaps) / len(asked.places)  # of one element
    last = first + elements - 1
    begin = width * first + ROW_GAP * (first // row_length)
    begin_of_last = width * last + ROW_GAP * (last // row_length)
    return LEFT + begin, begin_of_last + width - begin


def _steps(asked: Walked, dimension: int, steps: Steps, y: Number) -> Iterator[str]:
    """Write the lengths of the steps along a dimension of the view, as far as the walk has gone.

    Where a step passes several elements, brackets unite them.
    """
    if steps.even:
        words = translated(
            "dim {dimension}: stride {stride}", dimension=dimension, stride=steps.usual
        )
    else:
        words = translated("dim {dimension}: uneven", dimension=dimension)
    words_class = "small formula" if steps.even else "small alarm"
    yield fitted(0, y, words, LEFT - 8, words_class)
    if steps.block > 1:
        for first in range(0, len(asked.places), steps.block):
            x, width = _span(asked, first, steps.block)
            yield _bracket(x, x + width - 2, y)
    for step in steps.steps:
        if step.end <= asked.steps:
            x, _ = _span(asked, step.end, 1)
            length_class = "formula" if step.length == steps.usual else "alarm"
            yield text(x, y, _signed(step.length), class_=f"middle small {length_class}")


def _bracket(left: Number, right: Number, y: Number) -> str:
    """Draw a bracket that is open at the top, over a line of words whose baseline is at y."""
    corners = [(left, y - 20), (left, y - 14), (right, y - 14), (right, y - 20)]
    return polyline(corners, class_="leader")


def _merging(asked: Walked) -> Iterator[str]:
    """Yield a sentence on each two neighbouring dimensions: whether they can merge into one.

    A view with fewer dimensions has to merge some. Without a view, nothing is yielded.
    """
    if asked.new == AS_IT_IS:
        return
    for dimension in range(len(asked.sizes) - 1):
        following = dimension + 1
        step = asked.strides[dimension]
        size = asked.sizes[following]
        stride = asked.strides[following]
        walk = size * stride
        yield translated(
            MERGE if step == walk else DO_NOT_MERGE,
            shape=asked.sizes,
            dimension=dimension,
            following=following,
            step=step,
            size=size,
            stride=stride,
            walk=walk,
        )


# In words.


def _meaning(asked: Walked, guesses: Sequence[Guess]) -> str:
    """Return the text below the picture: what to do, or after Show where the walk leads."""
    if not asked.shown:
        if len(asked.visited) == 1:
            return translated(
                "The walk has come to position {position}. "
                "Set the mark where the next row begins, then press Show.",
                position=asked.visited[0],
            )
        return translated(
            "The walk has come to positions {positions}. "
            "Set the mark where the next row begins, then press Show.",
            positions=listed(asked.visited),
        )
    farthest = max(asked.places)
    if farthest >= OWNED:
        return translated(
            "Position {position} is beyond the strip, which ends at {end}, "
            "so torch refuses such a walk.",
            position=farthest,
            end=OWNED - 1,
        )
    on_guess = ""  # stays empty if the reader has set no mark
    for guess in guesses:  # there is one mark, so one guess at most
        on_guess = translated(
            "The next row begins at position {position}; your mark is at {mark}.",
            position=guess.measured,
            mark=guess.said,
        )
    return in_a_row(on_guess, _on_view(asked))


def _on_view(asked: Walked) -> str:
    """Return in words whether the view is possible: with its strides, or with a reason against."""
    shape = asked.viewed_as
    uneven = [number for number, steps in enumerate(asked.dimensions) if not steps.even]
    if uneven:
        dimension = uneven[-1]  # the view may fail along several; one is a reason
        steps = asked.dimensions[dimension].steps
        # The keys of this dict are the different lengths, in the order in which they occur.
        lengths = dict.fromkeys(_plain(step.length) for step in steps)
        return translated(
            "Refused: {view}. Along dimension {dimension} of {shape}, steps are {lengths} long.",
            view=asked.new,
            dimension=dimension,
            shape=shape,
            lengths=listed(list(lengths)),
        )
    strides = tuple(steps.usual for steps in asked.dimensions)
    possible = ""
    if asked.new != AS_IT_IS:
        possible = translated("Possible: {view}.", view=asked.new)
    equally_long = translated(
        "Along each dimension of {shape} all steps are equally long. Strides {strides}.",
        shape=shape,
        strides=strides,
    )
    return in_a_row(possible, equally_long)


def cell(words: str, colour: str, box: tuple[Number, ...], *, ringed: bool) -> str:
    """Draw a box (x, y, width, height) with words in it.

    `colour` is a CSS class, or several with spaces between them, as `shade` returns. A ringed box
    has a frame, which shows that the walk is there.
    """
    x, y, width, height = box
    parts = [rect(x, y, width, height)]
    if words:
        parts.append(text(x + width / 2, y + height / 2 + 5, words, class_="middle small"))
    drawn = element("g", *parts, class_=colour)
    if ringed:
        drawn += rect(x, y, width, height, class_="pointed")
    return drawn


@cache
def shade(place: int, owned: int) -> str:
    """Return the CSS classes of a place's colour and of letters that can be read on it.

    Over a storage of `owned` places, the colour goes from the first shade to the last one.
    """
    number = round((SHADES - 1) * place / max(1, owned - 1))
    ink = "on-light" if number >= LIGHT else "on-dark"
    return f"shade-{number} {ink}"


def _signed(length: int) -> str:
    """Return a step's length with its sign, such as "+6" or "−2"; 0 has none."""
    return f"+{length}" if length > 0 else _plain(length)


def _plain(length: int) -> str:
    """Return a step's length, with a minus sign if the step goes back."""
    return f"{length}".replace("-", "−")
