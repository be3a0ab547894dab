"""The figure of notebook 5."""

from collections.abc import Collection, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from course_utils.core.say import Number
from course_utils.engine.figures.style import COLOURS, INK, axes_with, points

# The rows of the figure, from bottom to top.
WEIGHT_GRADIENTS = 0
INPUT_GRADIENTS = 1
ACTIVATIONS = 2
WEIGHTS = 3

Place = tuple[Number, Number]
Shape = tuple[int, int]


def gradient_chain(
    activations: Mapping[str, Shape],
    weights: Mapping[str, Shape],
    missing: Collection[str] = (),
) -> Figure:
    """Draw a chain of layers, with each matrix above its gradient.

    A matrix that a product computes is coloured. A gradient that is named in `missing` has a dashed
    edge. Dashed arrows lead from a matrix that the backward pass reads again to the gradient that
    is computed from it.
    """
    back = 2 * len(weights) - len(missing)
    title = (
        f"Each coloured box is a product: {len(weights)} on the way there, {back} on the way back"
    )
    xlabel = "from the data to the loss"
    ylabel = "gradients below, numbers above"
    end = 2 * len(weights)  # activations stand at even places, weights between them
    with axes_with(title, xlabel, ylabel, height=430) as axes:
        even_places = range(0, end + 1, 2)
        for x, (name, shape) in zip(even_places, activations.items(), strict=True):
            is_data = x == 0
            is_result = x == end  # whose gradient comes from the loss, and from no product
            made_by = None if is_data else "forward"
            gradient_made_by = None if is_result else "input_gradient"
            _matrix(axes, (x, ACTIVATIONS), name, shape, made_by)
            _gradient(axes, (x, INPUT_GRADIENTS), name, shape, gradient_made_by, missing)
        inputs = list(activations)[:-1]  # the last is the result
        odd_places = range(1, end, 2)
        for x, (name, shape), input_name in zip(odd_places, weights.items(), inputs, strict=True):
            _matrix(axes, (x, WEIGHTS), name, shape)
            _gradient(axes, (x, WEIGHT_GRADIENTS), name, shape, "weight_gradient", missing)
            _arrows_of_a_layer(axes, x, has_input_gradient=f"{input_name}.grad" not in missing)
        _loss(axes, end)
        axes.set(xlim=(-0.6, end + 1.7), ylim=(-0.45, 3.45), xticks=[], yticks=[])
    return axes.figure


def _arrows_of_a_layer(axes: Axes, x: int, *, has_input_gradient: bool) -> None:
    """Draw the arrows of the layer whose weights stand at x, forward and backward."""
    before = x - 1
    after = x + 1
    _arrow(axes, (before, ACTIVATIONS), (after, ACTIVATIONS))
    _arrow(axes, (x, WEIGHTS), (x, ACTIVATIONS), start_gap=28, end_gap=1)
    # The gradient of the layer's input has its arrow, even where nobody computes it.
    _arrow(axes, (after, INPUT_GRADIENTS), (before, INPUT_GRADIENTS))
    _arrow(axes, (x, INPUT_GRADIENTS), (x, WEIGHT_GRADIENTS), start_gap=1, end_gap=28)
    _arrow_of_reading_again(axes, (before, ACTIVATIONS), (x, WEIGHT_GRADIENTS))
    if has_input_gradient:
        _arrow_of_reading_again(axes, (x, WEIGHTS), (before, INPUT_GRADIENTS))


def _loss(axes: Axes, end: int) -> None:
    """Draw the loss, between the last activation and the gradient of this activation."""
    place = (end + 1.2, 1.5)
    _arrow(axes, (end, ACTIVATIONS), place, start_gap=51, end_gap=26)
    _arrow(axes, place, (end, INPUT_GRADIENTS), start_gap=26, end_gap=51)
    _box(axes, place, "loss")


def _gradient(
    axes: Axes,
    place: Place,
    matrix_name: str,
    shape: Shape,
    made_by: str | None,
    missing: Collection[str],
) -> None:
    """Draw the gradient of a matrix, with a dashed edge if it is `missing`."""
    name = f"{matrix_name}.grad"
    _matrix(axes, place, name, shape, made_by, dashed=name in missing)


def _matrix(
    axes: Axes,
    place: Place,
    name: str,
    shape: Shape,
    made_by: str | None = None,
    dashed: bool = False,
) -> None:
    """Draw a matrix as a box with its name and shape. `made_by` is the product that computes it."""
    rows, columns = shape
    _box(axes, place, f"{name}\n{rows:,} × {columns:,}", made_by, dashed)


def _box(
    axes: Axes, place: Place, words: str, made_by: str | None = None, dashed: bool = False
) -> None:
    """Draw a box, in the colour of the product `made_by`; white without one, or if dashed."""
    fill = "white"
    if made_by and not dashed:
        fill = COLOURS[made_by]
    box = {
        "boxstyle": "round,pad=0.4",
        "facecolor": fill,
        "edgecolor": INK,
        "linestyle": "--" if dashed else "-",
    }
    x, y = place
    axes.text(x, y, words, ha="center", va="center", bbox=box, zorder=3)


def _arrow(
    axes: Axes, begin: Place, tip: Place, *, start_gap: int = 51, end_gap: int = 51, **look: object
) -> None:
    """Draw an arrow between two places, with a gap at each end, in units."""
    look = {"linewidth": points(1.8), "linestyle": "-", **look}
    arrow = FancyArrowPatch(
        begin,
        tip,
        arrowstyle="-|>",
        mutation_scale=points(16),
        color=INK,
        zorder=1,
        shrinkA=points(start_gap),
        shrinkB=points(end_gap),
        **look,
    )
    axes.add_patch(arrow)


def _arrow_of_reading_again(axes: Axes, begin: Place, tip: Place) -> None:
    """Draw a dashed arrow from a matrix that the backward pass reads again."""
    _arrow(axes, begin, tip, start_gap=35, end_gap=35, linewidth=points(1), linestyle="--")
