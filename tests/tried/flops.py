"""Answers to the exercises of notebook 04."""

import functools
import math

import numpy as np
import torch

from course_utils.checks import flops as check
from tests.tried import Check, Tried


def batch(d, k, flop_per_sec, bytes_per_sec, *, times=1):
    """The B at which both limits meet."""
    ridge = times * flop_per_sec / bytes_per_sec
    return ridge * d * k / (d * k - ridge * (d + k))


def without_result(d, k, flop_per_sec, bytes_per_sec):
    ridge = flop_per_sec / bytes_per_sec
    return math.ceil(ridge * d * k / (d * k - ridge * d))


def utilisation(rate, parameters, layers, width, sequence, peak, *, attention=12.0, passes=1.0):
    """MFU with one thing at a time done wrongly."""
    return passes * (6 * parameters + attention * layers * width * sequence) * rate / peak


def roof(points, *, peak=max, bandwidth=max):
    return peak(rate for _, rate in points), bandwidth(rate / x for x, rate in points)


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def outermost(points):
    points = sorted(points)
    return points[-1][1], points[0][1] / points[0][0]


def above(seconds_by_size, peak):
    return [size for size, seconds in seconds_by_size.items() if 2 * math.prod(size) / seconds > peak]


def as_an_array(points):
    x, rate = np.array(points).T
    return np.array([rate.max(), (rate / x).max()])


TRIED: dict[Check, Tried] = {
    check.cheaper_order: Tried(
        right=[4e6, torch.tensor(4_000_000), np.int32(4_000_000)],
        wrong=[
            (2 * 1000**3 + 2 * 1000**2, "Start from the other end"),
            (2 * 1000**3, "never computes"),
            (2_000_000, "one product"),
            (3_998_000, "the exact count"),
        ],
    ),
    check.days: Tried(
        right=[np.float64(22.7), 22.9, 22.77],
        wrong=[
            (11.4, "Half of 312"),
            (5.69, "sparse rate and at full peak"),
            (7.59, "forward pass alone"),
            (22.77 * 86400, "in seconds"),
            (22.77 * 24, "in hours"),
            (22.77 * 1024, "one A100"),
        ],
    ),
    check.smallest_batch: Tried(
        right=[
            lambda *case: float(math.ceil(batch(*case))),
            lambda *case: np.ceil(batch(*case)),
            lambda *case: torch.tensor(batch(*case)).ceil(),
        ],
        wrong=[
            (lambda d, k, f, w: math.ceil(f / w), "takes a larger B"),
            (lambda *case: math.floor(batch(*case)), "round up"),
            (batch, "whole number"),
            (without_result, "has to be written"),
            (lambda *case: math.ceil(batch(*case, times=2)), "an addition is a FLOP"),
            (lambda d, k: 0, "keep the first line of the stub"),
        ],
    ),
    check.utilisation: Tried(
        right=[
            lambda *run: torch.tensor(utilisation(*run), dtype=torch.float64),
            lambda tokens_per_sec, parameters, layers, width, sequence, peak_flop_per_sec: (
                6 * tokens_per_sec * (parameters + 2 * layers * width * sequence) / peak_flop_per_sec
            ),
        ],
        wrong=[
            (functools.partial(utilisation, attention=0), "leaves attention out"),
            (functools.partial(utilisation, attention=4), "has a backward pass too"),
            (functools.partial(utilisation, attention=6), "masked attention"),
            (functools.partial(utilisation, passes=1 / 3), "forward pass alone"),
            (functools.partial(utilisation, passes=100), "not in per cent"),
            (lambda r, p, n, h, s, peak: utilisation(r, p, n, h, s * s, peak), "one S remains"),
            (lambda r, p, n, h, s, peak: utilisation(r, p, n, h, s, 1), "a share of the peak"),
            (lambda *run: round(utilisation(*run), 3), "rounded or left out"),
            (lambda *run: f"{utilisation(*run):.0%}", "One plain number"),
        ],
    ),
    check.fitted_roofline: Tried(
        right=[lambda points: list(roof(points)), as_an_array],
        wrong=[
            (outermost, "need not lie on the roof"),
            (lambda points: roof(points)[::-1], "The peak comes first"),
            (lambda points: roof(points, peak=mean, bandwidth=mean), "A mean lies below"),
            (lambda points: roof(points, bandwidth=min), "no lower than this"),
            (lambda points: roof(points)[0], "2 values are wanted"),
            (lambda points: roof(points) + (points.sort() or ()), "changed what it was given"),
        ],
    ),
    check.impossible_products: Tried(
        right=[
            lambda seconds, peak: [size for size in seconds if 2 * math.prod(size) / peak > seconds[size]],
            lambda seconds, peak: tuple(s for s in seconds if 2 * s[0] * s[1] * s[2] > peak * seconds[s]),
        ],
        wrong=[
            (lambda seconds, peak: above(seconds, 2 * peak), "comes with an addition"),
            (lambda seconds, peak: above(seconds, peak / 2), "dense already"),
            (
                lambda seconds, peak: [s for s in seconds if s not in above(seconds, peak)],
                "Wanted are the others",
            ),
            (lambda seconds, peak: len(above(seconds, peak)), "how many"),
            (
                lambda seconds, peak: [2 * math.prod(s) / seconds[s] for s in above(seconds, peak)],
                "their rates",
            ),
        ],
    ),
    check.name_of_f32: Tried(
        right=["tf32"],
        wrong=[
            ("fp32", "six times as fast"),
            ("bf16", "twice as fast on the same GPU"),
            ("fp16", "ends at 65,504"),
            ("fp64", "twice as wide"),
            (19, "the name of a format"),
        ],
    ),
}
