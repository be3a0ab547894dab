"""The figures of notebook 7."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, axes_with, key, label, measured_dots


def weights_by_step(
    alone: Sequence[Number], copies: Sequence[Number], masters: Sequence[Number]
) -> Figure:
    """Draw a weight in bf16 alone, and an fp32 master with its bf16 copy, over the same updates."""
    title = "bf16 alone stands still; the copy of an fp32 master climbs in steps"
    orange = COLOURS["measured"]
    with axes_with(title, "step", "weight") as axes:
        axes.plot(masters, color=orange, linewidth=1)
        axes.plot(copies, color=orange, drawstyle="steps-post")
        axes.plot(alone, color=orange, linestyle="--")
        last = len(masters) - 1
        label(axes, "fp32 master", last, masters[-1], orange, offset=(8, 4))
        label(axes, "its bf16 copy", last, copies[-1], orange, offset=(8, -14))
        label(axes, "bf16 alone", last, alone[-1], orange, offset=(8, -4))
        axes.set_xlim(0, last * 1.25)  # with space for the labels
        axes.set_xticks(range(0, last + 1, max(1, last // 4)))
        axes.spines["bottom"].set_bounds(0, last)
        axes.yaxis.set_major_formatter("{x:g}")
    return axes.figure


def scales_by_step(
    scales: Sequence[Number], by_torch: Sequence[Number], limits: Sequence[Number]
) -> Figure:
    """Draw the loss scale by a rule and by torch, and the scales from which gradients overflow."""
    title = "Halved at once, doubled after patience: the scale finds its limit"
    with axes_with(title, "step", "loss scale", height=5.2, log_y=2) as axes:
        axes.plot(limits, color=COLOURS["limit"], linestyle=":")
        axes.plot(scales, color=COLOURS["predicted"], drawstyle="steps-mid")
        measured_dots(axes, enumerate(by_torch), 5)
        highest = max(limits)
        grey = COLOURS["limit"]
        label(axes, "dotted: infinite from here on", 0, highest, grey, offset=(0, -6))
        key(axes, "by the rule", "by torch")
    return axes.figure
