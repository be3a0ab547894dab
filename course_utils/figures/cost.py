"""What a model costs: bytes that are kept, FLOPs that are spent."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from course_utils.figures.style import COLOURS, axes_with, label
from course_utils.quantities import Number


def gradient_chain(
    activations: Mapping[str, tuple[int, int]],
    weights: Mapping[str, tuple[int, int]],
    missing: Collection[str] = (),
) -> Figure:
    """A chain of layers, each matrix above its gradient. What a product makes is coloured, what is `missing` is dashed.

    Dashed arrows lead from what is read again on the way back to the gradient that is made of it.
    """
    back = 2 * len(weights) - len(missing)
    title = f"Each coloured box is a product: {len(weights)} on the way there, {back} on the way back"
    xlabel, ylabel = "from the data to the loss", "gradients below, numbers above"
    with axes_with(title, xlabel, ylabel, height=4.6) as axes:
        end = 2 * len(weights)  # activations stand at even places, weights between them
        for place, (name, shape) in zip(range(0, end + 1, 2), activations.items(), strict=True):
            _matrix(axes, (place, 2), name, shape, "forward" if place else None)
            made = "input_gradient" if place < end else None  # the last one is the loss's own
            _matrix(axes, (place, 1), f"{name}.grad", shape, made, dashed=f"{name}.grad" in missing)
        for place, (name, shape) in zip(range(1, end, 2), weights.items(), strict=True):
            _matrix(axes, (place, 3), name, shape)
            _matrix(axes, (place, 0), f"{name}.grad", shape, "weight_gradient", f"{name}.grad" in missing)
            _arrow(axes, (place - 1, 2), (place + 1, 2))
            _arrow(axes, (place, 3), (place, 2), 24, 1)
            _arrow(axes, (place + 1, 1), (place - 1, 1))
            _arrow(axes, (place, 1), (place, 0), 1, 24)
            _arrow(axes, (place - 1, 2), (place, 0), 30, 30, again=True)
            before = list(activations)[place // 2]
            if f"{before}.grad" not in missing:
                _arrow(axes, (place, 3), (place - 1, 1), 30, 30, again=True)
        _arrow(axes, (end, 2), (end + 1.2, 1.5), 44, 22)
        _arrow(axes, (end + 1.2, 1.5), (end, 1), 22, 44)
        _box(axes, (end + 1.2, 1.5), "loss")
        axes.set(xlim=(-0.6, end + 1.7), ylim=(-0.45, 3.45), xticks=[], yticks=[])
    return axes.figure


def _matrix(
    axes: Axes,
    place: tuple[Number, Number],
    name: str,
    shape: tuple[int, int],
    made: str | None = None,
    dashed: bool = False,
) -> None:
    """A matrix as a box with its name and shape, in the colour of the product that makes it."""
    rows, columns = shape
    _box(axes, place, f"{name}\n{rows:,} × {columns:,}", made, dashed)


def _box(
    axes: Axes, place: tuple[Number, Number], words: str, made: str | None = None, dashed: bool = False
) -> None:
    fill = "white" if dashed or not made else COLOURS[made]
    look = {"facecolor": fill, "edgecolor": "#1a1a1a", "linestyle": "--" if dashed else "-"}
    axes.text(*place, words, ha="center", va="center", bbox={"boxstyle": "round,pad=0.4", **look}, zorder=3)


def _arrow(
    axes: Axes,
    begin: tuple[Number, Number],
    tip: tuple[Number, Number],
    after: int = 44,
    before: int = 44,
    again: bool = False,
) -> None:
    """An arrow between two places. It starts `after` points behind the first, and ends `before` points in front of the second."""
    look = {"arrowstyle": "-|>", "mutation_scale": 14, "color": "#1a1a1a", "zorder": 1}
    look |= {"linewidth": 1, "linestyle": "--"} if again else {"linewidth": 1.5, "linestyle": "-"}
    axes.add_patch(FancyArrowPatch(begin, tip, shrinkA=after, shrinkB=before, **look))


# How sure a number is: told apart without colours, from a pattern and an edge that fade with what is known.
CERTAINTY = {
    "exact": {"facecolor": "#1a1a1a"},
    "recorded": {"facecolor": COLOURS["limit"]},
    "calculated": {"facecolor": "white", "hatch": "////"},
    "assumed": {"facecolor": "white", "hatch": ".."},
    "unknown": {"facecolor": "white", "linestyle": "--"},
}


def waterfall(
    least: Mapping[str, Number],
    most: Mapping[str, Number],
    certainty: Sequence[str],
    reported: Number,
    guesses: object,
) -> Figure:
    """Days of a run by part, each bar from where the last one ends; how sure it is; and what is unexplained.

    A bar has the longest estimate of `most`; beside it stands the range from the one of `least`.
    """
    parts, shortest = ({**one, "unexplained": reported - sum(one.values())} for one in (most, least))
    sure, ink = [*certainty, "unknown"], "#1a1a1a"
    unknown = [
        sum(days for days, how in zip(one.values(), sure, strict=True) if how == "unknown")
        for one in (parts, shortest)
    ]
    title = f"{_range(*unknown)} of {reported:.0f} days have no explanation"
    with axes_with(title, "days", "the parts, from top to bottom", height=5.6) as axes:
        done = 0
        for row, (part, days) in enumerate(parts.items()):
            axes.barh(row, days, left=done, height=0.7, edgecolor=ink, zorder=2, **CERTAINTY[sure[row]])
            words = f"{_range(shortest[part], days)} days, {sure[row]}"
            late = done > reported / 2
            offset, ha = ((-8, -5), "right") if late else ((8, -5), "left")
            label(axes, words, done if late else done + days, row, ink, offset, ha)
            guess = guesses.get(part) if isinstance(guesses, Mapping) else None
            if isinstance(guess, int | float):
                axes.plot(done + guess, row + 0.47, "^", color=ink, markersize=9)
            done += days
        if len(axes.lines):
            label(axes, "▲ your guesses", 0, len(parts) - 1, ink, (4, -5))
        axes.axvline(reported, color=ink, linestyle=":", zorder=1)
        label(axes, f"reported: {reported:.0f}", reported, -0.75, ink, (-6, -5), ha="right")
        axes.set(xlim=(0, 1.04 * reported), ylim=(len(parts) - 0.4, -1.2))
        axes.set_yticks(range(len(parts)), parts)
        axes.grid(visible=False, axis="y")
    return axes.figure


def _range(one: Number, other: Number) -> str:
    """Both in whole numbers, the smaller first, or one of them if they are the same."""
    ends = [f"{n:.0f}".replace("-", "−") for n in sorted((one, other))]
    return " to ".join(dict.fromkeys(ends))


def product_boxes(sizes: Mapping[str, tuple[int, int, int]], title: str) -> Figure:
    """Each product (B, D) @ (D, K) as a box of B × D × K cubes, whose faces are its two operands and its result."""
    with axes_with(title, "K to the right, D into the depth", "B, downwards") as axes:
        left = 0.0
        for name, (b, d, k) in sizes.items():
            for corners, word, colour in _faces(b, d, k, left):
                for square in corners:
                    axes.fill(*zip(*square, strict=True), facecolor=colour, edgecolor=COLOURS["limit"], lw=1)
                xs, ys = zip(*(corner for square in corners for corner in square), strict=True)
                behind = {"facecolor": colour, "edgecolor": "none", "pad": 2}
                place = {"ha": "center", "va": "center", "weight": "bold", "fontsize": 17, "bbox": behind}
                axes.text((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, word, **place)
            size = f"{name}{b} × {d} times {d} × {k}"
            axes.text(left + k / 2, -b - 0.35, size, ha="center", va="top", weight="bold")
            left += k + _SLANT[0] * d + 2.5
        axes.set(aspect="equal", anchor="W", xticks=[], yticks=[])
        axes.set_ylim(-1.5 - max(b for b, *_ in sizes.values()), None)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
    return axes.figure


_SLANT = (0.55, 0.35)  # one step into the depth, to the right and upwards
Corner = tuple[Number, Number]


def _faces(b: int, d: int, k: int, left: Number) -> Iterator[tuple[list[list[Corner]], str, str]]:
    """The three visible faces of a box: the squares, the name and the colour of each."""

    def corner(row: int, depth: int, column: int) -> Corner:
        return left + column + _SLANT[0] * depth, _SLANT[1] * depth - row

    def square(*corners: tuple[int, int, int]) -> list[Corner]:
        return [corner(*one) for one in corners]

    ring = ((0, 0), (0, 1), (1, 1), (1, 0))
    front = [square(*((i + p, 0, j + q) for p, q in ring)) for i in range(b) for j in range(k)]
    top = [square(*((0, i + p, j + q) for p, q in ring)) for i in range(d) for j in range(k)]
    side = [square(*((i + p, j + q, k) for p, q in ring)) for i in range(b) for j in range(d)]
    yield front, "y", "white"
    yield top, "w", COLOURS["parameters"]
    yield side, "x", COLOURS["activations"]
