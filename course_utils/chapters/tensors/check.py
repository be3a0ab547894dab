"""The exercises of notebook 02; those of *Beyond* are in `beyond_check`.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake. The decorator makes the check
that a notebook calls with the reader's answer.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import ModuleType

import torch
from torch import Tensor

from course_utils.chapters.tensors.beyond_check import (  # noqa: F401  exercises, too
    cut,
    lines_read,
    may_see,
    positions,
    steps_that_fit,
    strided_windows,
)
from course_utils.engine.judging import Answers, function, outcome


def _slips() -> ModuleType:
    """Return the module on slips and on cases, which no notebook loads before a check."""
    from course_utils.chapters.tensors import slips_check

    return slips_check


def _elements() -> Iterator[tuple[list[int], tuple[int, int], int, int, int]]:
    """Yield (storage, stride, offset, i, j) of three elements of each of seven matrices.

    The matrices share one storage. Their elements are from the second, the first and the last row.
    In the first case, no two of the listed mistakes look at the same number.
    """
    storage = torch.arange(60, 120)
    base = storage.view(6, 10)
    matrices = (
        base[1::2, 2::3].t(),
        base,
        base.t(),
        base[2:, 3:],
        base[:, ::3],
        base[4].expand(5, 10),
        storage[7:].unfold(0, 4, 2),
    )
    for matrix in matrices:
        rows, columns = matrix.shape
        for i, j in ((1, 2), (0, 0), (rows - 1, columns - 1)):
            yield storage.tolist(), matrix.stride(), matrix.storage_offset(), i, j


@function(
    _elements,
    case_words=lambda *case: _slips().element_in_words(*case),
    hints=(
        "A stride says how many positions of the storage one step along its dimension goes: "
        "stride[0] for a row, stride[1] for a column.",
        "Begin at the offset, take i steps of stride[0] and j steps of stride[1], and look there: "
        "storage[position].",
    ),
)
def element(storage: list[int], stride: tuple[int, int], offset: int, i: int, j: int) -> Answers:
    """The check of a reader's element(storage, stride, offset, i, j), which is matrix[i, j]."""
    # Of the matrix, only the part up to row i and column j is made: its shape is not given.
    matrix = torch.tensor(storage).as_strided((i + 1, j + 1), stride, offset)
    yield (
        matrix[i, j].item(),
        "A fresh matrix, a transpose, slices, an expanded row, windows, "
        "and a transpose of a slice.",
    )
    side_by_side = (
        "A row's numbers need not lie side by side: in a transpose they don't. Use both strides."
    )
    yield storage[i * stride[0] + j], side_by_side
    yield storage[offset + i * stride[0] + j], side_by_side
    steps = i * stride[0] + j * stride[1]
    without_offset = storage[steps]
    yield (
        without_offset,
        "The strides are right. A slice begins inside the storage: add its offset.",
    )
    indexed_twice = outcome(lambda: storage[i][j])  # an error, since a number has no index
    yield (
        indexed_twice,
        "The storage is one flat list, whatever the matrix looks like: one number in the brackets.",
    )
    exchanged = outcome(lambda: storage[offset + i * stride[1] + j * stride[0]])
    yield exchanged, "i counts rows, so it steps by the first stride."
    place = offset + steps
    yield place, "That is its position. Look there: storage[...] has the element."
    yield from _slips().of_element(storage, stride, offset, i, j)


# The shape of a tensor, its strides, and the shapes to view it in. No step is made along a
# dimension of size 1, so its stride, here 99, does not matter.
NEW_SHAPES = [
    ((4, 6), (6, 1), [(24,), (2, 12)]),
    # Even along no dimension, the middle one, the last, the first, all but the first and all but
    # the last: with each, one of the listed mistakes shows that did not before.
    ((2, 3, 4), (12, 1, 3), [(4, 6)]),
    ((2, 2, 2, 2, 2), (1, 2, 4, 8, 20), [(4, 2, 4)]),
    ((2, 3, 4), (12, 1, 3), [(4, 3, 2), (2, 4, 3), (6, 2, 2)]),
    ((2, 3, 2, 2), (12, 4, 1, 2), [(3, 2, 4)]),
    ((6, 4), (1, 6), [(24,)]),
    ((3, 5, 4), (4, 12, 1), [(15, 2, 2)]),
    ((4, 3), (6, 2), [(2, 6)]),
    ((4, 4), (1, 4), [(2, 2, 4)]),
    ((6, 4), (1, 6), [(3, 2, 4), (6, 2, 2), (12, 2)]),
    ((3, 2, 4), (4, 12, 1), [(3, 2, 2, 2), (3, 8), (3, 1, 2, 4), (24,)]),
    ((2, 3, 4), (24, 4, 1), [(2, 12), (2, 2, 6), (6, 4)]),
    ((2, 3, 4), (12, 1, 3), [(6, 4), (2, 3, 2, 2)]),
    ((4, 1, 6), (6, 99, 1), [(24,)]),
    ((4, 1, 6), (8, 99, 1), [(2, 2, 6), (8, 3)]),
    ((3, 4), (0, 1), [(12,)]),
    ((3, 4), (0, 0), [(6, 2)]),
    ((3, 4), (0, 1), [(3, 2, 2)]),
    ((5,), (9,), [(5, 1)]),
]


