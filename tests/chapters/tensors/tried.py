"""Answers to the exercises of notebook 02."""

import itertools

import numpy as np

from course_utils.chapters.tensors import check
from tests.engine.tried import Check, Tried


def has_strides(walk, new_shape):
    """Take the strides from the walk's own numbers, and say whether they lead to all of them."""
    places = np.array(walk).reshape(new_shape)
    expected = np.full(new_shape, walk[0])
    for dimension, size in enumerate(new_shape):
        if size > 1:
            stride = places.take(1, dimension).flat[0] - walk[0]
            expected += stride * np.indices(new_shape)[dimension]
    return bool((places == expected).all())


def has_even_steps(walk, new_shape):
    steps = {after - before for before, after in itertools.pairwise(walk)}
    return len(steps) == 1


BOTH_STRIDES = "in a transpose they don't. Use both strides."
TRIED: dict[Check, Tried] = {
    check.element: Tried(
        right=(lambda s, stride, offset, i, j: s[sum(np.multiply(stride, (i, j))) + offset],),
        wrong=(
            (lambda s, stride, offset, i, j: s[offset + i * stride[0] + j], BOTH_STRIDES),
            (lambda s, stride, offset, i, j: s[i * stride[0] + j], BOTH_STRIDES),
        ),
    ),
    check.can_view: Tried(
        right=(has_strides,),
        wrong=(
            (has_even_steps, "That is view(-1)."),
            (lambda walk, new: np.diff(np.reshape(walk, new)), "True or False is wanted"),
        ),
    ),
}
