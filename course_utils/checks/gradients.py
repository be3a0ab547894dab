"""The exercises of notebook 05."""

from collections.abc import Collection, Sequence
from itertools import pairwise

import torch
from torch.nn import functional

from course_utils import predict
from course_utils.checks.judging import Answers, function, value


@value(wanted="the FLOPs of the backward pass through all three layers")
def backward_flops() -> Answers:
    """Backward FLOPs of widths 512, 2048, 2048, 10 on 64 rows of plain data."""
    forward, backward = predict.mlp_flops(64, (512, 2048, 2048, 10)).values()
    yield backward, "Two products in each layer, without the first layer's gradient of the data."
    yield 2 * forward, "That is two products in every layer. The first one reads plain data."
    yield forward, "That is the forward pass."
    yield forward + backward, "That is forward and backward together."
    yield backward // 2, "Each multiplication comes with an addition: 2 FLOPs."
    yield backward // 64, "That is for one row; there are 64."
    without_last = 2 * forward - 2 * 64 * 2048 * 10
    yield without_last, "It is the first layer that skips a product, not the last."


def _layers_of_rows() -> list[tuple[torch.Tensor, ...]]:
    draw = torch.Generator().manual_seed(5)
    return [
        tuple(torch.randn(shape, generator=draw) for shape in ((b, d), (d, h), (h, k)))
        for b, d, h, k in ((1, 2, 3, 2), (4, 3, 5, 2), (7, 6, 4, 1))
    ]


@function(_layers_of_rows, tolerance=1e-4)
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


@function([(8, [4, 6, 5, 3, 7], frozen) for frozen in ((), (0,), (0, 1), (2,), (1, 3), (0, 1, 2, 3))])
def frozen_flops(batch: int, widths: Sequence[int], frozen: Collection[int]) -> Answers:
    """FLOPs of one training step with some layers frozen, anywhere."""
    right = _step_flops(batch, widths, frozen)
    yield right, "Six cases, with frozen layers in front, in the middle, at the end, and everywhere."
    layers = [2 * batch * d * k for d, k in pairwise(widths)]
    trained = sum(flops for layer, flops in enumerate(layers) if layer not in frozen)
    no_passing = sum(layers) + 2 * trained
    first_trained = "and the first trained layer needs none for its input"
    yield (
        no_passing,
        f"A frozen layer still passes a gradient on to a trained one before it; {first_trained}.",
    )
    all_inputs = 2 * sum(layers) + trained - layers[0]
    yield all_inputs, "Nobody needs an input's gradient if nothing before it is trained."
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
    """Layer after layer: forward, the weight's gradient if it is trained, the input's if something before it is."""
    total, needed = 0, False
    for layer, (d, k) in enumerate(pairwise(widths)):
        trained = layer not in frozen
        total += (1 + trained + needed) * 2 * batch * d * k
        needed = needed or trained
    return total


NETWORKS = [(32, [64, 256, 64]), (16, [8, 4, 4, 2]), (1, [5, 3])]


@function([(*network, nonlinearity) for network in NETWORKS for nonlinearity in ("relu", "gelu")])
def kept_bytes(batch: int, widths: Sequence[int], nonlinearity: str) -> Answers:
    """Bytes that autograd keeps of a deep network in fp32, by its nonlinearity."""
    right = predict.mlp_activation_bytes(batch, widths, nonlinearity=nonlinearity).total
    yield right, "Six networks, as the storages that autograd really keeps."
    inputs, hidden = 4 * batch * sum(widths[:-1]), 4 * batch * sum(widths[1:-1])
    yield inputs, "GELU keeps its own input as well; ReLU shares its result with the next layer."
    yield inputs + hidden, "ReLU keeps its result, which is the next layer's input: once for both."
    yield right + 4 * batch * widths[-1], "The last result is not needed for any gradient here."
    yield right // 4, "That is the number of numbers; fp32 takes 4 bytes each."
    yield right // batch, "That is for one row; there are `batch` of them."
    weights = 4 * sum(d * k for d, k in pairwise(widths))
    yield right + weights, "The parameters are there anyway; autograd keeps no copy of them."


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
