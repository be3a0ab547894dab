"""Answers to the exercises of notebook 04."""

import math

import numpy as np

from course_utils.checks import flops as check
from tests.tried import Check, Tried


def least_batch(d, k, flop_per_sec, bytes_per_sec):
    """By the formula, where both limits meet."""
    ridge = flop_per_sec / bytes_per_sec
    return math.ceil(ridge * d * k / (d * k - ridge * (d + k)))


def utilisation(rate, parameters, layers, width, sequence, peak):
    return 6 * rate * (parameters + 2 * layers * width * sequence) / peak


def as_an_array(points):
    x, rate = np.array(points).T
    return np.array([rate.max(), (rate / x).max()])


def faster(seconds_by_size, peak):
    return tuple(size for size, seconds in seconds_by_size.items() if 2 * math.prod(size) / peak > seconds)


def transformer(layers, width, vocabulary, sequence):
    """Multiplied out."""
    return (
        72 * layers * width**2 * sequence
        + 12 * sequence**2 * width * layers
        + 6 * vocabulary * width * sequence
    )


TRIED: dict[Check, Tried] = {
    check.product_flops: Tried(
        right=(lambda b, d, k: float(2 * b * d * k), lambda b, d, k: sum([2 * b] * d) * k),
        wrong=(
            (lambda b, d, k: b * d * k + b * d, "expected 320"),
            (lambda b: 2 * b, "keep the first line of the stub"),
        ),
    ),
    check.training_days: Tried(
        right=(lambda p, n, gpus, peak, share: 6 * p / gpus * n / (peak * 86_400) / share,),
        wrong=(
            (lambda p, n, gpus, peak, share: 6 * p * n / (gpus * peak * share) / 3600, "That is in hours"),
            (lambda p, n, gpus, peak, share: f"{6 * p * n / (gpus * peak * share)} s", "One plain number"),
            (
                lambda p, n, gpus, peak, share: round(6 * p * n / gpus / peak / share / 86_400),
                "rounded or left",
            ),
        ),
    ),
    check.roof: Tried(
        right=(lambda x, peak, bandwidth: peak if x > peak / bandwidth else x * bandwidth,),
        wrong=(
            (lambda x, peak, bandwidth: peak, "memory is slower"),
            (lambda x, peak, bandwidth: None, "no return"),
        ),
    ),
    check.transformer_flops: Tried(
        right=(transformer, lambda *sizes: float(transformer(*sizes))),
        wrong=((lambda *sizes: 1.001 * transformer(*sizes), "rounded or left out"),),
    ),
    check.days: Tried(
        right=(22.7, 22.9),
        wrong=((11.4, "Half of 312"), (23.4, "close, but"), ("23 days", "write it without quotes")),
    ),
    check.smallest_batch: Tried(
        right=(least_batch, lambda *case: float(least_batch(*case))),
        wrong=((lambda d, k: 0, "keep the first line of the stub"),),
    ),
    check.utilisation: Tried(
        right=(utilisation,),
        wrong=(
            (lambda *run: round(utilisation(*run), 3), "rounded or left out"),
            (lambda *run: f"{utilisation(*run):.0%}", "One plain number"),
        ),
    ),
    check.fitted_roofline: Tried(
        right=(as_an_array,),
        wrong=((lambda points: points.sort(), "changed what it was given"),),
    ),
    check.impossible_products: Tried(right=(faster,)),
    check.name_of_f32: Tried(right=(" TF32",), wrong=((19, "the name of a format, in quotes"),)),
}
