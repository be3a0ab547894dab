"""A check with other cases, drawn from a seed.

The open cases are those that everybody can read in the course's code. An answer that is right for
the open cases alone fails on the drawn ones. A case is drawn by changing the numbers of an open
case. An exercise lists the right answer and wrong ones; the drawn case is used if any two of them
agree on it exactly where they agree on the open case. Then each mistake shows where it showed
before, and gets the same advice. If no such case is found, the open case stays.
"""

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, islice
from unittest import mock

import torch

from course_utils.core.accountant import Model
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.errors import said_by
from course_utils.engine.judging.exercises import Check, function
from course_utils.engine.judging.verdict import Verdict

MOST = 100  # cases of a check that are drawn anew; one of the checks has 5,000
TRIES = 99  # draws for one case
# An integer in this range is not changed: it is more likely a flag, an index or a stage of ZeRO
# than a size.
FLAGS = range(-1, 4)
FREE = ("inner", "vocabulary", "context")  # sizes of a model on which no other depends
DRAWN_BY_TORCH = "accumulated"  # the exercise without cases, whose tensors torch draws from a seed
Case = tuple[object, ...]


def drawn_anew(check: Check, seed: int) -> Check:
    """Return a check of the same exercise, with cases drawn from the seed.

    With it, answers that a class has handed in can be graded on cases that nobody has seen. A check
    that has no cases is returned as it is.
    """
    draw = random.Random(f"{check.__name__} {seed}")
    if check.__name__ == DRAWN_BY_TORCH:
        return _seeded(check, draw.getrandbits(32))
    if not hasattr(check, "asked"):  # only `function` makes checks that have cases
        return check
    open_cases = check.asked["cases"]
    if callable(open_cases):
        open_cases = open_cases()
    drawn = []
    for case in list(islice(open_cases, MOST)):
        # Each case is drawn once or twice, so that no answer knows a case by counting its calls.
        for _ in range(draw.randint(1, 2)):
            drawn.append(_drawn(check, case, draw))
    options = {**check.asked, "cases": drawn}
    make_check = function(**options)  # the decorator with which an exercise becomes a check
    exercise = check.__wrapped__  # the function that was decorated: it yields the listed answers
    return make_check(exercise)


def _drawn(check: Check, case: Case, draw: random.Random) -> Case:
    """Return a changed case on which the same listed answers agree as on `case`.

    So the same mistakes give a wrong result on both cases, and each gets the same advice. If no
    such case is found in TRIES draws, `case` itself is returned.
    """
    wanted = _agreeing(check, case)
    change = OWN_WAYS.get(check.__name__, _changed)
    for _ in range(TRIES):
        new = change(case, draw)
        if not same(new, case) and _agreeing(check, new) == wanted:
            return new
    return case


def _agreeing(check: Check, case: Case) -> list[bool] | None:
    """Return for each pair of the listed answers whether the two agree on this case.

    The listed answers are the exercise's right one and its wrong ones. The result is None if the
    exercise raises an error on the case, as it may on a drawn one.
    """
    try:
        answers = [answer for answer, _ in check.__wrapped__(*case)]
    except Exception:
        return None
    comparable = []  # the answers, with an error as its type and message
    for answer in answers:
        if isinstance(answer, Exception):
            comparable.append(f"{type(answer)} {said_by(answer)}")
        else:
            comparable.append(answer)
    tolerance = check.asked["tolerance"]
    return [agree(one, other, tolerance) for one, other in combinations(comparable, 2)]


