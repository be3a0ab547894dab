"""What a parabola lets us predict of SGD and of momentum. Everywhere, a is the learning rate times the curvature."""

import math

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
