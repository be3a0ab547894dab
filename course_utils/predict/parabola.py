"""What a parabola lets us predict of SGD and of momentum. Everywhere, a is the learning rate times the curvature."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from course_utils.quantities import Number

Row = tuple[Number, Number]


def largest_lr(curvature: Number, momentum: Number = 0.0) -> Number:
    """2(1 + μ) / curvature: with a larger learning rate the error grows.

    >>> largest_lr(100), largest_lr(100, momentum=0.9)
    (0.02, 0.038)
    """
    return 2 * (1 + momentum) / curvature if curvature > 0 else math.inf


def convergence_rate(a: Number, momentum: Number = 0.0) -> Number:
    """The error's factor per step in the long run: |1 - a|; with momentum the larger root of r² = (1 + μ - a)·r - μ.

    >>> convergence_rate(0.1), round(convergence_rate(0.1, momentum=0.81), 3)
    (0.9, 0.9)
    """
    half = (1 + momentum - a) / 2
    inside = half * half - momentum
    return abs(half) + math.sqrt(inside) if inside > 0 else math.sqrt(momentum)


def error_factor(steps: int, a: Number, momentum: Number = 0.0) -> Number:
    """error after t steps ÷ error at the start: (1 - a)^t, and with momentum the t-th power of a matrix.

    Momentum makes error(t+1) = (1 + μ - a)·error(t) - μ·error(t-1), which is one product with a matrix.

    >>> error_factor(2, 0.5), error_factor(2, 0.5, momentum=0.5)
    (0.25, 0.0)
    """
    power, factor = ((1.0, 0.0), (0.0, 1.0)), ((1.0 + momentum - a, -momentum), (1.0, 0.0))
    while steps:
        if steps & 1:
            power = _product(power, factor)
        factor, steps = _product(factor, factor), steps >> 1
    found = power[0][0] + power[0][1]
    return found if found == found else math.inf  # beyond all floats, on either side of 0


def parabola_loss(
    steps: int,
    lr: Number,
    curvatures: Sequence[Number],
    start: Sequence[Number],
    *,
    momentum: Number = 0.0,
    weight_decay: Number = 0.0,
) -> Number:
    """½·λ·error² after t steps, summed over directions; weight decay adds to the curvature that pulls.

    >>> parabola_loss(1, lr=0.5, curvatures=(1, 2), start=(2, 1))
    0.5
    """
    errors = [
        error_factor(steps, lr * (curvature + weight_decay), momentum) * error
        for curvature, error in zip(curvatures, start, strict=True)
    ]
    return sum(0.5 * c * e * e for c, e in zip(curvatures, errors, strict=True) if c)


def steps_to_grow(times: Number, a: Number, momentum: Number = 0.0, *, at_most: int = 3000) -> int | None:
    """The first step after which the error is more than so many times the first, where a hill pushes it away: a < 0.

    >>> steps_to_grow(500, a=-0.05), steps_to_grow(500, a=0.05)
    (128, None)
    """
    if a >= 0:
        return None
    found = bisect_right(range(at_most), times, key=lambda step: error_factor(step, a, momentum))
    return found if found < at_most else None


def noise_floor(
    lr: Number,
    curvatures: Iterable[Number],
    sigma: Number,
    *,
    momentum: Number = 0.0,
    weight_decay: Number = 0.0,
) -> Number:
    """Σ lr·σ²·(1+μ) / (2(1-μ)(2(1+μ) - lr·λ)), over directions: the loss at which noise holds a descent.

    With weight decay d, λ + d stands for λ, and the loss is λ/(λ+d) of that.

    >>> noise_floor(0.5, [2], sigma=1)
    0.25
    """
    floor = 0.0
    for curvature in curvatures:
        pulling = curvature + weight_decay
        room = 2 * (1 + momentum) - lr * pulling
        if room <= 0:
            return math.inf
        if curvature > 0:
            held = lr * sigma * sigma * (1 + momentum) / (2 * (1 - momentum) * room)
            floor += held * curvature / pulling
    return floor


def _product(p: tuple[Row, Row], q: tuple[Row, Row]) -> tuple[Row, Row]:
    (a, b), (c, d) = p
    (e, f), (g, h) = q
    return (a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h)
