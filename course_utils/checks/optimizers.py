"""The exercises of notebook 06."""

import math
from collections.abc import Callable

import torch

from course_utils import predict
from course_utils.checks.verdict import Verdict, judge_function, judge_value
from course_utils.quantities import Number


def state_bytes(answer: object) -> Verdict:
    """Bytes that 64 H100s hold each for a 70-billion-parameter model, everything sharded, with a master copy."""
    parameters, machines = 70_000_000_000, 64
    whole = predict.training_bytes(parameters, "bf16+master adamw").total
    expected = predict.training_bytes(parameters, "bf16+master adamw", machines=machines).total
    return judge_value(
        answer,
        expected,
        wanted="the bytes that each of the 64 machines holds",
        tempting={
            whole: "That is all of it. Sharded, each of the 64 holds an equal part.",
            expected * 12 / 16: "Parameters and gradients take 2 bytes each in bf16, too.",
            expected * 14 / 16: "That leaves 2 bytes out: parameters and gradients both count.",
            expected * 8 / 16: "That is without the fp32 master copy and with averages in bf16.",
            expected * 20 / 16: "Parameters and gradients are bf16 here, 2 bytes each.",
            expected / 1e9: "That is in GB. In bytes, please.",
        },
        tolerance=1e-6,
        because="(2 + 2 + 4 + 4 + 4) × 70e9 / 64: 17.5 GB on each.",
    )


def initial_std(answer: object) -> Verdict:
    """The standard deviation that keeps E[x²] through layers which zero a share of their outputs."""

    def oracle(inputs: int, kept_share: Number) -> Number:
        return math.sqrt(1 / (inputs * kept_share))

    def without_share(inputs: int, kept_share: Number) -> Number:
        return math.sqrt(1 / inputs)

    def variance(inputs: int, kept_share: Number) -> Number:
        return 1 / (inputs * kept_share)

    def other_way(inputs: int, kept_share: Number) -> Number:
        return math.sqrt(kept_share / inputs)

    def always_half(inputs: int, kept_share: Number) -> Number:
        return math.sqrt(2 / inputs)

    return judge_function(
        answer,
        oracle,
        [(256, 1.0), (256, 0.5), (1024, 0.5), (100, 0.1), (4096, 0.9)],
        tolerance=1e-6,
        tempting={
            without_share: "That keeps the scale where nothing is zeroed. What is lost has to be made up for.",
            variance: "That is the variance; its root is asked for.",
            other_way: "What is zeroed is lost: the rest has to be larger, not smaller.",
            always_half: "That is for a share of one half, as with ReLU.",
        },
        because="Five cases. With a share of 1 it is LeCun's, with one half Kaiming's.",
    )


def last_token(answer: object) -> Verdict:
    """How many places a window with its targets may begin at, and the batch at one of them."""

    def oracle(tokens: list[int], sequence: int) -> list[tuple[list[int], list[int]]]:
        starts = range(len(tokens) - sequence)
        return [(tokens[s : s + sequence], tokens[s + 1 : s + sequence + 1]) for s in starts]

    def one_too_few(tokens: list[int], sequence: int) -> list[tuple[list[int], list[int]]]:
        return oracle(tokens, sequence)[:-1]

    def same_place(tokens: list[int], sequence: int) -> list[tuple[list[int], list[int]]]:
        return [(window, window) for window, _ in oracle(tokens, sequence)]

    def short_at_the_end(tokens: list[int], sequence: int) -> list[tuple[list[int], list[int]]]:
        starts = range(len(tokens) - sequence + 1)
        return [(tokens[s : s + sequence], tokens[s + 1 : s + sequence + 1]) for s in starts]

    def next_token_alone(tokens: list[int], sequence: int) -> list[tuple[list[int], int]]:
        return [(window, targets[-1]) for window, targets in oracle(tokens, sequence)]

    def apart(tokens: list[int], sequence: int) -> list[tuple[list[int], list[int]]]:
        return oracle(tokens, sequence)[::sequence]

    return judge_function(
        answer,
        oracle,
        [([3, 1, 4, 1, 5, 9], 2), ([3, 1, 4, 1, 5, 9], 5), ([7, 8], 1), (list(range(9)), 4)],
        tempting={
            one_too_few: "One is missing: the last window's targets end with the very last token.",
            same_place: "The targets are one token later.",
            short_at_the_end: "The last of those has a target too few.",
            next_token_alone: "A target for each token of the window: as many as the window has.",
            apart: "Windows may overlap: one begins at each token that leaves room.",
        },
        because="Four files of tokens, the shortest possible among them.",
    )


