"""Boxes with a name and a size in words, which figures of a model's layer are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from course_utils.core.say import Number
from course_utils.engine.figures.style import INK, SMALL, points


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
        """The height of the box in units of the drawing, of which a line of words takes 4.2."""
        lines = 2 + self.size.count("\n")  # the name's, and the size's: one more than breaks
        if self.condition:
            lines += 1
        return 1.5 + 4.2 * lines  # with 1.5 of space


def refuse_unknown(boxes: Sequence[Box], counts: Mapping[str, int]) -> None:
    """Raise ValueError, with the names that there are, if a count is for none of the boxes."""
    keywords = [box.keyword for box in boxes]
    unknown = [name for name in counts if name not in keywords]
    if unknown:
        raise ValueError(f"There is no box {unknown[0]!r}. There are: {', '.join(keywords)}.")


def draw_boxes(axes: Axes, boxes: Sequence[Box], counts: Mapping[str, int], colour: str) -> None:
    """Draw the boxes. Those in `counts`, by their keywords, have the colour, and say their count.

    A box is dashed if only some models have what it stands for. The axes are left without numbers,
    grid and frame.
    """
    for box in boxes:
        _draw(axes, box, counts.get(box.keyword), colour)
    axes.set(xlim=(0, 121), ylim=(0, 76), xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _draw(axes: Axes, box: Box, count: int | None, colour: str) -> None:
    bottom = box.middle - box.height / 2
    is_filled = count is not None
    rectangle = Rectangle(
        (box.left, bottom),
        box.width,
        box.height,
        facecolor=colour if is_filled else "white",
        edgecolor=INK,
        linestyle="--" if box.condition else "-",
        lw=1.2,
    )
    axes.add_patch(rectangle)
    name = f"{box.name}: {count:,}" if is_filled else box.name
    size = f"{box.size}\n{box.condition}" if box.condition else box.size
    centre = box.left + box.width / 2
    top = bottom + box.height
    axes.text(centre, top - 0.8, name, ha="center", va="top", weight="bold", fontsize=points(13))
    axes.text(centre, bottom + 0.8, size, ha="center", va="bottom", fontsize=SMALL)


def draw_arrow(axes: Axes, begin: tuple[Number, Number], end: tuple[Number, Number]) -> None:
    """Draw an arrow between two boxes."""
    arrow = FancyArrowPatch(begin, end, arrowstyle="->", mutation_scale=9)
    axes.add_patch(arrow)
