"""The figure of notebook 5: the tensors of a layer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.core.colours import COLOURS
from course_utils.core.say import Number
from course_utils.engine.figures.boxes import (
    Box,
    draw_arrow,
    draw_box,
    draw_boxes,
    hide_scales,
    keywords_of,
)
from course_utils.engine.figures.filling import refuse_names, refuse_other_than_numbers
from course_utils.engine.figures.style import SMALL, axes_with

UPPER = 54.5  # the middle of the row with attention
LOWER = 17  # and of the row with the feed-forward
FAINT = "#d8d8d8"  # of a hatching below words
GATED = "if m.gated"
HEAD_NORMS = "if m.head_norms"
OF_QUERIES = "m.heads · m.head_width"
OF_KEYS = "m.kv_heads · m.head_width"
# In the order in which a layer makes them. The numbers are the left edge, the middle of the height,
# and the width.
_BOXES = (
    Box("input", "m.width", 1, UPPER, 11),
    Box("normalised", "m.width", 16, UPPER, 12),
    Box("queries before", OF_QUERIES, 32, 62.1, 23, HEAD_NORMS),
    Box("keys before", OF_KEYS, 32, 46.9, 23, HEAD_NORMS),
    Box("queries", OF_QUERIES, 59, 65.1, 23),
    Box("keys", OF_KEYS, 59, UPPER, 23),
    Box("values", OF_KEYS, 59, 43.9, 23),
    Box("attention", OF_QUERIES, 86, 60, 20),
    Box("row sums", "m.heads, in fp32", 86, 49, 20),
    Box("out", "m.width", 110, UPPER, 9),
    Box("sum", "m.width", 1, LOWER, 11),
    Box("normalised sum", "m.width", 16, LOWER, 17),
    Box("gate", "m.inner", 41, 24.6, 14, GATED),
    Box("up", "m.inner", 41, 11.4, 14),
    Box("activated", "m.inner", 63, LOWER, 14),
    Box("product", "m.inner", 86, LOWER, 14, GATED),
    Box("down", "m.width", 110, LOWER, 9),
)
# Nothing reads these again: each is only added to what came before.
_NOT_KEPT = ("out", "down")
# Between the boxes of a row: where each arrow begins and ends, from left to right.
_UPPER_ARROWS = ((12, 16), (28, 32), (55, 59), (82, 86), (106, 110))
_LOWER_ARROWS = ((12, 16), (33, 41), (55, 63), (77, 86), (100, 110))


def tensor_boxes(*unnamed: object, **numbers: int) -> Figure:
    """Draw the tensors of a transformer's layer as boxes, in the order in which it makes them.

    Each box says by the fields of an accountant's `Model` how many numbers it has for one token. A
    box in `numbers`, such as `input=768`, is filled, and says that it has so many; it is hatched if
    nothing keeps it. A name without a box is refused, and so is what is no number or has no name.
    """
    refuse_names(keywords_of(_BOXES), unnamed, numbers, "input=768")
    refuse_other_than_numbers(numbers, "input=768")
    title = "Each box is a tensor of the layer, with its numbers for one token"
    with axes_with(title, "as a token passes", "the layer, in two rows", height=430) as axes:
        above = "Attention, fused: the scores themselves are never written."
        below = (
            "Feed-forward: sum = input + out. With a gate, product = activated gate × up; "
            "without one, up is activated."
        )
        _row(axes, UPPER, above, _UPPER_ARROWS)
        _row(axes, LOWER, below, _LOWER_ARROWS)
        for box in _BOXES:
            if box.keyword in numbers and box.keyword in _NOT_KEPT:
                _not_kept(axes, box, numbers)
            else:
                draw_boxes(axes, [box], numbers, COLOURS["activations"])
        hide_scales(axes, 121, 76)
    return axes.figure


def _not_kept(axes: Axes, box: Box, numbers: Mapping[str, int]) -> None:
    """Draw a box that is filled in, though nothing keeps it: hatched, and it says so."""
    filled = replace(box, size=f"{box.size}\n{numbers[box.keyword]:,}\nnot kept")
    corner = (box.left, box.middle - filled.height / 2)
    hatched = Rectangle(corner, box.width, filled.height, fc="white", ec=FAINT, hatch="//")
    axes.add_patch(hatched)
    draw_box(axes, filled, "none")


def _row(axes: Axes, middle: Number, words: str, arrows: Sequence[tuple[int, int]]) -> None:
    """Draw a row's frame, the words on it, and the arrows between its boxes."""
    corner = (0, middle - 16.7)
    frame = Rectangle(corner, 120, 37.5, facecolor="none", edgecolor=COLOURS["limit"], lw=1)
    axes.add_patch(frame)
    axes.text(1.5, middle + 18.7, words, va="center", fontsize=SMALL)
    for begin, end in arrows:
        draw_arrow(axes, (begin, middle), (end, middle))
