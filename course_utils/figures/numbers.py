"""How numbers are stored, and what their sums come to."""

import re
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.figures.style import COLOURS, axes_with, label
from course_utils.floats import Format


def reach_and_step(formats: Mapping[str, Format]) -> Figure:
    """Each format as a line: its reach from left to right, its step at a height, lower being finer."""
    colours = {11: COLOURS["limit"], 8: "#1a1a1a", 5: "#9a6700"}  # one for each width of the exponent
    beside = {"e2m1": (-4, 9), "e4m3": (9, -14), "fp16": (-14, -20)}  # where a label would cover a line
    title = "Exponent bits buy reach, fraction bits buy fine steps"
    ylabel = "step to the next number ÷ the number"
    with axes_with(title, "size of the number", ylabel, height=5.6, log_x=10, log_y=10) as axes:
        axes.set(xlim=(1e-48, 1e52), ylim=(3e-17, 8))
        for name, f in formats.items():
            colour = colours.get(f.exponent_bits, COLOURS["limit"])
            # Below the smallest normal number the step no longer shrinks with the number.
            sizes = [max(f.smallest_subnormal, 1e-320), f.smallest_normal, f.max]
            style = "--" if name == "tf32" else "-"  # fp16 lies on it
            axes.plot(sizes, [1.0, f.epsilon, f.epsilon], color=colour, linestyle=style)
            if f.max < axes.get_xlim()[1]:
                axes.plot(f.max, f.epsilon, "o", color=colour)
                label(axes, f.label, f.max, f.epsilon, colour, beside.get(name, (9, -4)))
            else:
                words = f"{f.label}, and on to {f.max:.1e}".replace("e+", "e")
                label(axes, words, 1e16, f.epsilon, colour, (0, 8))
        label(axes, "subnormals lose\ndigits one by one", 3e-36, 2e-5, COLOURS["limit"], (0, 0))
    return axes.figure


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
                axes.add_patch(Rectangle(corner, width, height, facecolor=colour, edgecolor=COLOURS["limit"]))
                centre = {"ha": "center", "va": "center"}
                axes.text(x + 1 + width / 2, middle, name, weight="bold", **centre)
                axes.text(x + 1 + width / 2, middle + height / 2 + 0.7, across, style="italic", **centre)
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
