"""The figures of notebook 1."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.core.floats import Format
from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, axes_with, label

# These colours are for curves that cross: Okabe and Ito's vermilion and bluish green, a purple and
# a grey. All of them are dark enough for words.
CURVES = ("#C45000", "#007A5A", "#6A3D9A", "#5f6b76")


def losses_by_mix(
    losses: Mapping[str, Sequence[Number]],
    *,
    title: str = "Where precision or reach is missing, the loss falls behind",
) -> Figure:
    """Draw each mix's losses, one for each step, as a curve on a logarithmic axis.

    All curves have equally many steps. A curve's name stands at its end, in the curve's colour.
    """
    colours = dict(zip(losses, cycle(CURVES), strict=False))
    groups = _ending_together(losses)
    lowest_end, _ = groups[-1]
    steps = len(next(iter(losses.values())))
    with axes_with(title, "step", "loss", height=5.6, log_y=10) as axes:
        for _, names in groups:
            for name in names:
                axes.plot(losses[name], color=colours[name], linewidth=2)
        for end, names in groups:
            # The names of a group stand below each other, 16 points apart, around its end.
            points_up = 8 * (len(names) - 1) - 4
            for name in names:
                label(axes, name, steps, end, colours[name], (6, points_up))
                points_up -= 16
        axes.set_xlim(0, 1.42 * steps)  # with space for the names
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        axes.spines["bottom"].set_bounds(0, steps)
        axes.set_ylim(bottom=lowest_end / 2.5)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def _ending_together(losses: Mapping[str, Sequence[Number]]) -> list[tuple[Number, list[str]]]:
    """Group the curves that end so close together that their names would overlap.

    Return each group as its highest end and the names of its curves. The groups, and the names in
    each, go from high ends to low ones.
    """
    ends = {name: line[-1] for name, line in losses.items()}
    groups: list[tuple[Number, list[str]]] = []
    highest_end = math.inf
    for name in sorted(ends, key=lambda name: -ends[name]):
        if ends[name] > 0.9 * highest_end:
            groups[-1][1].append(name)
        else:
            highest_end = ends[name]
            groups.append((highest_end, [name]))
    return groups


COLOUR_OF_EXPONENT_BITS = {11: COLOURS["limit"], 8: "#1a1a1a", 5: "#9a6700"}
# Where a label would otherwise cover a line, it is moved so many points to the right and upwards.
LABEL_OFFSETS = {"e2m1": (-4, 9), "e4m3": (9, -14), "fp16": (-14, -20)}


def reach_and_step(formats: Mapping[str, Format]) -> Figure:
    """Draw each format as a line.

    It goes from the smallest number above zero to the largest. The lower the line lies, the finer
    are the format's steps.
    """
    title = "Exponent bits buy reach, fraction bits buy fine steps"
    ylabel = "step to the next number ÷ the number"
    with axes_with(title, "size of the number", ylabel, height=5.6, log_x=10, log_y=10) as axes:
        axes.set(xlim=(1e-48, 1e52), ylim=(3e-17, 8))
        for name, number_format in formats.items():
            _draw_format(axes, name, number_format)
        label(axes, "subnormals lose\ndigits one by one", 3e-36, 2e-5, COLOURS["limit"], (0, 0))
    return axes.figure


def _draw_format(axes: Axes, name: str, f: Format) -> None:
    """Draw the format's line, with its name.

    Among the subnormals, below the smallest normal number, the step no longer shrinks with the
    number. So the line rises there to 1, where the number is itself one step.
    """
    colour = COLOUR_OF_EXPONENT_BITS.get(f.exponent_bits, COLOURS["limit"])
    sizes = [f.smallest_subnormal, f.smallest_normal, f.max]
    relative_steps = [1.0, f.epsilon, f.epsilon]
    style = "--" if name == "tf32" else "-"  # so that fp16's line, which lies on it, is seen, too
    axes.plot(sizes, relative_steps, color=colour, linestyle=style)
    _, right_edge = axes.get_xlim()
    if f.max < right_edge:
        axes.plot(f.max, f.epsilon, "o", color=colour)
        label(axes, f.label, f.max, f.epsilon, colour, LABEL_OFFSETS.get(name, (9, -4)))
    else:
        words = f"{f.label}, and on to {f.max:.1e}".replace("e+", "e")
        label(axes, words, 1e16, f.epsilon, colour, (0, 8))
