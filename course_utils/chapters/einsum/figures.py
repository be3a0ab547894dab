"""The figures of notebook 3."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.core.say.language import template, translated
from course_utils.engine.figures.boxes import Box, draw_arrow, draw_box, hide_scales, keywords_of
from course_utils.engine.figures.filling import quoted, refusal, refuse_names, size_text
from course_utils.engine.figures.style import COLOURS, HEIGHT, SMALL, axes_with

NO_PAIR = template(
    "{name} wants a pair, its inputs and then its outputs, as in {example}; {value} is none."
)
NO_SIZE = template(
    "{name} wants its inputs and outputs as numbers or as text in quotes, as in {example}; {value} "
    "is neither."
)

SHADES = (COLOURS["parameters"], COLOURS["gradients"], COLOURS["activations"])
# Matches a matrix, such as "x[B D]": its name is x, its rows are B, and its columns D. Otherwise it
# matches a word, such as "=".
PART_OF_A_LINE = re.compile(r"(?P<name>\S+)\[(?P<rows>\S+) (?P<columns>\S+)\]|(?P<words>\S+)")


def shapes_to_scale(lines: Sequence[str], sizes: Mapping[str, int], title: str) -> Figure:
    """Draw matrices as boxes, to scale. Boxes of the same two sizes have the same colour.

    A line is a text. In it a matrix is written as "name[rows columns]", with the names of its two
    dimensions; other words are drawn as they are: "Q[i d] · Kᵀ[d j] = scores[i j]". `sizes` has the
    size of each dimension.
    """
    # All lengths below are in numbers: a matrix of 8 columns is 8 wide.
    largest = max(sizes.values())
    colours: dict[frozenset[int], str] = {}
    ends = []
    with axes_with(title, "columns", "rows", height=min(HEIGHT, 60 + 190 * len(lines))) as axes:
        for number, line in enumerate(lines):
            x = 0.0
            middle = -number * (largest + 4)  # each line lies below the one before it
            for part in PART_OF_A_LINE.finditer(line):
                words = part["words"]
                if words:
                    axes.text(x + 0.4, middle, words, va="center")
                    x += 1 + 0.5 * len(words)  # a letter is about half a number wide
                    continue
                width = sizes[part["columns"]]
                height = sizes[part["rows"]]
                both_sizes = frozenset((width, height))
                if both_sizes not in colours:
                    colours[both_sizes] = SHADES[len(colours) % len(SHADES)]
                corner = (x + 1, middle - height / 2)
                box = Rectangle(corner, width, height, facecolor=colours[both_sizes])
                _draw_matrix(axes, box, part)
                x += width + 1.4  # 1 in front of the box, for its rows' name, and 0.4 behind
            ends.append(x)
        # From here on, `middle` is that of the last line.
        half = largest / 2 + 0.2
        axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
        axes.set(xlim=(0, max(ends)), ylim=(middle - half, half + 2))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


def _draw_matrix(axes: Axes, box: Rectangle, part: re.Match[str]) -> None:
    """Draw the box with its name inside, its columns' name above and its rows' name to the left."""
    box.set_edgecolor(COLOURS["limit"])
    axes.add_patch(box)
    left = box.get_x()
    bottom = box.get_y()
    top = bottom + box.get_height()
    x = left + box.get_width() / 2
    y = bottom + box.get_height() / 2
    centred = {"ha": "center", "va": "center"}
    axes.text(x, y, part["name"], weight="bold", **centred)
    axes.text(x, top + 0.7, part["columns"], style="italic", **centred)
    axes.text(left - 0.5, y, part["rows"], style="italic", **centred)


# The matrices of a layer in the order in which a token passes them. A narrow box has the outputs on
# a line of their own. The numbers are the left edge, the middle of the height, and the width.
_ON_ONE_LINE = "? × ?"
_ON_TWO_LINES = "?\n× ?"
_MATRICES = (
    Box("query", _ON_ONE_LINE, 10, 32, 33),
    Box("key", _ON_ONE_LINE, 10, 20, 33),
    Box("value", _ON_ONE_LINE, 10, 8, 33),
    Box("out", _ON_TWO_LINES, 61, 20, 24),
    Box("up", _ON_TWO_LINES, 89, 30.5, 14),
    Box("gate", _ON_TWO_LINES, 89, 10.5, 14, "if m.gated"),
    Box("down", _ON_TWO_LINES, 107, 20, 14),
)
_EXAMPLE = 'up=("m.width", "m.inner")'
# Where each arrow between them begins and ends, from left to right.
_ARROWS = ((7, 10), (43, 46), (58, 61), (85, 89), (103, 107))


def _refuse_other_than_pairs(filled: Mapping[str, object], example: str) -> None:
    """Raise a refusal for a value that is no pair of sizes, each of them a number or a text."""
    for name, value in filled.items():
        is_pair = isinstance(value, tuple | list) and len(value) == 2
        if not is_pair:
            raise refusal(translated(NO_PAIR, name=name, example=example, value=quoted(value)))
        for size in value:
            if not isinstance(size, Real | str):
                said = translated(NO_SIZE, name=name, example=example, value=quoted(size))
                raise refusal(said)


def layer_matrices(*unnamed: object, **sizes: tuple[int | str, int | str]) -> Figure:
    """Draw the matrices of a layer as boxes, in the order in which a token passes them.

    A matrix in `sizes`, such as `up=("m.width", "m.inner")`, has its inputs and outputs in its box,
    which is filled; each is a text or a number. A name without a box is refused, and so is what is
    no pair or has no name.
    """
    refuse_names(keywords_of(_MATRICES), unnamed, sizes, _EXAMPLE)
    _refuse_other_than_pairs(sizes, _EXAMPLE)
    title = "A token passes these matrices of a layer: inputs × outputs"
    with axes_with(title, "as a token passes", "side by side", height=270) as axes:
        axes.text(3, 20, "token", ha="center", va="center", fontsize=SMALL)
        axes.text(52, 20, "attention,\nmerge", ha="center", va="center", fontsize=SMALL)
        for begin, end in _ARROWS:
            draw_arrow(axes, (begin, 20), (end, 20))
        for box in _MATRICES:
            size = box.size
            for gap in sizes.get(box.name, ()):
                size = size.replace("?", size_text(gap), 1)
            colour = COLOURS["parameters"] if box.name in sizes else "white"
            draw_box(axes, replace(box, size=size), colour)
        hide_scales(axes, 122, 40)
    return axes.figure
