"""What a parabola lets us predict of SGD and of momentum."""

import math

from course_utils.quantities import Number


def largest_lr(curvature: Number, momentum: Number = 0.0) -> Number:
    """2(1 + μ) / curvature: with a larger learning rate the error grows.

    >>> largest_lr(100), largest_lr(100, momentum=0.9)
    (0.02, 0.038)
    """
    return 2 * (1 + momentum) / curvature if curvature > 0 else math.inf
