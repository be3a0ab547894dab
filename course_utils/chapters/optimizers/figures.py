"""The figures of notebook 6."""

from collections.abc import Mapping, Sequence
from numbers import Integral

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.core.say import Number
from course_utils.core.say.language import template, translated
from course_utils.engine.figures.filling import quoted, refusal
from course_utils.engine.figures.style import COLOURS, CURVES, INK, Curve, axes_with, name_curves

NO_STAGES = template(
    "A dict is wanted that maps each part to its first stage, a whole number, as in {example}; "
    "{value} is none."
)
NO_STAGE = template(
    "{name} wants its first stage, a whole number, as in {example}; {value} is none."
)

STAGES = range(4)
PIECES = 8  # of a sharded part, in the picture: one for each of the eight GPUs of the text
BOX = 0.8  # the width of a part that is whole, where a column is 1 wide


def singular_values(by_curve: Mapping[str, Sequence[Number]]) -> Figure:
    """Draw a matrix's singular values, the largest first: a curve for each of its stages."""
    title = "Each step of Newton-Schulz lifts the small singular values, until they catch up"
    ends = {}
    with axes_with(title, "singular values, the largest first", "size", log_y=10) as axes:
        for (name, values), colour in zip(by_curve.items(), CURVES, strict=False):
            places = range(1, len(values) + 1)
            axes.plot(places, values, color=colour)
            ends[name] = Curve(places[-1], values[-1], colour)
        axes.set_xlim(0, 1.2 * places[-1])  # with space for the names
        axes.set_xticks([1, *range(16, places[-1] + 1, 16)])
        axes.set_ylim(axes.get_ylim())  # names that are added move the limits no more
        name_curves(axes, ends)
    return axes.figure


def _refuse_other_than_stages(stages: object, example: str) -> None:
    """Raise a refusal for what is no dict, or for a stage that is no whole number."""
    if not isinstance(stages, Mapping):
        raise refusal(translated(NO_STAGES, example=example, value=quoted(stages)))
    for name, value in stages.items():
        if not isinstance(value, Integral):
            raise refusal(translated(NO_STAGE, name=name, example=example, value=quoted(value)))


def state_by_stage(sharded_from: Mapping[str, int]) -> Figure:
    """Draw what one of eight GPUs holds of each part of the state, by ZeRO's stage.

    `sharded_from` has for each part the first stage in which it is sharded. A whole part is a full
    box; of a sharded one a GPU holds a piece, and the others' pieces are dashed. What is no dict of
    whole numbers is refused.
    """
    _refuse_other_than_stages(sharded_from, '{"optimizer": 1}')
    title = "From its stage on, a GPU holds only a share of a part"
    with axes_with(title, "stage", "part", height=300) as axes:
        for row, first in enumerate(sharded_from.values()):
            for stage in STAGES:
                _draw_part(axes, stage, -row, is_sharded=stage >= first)
        parts = list(sharded_from)
        axes.set_xlim(-0.6, STAGES[-1] + 0.6)
        axes.set_ylim(-len(parts) + 0.4, 0.6)
        axes.set_xticks(list(STAGES), [f"stage {stage}" for stage in STAGES])
        axes.set_yticks([-row for row in range(len(parts))], parts)
        axes.grid(visible=False)
    return axes.figure


def _draw_part(axes: Axes, x: Number, y: Number, *, is_sharded: bool) -> None:
    """Draw a part as a box, or in pieces of which the first one is full."""
    pieces = PIECES if is_sharded else 1
    width = BOX / pieces
    for piece in range(pieces):
        corner = (x - BOX / 2 + piece * width, y - 0.3)
        is_held = piece == 0
        rectangle = Rectangle(
            corner,
            width,
            0.6,
            facecolor=COLOURS["parameters"] if is_held else "none",
            edgecolor=INK,
            linestyle="-" if is_held else "--",
            linewidth=1,
        )
        axes.add_patch(rectangle)
