"""The exercises of notebook 02; those of *Beyond* are in `beyond_check`.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake. The decorator makes the check
that a notebook calls with the reader's answer.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

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
from course_utils.chapters.tensors.slips_check import (
    of_dimensions_left_out,
    of_steps,
    of_storages,
)
from course_utils.core.say import listed
from course_utils.core.say.language import translated
from course_utils.engine.judging import Answers, NotYetError, function, outcome
from course_utils.engine.judging.agreement import is_number, plain
from course_utils.engine.judging.sentences import shown


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


def _element_in_words(
    storage: list[int], stride: tuple[int, int], offset: int, i: int, j: int
) -> str:
    """Return the beginning of a verdict's sentence, with a few of the storage's numbers.

    >>> _element_in_words([60, 61, 62, 63], (2, 1), 0, 1, 0)
    'With storage = [60, 61, … 63], stride = (2, 1), offset = 0, i = 1 and j = 0'
    """
    numbers = f"storage = [{storage[0]}, {storage[1]}, … {storage[-1]}]"
    arguments = [numbers, f"stride = {stride}", f"offset = {offset}", f"i = {i}", f"j = {j}"]
    return translated("With {arguments}", arguments=listed(arguments))


@function(
    _elements,
    case_words=_element_in_words,
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
    both = "A row's numbers need not lie side by side: in a transpose they don't. Use both strides."
    yield storage[i * stride[0] + j], both
    yield outcome(lambda: storage[offset + i * stride[0] + j]), both
    yield (
        outcome(lambda: storage[offset + i + j]),
        "A step in a dimension is as long as its stride.",
    )
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
    yield (
        outcome(lambda: storage[offset + (i + j) * stride[0]]),
        "The columns have a stride of their own: stride[1].",
    )
    place = offset + steps
    yield place, "That is its position. Look there: storage[...] has the element."
    yield (
        outcome(lambda: storage(place)),
        "Round brackets call a function. A list is indexed with square ones.",
    )
    yield (
        outcome(lambda: offset + i * stride),
        "stride is a pair of numbers: that of the rows, and that of the columns.",
    )


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


def _walk_in_words(walk: list[int], new_shape: tuple[int, ...]) -> str:
    """Return the beginning of a verdict's sentence, with the first positions and the last one.

    >>> _walk_in_words([0, 6, 12, 18, 1, 7, 13, 19], (8,))
    'For the positions 0, 6, 12, 18, 1, 7, … 19 and the new shape (8,)'
    """
    *others, last = map(str, walk)
    begin = ", ".join(others[:6])
    dots = " …" if len(others) > 6 else ""
    return translated(
        "For the positions {positions} and the new shape {shape}",
        positions=f"{begin},{dots} {last}",
        shape=new_shape,
    )


@function(
    _walks,
    case_words=_walk_in_words,
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
    yield from of_steps(torch.tensor(walk).view(new_shape))
    yield (
        are_even[0],
        # The same comes of comparing with steps[0] along each dimension: rows whose steps all equal
        # those of the first row begin at equal distances.
        "That compares along dimension 0 alone. A return inside a loop ends the loop, and steps[0] "
        "is not one number but all steps at index 0.",
    )
    yield from of_dimensions_left_out(are_even)
    all_lengths = set().union(*lengths_along)
    yield (
        len(all_lengths) <= 1,
        "Each dimension has a stride of its own. Compare the steps along one of them at a time.",
    )
    yield True, "That is what reshape does, by copying."


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


class _Uncopied(list):
    """A list of tensors on the device "meta", which is passed to a reader's function as it is.

    Other arguments are passed as deep copies. The copy of a view without memory would no longer be
    a view.
    """

    def __deepcopy__(self, _: dict) -> "_Uncopied":
        return self

    def __repr__(self) -> str:
        """Return the tensors' shapes, as a verdict shows them for any other list of tensors."""
        return shown([*self])


def _lists() -> list[tuple[list[Tensor]]]:
    """Return lists of tensors: views of one storage, clones, none at all, and without memory."""
    base = torch.arange(24.0).view(4, 6)
    other = torch.zeros(3, dtype=torch.float64)
    large_meta = torch.empty(1 << 20, 8, device="meta")
    small_meta = torch.empty(3, 8, device="meta")
    return [
        ([base],),
        ([base, base.T],),
        ([base[1]],),
        ([other.expand(5, 3), base[:2], base[2:], torch.zeros(12)],),
        ([base, base.clone()],),
        ([],),
        # Two storages that have no address. The second tensor is a view of the first, and would be
        # no view in a deep copy.
        (_Uncopied([large_meta, large_meta[0], small_meta]),),
    ]


ADD_VALUES = "That adds up the keys of your dict, which are no bytes. Add up its values."
FROM_ADDRESSES_ON = 2**31  # no case has so many bytes, and _cdata is an address, which is larger


def _read_bytes(result: object, _: Sequence[Tensor]) -> object:
    """Return the reader's result; NotYetError for a dict, or for a sum of a dict's keys.

    These differ in each run, and tell a reader nothing.
    """
    if isinstance(result, dict):
        raise NotYetError("Your function gave a dict. Return the sum of its values, in bytes.")
    number = plain(result)
    if is_number(number) and number > FROM_ADDRESSES_ON:
        raise NotYetError(ADD_VALUES)
    return result


def _list_in_words(tensors: Sequence[Tensor]) -> str:
    """Return the beginning of a verdict's sentence, which says how many storages there are.

    >>> base = torch.zeros(2, 3)
    >>> _list_in_words([base, base.T]), _list_in_words([])
    ('For tensors of shape (2, 3) and (3, 2) in 1 storage', 'For an empty list')
    """
    if not tensors:
        return translated("For an empty list")
    shapes = listed([tuple(tensor.shape) for tensor in tensors])
    count = len({tensor.untyped_storage()._cdata for tensor in tensors})
    if len(tensors) == 1:
        return translated("For a tensor of shape {shape}", shape=shapes)
    if count == 1:
        return translated("For tensors of shape {shapes} in 1 storage", shapes=shapes)
    return translated(
        "For tensors of shape {shapes} in {count} storages", shapes=shapes, count=count
    )


@function(
    _lists,
    read=_read_bytes,
    case_words=_list_in_words,
    unit="bytes",
    hints=(
        "Ask each tensor for its storage. Two views have one storage between them, so tensors "
        "are too many to add up.",
        "Before the loop, make an empty dict; in it, storage._cdata leads to storage.nbytes(). A "
        "storage that comes again overwrites itself. Then add up the values.",
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
    of_last_view = {tensor.untyped_storage()._cdata: tensor.nbytes for tensor in tensors}
    yield (
        sum(of_last_view.values()),
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
    yield from of_storages(storages, different)
    numbers = sum(tensor.numel() for tensor in tensors)
    yield numbers, "That is how many numbers there are. Bytes are wanted."
    yield len(different), "That is how many storages there are. Their bytes are wanted."
