"""Predictions for a parabola: SGD's and momentum's largest rates, and RMSProp's loss at last."""

import math

from course_utils.core.say import Number


def largest_lr(curvature: Number, momentum: Number = 0.0) -> Number:
    """Return 2(1 + μ) / curvature: with a larger learning rate, the error grows.

    Where the curvature is not above 0, there is no such limit.

    >>> largest_lr(100), largest_lr(100, momentum=0.9)
    (0.02, 0.038)
    """
    if not curvature > 0:
        return math.inf
    return 2 * (1 + momentum) / curvature


def settled_loss(lr: Number, steepness: Number, degrees: Number = 0) -> Number:
    """Return RMSProp's loss in a ravine, once it no longer comes down.

    `steepness` is the curvature across the ravine; the curvature along the ravine is 1. If the
    ravine is not turned, the loss is (1 + steepness)·lr²/8: a gradient over its own size is 1 or
    -1, so each parameter goes to and fro over the minimum, by lr/2 on either side. If the ravine is
    turned by `degrees`, the steep direction gives both parameters' steps their signs, and the
    parameters move together.

    >>> [round(settled_loss(0.1, 100, degrees), 5) for degrees in (0, 45)]
    [0.12625, 0.25]
    """
    turn = math.radians(degrees)
    # How far a step of 1 in both parameters goes along the ravine, and across it.
    along = math.cos(turn) - math.sin(turn)
    across = math.cos(turn) + math.sin(turn)
    curvatures = along**2 + steepness * across**2
    # A parabola's loss is curvature / 2 × distance², and each parameter is lr / 2 off: hence the 8.
    return curvatures * lr**2 / 8


def largest_settled_lr(loss: Number, steepness: Number, degrees: Number = 0) -> Number:
    """Return the learning rate at which `settled_loss` is `loss`.

    If `loss` is that at a run's start, RMSProp gains nothing at this learning rate.

    >>> round(largest_settled_lr(51.125, 100), 3)
    2.012
    """
    loss_of_1 = settled_loss(1.0, steepness, degrees)  # the loss grows with lr²
    return math.sqrt(loss / loss_of_1)
