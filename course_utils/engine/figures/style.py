"""What all figures share: type, axes, and words beside what they name."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import open_file_cm
from matplotlib.figure import Figure

from course_utils.core.say import Number
from course_utils.engine.figures.colours import COLOURS
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
    """A figure that also says in words what it shows: beside its picture, and inside, where screen.js finds them."""

    @property
    def words(self) -> str:
        """The figure in words: its message, its axes, and what is written in it."""
        (axes,) = self.axes
        labels = "; ".join(" ".join(text.get_text().split()) for text in axes.texts)
        said = f"{axes.get_title(loc='left')}. From left to right: {axes.get_xlabel()}. Upwards: {axes.get_ylabel()}."
        return f"{said} Written in it: {labels}." if labels else said

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        return {"text/plain": self.words}, {"image/png": {"alt": self.words}}


class _Canvas(FigureCanvasAgg):
    """The canvas that draws a figure's PNG for IPython: in few colours, with the figure's words."""

    def print_png(self, filename_or_obj: object, **_: object) -> None:
        """Write a PNG in few colours, with a description in words."""
        full = io.BytesIO()
        super().print_png(full)
        with open_file_cm(filename_or_obj, "wb") as file:
            file.write(in_few_colours(full.getvalue(), {"Description": self.figure.words}))


@contextmanager
def axes_with(
    title: str, xlabel: str, ylabel: str, *, height: Number = 4.8, log_x: int = 0, log_y: int = 0
) -> Iterator[Axes]:
    """Axes in the course's style, on a figure that is closed when the drawing is done: it shows once, when returned.

    `log_x` and `log_y` are the bases of logarithmic axes.
    """
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            figsize=(9.5, height), layout="constrained", FigureClass=DescribedFigure
        )
        figure.get_layout_engine().set(w_pad=MARGIN_INCHES, h_pad=MARGIN_INCHES)
        try:
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            for set_scale, base in ((axes.set_xscale, log_x), (axes.set_yscale, log_y)):
                if base:
                    set_scale("log", base=base)
            yield axes
        finally:
            plt.close(figure)  # which takes its canvas, too
            _Canvas(figure)


def key(axes: Axes, predicted: str, measured: str) -> None:
    """A key that says what blue and orange mean, in the lower right corner."""
    for words, colour, height in ((predicted, "predicted", 0.1), (measured, "measured", 0.03)):
        place = {"ha": "right", "transform": axes.transAxes}
        axes.text(0.98, height, words, color=COLOURS[colour], weight="bold", **place)


def measured_dots(axes: Axes, points: Iterable[tuple[Number, Number]], size: int = 8) -> None:
    axes.plot(*zip(*points, strict=True), "o", color=COLOURS["measured"], markersize=size)


def label(
    axes: Axes,
    words: str,
    x: Number,
    y: Number,
    colour: str,
    offset: tuple[int, int],
    ha: str = "left",
) -> None:
    """Words beside the thing they name, `offset` points away."""
    place = {"xytext": offset, "textcoords": "offset points", "ha": ha}
    axes.annotate(words, (x, y), color=colour, weight="bold", **place)
