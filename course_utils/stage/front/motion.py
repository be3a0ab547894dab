"""The memory of a training step, as the front pages play it.

It is that of notebook 5: `predict.timeline` has every operation of the step with the bytes that are
held, and `step_on` puts them on an axis of time. Nothing here needs torch.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from course_utils.chapters.gradients.step_over_time import COLUMNS, Moment, Step, step_on
from course_utils.core.predict import MODELS, timeline
from course_utils.core.predict.storages import Held
from course_utils.core.say import in_words
from course_utils.core.say.language import template, translated

MODEL = "GPT-2 small"
BATCH = 4
SEQUENCE = 1024
RECIPE = "fp32 adamw"
MACHINE = "H100 SXM"
WIDTH = 800  # of the drawing, in its own units
HEIGHT = 300
ROOM = 0.93  # of the height, which the fullest moment takes
# The phases of `step_on` in words.
MOMENTS = {
    "forward": template("forward"),
    "loss": template("loss"),
    "backward": template("backward"),
    "recompute": template("recompute"),
    "optimizer": template("optimizer"),
}
NAME_COLUMNS = 14  # on each side of the middle of a name that is inside its area
LEAST_HEIGHT = 20  # of an area that has its name inside
ABOVE = 12  # between all areas and a name above them
# The areas from the bottom up: what stays during the step is below what comes and goes.
NAMES = {
    "parameters": template("parameters"),
    "optimizer": template("AdamW’s two numbers"),
    "gradients": template("gradients"),
    "activations": template("activations"),
    "logits": template("logits"),
    "passing": "",  # what is held for a few operations only
}


@dataclass(frozen=True)
class Area:
    """An area of the drawing: its part of `Held`, its outline, and its name with a place for it.

    If the area is too thin for its name, the name stands above the drawing, and ends at `x`.
    """

    part: str
    points: str  # of an SVG polygon
    name: str
    x: float
    y: float
    is_thin: bool = False


@dataclass(frozen=True)
class Phase:
    """A phase of the step, from `x` on, with the middle of its stretch as the place of its name."""

    name: str
    x: float
    middle: float


@dataclass(frozen=True)
class Motion:
    """The drawing, and what its script says while it plays.

    `moments` is JSON: the gigabytes of each column, and runs of columns with their words.
    """

    areas: list[Area]
    phases: list[Phase]
    moments: str
    peak_x: float
    peak_y: float
    peak: str  # how many bytes the fullest moment holds
    words: str  # for those who do not see the drawing
    caption: str
    play: str
    pause: str
    width: int = WIDTH
    height: int = HEIGHT


@cache
def motion(spoken: str = "en") -> Motion:
    """Return the step as a drawing; it is made once in a language, in a few milliseconds.

    `spoken` is the language in which sentences are said at the moment.
    """
    step = step_on(MACHINE, "fp32", timeline(MODELS[MODEL], BATCH, SEQUENCE, recipe=RECIPE))
    peak = in_words(step.most, "bytes")
    fullest_column = step.columns.index(step.fullest)
    return Motion(
        areas=list(_areas(step)),
        phases=list(_phases(step)),
        moments=json.dumps({"gb": _gigabytes(step), "runs": _runs(step.columns)}),
        peak_x=_x(fullest_column + 0.5),
        peak_y=_y(step.most, step),
        peak=peak,
        words=_words_on(step),
        caption=translated(
            "One training step of {model}, {batch} × {sequence} tokens in fp32 with AdamW, as "
            "predicted for an {machine}, operation by operation",
            model=MODEL,
            batch=BATCH,
            sequence=f"{SEQUENCE:,}",
            machine=MACHINE,
        ),
        play=translated("Play"),
        pause=translated("Pause"),
    )


def _words_on(step: Step) -> str:
    """Return what the drawing shows, for those who do not see it."""
    begin = in_words(step.columns[0].held.total, "bytes")
    peak = in_words(step.most, "bytes")
    end = in_words(step.columns[-1].held.total, "bytes")
    return translated(
        "The memory of one training step of {model}, moment by moment. It begins with {begin}, "
        "for the parameters and what AdamW keeps. In the forward pass activations pile up, the "
        "loss makes the peak of {peak}, and in the backward pass gradients replace the "
        "activations, until {end} are left.",
        model=MODEL,
        begin=begin,
        peak=peak,
        end=end,
    )


def _areas(step: Step) -> Iterator[Area]:
    """Yield the areas from the top one down, as each is drawn over the one before.

    Each reaches to the bottom of the drawing, and so an outline needs the upper edge alone.
    """
    below = list(NAMES)
    while below:
        part = below[-1]
        tops = [_total(moment.held, below) for moment in step.columns]
        below.pop()
        floors = [_total(moment.held, below) for moment in step.columns]
        edge = [f"{_x(column + 0.5):g},{_y(top, step):g}" for column, top in enumerate(tops)]
        corners = [f"{_x(0):g},{HEIGHT}", f"{_x(0):g},{_y(tops[0], step):g}"]
        end = [f"{WIDTH},{_y(tops[-1], step):g}", f"{WIDTH},{HEIGHT}"]
        column, least_bytes = _best_for_a_name(tops, floors)
        is_thin = _y(0, step) - _y(least_bytes, step) < LEAST_HEIGHT
        middle = (_y(floors[column], step) + _y(tops[column], step)) / 2
        above = _y(step.columns[column].held.total, step) - ABOVE
        yield Area(
            part=part,
            points=" ".join([*corners, *edge, *end]),
            name=translated(NAMES[part]),
            x=_x(column + 0.5),
            y=round(above if is_thin else middle, 1),
            is_thin=is_thin,
        )


def _best_for_a_name(tops: Sequence[int], floors: Sequence[int]) -> tuple[int, int]:
    """Return the column around which an area is thickest, over the whole width of its name.

    With it comes the least height along the name, in bytes. Of several columns that are as good, it
    is the one in the middle.
    """
    heights = [top - floor for top, floor in zip(tops, floors, strict=True)]
    least = {}  # by column, the least height along a name that has its middle there
    for column in range(NAME_COLUMNS, COLUMNS - NAME_COLUMNS):
        least[column] = min(heights[column - NAME_COLUMNS : column + NAME_COLUMNS])
    most = max(least.values())
    as_good = [column for column, height in least.items() if height > 0.97 * most]
    column = as_good[len(as_good) // 2]
    return column, least[column]


def _total(held: Held, parts: Sequence[str]) -> int:
    return sum(getattr(held, part) for part in parts)


def _phases(step: Step) -> Iterator[Phase]:
    """Yield the phases that are wide enough for a name, which the update of the weights is not."""
    begins = list(step.phases.items())
    ends = [*[share for _, share in begins[1:]], 1.0]
    for (name, begin), end in zip(begins, ends, strict=True):
        if end - begin > 0.05:
            middle = WIDTH * (begin + end) / 2
            yield Phase(translated(MOMENTS[name]), round(WIDTH * begin, 1), round(middle, 1))


def _gigabytes(step: Step) -> list[str]:
    """Return what is held in each column, with one digit behind the point."""
    return [f"{moment.held.total / 1e9:.1f}" for moment in step.columns]


def _runs(columns: Sequence[Moment]) -> list[tuple[int, str]]:
    """Return where the words change: the first column of each run, and the words from there on."""
    runs: list[tuple[int, str]] = []
    for column, moment in enumerate(columns):
        words = _words(moment)
        if not runs or runs[-1][1] != words:
            runs.append((column, words))
    return runs


def _words(moment: Moment) -> str:
    """Return the phase, and the layer if the moment is inside one, counted from 1."""
    phase = translated(MOMENTS[moment.phase])
    if moment.layer is None:
        return phase
    return translated("{phase}, layer {layer}", phase=phase, layer=moment.layer + 1)


def _x(column: float) -> float:
    return round(WIDTH * column / COLUMNS, 1)


def _y(nbytes: float, step: Step) -> float:
    return round(HEIGHT * (1 - ROOM * nbytes / step.most), 1)
