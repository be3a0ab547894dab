"""What a tensor is in memory: a storage, and for each index the place in it. And when a new shape needs no copy."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

with suppress(ImportError):  # a page without a kernel has no torch, and asks of shapes and strides alone
    import torch

from course_utils.quantities import count_text

_elements = partial(count_text, of="element")


def address(t: torch.Tensor, index: Sequence[int]) -> int:
    """Storage offset + Σ index × stride: where in the storage an element lies, counted in elements.

    >>> t = torch.arange(12).view(3, 4)[1:, ::2]
    >>> address(t, (1, 1)), t[1, 1].item()
    (10, 10)
    """
    shape = tuple(t.shape)
    if len(index) != len(shape) or not all(-size <= i < size for i, size in zip(index, shape, strict=True)):
        raise ValueError(
            f"An element of shape {shape} has an index for each dimension, below its size; got {index}."
        )
    walk = zip(index, shape, t.stride(), strict=True)
    return t.storage_offset() + sum(i % size * step for i, size, step in walk)


def places(t: torch.Tensor) -> set[int]:
    """Every place in the storage that the tensor reaches, once.

    >>> sorted(places(torch.arange(6).view(2, 3)[:, ::2]))
    [0, 2, 3, 5]
    """
    found = {t.storage_offset()} if t.numel() else set()
    for size, step in zip(t.shape, t.stride(), strict=True):
        if found and step:
            found = {place + i * step for place in found for i in range(size)}
    return found


def seen_bytes(t: torch.Tensor) -> int:
    """Bytes of the storage that this tensor reaches. A place that several elements share counts once.

    >>> seen_bytes(torch.zeros(4).expand(1000, 4))
    16
    """
    if t.is_contiguous():
        return t.numel() * t.element_size()
    return len(places(t)) * t.element_size()


def owned_bytes(t: torch.Tensor) -> int:
    """Bytes of the whole storage, which stays allocated as long as any tensor points into it.

    >>> owned_bytes(torch.zeros(1000)[:1])
    4000
    """
    return t.untyped_storage().nbytes()


def shares_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether both point into one storage, so that a write through the one can show in the other.

    >>> x = torch.arange(6).view(2, 3)
    >>> shares_storage(x, x.t()), shares_storage(x, x.clone())
    (True, False)
    """
    return a.untyped_storage() is b.untyped_storage()  # one object for each storage


# When a new shape is a view.


def can_view(shape: Sequence[int], stride: Sequence[int], new_shape: Sequence[int]) -> bool:
    """Whether new strides alone give the new shape; if not, it takes a copy.

    >>> can_view((4, 3), (6, 2), (2, 2, 3)), can_view((4, 3), (8, 2), (12,))
    (True, False)
    """
    return not why_not_view(shape, stride, new_shape)


def why_not_view(shape: Sequence[int], stride: Sequence[int], new_shape: Sequence[int]) -> str:
    """What stands in the way of the view, in a sentence; nothing if it is possible.

    Neighbours i and i + 1 can be merged if stride[i] = size[i + 1] × stride[i + 1]: then a step along i is as
    long as a walk through all of i + 1. Where they can't, the new shape has to be cut at the same place.

    >>> print(why_not_view((3, 2), (1, 3), (6,)))
    Dimensions 0 and 1 of (3, 2) cannot be merged, and 6 in (6,) would need both: a step along 0 is 1 element, a walk through 1 is 2 × 3 = 6.
    """
    shape, stride, new_shape = _checked(shape, stride, new_shape)
    wanted, there = math.prod(new_shape), math.prod(shape)
    if wanted != there:
        return f"{new_shape} has {_elements(wanted)}, and {shape} has {_elements(there)}."
    cuts, behind = behind_boundaries(new_shape), 1
    stepped_along = [dimension for dimension, size in enumerate(shape) if size != 1]
    for left, right in reversed(list(pairwise(stepped_along))):
        behind *= shape[right]
        walk = shape[right] * stride[right]
        if stride[left] != walk and behind not in cuts and there:
            return (
                f"Dimensions {left} and {right} of {shape} cannot be merged, and "
                f"{_spanning(new_shape, behind)} in {new_shape} would need both: a step along {left} is "
                f"{_elements(stride[left])}, a walk through {right} is "
                f"{shape[right]} × {stride[right]} = {walk}."
            )
    return ""


def behind_boundaries(shape: Sequence[int]) -> set[int]:
    """How many elements lie behind each boundary between two dimensions.

    >>> sorted(behind_boundaries((3, 2, 4)))
    [4, 8]
    """
    return {math.prod(shape[place:]) for place in range(1, len(shape))}


def _spanning(new_shape: tuple[int, ...], behind: int) -> int:
    """The new size that spans the boundary with `behind` elements behind it."""
    return next(
        size
        for place, size in enumerate(new_shape)
        if math.prod(new_shape[place + 1 :]) < behind < math.prod(new_shape[place:])
    )


def _checked(*sides: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    try:
        shape, stride, new_shape = (tuple(map(operator.index, side)) for side in sides)
    except TypeError:
        raise ValueError(f"Shapes and strides are made of whole numbers; got {sides}.") from None
    if len(shape) != len(stride):
        raise ValueError(f"A shape has a stride for each dimension; got {shape} and {stride}.")
    for name, numbers in (("shape", shape), ("stride", stride), ("new shape", new_shape)):
        if any(n < 0 for n in numbers):
            raise ValueError(f"A {name} is made of whole numbers from 0 up; got {numbers}.")
    return shape, stride, new_shape
