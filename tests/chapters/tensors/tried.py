"""Answers to the exercises of notebook 02."""

import itertools

import numpy as np

from course_utils.chapters.tensors import check
from tests.engine.tried import Check, Tried


def as_torch_takes_it(walk, new_shape):
    """The strides that the walk's own numbers give, and whether they lead to all of them."""
    grid = np.array(walk).reshape(new_shape)
    strides = [
        grid.take(1, d).flat[0] - grid.flat[0] if n > 1 else 0 for d, n in enumerate(new_shape)
    ]
    return bool((np.tensordot(strides, np.indices(new_shape), 1) + walk[0] == grid).all())


TRIED: dict[Check, Tried] = {
    check.element: Tried(
        right=(lambda s, stride, offset, i, j: s[sum(np.multiply(stride, (i, j))) + offset],),
        wrong=(
            (
                lambda s, st, o, i, j: s[o + i * st[0] + j],
                "in a transpose they don't. Use both strides.",
            ),
            (
                lambda s, st, o, i, j: s[i * st[0] + j],
                "in a transpose they don't. Use both strides.",
            ),
        ),
    ),
    check.can_view: Tried(
        right=(as_torch_takes_it,),
        wrong=(
            (
                lambda walk, new: len({b - a for a, b in itertools.pairwise(walk)}) == 1,
                "That is view(-1).",
            ),
            (lambda walk, new: np.diff(np.reshape(walk, new)), "True or False is wanted"),
        ),
    ),
}
