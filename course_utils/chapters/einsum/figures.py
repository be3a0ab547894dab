"""The figure of notebook 3."""

import re
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.engine.figures.style import COLOURS, axes_with


def shapes_to_scale(lines: Sequence[str], sizes: Mapping[str, int], title: str) -> Figure:
    """Matrices as boxes. In a line each is "name[rows columns]", by names of dimensions; other words stand between.

    Boxes of the same two sizes have the same colour.
    """
    colours, ends = {}, []
    with axes_with(title, "columns", "rows", height=0.6 + 1.9 * len(lines)) as axes:
        for number, line in enumerate(lines):
            x, middle = 0.0, -number * (max(sizes.values()) + 4)
            for name, down, across, between in re.findall(r"(\S+)\[(\S+) (\S+)\]|(\S+)", line):
                if between:
                    axes.text(x + 0.4, middle, between, va="center")
                    x += 1 + 0.5 * len(between)
                    continue
                width, height = sizes[across], sizes[down]
                colour = colours.setdefault(frozenset((width, height)), _SHADES[len(colours) % 3])
                corner = x + 1, middle - height / 2
                axes.add_patch(
                    Rectangle(corner, width, height, facecolor=colour, edgecolor=COLOURS["limit"])
                )
                centre = {"ha": "center", "va": "center"}
                axes.text(x + 1 + width / 2, middle, name, weight="bold", **centre)
                axes.text(
                    x + 1 + width / 2, middle + height / 2 + 0.7, across, style="italic", **centre
                )
                axes.text(x + 0.5, middle, down, style="italic", **centre)
                x += width + 1.4
            ends.append(x)
        half = max(sizes.values()) / 2 + 0.2
        axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
        axes.set(xlim=(0, max(ends)), ylim=(middle - half, half + 2))
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


_SHADES = COLOURS["parameters"], COLOURS["gradients"], COLOURS["activations"]
