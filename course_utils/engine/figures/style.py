"""What all figures share: the type, lines and axes of the labs, and words beside what they name.

A figure is as wide as a lab's picture, 1,000 units, and a unit is a pixel of the page (a CSS pixel)
where there is space. The sizes here are those of `draw/picture.css` and `draw/plot.py`.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import open_file_cm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from course_utils.core.colours import COLOURS
from course_utils.core.say import Number
from course_utils.engine.figures.letters import USUAL, find_chinese
from course_utils.engine.figures.png import ENOUGH, in_few_colours

WIDTH = 1000
HEIGHT = 440  # of a figure that does not say how tall it is
PNG_WIDTH_PX = 1400  # as that of a lab's picture: sharp on a projector, too
MARGIN = 10
INK = "#1a1a1a"
QUIET = COLOURS["limit"]
# For curves that run beside each other, so that no two of one figure are alike, for readers who are
# colour-blind, too; and dark enough for a curve's name on white. The first four differ the most.
CURVES = (
    "#C45000",
    "#007A5A",
    "#9A4DD0",
    "#1a1a1a",
    "#6A3D9A",
    "#7A4A1E",
    "#5f6b76",
    "#0B4F3A",
)
# A format has the same one of these in each figure that compares formats.
FORMATS = {
    "fp64": "#5f6b76",
    "fp32": "#1a1a1a",
    "tf32": "#6A3D9A",
    "bf16": "#007A5A",
    "fp16": "#C45000",
    "e5m2": "#7A4A1E",
    "e4m3": "#9A4DD0",
    "e2m1": "#0B4F3A",
}
_UNITS_PER_INCH = 100
MARGIN_INCHES = MARGIN / _UNITS_PER_INCH


def points(units: Number) -> float:
    """Return units of the figure in typographic points, of which matplotlib has 72 in an inch."""
    return 72 * units / _UNITS_PER_INCH


SMALL = points(12)  # the size of letters that are not as large as usual

_STYLE = {
    "figure.dpi": PNG_WIDTH_PX * _UNITS_PER_INCH / WIDTH,
    "figure.facecolor": "white",
    "font.family": USUAL,
    "font.size": points(14),
    "text.color": INK,
    "axes.titlesize": points(16),
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelcolor": QUIET,
    "axes.labelpad": points(6),
    "axes.spines.left": False,
    "axes.spines.bottom": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e0e0e0",
    "grid.linewidth": points(1),
    "lines.linewidth": points(2.5),
    "hatch.linewidth": points(1),
    "xaxis.labellocation": "right",
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}


class DescribedFigure(Figure):
    """A figure that also says in words what it shows.

    The words stand beside its PNG, and inside the PNG, where screen.js finds them.
    """

    colours = (
        ENOUGH  # in its PNG; a figure of few fills may set fewer, so that it takes fewer bytes
    )

    @property
    def words(self) -> str:
        """The figure in words: its message, its axes, and what is written in it."""
        (axes,) = self.axes  # a figure of the course has one pair of axes
        labels = [" ".join(text.get_text().split()) for text in axes.texts]
        title_and_axes = (
            f"{axes.get_title(loc='left')}. From left to right: {axes.get_xlabel()}. "
            f"Upwards: {axes.get_ylabel()}."
        )
        written = "; ".join(labels)
        return f"{title_and_axes} Written in it: {written}." if written else title_and_axes

    def get_tightbbox(self, *arguments: object, **options: object) -> Bbox:
        """Return the box, in inches, to which IPython cuts the figure's picture.

        IPython wants the box around all that is drawn, and adds a margin itself. Here the box is
        the whole figure but for that margin, so that all figures are equally wide, however far
        their drawings reach. Only words that run beyond the figure make the box larger.
        """
        width, height = self.get_size_inches()
        frame = [
            (MARGIN_INCHES, MARGIN_INCHES),
            (width - MARGIN_INCHES, height - MARGIN_INCHES),
        ]
        return Bbox.union([Bbox(frame), super().get_tightbbox(*arguments, **options)])

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
        """Return the words, and the options of the PNG, which IPython itself adds to the output."""
        data = {"text/plain": self.words}
        metadata = {"image/png": {"alt": self.words, "width": WIDTH}}
        return data, metadata


class _Canvas(FigureCanvasAgg):
    """The canvas that draws a figure's PNG for IPython: in few colours, with the figure's words."""

    def print_png(self, filename_or_obj: object, **_: object) -> None:
        """Write the PNG in few colours, with the figure's words inside."""
        full = io.BytesIO()
        super().print_png(full)
        small = in_few_colours(
            full.getvalue(), {"Description": self.figure.words}, self.figure.colours
        )
        # matplotlib may pass a path or an open file; open_file_cm takes either.
        with open_file_cm(filename_or_obj, "wb") as file:
            file.write(small)


