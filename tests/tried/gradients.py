"""Answers to the exercises of notebook 05."""

import itertools

import numpy as np
import torch

from course_utils.checks import gradients as check
from tests.tried import Check, Tried

FORWARD = 2 * 64 * (512 * 2048 + 2048 * 2048 + 2048 * 10)  # of the first exercise
BACKWARD = 2 * FORWARD - 2 * 64 * 512 * 2048
FULL, NARROW = 2 * 4096**2, 2 * 4096 * 16  # of the last one: a product for one token


def by_hand(x, w1, w2, *, masked=True, before=False, scale=1):
    a = x @ w1
    h = a.clamp(min=0)
    y = h @ w2
    back = y @ w2.T * (a > 0 if masked else 1)
    return scale * x.T @ back, scale * (a if before else h).T @ y


def by_autograd(x, w1, w2):
    w1, w2 = w1.clone().requires_grad_(), w2.clone().requires_grad_()
    ((x @ w1).relu() @ w2).pow(2).sum().div(2).backward()
    return [w1.grad, w2.grad]


def frozen(batch, widths, layers, *, always=False):
    total, needed = 0, False
    for layer, (d, k) in enumerate(itertools.pairwise(widths)):
        total += 2 * batch * d * k * (1 + (layer not in layers) + ((layer > 0) if always else needed))
        needed = needed or layer not in layers
    return total


def trained_alone(batch, widths, layers):
    shapes = list(enumerate(itertools.pairwise(widths)))
    return sum((3 - (n == 0)) * 2 * batch * d * k for n, (d, k) in shapes if n not in layers)


def six_each(batch, widths, layers):
    shapes = enumerate(itertools.pairwise(widths))
    return sum((1 if n in layers else 3) * 2 * batch * d * k for n, (d, k) in shapes)


def kept(batch, widths, nonlinearity):
    return 4 * batch * (sum(widths[:-1]) + (nonlinearity == "gelu") * sum(widths[1:-1]))


TRIED: dict[Check, Tried] = {
    check.backward_flops: Tried(
        right=[float(BACKWARD), np.int64(BACKWARD), torch.tensor(BACKWARD)],
        wrong=[
            (2 * FORWARD, "The first one reads plain data"),
            (FORWARD, "the forward pass"),
            (BACKWARD // 2, "comes with an addition"),
            (BACKWARD // 64, "one row"),
            (FORWARD + BACKWARD, "forward and backward together"),
            (2 * FORWARD - 2 * 64 * 2048 * 10, "not the last"),
            (round(BACKWARD, -7), "rounded"),
        ],
    ),
    check.two_layers_by_hand: Tried(
        right=[by_hand, by_autograd],
        wrong=[
            (lambda *case: by_hand(*case, masked=False), "above 0"),
            (lambda *case: by_hand(*case, before=True), "not by what went in"),
            (lambda *case: by_hand(*case, scale=2), "without a 2"),
            (lambda *case: by_hand(*case)[::-1], "of w1 comes first"),
            (lambda x, w1, w2: by_hand(x, w1, w2, scale=1 / len(x)), "not a mean"),
            (lambda *case: tuple(g.T for g in by_hand(*case)), "transpose it"),
            (lambda *case: by_hand(*case)[0], "2 values are wanted"),
            (lambda x, w1, w2: (by_hand(x, w1, w2)[0], 0 * w2), "as the second of 2"),
            (lambda x, w1, w2: (w1.zero_(), w2.zero_()), "Change nothing in place"),
        ],
    ),
    check.frozen_flops: Tried(
        right=[lambda *case: float(frozen(*case)), lambda *case: np.int64(frozen(*case))],
        wrong=[
            (lambda b, w, f: frozen(b, w, ()), "no gradient of its weight"),
            (lambda b, w, f: frozen(b, w, range(len(f))), "and not only how many"),
            (lambda b, w, f: frozen(b, w, f, always=True), "nothing before it is trained"),
            (lambda b, w, f: frozen(b, w, f) - frozen(b, w, range(9)), "backward pass alone"),
            (lambda b, w, f: frozen(b, w, f) // 2, "comes with an addition"),
            (lambda b, w, f: frozen(1, w, f), "one row"),
            (trained_alone, "still runs forward"),
            (six_each, "none for its input"),
        ],
    ),
    check.kept_bytes: Tried(
        right=[lambda *case: float(kept(*case)), lambda *case: torch.tensor(kept(*case))],
        wrong=[
            (lambda b, w, n: 4 * b * sum(w[:-1]), "GELU keeps its own input"),
            (lambda b, w, n: kept(b, w, "gelu"), "once for both"),
            (lambda b, w, n: kept(b, w, n) + 4 * b * w[-1], "The last result"),
            (lambda b, w, n: kept(b, w, n) // 4, "4 bytes each"),
            (lambda b, w, n: kept(1, w, n), "one row"),
            (
                lambda b, w, n: kept(b, w, n) + 4 * sum(d * k for d, k in itertools.pairwise(w)),
                "no copy of them",
            ),
        ],
    ),
    check.low_rank_flops: Tried(
        right=[67_895_296.0, torch.tensor(67_895_296)],
        wrong=[
            (3 * FULL + 6 * NARROW, "two products of three remain"),
            (FULL + 6 * NARROW, "pass the gradient on"),
            (6 * NARROW, "takes part, too"),
            (2 * FULL + 4 * NARROW, "three products each"),
            (2 * FULL + 3 * NARROW, "two narrow matrices"),
            (FULL + 3 * NARROW, "comes with an addition"),
        ],
    ),
}
