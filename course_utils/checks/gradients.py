"""The exercises of notebook 05."""

from collections.abc import Collection, Sequence
from itertools import pairwise

import torch
from einops import einsum
from torch.nn import functional

from course_utils import predict
from course_utils.checks.accountant import layer_bytes  # noqa: F401  a term of the accountant
from course_utils.checks.in_parts import accumulated  # noqa: F401  an exercise, too
from course_utils.checks.judging import Answers, function, outcome, value

# Shapes of x, w and g; in the first case all are square, so that no shape tells a wrong index.
ONE_LAYER = [((3, 3), (3, 3), (3, 3)), ((5, 4), (4, 2), (5, 2)), ((1, 2), (2, 6), (1, 6))]
# Of x, w1 and w2.
TWO_LAYERS = [((1, 2), (2, 3), (3, 2)), ((4, 3), (3, 5), (5, 2)), ((7, 6), (6, 4), (4, 1))]


def _drawn(shapes_by_case: Sequence[Sequence[tuple[int, int]]], seed: int) -> list[tuple[torch.Tensor, ...]]:
    draw = torch.Generator().manual_seed(seed)
    return [tuple(torch.randn(shape, generator=draw) for shape in shapes) for shapes in shapes_by_case]


@function(lambda: _drawn(ONE_LAYER, seed=4), tolerance=1e-5)
def layer_backward(x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> Answers:
    """(gradient of w, gradient of x) of a layer x w, where g is the gradient of its result."""
    right = einsum(x, g, "i j, i k -> j k"), einsum(w, g, "j k, i k -> i j")
    yield right, "w.grad = xᵀ g is a sum over the rows, x.grad = g wᵀ a sum over the layer's outputs."
    of_w, of_x = right
    yield (of_x, of_w), "The gradient of w comes first."
    yield (of_w / len(x), of_x), "The gradient of w is a sum over the rows, not a mean."
    no_transpose = outcome(lambda: (x @ g, g @ w))
    yield no_transpose, "Check which index is summed: in w.grad the rows i, in x.grad the outputs k."
    first_alone = outcome(lambda: (of_w, g @ w))
    yield first_alone, "x.grad[i, j] sums w[j, k] · g[i, k] over k: it is g times w transposed."
    over_i = outcome(lambda: (of_w, einsum(w, g, "i j, i k -> i j")))
    yield over_i, "i counts the rows of the data, and w has none: x.grad[i, j] sums w[j, k] · g[i, k] over k."
    yield (einsum(g, x, "i k, i j -> k j"), of_x), "w.grad has the shape of w: transpose it."
    yield of_w, "Two gradients are wanted: of w and of x."
    yield (of_w.T, of_x.T), "Both are transposed: a gradient has the shape of what it is the gradient of."


@function([(16, [8, 4, 4, 2]), (4, [3, 5]), (64, [512, 2048, 2048, 10])])
def step_flops(batch: int, widths: Sequence[int]) -> Answers:
    """FLOPs of one training step, forward and backward, of a deep linear model on plain data."""
    right = _step_flops(batch, widths, ())
    yield right, "Three products in each layer, without the first layer's gradient of the data."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    yield 3 * sum(layers), "That is the rule of 6. The first layer reads plain data, and skips a product."
    yield right - sum(layers), "That is the backward pass; the forward pass belongs to a step, too."
    yield sum(layers), "That is the forward pass alone."
    yield 3 * sum(layers) - layers[-1], "It is the first layer that skips a product, not the last."
    yield 3 * sum(layers[1:]), "The first layer still runs forward, and its weights want their gradient."
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."


@function(lambda: _drawn(TWO_LAYERS, seed=5), tolerance=1e-4)
def two_layers_by_hand(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> Answers:
    """(gradient of w1, gradient of w2) of sum((relu(x w1) w2)²) / 2."""
    w1, w2 = (w.clone().requires_grad_() for w in (w1, w2))
    a = x @ w1
    h = functional.relu(a)
    y = h @ w2
    first, second = torch.autograd.grad(y.pow(2).sum() / 2, (w1, w2))
    a, h, y, w2 = (t.detach() for t in (a, h, y, w2))
    yield (first, second), "Three sizes, against autograd."
    unmasked = x.T @ (y @ w2.T)
    yield (unmasked, second), "ReLU passes a gradient on only where its input was above 0."
    yield (first, a.T @ y), "w2 was multiplied by what came out of the ReLU, not by what went in."
    yield (2 * first, 2 * second), "The loss is half the sum of squares, so its gradient is y, without a 2."
    yield (first / len(x), second / len(x)), "It is a sum over the rows, not a mean."
    yield (second, first), "The gradient of w1 comes first."
    yield (first.T, second.T), "A gradient has the shape of its weight: transpose it."
    yield (x.T @ (y @ w2.T * h), second), "ReLU's slope is 0 or 1, by the sign of what went in."


@function([(8, [4, 6, 5, 3, 7], frozen) for frozen in ((), (0,), (0, 1), (2,), (1, 3), (0, 1, 2, 3))])
def frozen_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> Answers:
    """FLOPs of one training step with some layers frozen, anywhere."""
    right = _step_flops(batch, widths, frozen)
    yield right, "Six cases, with frozen layers in front, in the middle, at the end, and everywhere."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    trained = sum(flops for layer, flops in enumerate(layers) if layer not in frozen)
    stopped = sum(layers) + 2 * trained
    passed_on = "a frozen layer needs it if a layer before is trained"
    yield stopped, f"The first trained layer needs no gradient for its input; {passed_on}."
    all_inputs = 2 * sum(layers) + trained - layers[0]
    yield all_inputs, "An input's gradient is needed only if a layer before is trained."
    yield _step_flops(batch, widths, ()), "A frozen layer has no gradient of its weight."
    backward = right - sum(layers)
    yield backward, "That is the backward pass alone; the forward pass belongs to a step, too."
    trained_alone = 3 * trained - (0 if 0 in frozen else layers[0])
    yield trained_alone, "A frozen layer still runs forward, and may have to pass a gradient on."
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield right // batch, "That is for one row; there are `batch` of them."
    in_front = _step_flops(batch, widths, range(len(frozen)))
    yield in_front, "Which layers are frozen matters, and not only how many."


def _step_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
    """Summed over the layers: forward, the weight's gradient if the layer is trained, the input's if an earlier one is."""
    total, needed = 0, False
    for layer, (d, k) in enumerate(pairwise(widths)):
        trained = layer not in frozen
        total += (1 + trained + needed) * 2 * batch * d * k
        needed = needed or trained
    return total


NETWORKS = [(32, [64, 256, 32]), (16, [8, 4, 4, 2]), (1, [5, 3])]


@function([(*network, nonlinearity) for network in NETWORKS for nonlinearity in ("relu", "gelu")])
def kept_bytes(batch: int, widths: Sequence[int], nonlinearity: str) -> Answers:
    """Bytes that autograd keeps of a deep network in fp32, by its nonlinearity."""
    right = predict.mlp_activation_bytes(batch, widths, nonlinearity=nonlinearity).total
    yield right, "Six networks, compared with the storages that autograd really keeps."
    inputs, hidden = 4 * batch * sum(widths[:-1]), 4 * batch * sum(widths[1:-1])
    yield inputs, "GELU keeps its own input as well; ReLU shares its result with the next layer."
    yield inputs + hidden, "ReLU keeps its result, which is the next layer's input: once for both."
    yield right + 4 * batch * widths[-1], "The last result is not needed for any gradient here."
    yield right // 4, "That is the number of numbers; fp32 takes 4 bytes each."
    yield right // batch, "That is for one row; there are `batch` of them."
    weights = 4 * sum(d * k for d, k in pairwise(widths))
    yield right + weights, "The parameters are there anyway; autograd keeps no copy of them."
    mask = batch * sum(widths[1:-1])
    yield inputs + mask, "ReLU keeps no mask: its result, the next layer's input, says where it was open."
    yield right - 4 * batch * widths[0], "The first layer's input is kept, too."


@value(wanted="the FLOPs for one token, forward and backward, of the frozen matrix and the narrow pair")
def low_rank_flops() -> Answers:
    """FLOPs per token of training a low-rank pair beside a frozen square layer, inside a network."""
    width, rank = 4096, 16
    full, narrow = 2 * width**2, 2 * (2 * width * rank)
    right = 2 * full + 3 * narrow
    share = f"{right / (3 * full):.2f} of what training the matrix itself takes"
    yield right, f"2 of 3 products for the frozen matrix, 3 of 3 for the two narrow ones: {share}."
    all_three = 3 * full + 3 * narrow
    yield all_three, "The frozen matrix has no gradient of its own: two products of three remain."
    forward_alone = full + 3 * narrow
    yield forward_alone, "The frozen matrix passes the gradient on: what lies before it is trained too."
    yield 3 * narrow, "The frozen matrix takes part, too: forward, and to pass the gradient on."
    yield 2 * full + 2 * narrow, "The narrow matrices are trained: three products each."
    yield right // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield 2 * full + 3 * narrow // 2, "There are two narrow matrices, in and out."
