"""The figure of notebook 8."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.core.say import Number, seconds_text
from course_utils.engine.figures.style import (
    COLOURS,
    QUIET,
    axes_with,
    label,
    measured_dots,
    points,
)


def wasted_shares(
    intervals_s: Sequence[Number],
    predicted: Sequence[Number],
    simulated: Mapping[Number, Number],
    best_s: Number,
) -> Figure:
    """Draw the share of a run's time that is lost, by the time between two saves.

    `predicted` has a share for each interval. `simulated` maps a few intervals to the shares that
    simulated runs have lost. `best_s` is the best interval by Young's rule.
    """
    title = "Save too often or too rarely, and the run pays; in between there is room"
    x_name = "time between two saves"
    y_name = "share of the time that is lost"
    with axes_with(title, x_name, y_name, log_x=10) as axes:
        axes.plot(intervals_s, predicted, color=COLOURS["predicted"])
        measured_dots(axes, simulated.items())
        axes.axvline(best_s, color=QUIET, linestyle=":", linewidth=points(1.5))
        label(axes, f"√(2CM): {seconds_text(best_s)}", best_s, 0, QUIET, offset=(6, 8))
        axes.set_ylim(0, 1)
        # A tick at each simulated interval, in words such as "20 min", instead of powers of ten.
        axes.set_xticks(list(simulated), [seconds_text(s) for s in simulated])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        # The words stand at the last point of the curve, and at the last dot.
        curve_end = (intervals_s[-1], predicted[-1])
        label(axes, "predicted", *curve_end, COLOURS["predicted"], offset=(-8, -2), ha="right")
        last_dot = list(simulated.items())[-1]
        label(axes, "simulated", *last_dot, COLOURS["measured"], offset=(10, -10))
    return axes.figure
