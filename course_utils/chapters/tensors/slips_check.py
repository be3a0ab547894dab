"""What natural slips lead to in the exercises of notebook 02, beside the mistakes in `check`.

Each function yields wrong answers with the advice.
"""

import operator
from collections.abc import Sequence

from torch import Tensor

from course_utils.engine.judging import Answers, outcome


def of_dimensions_left_out(are_even: list[bool]) -> Answers:
    """Yield what comes of looking at some dimensions only; `are_even` says which are even."""
    yield all(are_even[1:]), "Dimension 0 was not looked at: range(1, n) begins at 1."
    yield all(are_even[:-1]), "The last dimension was not looked at: range(n - 1) ends at n - 2."
    yield (
        any(are_even),
        "One even dimension is not enough: that it is True is known only after the last.",
    )


def of_steps(grid: Tensor) -> Answers:
    """Yield what comes of comparing the steps along a dimension in another way."""
    dimensions = range(grid.dim())
    all_steps = [grid.diff(dim=dimension) for dimension in dimensions]
    yield (
        all(len(steps.unique()) == 1 for steps in all_steps),
        "A dimension of size 1 has no steps, so none of them differ.",
    )
    yield (
        all(len(steps) <= 1 for steps in all_steps),
        "len(steps) counts the steps, equal or not. How many different ones are there?",
    )
    yield (
        outcome(lambda: all(len(grid.diff(dim=size).unique()) <= 1 for size in grid.shape)),
        "new_shape has sizes. The dimensions are their numbers, from 0 on: range(len(new_shape)).",
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
    call_it = "nbytes of a storage is a function: only with brackets behind it, it gives a number."
    yield outcome(lambda: sum(storage.nbytes for storage in storages)), call_it
    total = 0
    for storage in storages[:1]:
        # The same mistake with += has another message.
        yield outcome(lambda storage=storage: operator.iadd(total, storage.nbytes)), call_it
