"""What a parabola lets us predict of SGD and of momentum. Everywhere, a is the learning rate times the curvature."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from course_utils.quantities import Number


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


def error_factors(a: Number, momentum: Number = 0.0) -> Iterator[Number]:
    """error after t steps ÷ error at the start, from t = 0 on: factor(t+1) = (1 + μ - a)·factor(t) - μ·factor(t-1).

    >>> list(islice(error_factors(0.5), 3)), list(islice(error_factors(0.5, momentum=0.5), 3))
    ([1.0, 0.5, 0.25], [1.0, 0.5, 0.0])
    """
    before = factor = 1.0
    while True:
        yield factor if factor == factor else math.inf  # beyond all floats, on either side of 0
        before, factor = factor, (1 + momentum - a) * factor - momentum * before


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
        next(islice(error_factors(lr * (curvature + weight_decay), momentum), steps, None)) * error
        for curvature, error in zip(curvatures, start, strict=True)
    ]
    return sum(0.5 * c * e * e for c, e in zip(curvatures, errors, strict=True) if c)


def steps_to_grow(times: Number, a: Number, momentum: Number = 0.0, *, at_most: int = 3000) -> int | None:
    """The first step with an error of more than so many times the first, on a hill: a < 0.

    >>> steps_to_grow(500, a=-0.05), steps_to_grow(500, a=0.05)
    (128, None)
    """
    if a >= 0:
        return None
    factors = islice(error_factors(a, momentum), at_most)
    return next((step for step, factor in enumerate(factors) if factor > times), None)


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
        if room <= 1e-9:  # at the bound too, where rounding leaves a little
            return math.inf
        if curvature > 0:
            held = lr * sigma * sigma * (1 + momentum) / (2 * (1 - momentum) * room)
            floor += held * curvature / pulling
    return floor
