"""Answers to the exercises of notebook 02."""

import itertools

import numpy as np
import torch

from course_utils.checks import tensors as check
from tests.tried import Check, Tried


def numbered(n, width, step):
    return (n - width) // step + 1


def merge(shape, stride, *, skip_ones=True):
    walked = [(n, s) for n, s in zip(shape, stride, strict=True) if n != 1 or not skip_ones]
    return all(left == n * right for (_, left), (n, right) in itertools.pairwise(walked))


TRIED: dict[Check, Tried] = {
    check.metadata: Tried(
        right=[[[3, 3], (1, 4), 13.0], (torch.Size([3, 3]), (1, 4), 13), ((3, 3), (1, 4), np.int64(13))],
        wrong=[
            (((3, 3), (1, 4), 0), "both move the offset"),
            (((3, 3), (1, 4), 1), "so it adds 12"),
            ([[3, 3], [1, 4], 12], "its stride is 1"),
            (((3, 3), (3, 1), 13), "A view keeps those of its base"),
            (([3, 3], [4, 1], 13), "exchanges the first stride with the last"),
            (((3, 3), (12, 4), 13), "transpose comes first"),
            (((4, 3), (1, 4), 12), "[1:] leaves 3 of the 4"),
            (((3, 3, 1), (1, 4, 12), 13), "drops its dimension"),
            (((3, 3), (1, 4)), "(shape, stride, offset)"),
            (13, "(shape, stride, offset)"),
        ],
    ),
    check.kept_alive: Tried(
        right=[3_293_642_752.0, np.int64(3_293_642_752), torch.tensor(3_293_642_752)],
        wrong=[
            (32 * 50257 * 2, "A view keeps the whole storage"),
            (32 * 1024 * 50257 * 4, "bf16 takes 2"),
            (32 * 1024 * 50257, "the number of elements"),
            (32 * 1024 * 50257 * 2 + 32 * 50257 * 2, "no bytes of its own"),
            (3.07, "in GiB"),
            (3.29, "in GB"),
            (3.29e9, "rounded or left out"),
        ],
    ),
    check.element: Tried(
        right=[
            lambda s, st, o, i, j: torch.tensor(s[o + i * st[0] + j * st[1]]),
            lambda storage, stride, offset, i, j: storage[
                sum(step * at for step, at in zip(stride, (i, j), strict=True)) + offset
            ],
        ],
        wrong=[
            (lambda s, st, o, i, j: s[i * st[0] + j], "use both strides"),
            (lambda s, st, o, i, j: s[o + i * st[0] + j], "use both strides"),
            (lambda s, st, o, i, j: s[i * st[0] + j * st[1]], "at its offset"),
            (lambda s, st, o, i, j: s[o + i * st[1] + j * st[0]], "steps by the first stride"),
            (lambda s, st, o, i, j: s[i][j], "one flat list"),
        ],
    ),
    check.windows: Tried(
        right=[
            lambda n, w, s: [[numbered(n, w, s), w], [s, 1]],
            lambda n, w, s: (torch.Size([len(range(0, n - w + 1, s)), w]), (s, 1)),
        ],
        wrong=[
            (lambda n, w, s: (((n - w) // s, w), (s, 1)), "One window short"),
            (lambda n, w, s: ((n // w, w), (w, 1)), "do not overlap"),
            (lambda n, w, s: ((numbered(n, w, s), w), (w, 1)), "step numbers later, not width"),
            (lambda n, w, s: ((numbered(n, w, s), w), (1, 1)), "step numbers later"),
            (lambda n, w, s: ((-(-n // s), w), (s, 1)), "beyond the end"),
            (lambda n, w, s: ((w, numbered(n, w, s)), (1, s)), "A row for each window"),
            (lambda n, w, s: ((n - w + 1, w), (s, 1)), "only every step-th"),
            (lambda n, w, s: (((n - w) / s + 1, w), (s, 1)), "round down"),
            (lambda n, w, s: ((numbered(n, w, s), w), (4 * s, 4)), "not in bytes"),
            (lambda n, w, s: ((s, 1), (numbered(n, w, s), w)), "The shape comes first"),
            (lambda n, w, s: (numbered(n, w, s), w), "the shape alone"),
        ],
    ),
    check.flattens: Tried(
        right=[
            lambda n, s: np.bool_(merge(n, s)),
            lambda n, s: int(merge(n, s)),
            lambda n, s: torch.tensor(merge(n, s)),
        ],
        wrong=[
            (lambda n, s: torch.empty_strided(n, s).is_contiguous(), "asks whether it is contiguous"),
            (lambda n, s: merge(n, s, skip_ones=False), "never stepped along"),
            (lambda n, s: list(s) == sorted(s, reverse=True), "Falling strides are not enough"),
            (lambda n, s: len(n) < 2 or s[0] == n[1] * s[1], "Every pair of neighbours"),
            (lambda n, s: len(n) < 2 or s[-2] == n[-1] * s[-1], "not the last one alone"),
            (lambda n, s: merge(n, s) and 0 not in s, "like any other"),
            (lambda n, s: True, "by copying"),
            (lambda n, s: "yes" if merge(n, s) else "no", "True or False is wanted"),
        ],
    ),
}