Update = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def adamw_step(answer: object) -> Verdict:
    """(parameter, average, average of squares) after one step of AdamW."""

    def step(
        p: torch.Tensor,
        g: torch.Tensor,
        m: torch.Tensor,
        v: torch.Tensor,
        t: int,
        lr: Number,
        decay: Number,
        *,
        correct: bool = True,
        inside: bool = False,
        coupled: bool = False,
        summed: bool = False,
        exchanged: bool = False,
        rootless: bool = False,
        uphill: bool = False,
    ) -> Update:
        b1, b2, eps = (0.999, 0.9, 1e-8) if exchanged else (0.9, 0.999, 1e-8)
        g = g + decay * p if coupled else g
        m = b1 * m + (1 if summed else 1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        first, second = (m / (1 - b1**t), v / (1 - b2**t)) if correct else (m, v)
        brake = (second + eps).sqrt() if inside else (second if rootless else second.sqrt()) + eps
        kept = p if coupled else p * (1 - lr * decay)
        return kept - (-lr if uphill else lr) * first / brake, m, v

    def corrected(
        p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor, t: int, lr: Number, decay: Number
    ) -> Update:
        p, m, v = step(p, g, m, v, t, lr, decay)
        return p, m / (1 - 0.9**t), v / (1 - 0.999**t)

    def other_order(
        p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor, t: int, lr: Number, decay: Number
    ) -> Update:
        p, m, v = step(p, g, m, v, t, lr, decay)
        return p, v, m

    def with_mistake(**mistake: bool) -> Callable[..., Update]:
        return lambda *case: step(*case, **mistake)

    draw = torch.Generator().manual_seed(6)

    def numbers(scale: Number = 1.0) -> torch.Tensor:
        return scale * torch.randn(4, generator=draw, dtype=torch.float64)

    zero = torch.zeros(4, dtype=torch.float64)
    cases = [
        (numbers(), numbers(), zero, zero, 1, 0.1, 0.0),
        (numbers(), numbers(), numbers(), numbers() ** 2, 7, 0.1, 0.0),
        (numbers(), numbers(1e-7), zero, zero, 1, 0.1, 0.0),
        (numbers(), numbers(), numbers(), numbers() ** 2, 3, 0.1, 0.5),
        (numbers(), zero, zero, zero, 1, 0.1, 0.5),
    ]
    return judge_function(
        answer,
        step,
        cases,
        tolerance=1e-9,
        tempting={
            with_mistake(
                correct=False
            ): "Averages that begin at 0 are too small at first: divide by 1 - beta^t.",
            with_mistake(inside=True): "Epsilon stands outside the root.",
            with_mistake(
                coupled=True
            ): "AdamW takes the decay off the parameter itself; added to the gradient, it is Adam with L2.",
            lambda p, g, m, v, t, lr, decay: step(
                p, g, m, v, t + 1, lr, decay
            ): "t counts from 1: the first step divides by 1 - beta.",
            with_mistake(
                summed=True
            ): "The new gradient has the weight 1 - beta, so that the average is one.",
            with_mistake(exchanged=True): "0.9 is for the average, 0.999 for the average of squares.",
            with_mistake(
                rootless=True
            ): "Divide by the root of the average of squares, not by the average itself.",
            with_mistake(uphill=True): "That goes up the slope: the step is taken off.",
            corrected: "Give back the averages as they are kept; the corrected ones serve this step alone.",
            other_order: "The order is (p, m, v).",
            lambda p, g, m, v, t, lr, decay: step(
                p, g, m, v, t, lr, decay / lr
            ): "The decay is multiplied by lr, as in p × (1 - lr × decay).",
            lambda p, g, m, v, t, lr, decay: step(
                p, g, m, v, t, lr, 0.0
            ): "The decay is missing: p shrinks by lr × decay.",
        },
        because="Five steps: a first and a later one, a tiny gradient, with decay, and with decay alone.",
    )


def clipped(answer: object) -> Verdict:
    """Gradients scaled together so that their norm is at most max_norm."""

    def oracle(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        norm = math.sqrt(sum(x * x for gradient in gradients for x in gradient))
        scale = min(1.0, max_norm / norm) if norm else 1.0
        return [[scale * x for x in gradient] for gradient in gradients]

    def each_alone(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        return [oracle([gradient], max_norm)[0] for gradient in gradients]

    def by_value(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        return [[max(-max_norm, min(max_norm, x)) for x in gradient] for gradient in gradients]

    def without_zero(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        norm = math.sqrt(sum(x * x for gradient in gradients for x in gradient))
        return [[min(1.0, max_norm / norm) * x for x in gradient] for gradient in gradients]

    def by_sum(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        norm = sum(abs(x) for gradient in gradients for x in gradient)
        return [[min(1.0, max_norm / norm) * x for x in gradient] for gradient in gradients]

    def squared(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        norm = sum(x * x for gradient in gradients for x in gradient)
        return [[min(1.0, max_norm / norm) * x for x in gradient] for gradient in gradients]

    def to_one(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        return oracle(gradients, 1.0)

    def always(gradients: list[list[Number]], max_norm: Number) -> list[list[Number]]:
        norm = math.sqrt(sum(x * x for gradient in gradients for x in gradient))
        return [[max_norm / norm * x for x in gradient] for gradient in gradients]

    return judge_function(
        answer,
        oracle,
        [
            ([[3.0, 4.0]], 1.0),
            ([[3.0], [0.0, 4.0]], 1.0),
            ([[30.0], [40.0], [0.0]], 10.0),
            ([[0.3], [0.4]], 1.0),
            ([[0.0, 0.0]], 1.0),
        ],
        tolerance=1e-5,
        tempting={
            each_alone: "One norm for all gradients together, so that their direction stays.",
            by_value: "That clips each number, and turns the direction.",
            without_zero: "Gradients that are all 0 have a norm of 0: leave them as they are.",
            by_sum: "The norm is the root of the sum of squares, not the sum of sizes.",
            to_one: "max_norm is not always 1.",
            squared: "That is the norm squared: take the root.",
            always: "Gradients with a smaller norm stay as they are.",
        },
        because="One tensor, two, three, another limit, a norm below the limit, and gradients that are all 0.",
    )
