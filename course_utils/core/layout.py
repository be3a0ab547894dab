"""What a tensor is in memory: a storage, and for each index a position in the storage.

`can_view` says when a new shape needs no copy.
"""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise

import torch


def address(t: torch.Tensor, index: Sequence[int]) -> int:
    """Storage offset + Σ index × stride: where in the storage an element is, counted in elements.

    >>> t = torch.arange(12).view(3, 4)[1:, ::2]
    >>> address(t, (1, 1)), t[1, 1].item()
    (10, 10)
    """
    shape = tuple(t.shape)
    if not _is_within(index, shape):
        raise ValueError(
            f"An element of shape {shape} has an index for each dimension, below its size; "
            f"got {index}."
        )
    result = t.storage_offset()
    for i, size, stride in zip(index, shape, t.stride(), strict=True):
        from_the_start = i % size  # an index from the end, such as -1, becomes size - 1
        result += from_the_start * stride
    return result


def _is_within(index: Sequence[int], shape: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape has such an element. An index may count from the end."""
    if len(index) != len(shape):
        return False
    return all(-size <= i < size for i, size in zip(index, shape, strict=True))


def owned_bytes(t: torch.Tensor) -> int:
    """Bytes of the whole storage, which stays allocated as long as any tensor points into it.

    >>> owned_bytes(torch.zeros(1000)[:1])
    4000
    """
    return t.untyped_storage().nbytes()


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether both point into one storage, so that a write to the one can change the other.

    >>> x = torch.arange(6).view(2, 3)
    >>> shares_storage(x, x.t()), shares_storage(x, x.clone())
    (True, False)
    """
    return a.untyped_storage() is b.untyped_storage()  # torch returns one object for each storage


# When a new shape is a view.


def can_view(shape: Sequence[int], stride: Sequence[int], new_shape: Sequence[int]) -> bool:
    """Whether new strides alone give the new shape; if not, the new shape needs a copy.

    Neighbouring dimensions i and i + 1 can be merged if stride[i] = size[i + 1] × stride[i + 1]:
    then a step along i is as long as a walk through all of i + 1. Where two dimensions cannot be
    merged, the new shape needs a border between two dimensions at the same place.

    >>> can_view((4, 3), (6, 2), (2, 2, 3)), can_view((4, 3), (8, 2), (12,))
    (True, False)
    """
    shape, stride, new_shape = _checked(shape, stride, new_shape)
    elements = math.prod(shape)
    if math.prod(new_shape) != elements:
        return False
    if elements == 0:
        return True  # with no element, no stride is ever used
    # A border between two dimensions is known, in both shapes, by how many elements follow it. In
    # the shape (2, 2, 3) these are 6 and 3.
    new_borders = {math.prod(new_shape[place:]) for place in range(1, len(new_shape))}
    # Nobody steps along a dimension of size 1, so its stride does not matter.
    stepped_along = [dimension for dimension, size in enumerate(shape) if size != 1]
    behind = 1  # elements that follow the border between left and right
    # Neighbouring dimensions, from the last pair to the first: so `behind` only grows.
    for left, right in reversed(list(pairwise(stepped_along))):
        behind *= shape[right]
        can_be_merged = stride[left] == shape[right] * stride[right]
        if not can_be_merged and behind not in new_borders:
            return False
    return True


def _checked(*sides: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the `sides` as tuples; these are the three arguments of `can_view`, in its order.

    ValueError if they are not made of whole numbers from 0 up, or if strides are missing.
    """
    try:
        # operator.index takes whole numbers of any type, and refuses all others.
        shape, stride, new_shape = [tuple(map(operator.index, side)) for side in sides]
    except TypeError:
        raise ValueError(f"Shapes and strides are made of whole numbers; got {sides}.") from None
    if len(shape) != len(stride):
        raise ValueError(f"A shape has a stride for each dimension; got {shape} and {stride}.")
    _refuse_negative("shape", shape)
    _refuse_negative("stride", stride)
    _refuse_negative("new shape", new_shape)
    return shape, stride, new_shape


def _refuse_negative(name: str, numbers: tuple[int, ...]) -> None:
    """Raise a ValueError if a number is below 0."""
    if any(n < 0 for n in numbers):
        raise ValueError(f"A {name} is made of whole numbers from 0 up; got {numbers}.")
