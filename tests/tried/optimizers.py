"""Answers to the exercises of notebook 06."""

import math

import numpy as np
import torch

from course_utils.checks import optimizers as check
from tests.tried import Check, Tried


def windows(tokens, sequence, more=0):
    starts = range(len(tokens) - sequence + more)
    return [(tokens[s : s + sequence], tokens[s + 1 : s + sequence + 1]) for s in starts]


def adamw(p, g, m, v, t, lr, decay, *, correct=True, inside=False, coupled=False, betas=(0.9, 0.999)):
    b1, b2 = betas
    g = g + decay * p * coupled
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    first, second = (m / (1 - b1**t), v / (1 - b2**t)) if correct else (m, v)
    brake = (second + 1e-8).sqrt() if inside else second.sqrt() + 1e-8
    return p * (1 - lr * decay * (not coupled)) - lr * first / brake, m, v


def with_lerp(p, g, m, v, t, lr, decay):
    m, v = m.lerp(g, 0.1), v.lerp(g.square(), 0.001)
    size = lr * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
    return [p - lr * decay * p - size * m / (v**0.5 + 1e-8 * (1 - 0.999**t) ** 0.5), m, v]


def corrected(p, g, m, v, t, lr, decay):
    p, m, v = adamw(p, g, m, v, t, lr, decay)
    return p, m / (1 - 0.9**t), v / (1 - 0.999**t)


def rootless(p, g, m, v, t, lr, decay):
    _, m, v = adamw(p, g, m, v, t, lr, decay)
    return p * (1 - lr * decay) - lr * m / (1 - 0.9**t) / (v / (1 - 0.999**t) + 1e-8), m, v


def summed(p, g, m, v, t, lr, decay):
    m, v = 0.9 * m + g, 0.999 * v + 0.001 * g * g
    return p * (1 - lr * decay) - lr * m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + 1e-8), m, v


def norm_of(gradients):
    return math.sqrt(sum(x * x for one in gradients for x in one))


def scaled(gradients, scale):
    return [[scale * x for x in one] for one in gradients]


def clipped(gradients, limit, *, always=False):
    norm = norm_of(gradients)
    return scaled(gradients, limit / norm if norm and (always or norm > limit) else 1.0)


def clip_in_place(gradients, limit):
    for one in gradients:
        one[:] = [x / 2 for x in one]
    return gradients


TRIED: dict[Check, Tried] = {
    check.state_bytes: Tried(
        right=[17_500_000_000, 17.5e9, np.float64(17.5e9), torch.tensor(17.5e9, dtype=torch.float64)],
        wrong=[
            (70e9 * 16, "each of the 64 holds an equal part"),
            (70e9 * 12 / 64, "2 bytes each in bf16"),
            (70e9 * 14 / 64, "2 bytes out"),
            (70e9 * 8 / 64, "without the fp32 master copy"),
            (70e9 * 20 / 64, "are bf16 here"),
            (17.5, "in GB"),
            ("17.5 GB", "without quotes or a unit"),
        ],
    ),
    check.initial_std: Tried(
        right=[
            lambda inputs, kept_share: (inputs * kept_share) ** -0.5,
            lambda inputs, kept_share: np.sqrt(1 / kept_share) / np.sqrt(inputs),
        ],
        wrong=[
            (lambda n, share: math.sqrt(1 / n), "has to be made up for"),
            (lambda n, share: 1 / (n * share), "its root is asked for"),
            (lambda n, share: math.sqrt(1 / n * share), "larger, not smaller"),
            (lambda n, share: math.sqrt(2 / n), "share of one half"),
        ],
    ),
    check.last_token: Tried(
        right=[
            lambda tokens, sequence: [list(pair) for pair in windows(tokens, sequence)],
            lambda tokens, sequence: tuple(windows(tokens, sequence)),
            lambda tokens, sequence: list(np.array(windows(tokens, sequence))),
        ],
        wrong=[
            (lambda t, s: windows(t, s)[:-1], "very last token"),
            (lambda t, s: [(w, w) for w, _ in windows(t, s)], "one token later"),
            (lambda t, s: windows(t, s, 1), "a target too few"),
            (lambda t, s: windows(t, s)[::s], "may overlap"),
            (lambda t, s: [(w, targets[-1]) for w, targets in windows(t, s)], "A target for each token"),
            (lambda t, s: iter(windows(t, s)), "Give back the whole"),
        ],
    ),
    check.adamw_step: Tried(
        right=[adamw, with_lerp],
        wrong=[
            (lambda *case: adamw(*case, correct=False), "divide by 1 - beta^t"),
            (lambda *case: adamw(*case, inside=True), "outside the root"),
            (lambda *case: adamw(*case, coupled=True), "off the parameter itself"),
            (lambda *case: adamw(*case, betas=(0.999, 0.9)), "0.9 is for the average"),
            (lambda *case: adamw(*case[:-1], 0.0), "The decay is missing"),
            (lambda *case: adamw(*case[:-1], case[-1] / case[-2]), "multiplied by lr"),
            (lambda p, g, m, v, t, lr, d: adamw(p, g, m, v, t + 1, lr, d), "t counts from 1"),
            (
                lambda p, g, m, v, t, lr, d: (
                    2 * p - adamw(p, g, m, v, t, lr, d)[0],
                    *adamw(p, g, m, v, t, lr, d)[1:],
                ),
                "up the slope",
            ),
            (lambda *case: tuple(adamw(*case)[n] for n in (0, 2, 1)), "The order is (p, m, v)"),
            (corrected, "as they are kept"),
            (rootless, "Divide by the root"),
            (summed, "has the weight 1 - beta"),
            (lambda *case: adamw(*case)[0], "3 values are wanted"),
            (lambda p, g, m, v, t, lr, d: (p.zero_(), m.zero_(), v.zero_()), "Change nothing in place"),
        ],
    ),
    check.clipped: Tried(
        right=[
            lambda gradients, max_norm: tuple(map(tuple, clipped(gradients, max_norm))),
            lambda gradients, max_norm: scaled(gradients, max_norm / max(max_norm, norm_of(gradients))),
            lambda gradients, max_norm: [torch.tensor(one) for one in clipped(gradients, max_norm)],
        ],
        wrong=[
            (lambda g, n: [clipped([one], n)[0] for one in g], "One norm for all"),
            (lambda g, n: [[max(-n, min(n, x)) for x in one] for one in g], "turns the direction"),
            (lambda g, n: clipped(g, n, always=True), "stay as they are"),
            (lambda g, n: scaled(g, min(1.0, n / norm_of(g))), "leave them as they are"),
            (lambda g, n: scaled(g, min(1.0, n / norm_of(g) ** 2)), "take the root"),
            (lambda g, n: scaled(g, min(1.0, n / sum(abs(x) for one in g for x in one))), "sum of sizes"),
            (lambda g, n: clipped(g, 1.0), "not always 1"),
            (clip_in_place, "changed what it was given"),
        ],
    ),
}
