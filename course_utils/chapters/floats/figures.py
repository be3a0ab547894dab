"""The figures of notebook 1."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.figure import Figure

from course_utils.core.floats import Format
from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, axes_with, label

# Of curves that cross: Okabe and Ito's vermilion and bluish green, a purple and a grey, dark enough for words.
CURVES = ("#C45000", "#007A5A", "#6A3D9A", "#5f6b76")


def losses_by_mix(
    losses: Mapping[str, Sequence[Number]],
    *,
    title: str = "Where precision or reach is missing, the loss falls behind",
) -> Figure:
    """Losses by step on a logarithmic axis; each curve has a colour, and at its end its name in the same one."""
    with axes_with(title, "step", "loss", height=5.6, log_y=10) as axes:
        groups: list[tuple[Number, list[str]]] = []
        colours = dict(zip(losses, cycle(CURVES), strict=False))
        for name, line in sorted(losses.items(), key=lambda item: -item[1][-1]):
            axes.plot(line, color=colours[name], linewidth=2)
            if groups and line[-1] > 0.9 * groups[-1][0]:
                groups[-1][1].append(name)
            else:
                groups.append((line[-1], [name]))
        steps = len(line)
        for end, names in groups:
            for row, name in enumerate(names):  # one below the other, where curves end side by side
                label(
                    axes, name, steps, end, colours[name], (6, 8 * (len(names) - 1) - 16 * row - 4)
                )
        axes.set_xlim(0, 1.42 * steps)
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        axes.spines["bottom"].set_bounds(0, steps)
        axes.set_ylim(bottom=groups[-1][0] / 2.5)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def reach_and_step(formats: Mapping[str, Format]) -> Figure:
    """Each format as a line: its reach from left to right, its step at a height, lower being finer."""
    colours = {
        11: COLOURS["limit"],
        8: "#1a1a1a",
        5: "#9a6700",
    }  # one for each width of the exponent
    beside = {
        "e2m1": (-4, 9),
        "e4m3": (9, -14),
        "fp16": (-14, -20),
    }  # where a label would cover a line
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
