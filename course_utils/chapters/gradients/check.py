"""The exercises of notebook 05.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from einops import einsum
from torch import Tensor

from course_utils.chapters.gradients.accumulated_check import (  # noqa: F401  an exercise, too
    accumulated,
)
from course_utils.chapters.gradients.attention_check import (  # noqa: F401  exercises, too
    latent_cache_bytes,
    window_pairs,
)
from course_utils.chapters.gradients.beyond_check import (  # noqa: F401  exercises, too
    even_length,
    part_shares,
    row_norms,
    two_layers_backward,
)
from course_utils.chapters.gradients.drawn import drawn
from course_utils.chapters.gradients.frozen_check import (  # noqa: F401  exercises, too
    frozen_bytes,
    frozen_flops,
    largest_rank,
)
from course_utils.chapters.gradients.kept_check import layer_bytes  # noqa: F401  an exercise, too
from course_utils.chapters.gradients.parts import of_step_flops
from course_utils.core import predict
from course_utils.engine.judging import Answers, function, outcome

# Shapes of x, of w, and of g, the gradient of x w. In the first case all are square, so that no
# shape tells a wrong index.
ONE_LAYER = [
    ((3, 3), (3, 3), (3, 3)),
    ((5, 4), (4, 2), (5, 2)),
    ((1, 2), (2, 6), (1, 6)),
]


@function(lambda: drawn(ONE_LAYER, seed=4), tolerance=1e-5, gives=("w.grad", "x.grad"))
def layer_backward(x: Tensor, w: Tensor, g: Tensor) -> Answers:
    """The check of a reader's layer_backward(x, w, g): (gradient of w, gradient of x) of x w."""
    of_w = einsum(x, g, "i j, i k -> j k")
    of_x = einsum(w, g, "j k, i k -> i j")
    yield (
        (of_w, of_x),
        "w.grad = xᵀ g is a sum over the rows, x.grad = g wᵀ a sum over the layer's outputs.",
    )
    yield (of_x, of_w), "The gradient of w comes first."
    yield (of_w / len(x), of_x), "The gradient of w is a sum over the rows, not a mean."
    # Where the shapes do not fit, the outcome is an error, and so is the reader's.
    neither_transposed = outcome(lambda: (x @ g, g @ w))
    yield (
        neither_transposed,
        "Check which index is summed: in w.grad the rows i, in x.grad the outputs k.",
    )
    w_not_transposed = outcome(lambda: (of_w, g @ w))
    yield (
        w_not_transposed,
        "x.grad[i, j] sums w[j, k] · g[i, k] over k: it is g times w transposed.",
    )
    rows_of_w = outcome(lambda: (of_w, einsum(w, g, "i j, i k -> i j")))
    yield (
        rows_of_w,
        "i counts the rows of the data, and w has none: "
        "x.grad[i, j] sums w[j, k] · g[i, k] over k.",
    )
    of_w_transposed = einsum(g, x, "i k, i j -> k j")
    yield (of_w_transposed, of_x), "w.grad has the shape of w: transpose it."
    yield from _of_one_product(x, w, g)
    yield (None, None), "Nothing has gone backward here. Compute both gradients from x, w and g."
    yield of_w, "Two gradients are wanted: of w and of x."
    yield (
        (of_w.T, of_x.T),
        "Both are transposed: a gradient has the same shape as its matrix.",
    )


def _of_one_product(x: Tensor, w: Tensor, g: Tensor) -> Answers:
    """Yield pairs of gradients of which one is a product of the wrong matrices, or no product."""
    of_w = x.T @ g
    of_x = g @ w.T
    sums_in_w_grad = "Check which index is summed: in w.grad it is i, so x has to be transposed."
    # Where the shapes do not fit, the outcome is an error, and so is the reader's.
    yield outcome(lambda: (x @ g, of_x)), sums_in_w_grad
    yield outcome(lambda: (x @ g.T, of_x)), sums_in_w_grad
    yield outcome(lambda: (g @ x.T, of_x)), sums_in_w_grad
    order_in_x_grad = (
        "Row i of x.grad is made of row i of g. So g comes first, and then w, transposed."
    )
    yield outcome(lambda: (of_w, w @ g)), order_in_x_grad
    yield outcome(lambda: (of_w, w.T @ g)), order_in_x_grad
    yield (of_w, w @ g.T), order_in_x_grad
    for number_by_number in (
        lambda: (x * g, w * g),
        lambda: (x.T * g, g * w.T),
        lambda: (x.T * g, of_x),
        lambda: (of_w, g * w.T),
    ):
        yield (
            outcome(number_by_number),
            "With * matrices are multiplied element by element. A matrix product is written with "
            "@.",
        )


# Rows of a batch, and the widths of the layers.
STEPS = [
    (16, [9, 5, 4, 3]),  # sizes with which no mistake looks like another one
    (4, [3, 5]),
    (64, [512, 2048, 2048, 10]),
]


@function(STEPS, parts=of_step_flops, unit="FLOPs")
def step_flops(batch: int, widths: Sequence[int]) -> Answers:
    """The check of a reader's step_flops(batch, widths): forward and backward, on plain data."""
    right = predict.mlp_flops(batch, widths).total
    yield right, "Three products in each layer, without the first layer's gradient of the data."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    forward = sum(layers)
    yield (
        3 * forward,
        "That is the rule of 6. The first layer reads plain data, and skips a product.",
    )
    yield right - forward, "That is the backward pass; the forward pass belongs to a step, too."
    yield forward, "That is the forward pass alone."
    yield from _of_first_layer(batch, widths, right)
    yield 3 * forward - layers[-1], "It is the first layer that skips a product, not the last."
    yield (
        3 * sum(layers[1:]),
        "The first layer still runs forward, and its weights want their gradient.",
    )
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."
    any_number = "There may be any number of layers: go through all pairs of neighbours in widths."
    yield right - 3 * sum(layers[2:]), any_number  # two layers
    yield 2 * layers[0], any_number  # one
    of_neighbours = "A layer has D · K weights: multiply each width by the next, and add these up."
    yield 6 * batch * sum(widths), of_neighbours
    yield 6 * batch * math.prod(widths), of_neighbours


def _of_first_layer(batch: int, widths: Sequence[int], right: int) -> Answers:
    """Yield wrong counts of a step's FLOPs, by mistakes with the product that is skipped."""
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    forward = sum(layers)
    yield (
        right - layers[0],
        "Of the first layer only the gradient of its input is left out, not that of its weights.",
    )
    weights_of_first = widths[0] * widths[1]
    for skipped in (
        weights_of_first,
        2 * weights_of_first,
        batch * weights_of_first,
        widths[0],
        2 * batch * widths[0],
    ):
        yield (
            3 * forward - skipped,
            "The skipped product takes 2 · batch · D · K FLOPs, like any other.",
        )
    yield (
        3 * forward * (1 - 1 / (3 * len(layers))),
        "That is right only if all layers have the same size. It is the first that skips one.",
    )
