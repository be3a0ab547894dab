"""The figure of notebook 5."""

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, axes_with


def gradient_chain(
    activations: Mapping[str, tuple[int, int]],
    weights: Mapping[str, tuple[int, int]],
    missing: Collection[str] = (),
) -> Figure:
    """A chain of layers, each matrix above its gradient. What a product makes is coloured, what is `missing` is dashed.

    Dashed arrows lead from what is read again on the way back to the gradient that is made of it.
    """
    back = 2 * len(weights) - len(missing)
    title = (
        f"Each coloured box is a product: {len(weights)} on the way there, {back} on the way back"
    )
    xlabel, ylabel = "from the data to the loss", "gradients below, numbers above"
    with axes_with(title, xlabel, ylabel, height=4.6) as axes:
        end = 2 * len(weights)  # activations stand at even places, weights between them
        for place, (name, shape) in zip(range(0, end + 1, 2), activations.items(), strict=True):
            _matrix(axes, (place, 2), name, shape, "forward" if place else None)
            made = "input_gradient" if place < end else None  # the last one is the loss's own
            _matrix(axes, (place, 1), f"{name}.grad", shape, made, dashed=f"{name}.grad" in missing)
        for place, (name, shape) in zip(range(1, end, 2), weights.items(), strict=True):
            _matrix(axes, (place, 3), name, shape)
            _matrix(
                axes,
                (place, 0),
                f"{name}.grad",
                shape,
                "weight_gradient",
                f"{name}.grad" in missing,
            )
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
    axes: Axes,
    place: tuple[Number, Number],
    words: str,
    made: str | None = None,
    dashed: bool = False,
) -> None:
    fill = "white" if dashed or not made else COLOURS[made]
    look = {"facecolor": fill, "edgecolor": "#1a1a1a", "linestyle": "--" if dashed else "-"}
    axes.text(
        *place,
        words,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.4", **look},
        zorder=3,
    )


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