def _changed(x: object, draw: random.Random) -> object:
    """Return x with about 7 in 10 of its numbers changed, at random.

    Integers grow, by at most a third or one step; integers among FLAGS stay, and so do True and
    False. Floats shrink by up to a fifth. Tensors are changed as a whole.
    """
    if isinstance(x, torch.Tensor):
        return _changed_tensor(x, draw)
    if isinstance(x, list | tuple):
        return type(x)(_changed(part, draw) for part in x)
    if isinstance(x, Model):
        sizes = {name: _changed(getattr(x, name), draw) for name in FREE}
        return replace(x, **sizes)
    if isinstance(x, float) and draw.random() < 0.7:
        return x * draw.uniform(0.8, 1)
    if isinstance(x, int) and x not in FLAGS and draw.random() < 0.7:
        power_of_two = x & -x  # the largest one that divides x
        step = min(power_of_two, 4)  # so that an even number stays even
        most_steps = max(1, x // step // 3)
        return x + step * draw.randint(1, most_steps)
    return x


def _changed_tensor(x: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """Return the tensor's numbers in another order; floats also shrink, by up to a fifth."""
    generator = torch.Generator().manual_seed(draw.getrandbits(32))
    order = torch.randperm(x.numel(), generator=generator)
    mixed = x.flatten()[order].reshape(x.shape)
    if not x.is_floating_point():
        return mixed
    return mixed * (1 - torch.rand(x.shape, generator=generator) / 5)


def _other_bits(case: Case, draw: random.Random) -> Case:
    """Return another pattern of bits, as wide as the open one and with as many zeros at its end.

    A case of `by_formula` has the bits, and the numbers of exponent and fraction bits, such as
    (0b0_10000_1000000000, 5, 10).
    """
    bits, exponent_bits, fraction_bits = case
    # 0b1000 for 0b11000: the lowest bit that is set. In the pattern 0, none is.
    lowest_bit = max(bits & -bits, 1)
    width = 1 + exponent_bits + fraction_bits  # with the sign's bit
    drawn = draw.getrandbits(width)
    multiple = drawn // lowest_bit
    odd = multiple | 1  # so that no more zeros come to stand at the end
    return odd * lowest_bit, exponent_bits, fraction_bits


def _further_on(case: Case, draw: random.Random) -> Case:
    """Return the places of the open case moved on, perhaps two or three times as far apart.

    A case of `can_view` has the places of a tensor's elements in its storage, and a shape, such as
    ([0, 2, 4, 6], (2, 2)).
    """
    step = draw.choice((1, 1, 2, 3))  # with 1, as in half of the draws, distances stay
    begin = draw.randint(1, 99)
    places, shape = case
    return [begin + step * place for place in places], shape


def _longer(case: Case, draw: random.Random) -> Case:
    """Return the tensors of a case of `storage_bytes` as views of longer storages.

    A storage of n elements becomes one of `times` × n. A view of shape (2, 3) becomes one of shape
    (times, 2, 3): the old view in each stretch of n elements. So views that share a storage still
    do, and views with gaps keep them; `_changed` would lose both.
    """
    times = draw.randint(2, 9)
    longer_storages = {}
    views = []
    (tensors,) = case  # a case has one argument, a list of tensors
    for x in tensors:
        storage = x.untyped_storage()
        elements = storage.nbytes() // x.itemsize
        if storage._cdata not in longer_storages:  # _cdata is the same for all views of a storage
            # The answer is a number of bytes, so the numbers in the storage may be zeros.
            longer_storages[storage._cdata] = x.new_zeros(times * elements)
        longer = longer_storages[storage._cdata]
        shape = (times, *x.shape)
        stride = (elements, *x.stride())
        views.append(longer.as_strided(shape, stride, x.storage_offset()))
    return (type(tensors)(views),)


def _in_equal_parts(case: Case, draw: random.Random) -> Case:
    """Return a case with more parameters or layers; what its GPUs share, they still divide."""
    numbers, *others = case
    return (numbers * draw.randint(2, 50), *others)


# How a case of these exercises is changed, by the exercise's name; for all others it is `_changed`.
OWN_WAYS: dict[str, Callable[[Case, random.Random], Case]] = {
    "by_formula": _other_bits,
    "can_view": _further_on,
    "context_parallel_bytes": _in_equal_parts,
    "data_parallel_bytes": _in_equal_parts,
    "storage_bytes": _longer,
}


def _seeded(check: Check, seed: int) -> Check:
    """Return the check, with `seed` added to each seed that it passes to torch.manual_seed.

    So the check tries an answer with other random tensors.
    """
    set_seed = torch.manual_seed

    def set_other_seed(seed_of_check: int) -> torch.Generator:
        return set_seed(seed_of_check + seed)

    @functools.wraps(check)
    def check_with_other_seed(answer: object) -> Verdict:
        with mock.patch.object(torch, "manual_seed", set_other_seed):
            return check(answer)

    return check_with_other_seed