@contextmanager
def axes_with(
    title: str,
    xlabel: str,
    ylabel: str,
    *,
    height: Number = HEIGHT,
    log_x: int = 0,
    log_y: int = 0,
) -> Iterator[Axes]:
    """A context manager for axes in the course's style, in a figure of that height in units.

    `log_x` and `log_y` are the bases of logarithmic axes; with 0 an axis is linear. The figure is
    closed when the drawing is done, so that a cell shows it once, as its result.
    """
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            figsize=(WIDTH / _UNITS_PER_INCH, height / _UNITS_PER_INCH),
            layout="constrained",
            FigureClass=DescribedFigure,
        )
        figure.get_layout_engine().set(w_pad=MARGIN_INCHES, h_pad=MARGIN_INCHES)
        try:
            axes.set_title(title, pad=points(28))  # with space for the name of the upward axis
            axes.set_xlabel(xlabel)
            # As in a lab: above the axis, and not beside it, with 8 units or so in between.
            above = {"rotation": "horizontal", "ha": "left", "va": "bottom"}
            axes.set_ylabel(ylabel, y=1, **above)
            axes.yaxis.set_label_coords(0, 1 + 8 / height)
            if log_x:
                axes.set_xscale("log", base=log_x)
            if log_y:
                axes.set_yscale("log", base=log_y)
            yield axes
            find_chinese(figure)
        finally:
            plt.close(figure)  # it takes the figure's canvas away, too
            _Canvas(figure)  # a new canvas makes itself the figure's, and IPython draws with it


class Curve(NamedTuple):
    """A curve's colour, and the point beside which its name is written: as a rule its end."""

    x: Number
    y: Number
    colour: str


_LINE = 18  # the height of a line of words, in units
_AROUND_PLOT = 110  # the units of a figure's height that are no plot: title, names and numbers


def name_curves(axes: Axes, curves: Mapping[str, Curve]) -> None:
    """Write each curve's name at the right of its end, in its colour; below each other if need be.

    The limits of the axes have to be set before, because the names' distances follow from them.
    """
    plot_height = _UNITS_PER_INCH * axes.figure.get_size_inches()[1] - _AROUND_PLOT
    end_heights = {}  # of the curves' ends, in units above the lower edge of the plot
    for name, curve in curves.items():
        # transScale takes the logarithm of what lies on a logarithmic axis.
        on_linear_axes = axes.transScale.transform((curve.x, curve.y))
        _, share = axes.transLimits.transform(on_linear_axes)  # of the plot's height
        end_heights[name] = share * plot_height
    name_heights = _apart(end_heights)
    # From the top down, in which order `DescribedFigure.words` lists them, too.
    for name in sorted(curves, key=lambda name: -name_heights[name]):
        curve = curves[name]
        moved_up = name_heights[name] - end_heights[name]
        # Letters stand on their baseline; 5 lower, their middle is level with the curve's end.
        offset = (points(8), points(moved_up - 5))
        label(axes, name, curve.x, curve.y, curve.colour, offset)


def _apart(heights: Mapping[str, Number]) -> dict[str, Number]:
    """Return the heights, moved until any two are a line or more apart, by as little as possible.

    `heights` has the height of each name's curve, by the name. Names that would overlap become a
    group, in the middle of where they would stand.
    """
    groups: list[list[str]] = []  # from the top down; of equals, the first is on top
    for name in sorted(heights, key=lambda name: -heights[name]):
        groups.append([name])
        # A group that has grown may overlap the one above it, too.
        while len(groups) > 1 and _overlap(heights, groups[-2], groups[-1]):
            lower = groups.pop()
            groups[-1] += lower
    moved = {}
    for group in groups:
        height = _middle(heights, group) + _LINE * (len(group) - 1) / 2  # of the uppermost name
        for name in group:
            moved[name] = height
            height -= _LINE
    return moved


def _overlap(heights: Mapping[str, Number], upper: list[str], lower: list[str]) -> bool:
    """Whether two groups of names, each around the middle of its heights, would overlap."""
    distance = _middle(heights, upper) - _middle(heights, lower)
    # A group of n names is n lines tall, and half of that is on either side of its middle.
    return distance < _LINE * (len(upper) + len(lower)) / 2


def _middle(heights: Mapping[str, Number], group: list[str]) -> Number:
    return sum(heights[name] for name in group) / len(group)


def measured_dots(axes: Axes, places: Iterable[tuple[Number, Number]], radius: Number = 5) -> None:
    """Draw a dot at each (x, y), in the colour of what was measured."""
    places = list(places)
    xs = [x for x, _ in places]
    ys = [y for _, y in places]
    # "o" draws dots without a line between them, and `mew=0` draws them without an outline.
    axes.plot(xs, ys, "o", color=COLOURS["measured"], markersize=points(2 * radius), mew=0)


def label(
    axes: Axes,
    words: str,
    x: Number,
    y: Number,
    colour: str,
    offset: tuple[Number, Number],
    ha: str = "left",
    *,
    of: Annotation | None = None,
) -> Annotation:
    """Write words beside the point (x, y) that they name, `offset` typographic points away from it.

    With `of`, which is another label, the point is one of its box: (0, 0) is the lower left corner,
    (1, 1) the upper right one. The words are then level with that label's.

    The page's white is around the letters, so that they can be read where they lie on lines.
    """
    return axes.annotate(
        words,
        (x, y),
        xycoords="data" if of is None else of,  # "data": in the units of the axes
        xytext=offset,
        textcoords="offset points",
        va="bottom" if of else "baseline",  # the lower edge of a box is below the baseline
        color=colour,
        weight="bold",
        ha=ha,
        path_effects=[withStroke(linewidth=points(4), foreground="white")],
    )
