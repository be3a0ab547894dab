"""The figures of notebook 7."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_utils.core.say import Number
from course_utils.engine.figures.style import (
    COLOURS,
    CURVES,
    FORMATS,
    QUIET,
    Curve,
    axes_with,
    measured_dots,
    name_curves,
    points,
)


def weights_by_step(
    alone: Sequence[Number], copies: Sequence[Number], masters: Sequence[Number]
) -> Figure:
    """Draw a weight in bf16 alone, and an fp32 master with its bf16 copy, over the same updates."""
    title = "bf16 alone never moves; the copy of an fp32 master follows it"
    last = len(masters) - 1
    master_colour = FORMATS["fp32"]
    copy_colour = FORMATS["bf16"]
    alone_colour = CURVES[0]
    ends = {
        "fp32 master": Curve(last, masters[-1], master_colour),
        "its bf16 copy": Curve(last, copies[-1], copy_colour),
        "bf16 alone": Curve(last, alone[-1], alone_colour),
    }
    with axes_with(title, "step", "weight") as axes:
        axes.plot(masters, color=master_colour, linewidth=points(1.25))
        axes.plot(copies, color=copy_colour, drawstyle="steps-post")
        axes.plot(alone, color=alone_colour)
        axes.set_xlim(0, last * 1.2)  # with space for the names
        axes.set_xticks(range(0, last + 1, max(1, last // 4)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylim(axes.get_ylim())  # names that are added move the limits no more
        name_curves(axes, ends)
    return axes.figure


def scales_by_step(
    scales: Sequence[Number], by_torch: Sequence[Number], limits: Sequence[Number]
) -> Figure:
    """Draw the loss scale by a rule and by torch, and the scales from which gradients overflow."""
    title = "Halved at once, doubled after patience: the scale finds its limit"
    last = len(scales) - 1
    ends = {
        "infinite from here on": Curve(last, limits[-1], QUIET),
        "by the rule": Curve(last, scales[-1], COLOURS["predicted"]),
        "by torch": Curve(last, by_torch[-1], COLOURS["measured"]),
    }
    with axes_with(title, "step", "loss scale", log_y=2) as axes:
        axes.plot(limits, color=QUIET, linewidth=points(1.5))
        axes.plot(scales, color=COLOURS["predicted"], drawstyle="steps-mid")
        measured_dots(axes, enumerate(by_torch), radius=3)
        axes.set_xlim(-0.01 * last, 1.24 * last)  # with space for the names
        axes.set_xticks(range(0, last + 1, max(1, len(scales) // 5)))
        axes.set_ylim(axes.get_ylim())  # names that are added move the limits no more
        name_curves(axes, ends)
    return axes.figure
