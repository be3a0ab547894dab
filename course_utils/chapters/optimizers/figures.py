"""The figure of notebook 6."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_utils.core.say import Number
from course_utils.engine.figures.style import CURVES, Curve, axes_with, name_curves


def singular_values(by_curve: Mapping[str, Sequence[Number]]) -> Figure:
    """Draw a matrix's singular values, the largest first: a curve for each of its stages."""
    title = "Each step of Newton-Schulz lifts the small singular values, until they catch up"
    ends = {}
    with axes_with(title, "singular values, the largest first", "size", log_y=10) as axes:
        for (name, values), colour in zip(by_curve.items(), CURVES, strict=False):
            places = range(1, len(values) + 1)
            axes.plot(places, values, color=colour)
            ends[name] = Curve(places[-1], values[-1], colour)
        axes.set_xlim(0, 1.2 * places[-1])  # with space for the names
        axes.set_xticks([1, *range(16, places[-1] + 1, 16)])
        axes.set_ylim(axes.get_ylim())  # names that are added move the limits no more
        name_curves(axes, ends)
    return axes.figure
