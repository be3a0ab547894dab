"""The exercises of notebook 05."""

from collections.abc import Collection, Sequence
from itertools import pairwise

import torch
from torch.nn import functional

from course_utils import predict
from course_utils.checks.verdict import Verdict, judge_function, judge_value


def backward_flops(answer: object) -> Verdict:
    """Backward FLOPs of widths 512, 2048, 2048, 10 on 64 rows of plain data."""
    batch, widths = 64, (512, 2048, 2048, 10)
    expected = predict.mlp_flops(batch, widths)["backward"]
    forward = predict.mlp_flops(batch, widths)["forward"]
    return judge_value(
        answer,
        expected,
        wanted="the FLOPs of the backward pass through all three layers",
        tempting={
            2 * forward: "That is two products in every layer. The first one reads plain data.",
            forward: "That is the forward pass.",
            forward + expected: "That is forward and backward together.",
            expected // 2: "Each multiplication comes with an addition: 2 FLOPs.",
            expected // 64: "That is for one row; there are 64.",
            2 * forward - 2 * batch * 2048 * 10: "It is the first layer that skips a product, not the last.",
        },
        because="Two products in each layer, without the first layer's gradient of the data.",
    )


def two_layers_by_hand(answer: object) -> Verdict:
    """(gradient of w1, gradient of w2) of sum((relu(x w1) w2)²) / 2."""

    def parts(
        x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        a = x @ w1
        h = functional.relu(a)
        return a, h, h @ w2

    def oracle(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        w1, w2 = (w.clone().requires_grad_() for w in (w1, w2))
        loss = parts(x, w1, w2)[2].pow(2).sum() / 2
        return torch.autograd.grad(loss, (w1, w2))

    def without_relu(
        x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, h, y = parts(x, w1, w2)
        return x.T @ (y @ w2.T), h.T @ y

    def before_relu(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, _, y = parts(x, w1, w2)
        return x.T @ ((y @ w2.T) * (a > 0)), a.T @ y

    def doubled(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = oracle(x, w1, w2)
        return 2 * first, 2 * second

    def averaged(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = oracle(x, w1, w2)
        return first / len(x), second / len(x)

    def swapped(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return oracle(x, w1, w2)[::-1]

    draw = torch.Generator().manual_seed(5)
    cases = [
        tuple(torch.randn(shape, generator=draw) for shape in ((b, d), (d, h), (h, k)))
        for b, d, h, k in ((1, 2, 3, 2), (4, 3, 5, 2), (7, 6, 4, 1))
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tolerance=1e-4,
        tempting={
            without_relu: "ReLU passes a gradient on only where its input was above 0.",
            before_relu: "w2 was multiplied by what came out of the ReLU, not by what went in.",
            doubled: "The loss is half the sum of squares, so its gradient is y, without a 2.",
            averaged: "It is a sum over the rows, not a mean.",
            swapped: "The gradient of w1 comes first.",
            lambda *case: tuple(
                gradient.T for gradient in oracle(*case)
            ): "A gradient has the shape of its weight: transpose it.",
        },
        because="Three sizes, against autograd.",
    )


def frozen_flops(answer: object) -> Verdict:
    """FLOPs of one training step with some layers frozen, anywhere."""

    def oracle(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        weights = [
            torch.empty(shape, device="meta", requires_grad=layer not in frozen)
            for layer, shape in enumerate(pairwise(widths))
        ]
        total, needed = 0, False
        for weight in weights:
            products = 1 + weight.requires_grad + needed
            total += products * 2 * batch * weight.numel()
            needed = needed or weight.requires_grad
        return total

    def by_layer(batch: int, widths: Sequence[int]) -> list[int]:
        return [2 * batch * d * k for d, k in pairwise(widths)]

    def six_for_trained(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return sum(n * (1 if layer in frozen else 3) for layer, n in enumerate(by_layer(batch, widths)))

    def all_inputs(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return sum(
            n * ((2 if layer in frozen else 3) - (layer == 0))
            for layer, n in enumerate(by_layer(batch, widths))
        )

    def without_freezing(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return oracle(batch, widths, ())

    def backward_alone(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return oracle(batch, widths, frozen) - sum(by_layer(batch, widths))

    def frozen_for_free(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        trained = [0 if layer in frozen else 3 * n for layer, n in enumerate(by_layer(batch, widths))]
        return sum(trained) - (0 if 0 in frozen else by_layer(batch, widths)[0])

    def multiplications(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return oracle(batch, widths, frozen) // 2

    def one_row(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return oracle(batch, widths, frozen) // batch

    def as_if_in_front(batch: int, widths: Sequence[int], frozen: Collection[int]) -> int:
        return oracle(batch, widths, tuple(range(len(frozen))))

    cases = [
        (8, [4, 6, 5], ()),
        (8, [4, 6, 5], (0,)),
        (8, [4, 6, 5, 3, 7], (0, 1)),
        (8, [4, 6, 5, 3, 7], (2,)),
        (8, [4, 6, 5, 3, 7], (1, 3)),
        (8, [4, 6, 5, 3, 7], (0, 1, 2, 3)),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            six_for_trained: "A frozen layer still has to pass a gradient on, if something before it is trained; "
            "and the first trained layer needs none for its input.",
            all_inputs: "Nobody needs an input's gradient if nothing before it is trained.",
            without_freezing: "A frozen layer has no gradient of its weight.",
            backward_alone: "That is the backward pass alone; the forward pass belongs to a step, too.",
            frozen_for_free: "A frozen layer still runs forward, and may have to pass a gradient on.",
            multiplications: "Each multiplication comes with an addition: 2 FLOPs.",
            one_row: "That is for one row; there are `batch` of them.",
            as_if_in_front: "Which layers are frozen matters, and not only how many.",
        },
        because="Six cases, with frozen layers in front, in the middle, at the end, and everywhere.",
    )


def kept_bytes(answer: object) -> Verdict:
    """Bytes that autograd keeps of a deep network in fp32, by its nonlinearity."""

    def oracle(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return predict.mlp_activation_bytes(batch, widths, nonlinearity=nonlinearity).total

    def inputs_only(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return 4 * batch * sum(widths[:-1])

    def twice(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return 4 * batch * (sum(widths[:-1]) + sum(widths[1:-1]))

    def with_output(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return oracle(batch, widths, nonlinearity) + 4 * batch * widths[-1]

    def one_row(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return oracle(batch, widths, nonlinearity) // batch

    def with_weights(batch: int, widths: Sequence[int], nonlinearity: str) -> int:
        return oracle(batch, widths, nonlinearity) + 4 * sum(d * k for d, k in pairwise(widths))

    cases = [
        (32, [64, 256, 64], "relu"),
        (32, [64, 256, 64], "gelu"),
        (16, [8, 4, 4, 2], "gelu"),
        (16, [8, 4, 4, 2], "relu"),
        (1, [5, 3], "gelu"),
    ]
    return judge_function(
        answer,
        oracle,
        cases,
        tempting={
            inputs_only: "GELU keeps its own input as well; ReLU shares its result with the next layer.",
            twice: "ReLU keeps its result, which is the next layer's input: once for both.",
            with_output: "The last result is not needed for any gradient here.",
            lambda *case: oracle(*case) // 4: "That is the number of numbers; fp32 takes 4 bytes each.",
            one_row: "That is for one row; there are `batch` of them.",
            with_weights: "The parameters are there anyway; autograd keeps no copy of them.",
        },
        because="Five networks, as the storages that autograd really keeps.",
    )


def low_rank_flops(answer: object) -> Verdict:
    """FLOPs per token of training a low-rank pair beside a frozen square layer, inside a network."""
    width, rank = 4096, 16
    full, narrow = 2 * width**2, 2 * (2 * width * rank)
    expected = 2 * full + 3 * narrow
    return judge_value(
        answer,
        expected,
        wanted="the FLOPs for one token, forward and backward, of the frozen matrix and the narrow pair",
        tempting={
            3 * full
            + 3 * narrow: "The frozen matrix has no gradient of its own: two products of three remain.",
            full
            + 3
            * narrow: "The frozen matrix still has to pass the gradient on: what lies before it is trained too.",
            3 * narrow: "The frozen matrix takes part, too: forward, and to pass the gradient on.",
            2 * full + 2 * narrow: "The narrow matrices are trained: three products each.",
            expected // 2: "Each multiplication comes with an addition: 2 FLOPs.",
            2 * full + 3 * narrow // 2: "There are two narrow matrices, in and out.",
        },
        because="2 of 3 products for the frozen matrix, 3 of 3 for the two narrow ones: "
        f"{expected / (3 * full):.2f} of what training the matrix itself takes.",
    )
