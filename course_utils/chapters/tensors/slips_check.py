"""What natural slips lead to in the exercises of notebook 02, and what their cases are.

The functions that begin with `of` yield wrong answers with the advice, beside those in `check`.
"""

import operator
from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.core.say import listed
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.judging import Answers, NotYetError, outcome
from course_utils.engine.judging.agreement import is_number, plain
from course_utils.engine.judging.sentences import shown


def of_element(storage: list[int], stride: tuple[int, int], offset: int, i: int, j: int) -> Answers:
    """Yield what comes of other ways to look into the storage."""
    yield (
        outcome(lambda: storage[offset + i * stride[0] + j]),
        "A row's numbers need not lie side by side: in a transpose they don't. Use both strides.",
    )
    yield (
        outcome(lambda: storage[offset + i + j]),
        "A step in a dimension is as long as its stride.",
    )
    yield (
        outcome(lambda: storage[offset + (i + j) * stride[0]]),
        "The columns have a stride of their own: stride[1].",
    )
    yield (
        outcome(lambda: storage(offset)),
        "Round brackets call a function. A list is indexed with square ones.",
    )
    yield (
        outcome(lambda: offset + i * stride),
        "stride is a pair of numbers: that of the rows, and that of the columns.",
    )


def of_dimensions_left_out(are_even: list[bool]) -> Answers:
    """Yield what comes of looking at some dimensions only; `are_even` says which are even."""
    yield (
        are_even[0],
        # The same comes of comparing with steps[0] along each dimension: rows whose steps all equal
        # those of the first row begin at equal distances.
        "That compares along dimension 0 alone. A return inside a loop ends the loop, and steps[0] "
        "is not one number but all steps at index 0.",
    )
    yield (
        all(are_even[1:]),
        # The same comes of a loop over the rows of grid.diff(dim=dimension), for each dimension.
        "Steps along dimension 0 were not compared with each other. Does a range begin at 1, or "
        "does a loop compare only the steps within one row?",
    )
    yield (
        all(are_even[:-1]),
        "The last dimension was not looked at. Does a range end one too early?",
    )
    yield (
        any(are_even),
        "One even dimension is not enough: only after the last one is True the answer.",
    )


def of_steps(grid: Tensor) -> Answers:
    """Yield what comes of comparing the steps along a dimension in another way."""
    dimensions = range(grid.dim())
    all_steps = [grid.diff(dim=dimension) for dimension in dimensions]
    without_steps = "A dimension of size 1 has no steps, so none of them differ."
    yield all(len(steps.unique()) == 1 for steps in all_steps), without_steps
    yield outcome(lambda: all(s.min() == s.max() for s in all_steps)), without_steps
    yield outcome(lambda: all(s.max() == s.min() for s in all_steps)), without_steps
    yield outcome(lambda: all((s == s.flatten()[0]).all() for s in all_steps)), without_steps
    yield (
        all(len(steps) <= 1 for steps in all_steps),
        "len(steps) counts the steps, equal or not. How many different ones are there?",
    )
    yield (
        outcome(lambda: all(len(grid.diff(dim=size).unique()) <= 1 for size in grid.shape)),
        "new_shape holds sizes. Dimensions are numbered from 0: range(len(new_shape)).",
    )


def of_storages(storages: Sequence[object], different: Sequence[object]) -> Answers:
    """Yield wrong sums over the tensors' storages, of which `different` has each one once."""
    sizes = [storage.nbytes() for storage in different]
    yield sum(sizes) * 8, "nbytes() counts bytes, so nothing has to be converted."
    yield sum(sizes) / 8, "nbytes() counts bytes, so nothing has to be converted."
    yield (
        sum(set(sizes)),
        "Two storages can have equally many bytes. What tells them apart is _cdata.",
    )
    yield max(sizes, default=0), "That is the largest storage alone. Add up all of them."
    yield (
        sizes[0] if sizes else None,
        "That is the first storage alone. Does a return in the loop end it too early?",
    )
    yield (
        sizes[-1] if sizes else None,
        "That is the last storage alone. Does each one replace the sum, where it should be added?",
    )
    call_it = "A storage's nbytes is a function: it gives a number only with brackets after it."
    yield outcome(lambda: sum(storage.nbytes for storage in storages)), call_it
    # The same mistake with += has another message.
    yield outcome(lambda: operator.iadd(0, storages[0].nbytes)), call_it


def element_in_words(
    storage: list[int], stride: tuple[int, int], offset: int, i: int, j: int
) -> str:
    """Return the beginning of a verdict's sentence, with a few of the storage's numbers.

    >>> element_in_words([60, 61, 62, 63], (2, 1), 0, 1, 0)
    'With storage = [60, 61, … 63], stride = (2, 1), offset = 0, i = 1 and j = 0'
    """
    numbers = f"storage = [{storage[0]}, {storage[1]}, … {storage[-1]}]"
    arguments = [numbers, f"stride = {stride}", f"offset = {offset}", f"i = {i}", f"j = {j}"]
    return translated("With {arguments}", arguments=listed(arguments))


def walk_in_words(walk: list[int], new_shape: tuple[int, ...]) -> str:
    """Return the beginning of a verdict's sentence, with the first positions and the last one.

    >>> walk_in_words([0, 6, 12, 18, 1, 7, 13, 19], (8,))
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


ADDRESSES = template(
    "An address, such as _cdata, only tells storages apart. Add up each storage's bytes. The sum "
    "of a dict is that of its keys, unless you write .values()."
)
FROM_ADDRESSES_ON = 2**31  # _cdata is an address, and these are larger


def read_bytes(result: object, tensors: Sequence[Tensor]) -> object:
    """Return the reader's result; NotYetError for a dict, or for a sum of addresses.

    These differ in each run, and tell a reader nothing.
    """
    if isinstance(result, dict):
        raise NotYetError("Your function gave a dict. Return the sum of its values, in bytes.")
    number = plain(result)
    bits = 8 * sum(tensor.untyped_storage().nbytes() for tensor in tensors)  # the largest slip
    if is_number(number) and number > max(FROM_ADDRESSES_ON, bits):
        case = list_in_words(tensors)
        sentence = translated("{case}, your function gave no sum of bytes.", case=case)
        words = in_a_row(sentence, translated(ADDRESSES))
        raise NotYetError(words, ADDRESSES, without_case=ADDRESSES)
    return result


def list_in_words(tensors: Sequence[Tensor]) -> str:
    """Return the beginning of a verdict's sentence, which says how many storages there are.

    >>> base = torch.zeros(2, 3)
    >>> list_in_words([base, base.T]), list_in_words([])
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


def lists() -> list[tuple[list[Tensor]]]:
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
