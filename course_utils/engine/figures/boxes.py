"""Boxes with a name and a size in words, which figures of a model's layer are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_utils.core.say import Number
from course_utils.engine.figures.style import INK, SMALL, points

LINE = 4.2  # the height of a line of words, in units of the drawing
SPACE = 1.5  # above and below the lines of a box, together
LETTER = 1  # the width of a letter of a name, at most


@dataclass(frozen=True)
class Box:
    """What a box stands for, its size in words, and its place in the drawing."""

    name: str
    size: str
    left: Number
    middle: Number  # of its height
    width: Number
    condition: str = ""  # when the model has it; empty if every model does

    @property
    def keyword(self) -> str:
        """The name as a keyword argument, such as "last_norm"."""
        return self.name.replace(" ", "_")

    @property
    def height(self) -> Number:
        """The height of the box in units of the drawing."""
        lines = 2 + self.size.count("\n")  # the name's, and the size's: one more than breaks
        if self.condition:
            lines += 1
        return SPACE + LINE * lines


def keywords_of(boxes: Sequence[Box]) -> list[str]:
    """Return the keyword of each box."""
    return [box.keyword for box in boxes]


def draw_boxes(axes: Axes, boxes: Sequence[Box], counts: Mapping[str, int], colour: str) -> None:
    """Draw the boxes; those in `counts`, by their keywords, in colour, and with their count."""
    for box in boxes:
        if box.keyword in counts:
            draw_box(axes, _counted(box, counts[box.keyword]), colour)
        else:
            draw_box(axes, box)


def _counted(box: Box, count: int) -> Box:
    """Return the box with its count behind the name, or below the size if it is too narrow."""
    name = f"{box.name}: {count:,}"
    if LETTER * (len(name) + 1) > box.width:
        return replace(box, size=f"{box.size}\n{count:,}")
    return replace(box, name=name)


def draw_box(axes: Axes, box: Box, colour: str = "white") -> None:
    """Draw a box, dashed if only some models have what it stands for."""
    bottom = box.middle - box.height / 2
    rectangle = Rectangle(
        (box.left, bottom),
        box.width,
        box.height,
        facecolor=colour,
        edgecolor=INK,
        linestyle="--" if box.condition else "-",
        lw=1.2,
    )
    axes.add_patch(rectangle)
    size = f"{box.size}\n{box.condition}" if box.condition else box.size
    centre = box.left + box.width / 2
    top = bottom + box.height
    name = {"va": "top", "weight": "bold", "fontsize": points(13)}
    axes.text(centre, top - 0.8, box.name, ha="center", **name)
    axes.text(centre, bottom + 0.8, size, ha="center", va="bottom", fontsize=SMALL)


def draw_arrow(axes: Axes, begin: tuple[Number, Number], end: tuple[Number, Number]) -> None:
    """Draw an arrow between two boxes."""
    arrow = FancyArrowPatch(begin, end, arrowstyle="->", mutation_scale=9)
    axes.add_patch(arrow)


def hide_scales(axes: Axes, width: Number, height: Number) -> None:
    """Show a drawing of that size without ticks, grid and frame."""
    axes.set(xlim=(0, width), ylim=(0, height), xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
