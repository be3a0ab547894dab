"""What all figures share: type, axes, and words beside what they name."""

import io
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import open_file_cm
from matplotlib.figure import Figure

from course_utils.figures.colours import COLOURS
from course_utils.figures.png import in_few_colours
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


class DescribedFigure(Figure):
    """A figure that also says in words what it shows: beside its picture, and inside, where screen.js finds them."""

    @property
    def words(self) -> str:
        """Its message, its axes, and what is written in it."""
        (axes,) = self.axes
        said = [axes.get_title(loc="left"), f"From left to right: {axes.get_xlabel()}"]
        said += [f"Upwards: {axes.get_ylabel()}"]
        labels = "; ".join(" ".join(text.get_text().split()) for text in axes.texts)
        return ". ".join([*said, *([f"Written in it: {labels}"] if labels else [])]) + "."

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        return {"text/plain": self.words}, {"image/png": {"alt": self.words}}


class _Canvas(FigureCanvasAgg):
    """What IPython has a figure's PNG from."""

    def print_png(
        self,
        filename_or_obj: object,
        *,
        metadata: dict[str, str] | None = None,
        **_: object,  # of the picture's size and colours, which are ours
    ) -> None:
        full = io.BytesIO()
        super().print_png(full)
        told = {"Description": self.figure.words, **(metadata or {})}
        with open_file_cm(filename_or_obj, "wb") as file:
            file.write(in_few_colours(full.getvalue(), told))


@contextmanager
def axes_with(title: str, xlabel: str, ylabel: str, height: Number = 4.8) -> Iterator[Axes]:
    """Axes in the course's style, on a figure that is closed when the drawing is done: it shows once, when returned."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(9.5, height), layout="constrained", FigureClass=DescribedFigure)
        try:
            axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
            yield axes
        finally:
            plt.close(figure)  # which takes its canvas, too
            _Canvas(figure)


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
