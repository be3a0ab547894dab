"""Boxes with a name and a size, of which some are filled in."""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, INK, SMALL, points

LINE = 4.2  # the height of a line of words, in units of the drawing
SPACE = 1.5  # above and below the lines of a box, together


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
    def height(self) -> Number:
        """The height of the box in units of the drawing."""
        lines = 2 + self.size.count("\n")  # the name's, and the size's: one more than breaks
        if self.condition:
            lines += 1
        return SPACE + LINE * lines


def draw_box(axes: Axes, box: Box, *, is_filled: bool) -> None:
    """Draw a box, dashed if only some models have what it stands for."""
    bottom = box.middle - box.height / 2
    rectangle = Rectangle(
        (box.left, bottom),
        box.width,
        box.height,
        facecolor=COLOURS["parameters"] if is_filled else "white",
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


def draw_arrow(axes: Axes, begin: Number, end: Number, height: Number) -> None:
    """Draw an arrow from left to right at that height."""
    arrow = FancyArrowPatch((begin, height), (end, height), arrowstyle="->", mutation_scale=9)
    axes.add_patch(arrow)


def hide_scales(axes: Axes, width: Number, height: Number) -> None:
    """Show a drawing of that size without ticks, grid and frame."""
    axes.set(xlim=(0, width), ylim=(0, height), xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
