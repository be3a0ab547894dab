"""Answers to the exercises of notebook 02."""

import itertools

import numpy as np
import torch

from course_utils import layout
from course_utils.checks import tensors as check
from tests.tried import Check, Tried


def merge(shape, stride):
    walked = [(n, s) for n, s in zip(shape, stride, strict=True) if n != 1]
    return all(left == n * right for (_, left), (n, right) in itertools.pairwise(walked))


def keeps_what_cannot_merge(shape, stride, new_shape):
    """From the last dimension on, as torch's own does."""
    behind, new = 1, list(new_shape)
    walked = [(n, s) for n, s in zip(shape, stride, strict=True) if n != 1]
    for (_, left), (n, right) in reversed([*itertools.pairwise(walked)]):
        behind *= n
        while new and behind > 1 and behind >= new[-1] and behind % new[-1] == 0:
            behind //= new.pop()
        if left != n * right and behind != 1:
            return False
    return True


TRIED: dict[Check, Tried] = {
    check.metadata: Tried(
        right=([[3, 3], (1, 4), 13.0], (torch.Size([3, 3]), (1, 4), 13), ((3, 3), (1, 4), np.int64(13))),
        wrong=(
            ([[3, 3], [1, 4], 12], "((3, 3), (1, 4), 12) is not it. The slice [1:] starts one step"),
            (((4, 3), (1, 4), 12), "[1:] leaves 3 of the 4"),
            (((3, 3, 1), (1, 4, 12), 13), "drops its dimension"),
            (((3, 3), (1, 4)), "(shape, stride, offset)"),
            (13, "(shape, stride, offset)"),
        ),
    ),
    check.element: Tried(
        right=(lambda s, stride, offset, i, j: s[sum(np.multiply(stride, (i, j))) + offset],),
        wrong=((lambda s, st, o, i, j: s[o + i * st[0] + j], "Use both strides"),),
    ),
    check.windows: Tried(
        right=(lambda n, width, step: (torch.Size([len(range(0, n - width + 1, step)), width]), (step, 1)),),
    ),
    check.can_view: Tried(
        right=(keeps_what_cannot_merge, lambda *case: layout.why_not_view(*case) == ""),
        wrong=(
            (lambda shape, stride, new: merge(shape, stride), "That is view(-1)."),
            (lambda shape, stride, new: merge(shape, stride) or shape[-1] in new, "Do not compare sizes"),
            (lambda *case: layout.why_not_view(*case), "True or False is wanted"),
        ),
    ),
}
