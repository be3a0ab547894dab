"""What happens in training: scales, steps, losses, crashes."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.figure import Figure

from course_utils.figures.colours import COLOURS
from course_utils.figures.style import axes_with, key, label, measured_dots
from course_utils.quantities import Number, seconds_text

# Of curves that cross: Okabe and Ito's vermilion and bluish green, a purple and a grey, dark enough for words.
CURVES = ("#C45000", "#007A5A", "#6A3D9A", "#5f6b76")


def losses_by_mix(losses: Mapping[str, Sequence[Number]]) -> Figure:
    """Losses by step on a logarithmic axis; each curve has a colour, and at its end its name in the same one."""
    title = "Where precision or reach is missing, the loss falls behind"
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
                label(axes, name, steps, end, colours[name], (6, 8 * (len(names) - 1) - 16 * row - 4))
        axes.set_xlim(0, 1.42 * steps)
        axes.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        axes.spines["bottom"].set_bounds(0, steps)
        axes.set_ylim(bottom=groups[-1][0] / 2.5)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def weights_by_step(alone: Sequence[Number], copies: Sequence[Number], masters: Sequence[Number]) -> Figure:
    """A weight in bf16 alone, and a master copy in fp32 with its own copy in bf16: the same updates, step by step."""
    title = "bf16 alone stands still; the copy of an fp32 master climbs in steps"
    orange = COLOURS["measured"]
    with axes_with(title, "step", "weight") as axes:
        axes.plot(masters, color=orange, linewidth=1)
        axes.plot(copies, color=orange, drawstyle="steps-post")
        axes.plot(alone, color=orange, linestyle="--")
        last = len(masters) - 1
        label(axes, "fp32 master", last, masters[-1], orange, (8, 4))
        label(axes, "its bf16 copy", last, copies[-1], orange, (8, -14))
        label(axes, "bf16 alone", last, alone[-1], orange, (8, -4))
        axes.set_xlim(0, last * 1.25)
        axes.set_xticks(range(0, last + 1, max(1, last // 4)))
        axes.spines["bottom"].set_bounds(0, last)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def scales_by_step(scales: Sequence[Number], by_torch: Sequence[Number], limits: Sequence[Number]) -> Figure:
    """The loss scale by a rule, torch's own beside it, and the scale from which each step's gradient is infinite."""
    title = "Halved at once, doubled after patience: the scale finds its limit"
    with axes_with(title, "step", "loss scale", height=5.2, log_y=2) as axes:
        axes.plot(limits, color=COLOURS["limit"], linestyle=":")
        axes.plot(scales, color=COLOURS["predicted"], drawstyle="steps-mid")
        measured_dots(axes, enumerate(by_torch), 5)
        label(axes, "dotted: infinite from here on", 0, max(limits), COLOURS["limit"], (0, -6))
        key(axes, "by the rule", "by torch")
    return axes.figure


def wasted_shares(
    intervals_s: Sequence[Number],
    predicted: Sequence[Number],
    simulated: Mapping[Number, Number],
    best_s: Number,
) -> Figure:
    """The share of a run's time that saving and lost work take, by the time between two saves."""
    title = "Save too often or too rarely, and the run pays; in between there is room"
    with axes_with(title, "time between two saves", "share of the time that is lost", log_x=10) as axes:
        axes.plot(intervals_s, predicted, color=COLOURS["predicted"])
        measured_dots(axes, simulated.items())
        axes.axvline(best_s, color=COLOURS["limit"], linestyle=":")
        label(axes, f"√(2CM): {seconds_text(best_s)}", best_s, 0, COLOURS["limit"], (6, 8))
        axes.set_ylim(0, 1)
        axes.set_xticks(list(simulated), [seconds_text(s) for s in simulated])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        key(axes, "predicted", "simulated")
    return axes.figure
