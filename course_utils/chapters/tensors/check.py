"""The exercises of notebook 02."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from course_utils.engine.judging import Answers, function, outcome
from course_utils.engine.judging.sentences import shown


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
    yield (
        right,
        "A fresh matrix, a transpose, slices, an expanded row, windows, and a transpose of a slice.",
    )
    row_by_row = storage[i * stride[0] + j]
    yield (
        row_by_row,
        "A row's numbers need not lie side by side: in a transpose they don't. Use both strides.",
    )
    at = i * stride[0] + j * stride[1]
    yield storage[at], "That is right so far. A slice begins inside the storage: add its offset."
    twice = outcome(lambda: storage[i][j])
    yield (
        twice,
        "The storage is one flat list, whatever the matrix looks like: one number in the brackets.",
    )
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
    *(
        ((4, 1, 6), (6, 99, 1), (24,)),
        ((4, 1, 6), (8, 99, 1), (2, 2, 6)),
        ((4, 1, 6), (8, 99, 1), (8, 3)),
    ),
    *(
        ((3, 4), (0, 1), (12,)),
        ((3, 4), (0, 0), (6, 2)),
        ((3, 4), (0, 1), (3, 2, 2)),
        ((5,), (9,), (5, 1)),
    ),
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
    yield (
        all(even),
        "Twenty-eight cases, with sizes of 1 and strides of 0 among them, as torch answers.",
    )
    flat = len({b - a for a, b in pairwise(walk)}) == 1
    yield (
        flat,
        "That is view(-1). Where rows end, the steps may be others: ask along each dimension.",
    )
    contiguous = walk == [*range(walk[0], walk[0] + len(walk))]
    yield contiguous, "That asks if it is contiguous. Steps of 2 are equally long, too."
    yield (
        even[-1],
        "Rows that are even inside are not enough. They have to begin at equal distances, too.",
    )
    yield even[0], "Every dimension counts, not the first."
    alike = len(set().union(*along)) <= 1
    yield (
        alike,
        "Each dimension has a stride of its own. Compare the steps along one of them at a time.",
    )
    yield True, "That is what reshape does, by copying."


def _lengths(walk: list[int], shape: tuple[int, ...], dimension: int) -> set[int]:
    """How long the steps along that dimension are."""
    size, block = shape[dimension], math.prod(shape[dimension + 1 :])
    ends = (end for end in range(block, len(walk)) if end // block % size)
    return {walk[end] - walk[end - block] for end in ends}


# The accountant's term.


class _Given(list):
    """A list that is handed on as it is: a copied view of a tensor without memory would no longer be one."""

    def __deepcopy__(self, _: dict) -> "_Given":
        return self

    def __repr__(self) -> str:
        return shown([*self])


def _lists() -> list[tuple[list[Tensor]]]:
    base, other = torch.arange(24.0).view(4, 6), torch.zeros(3, dtype=torch.float64)
    meta, another = (torch.empty(size, 8, device="meta") for size in (1 << 20, 3))
    lists = (
        [base],
        [base, base.T],
        [base[1]],
        [base[:2], base[2:], other.expand(5, 3)],
        [base, base.clone()],
    )
    return [(tensors,) for tensors in (*lists, [], _Given([meta, meta[0], another]))]


@function(_lists)
def storage_bytes(tensors: Sequence[Tensor]) -> Answers:
    """A reader's storage_bytes(tensors): what they hold together, each storage once, and whole."""
    all_storages, storages = [tensor.untyped_storage() for tensor in tensors], []
    for storage in all_storages:
        if not any(storage._cdata == one._cdata for one in storages):
            storages.append(storage)
    yield (
        sum(one.nbytes() for one in storages),
        "Seven lists, with views, slices, and tensors without memory.",
    )
    once = "Two views of one storage are in memory once."
    yield sum(one.nbytes() for one in all_storages), once
    yield sum(t.nbytes for t in tensors), once
    by_storage = {t.untyped_storage()._cdata: t.nbytes for t in tensors}
    yield (
        sum(by_storage.values()),
        "A slice keeps its whole storage: ask the storage for its nbytes().",
    )
    by_first = {t.data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    yield (
        sum(by_first.values()),
        "Views may begin at different numbers: tell storages apart by _cdata.",
    )
    by_address = {one.data_ptr(): one.nbytes() for one in all_storages}
    yield (
        sum(by_address.values()),
        "Without memory, all addresses are 0: tell storages apart by _cdata.",
    )
    yield sum(t.numel() for t in tensors), "That is how many numbers there are. Bytes are wanted."
    yield len(storages), "That is how many storages there are. Their bytes are wanted."