def _walks() -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Yield where each tensor's elements lie, row by row, and the shape to view it in."""
    for shape, stride, new_shapes in NEW_SHAPES:
        # Each number is its own place in the storage: the elements then say where they lie.
        tensor = torch.arange(200).as_strided(shape, stride)
        for new_shape in new_shapes:
            yield tensor.flatten().tolist(), new_shape


@function(
    _walks,
    case_words=lambda *case: _slips().walk_in_words(*case),
    hints=(
        "Look at one dimension at a time. Within it, all steps have to be equal; those of two "
        "dimensions may differ.",
        "Go through the dimensions with range(grid.dim()). One that is not even is enough for "
        "False; for True, all of them have to be even.",
        "len(steps.unique()) > 1 says that steps differ. A dimension of size 1 has no steps, "
        "which is fine.",
    ),
)
def can_view(walk: list[int], new_shape: tuple[int, ...]) -> Answers:
    """The check of a reader's can_view(walk, new_shape): whether view(new_shape) is possible."""
    # `walk` has the places of a tensor's elements in the storage, row by row. A view is possible
    # if, along each of its dimensions, all steps from place to place are equally long.
    dimensions = range(len(new_shape))
    lengths_along = [_step_lengths(walk, new_shape, dimension) for dimension in dimensions]
    are_even = [len(lengths) <= 1 for lengths in lengths_along]
    yield (
        all(are_even),
        "Thirty-one cases, with sizes of 1 and strides of 0 among them, as torch answers.",
    )
    step_lengths = {after - before for before, after in pairwise(walk)}
    can_be_flat = len(step_lengths) == 1
    yield (
        can_be_flat,
        "That is view(-1). Where rows end, the steps may be others: ask along each dimension.",
    )
    is_contiguous = walk == list(range(walk[0], walk[0] + len(walk)))
    yield (
        is_contiguous,
        "That asks if it is contiguous. Steps of 2 are equally long, too.",
    )
    yield (
        are_even[-1],
        "Rows that are even inside are not enough. They have to begin at equal distances, too.",
    )
    yield from _slips().of_steps(torch.tensor(walk).view(new_shape))
    yield from _slips().of_dimensions_left_out(are_even)
    all_lengths = set().union(*lengths_along)
    yield (
        len(all_lengths) <= 1,
        "Each dimension has a stride of its own. Compare the steps along one of them at a time.",
    )
    yield (
        True,
        "That is always True. torch.tensor makes a new tensor, which can be viewed in any shape: "
        "look at the numbers in it.",
    )


def _step_lengths(walk: list[int], shape: tuple[int, ...], dimension: int) -> set[int]:
    """Return the different lengths that steps along this dimension have."""
    size = shape[dimension]
    block = math.prod(shape[dimension + 1 :])  # the elements that a step passes
    lengths = set()
    for end in range(block, len(walk)):
        index = end // block % size
        if index > 0:  # at index 0 the dimension begins anew, so no step along it ends there
            lengths.add(walk[end] - walk[end - block])
    return lengths


# The accountant's term.


@function(
    lambda: _slips().lists(),
    read=lambda *result_and_case: _slips().read_bytes(*result_and_case),
    case_words=lambda *case: _slips().list_in_words(*case),
    unit="bytes",
    hints=(
        "Ask each tensor for its storage. Two views have one storage between them, so tensors "
        "are too many to add up.",
        "Before the loop, make an empty dict; in it, storage._cdata leads to storage.nbytes(). A "
        "storage that comes again only overwrites its own entry. Then add up the values.",
    ),
)
def storage_bytes(tensors: Sequence[Tensor]) -> Answers:
    """The check of a reader's storage_bytes(tensors): each storage counts once, and as a whole."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    # Two storage objects are one storage if they have the same _cdata, torch's pointer to it.
    different = []
    for storage in storages:
        if not any(storage._cdata == earlier._cdata for earlier in different):
            different.append(storage)
    yield (
        sum(storage.nbytes() for storage in different),
        "Seven lists, with views, slices, and tensors without memory.",
    )
    once = "Two views of one storage are in memory only once."
    yield sum(storage.nbytes() for storage in storages), once
    yield sum(tensor.nbytes for tensor in tensors), once
    for views in (tensors, tensors[::-1]):  # of each storage, the last view counts, or the first
        of_one_view = {view.untyped_storage()._cdata: view.nbytes for view in views}
        yield (
            sum(of_one_view.values()),
            "A slice keeps its whole storage: ask the storage for its nbytes().",
        )
    by_first_number = {tensor.data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    yield (
        sum(by_first_number.values()),
        "Views may begin at different numbers: tell storages apart by _cdata.",
    )
    by_address = {storage.data_ptr(): storage.nbytes() for storage in storages}
    yield (
        sum(by_address.values()),
        "Without memory, all addresses are 0: tell storages apart by _cdata.",
    )
    yield from _slips().of_storages(storages, different)
    numbers = sum(tensor.numel() for tensor in tensors)
    yield numbers, "That is how many numbers there are. Bytes are wanted."
    yield len(different), "That is how many storages there are. Their bytes are wanted."
