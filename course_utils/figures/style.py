"""What all figures share: type, axes, and words beside what they name."""

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from course_utils.figures.colours import COLOURS
from course_utils.quantities import Number

_STYLE = {
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 12,
    "axes.titlesize": 14,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6e8",
    "lines.linewidth": 2.5,
}


@contextmanager
def axes_with(title: str, xlabel: str, ylabel: str, height: Number = 4.8) -> Iterator[Axes]:
    """Axes in the course's style, on a figure that is closed when the drawing is done: it shows once, when returned."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9.5, height), layout="constrained")
        try:
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            yield axes
        finally:
            plt.close(figure)


def key(axes: Axes, predicted: str, measured: str) -> None:
    """What blue and orange stand for, in the corner."""
    for words, colour, height in (
        (predicted, COLOURS["predicted"], 0.1),
        (measured, COLOURS["measured"], 0.03),
    ):
        axes.text(0.98, height, words, color=colour, weight="bold", ha="right", transform=axes.transAxes)


def label(
    axes: Axes, words: str, x: Number, y: Number, colour: str, offset: tuple[int, int], ha: str = "left"
) -> None:
    """Words beside the thing they name, `offset` points away."""
    axes.annotate(
        words, (x, y), xytext=offset, textcoords="offset points", color=colour, weight="bold", ha=ha
    )
