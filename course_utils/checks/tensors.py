"""The exercises of notebook 02."""

import math
from collections.abc import Iterator
from itertools import pairwise

import torch

from course_utils.checks.accountant import storage_bytes  # noqa: F401  a term of the accountant
from course_utils.checks.judging import Answers, function, outcome


class Numbers(list):
    """A whole storage. It is shown briefly in a verdict."""

    def __repr__(self) -> str:
        return f"[{self[0]}, {self[1]}, … {self[-1]}]"


def _places() -> Iterator[tuple[Numbers, tuple[int, int], int, int, int]]:
    """Elements in the first, second and last row of several matrices in one storage."""
    storage = torch.arange(60, 120)
    base = storage.view(6, 10)
    slices = base[2:, 3:], base[:, ::3], base[4].expand(5, 10)
    for m in (base, base.t(), *slices, storage[7:].unfold(0, 4, 2), base[::2, 1::4].t()):
        for i, j in ((0, 0), (1, 2), (m.shape[0] - 1, m.shape[1] - 1)):
            yield Numbers(storage.tolist()), m.stride(), m.storage_offset(), i, j


@function(_places)
def element(storage: Numbers, stride: tuple[int, int], offset: int, i: int, j: int) -> Answers:
    """An element of a matrix from its storage, its strides and its offset."""
    right = torch.tensor(storage).as_strided((i + 1, j + 1), stride, offset)[i, j].item()
    yield right, "A fresh matrix, a transpose, slices, an expanded row, windows, and a transpose of a slice."
    row_by_row = storage[i * stride[0] + j]
    yield (
        row_by_row,
        "A row's numbers lie side by side only in a fresh matrix. Use both strides, and the offset.",
    )
    at = i * stride[0] + j * stride[1]
    yield storage[at], "That is right so far. A slice begins inside the storage: add its offset."
    twice = outcome(lambda: storage[i][j])
    yield twice, "The storage is one flat list, whatever the matrix looks like: one number in the brackets."
    swapped = outcome(lambda: storage[offset + i * stride[1] + j * stride[0]])
    yield swapped, "i counts rows, so it steps by the first stride."
    yield offset + at, "That is its place. Look there: storage[...] has the element."


NEW_SHAPES = [
    *(((4, 6), (6, 1), (24,)), ((4, 6), (6, 1), (2, 12)), ((6, 4), (1, 6), (24,))),
    ((3, 5, 4), (4, 12, 1), (15, 2, 2)),
    *(((5, 3, 4), (24, 4, 1), (15, 2, 2)), ((4, 3), (6, 2), (2, 6)), ((4, 4), (1, 4), (2, 2, 4))),
    *(((6, 4), (1, 6), (3, 2, 4)), ((6, 4), (1, 6), (6, 2, 2)), ((6, 4), (1, 6), (12, 2))),
    *(((3, 2, 4), (4, 12, 1), new) for new in ((3, 2, 2, 2), (6, 4), (3, 8), (3, 1, 2, 4), (24,))),
    *(((2, 3, 4), (24, 4, 1), new) for new in ((2, 12), (2, 2, 6), (6, 4))),
    *(((2, 3, 4), (12, 1, 3), new) for new in ((6, 4), (2, 12), (2, 3, 2, 2))),
    *(((4, 1, 6), (6, 99, 1), (24,)), ((4, 1, 6), (8, 99, 1), (2, 2, 6)), ((4, 1, 6), (8, 99, 1), (8, 3))),
    *(((3, 4), (0, 1), (12,)), ((3, 4), (0, 0), (6, 2)), ((3, 4), (0, 1), (3, 2, 2)), ((5,), (9,), (5, 1))),
]


def _walks() -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Yield the storage places of each tensor's elements, row by row, and the shape to view it in."""
    for shape, stride, new_shape in NEW_SHAPES:
        yield torch.arange(200).as_strided(shape, stride).flatten().tolist(), new_shape


@function(_walks)
def can_view(walk: list[int], new_shape: tuple[int, ...]) -> Answers:
    """Whether view(new_shape) is possible, from the places of the elements, row by row."""
    along = [_lengths(walk, new_shape, dimension) for dimension in range(len(new_shape))]
    even = [len(lengths) <= 1 for lengths in along]
    yield all(even), "Twenty-eight cases, with sizes of 1 and strides of 0 among them, as torch answers."
    flat = len({b - a for a, b in pairwise(walk)}) == 1
    yield flat, "That is view(-1). Where rows end, the steps may be others: ask along each dimension."
    contiguous = walk == [*range(walk[0], walk[0] + len(walk))]
    yield contiguous, "That asks if it is contiguous. Steps of 2 are equally long, too."
    yield even[-1], "Rows that are even inside are not enough. They have to begin at equal distances, too."
    yield even[0], "Every dimension counts, not the first."
    alike = len(set().union(*along)) <= 1
    yield alike, "Each dimension has a stride of its own. Compare the steps along one of them at a time."
    yield True, "That is what reshape does, by copying."


def _lengths(walk: list[int], shape: tuple[int, ...], dimension: int) -> set[int]:
    """How long the steps along that dimension are."""
    size, block = shape[dimension], math.prod(shape[dimension + 1 :])
    ends = (end for end in range(block, len(walk)) if end // block % size)
    return {walk[end] - walk[end - block] for end in ends}
