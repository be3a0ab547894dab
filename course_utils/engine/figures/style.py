"""What all figures share: type, axes, and words beside what they name."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import open_file_cm
from matplotlib.figure import Figure

from course_utils.core.colours import COLOURS
from course_utils.core.say import Number
from course_utils.engine.figures.png import in_few_colours

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

MARGIN_INCHES = 0.1


class DescribedFigure(Figure):
    """A figure that also says in words what it shows.

    The words stand beside its PNG, and inside the PNG, where screen.js finds them.
    """

    @property
    def words(self) -> str:
        """The figure in words: its message, its axes, and what is written in it."""
        (axes,) = self.axes
        labels = [" ".join(text.get_text().split()) for text in axes.texts]
        title_and_axes = (
            f"{axes.get_title(loc='left')}. From left to right: {axes.get_xlabel()}. "
            f"Upwards: {axes.get_ylabel()}."
        )
        written = "; ".join(labels)
        return f"{title_and_axes} Written in it: {written}." if written else title_and_axes

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        data = {"text/plain": self.words}
        metadata = {"image/png": {"alt": self.words}}
        return data, metadata


class _Canvas(FigureCanvasAgg):
    """The canvas that draws a figure's PNG for IPython: in few colours, with the figure's words."""

    def print_png(self, filename_or_obj: object, **_: object) -> None:
        full = io.BytesIO()
        super().print_png(full)
        small = in_few_colours(full.getvalue(), {"Description": self.figure.words})
        # matplotlib may pass a path or an open file; open_file_cm takes either.
        with open_file_cm(filename_or_obj, "wb") as file:
            file.write(small)


@contextmanager
def axes_with(
    title: str,
    xlabel: str,
    ylabel: str,
    *,
    height: Number = 4.8,
    log_x: int = 0,
    log_y: int = 0,
) -> Iterator[Axes]:
    """A context manager for axes in the course's style.

    `log_x` and `log_y` are the bases of logarithmic axes; with 0 an axis is linear. The figure is
    closed when the drawing is done, so that a cell shows it once, as its result.
    """
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            figsize=(9.5, height), layout="constrained", FigureClass=DescribedFigure
        )
        figure.get_layout_engine().set(w_pad=MARGIN_INCHES, h_pad=MARGIN_INCHES)
        try:
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            if log_x:
                axes.set_xscale("log", base=log_x)
            if log_y:
                axes.set_yscale("log", base=log_y)
            yield axes
        finally:
            plt.close(figure)  # it takes the figure's canvas away, too
            _Canvas(figure)  # a new canvas makes itself the figure's


def key(axes: Axes, predicted: str, measured: str) -> None:
    """A key that says what blue and orange mean, in the lower right corner."""
    lines = [("predicted", predicted, 0.1), ("measured", measured, 0.03)]
    for colour, words, height in lines:
        axes.text(
            0.98,
            height,
            words,
            color=COLOURS[colour],
            weight="bold",
            ha="right",
            transform=axes.transAxes,
        )


def measured_dots(axes: Axes, points: Iterable[tuple[Number, Number]], size: int = 8) -> None:
    """Draw a dot at each (x, y), in the colour of what was measured."""
    points = list(points)
    xs = [x for x, _ in points]
    ys = [y for _, y in points]
    axes.plot(xs, ys, "o", color=COLOURS["measured"], markersize=size)


def label(
    axes: Axes,
    words: str,
    x: Number,
    y: Number,
    colour: str,
    offset: tuple[int, int],
    ha: str = "left",
) -> None:
    """Words beside the point (x, y) that they name, `offset` typographic points away from it."""
    axes.annotate(
        words,
        (x, y),
        xytext=offset,
        textcoords="offset points",
        color=colour,
        weight="bold",
        ha=ha,
    )
