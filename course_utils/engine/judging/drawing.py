"""A check with other cases, drawn from a seed.

An answer that only knows the open cases fails on them. A case is drawn by changing the numbers of
an open one. It counts if the listed answers agree on it just as on the open one: then each mistake
shows where it showed before, and gets the same advice. If no such case is found, the open one
stays.
"""

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, islice
from unittest import mock

import torch

from course_utils.core.accountant import Model
from course_utils.engine.judging import sentences
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.exercises import Check, function
from course_utils.engine.judging.verdict import Verdict

MOST = 100  # cases of a check; one of the checks has 5,000
TRIES = 99  # draws for one case
FLAGS = range(-1, 4)  # such an integer is rather a flag, an index or a stage than a size: it stays
FREE = ("inner", "vocabulary", "context")  # sizes of a model on which no other depends
DRAWN_BY_TORCH = "accumulated"  # the exercise that has torch's own seed, and no list of cases
Case = tuple[object, ...]


def drawn_anew(check: Check, seed: int) -> Check:
    """The same exercise's check with cases drawn from the seed.

    A check that has no cases stays as it is.
    """
    draw = random.Random(f"{check.__name__} {seed}")
    if check.__name__ == DRAWN_BY_TORCH:
        return _seeded(check, draw.getrandbits(32))
    if not hasattr(check, "asked"):
        return check
    open_cases = check.asked["cases"]
    if callable(open_cases):
        open_cases = open_cases()
    drawn = []
    for case in list(islice(open_cases, MOST)):
        # Each case is drawn once or twice, so that no answer goes by the order alone.
        for _ in range(draw.randint(1, 2)):
            drawn.append(_drawn(check, case, draw))
    make_check = function(**check.asked | {"cases": drawn})
    return make_check(check.__wrapped__)


def _drawn(check: Check, case: Case, draw: random.Random) -> Case:
    """Another case on which the listed answers agree as on this one; this one if none is found."""
    wanted = _agreeing(check, case)
    change = OWN_WAYS.get(check.__name__, _changed)
    for _ in range(TRIES):
        new = change(case, draw)
        if not same(new, case) and _agreeing(check, new) == wanted:
            return new
    return case


def _agreeing(check: Check, case: Case) -> list[bool] | None:
    """Whether any two of the listed answers are the same on this case.

    None if the case has no answer.
    """
    try:
        answers = [answer for answer, _ in check.__wrapped__(*case)]
    except Exception:
        return None
    comparable = []
    for answer in answers:
        if isinstance(answer, Exception):
            answer = f"{type(answer)} {sentences.said_by(answer)}"
        comparable.append(answer)
    tolerance = check.asked["tolerance"]
    return [agree(one, other, tolerance) for one, other in combinations(comparable, 2)]


def _changed(x: object, draw: random.Random) -> object:
    """x with some of its numbers changed: sizes grow, and other numbers shrink."""
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
        largest_power = x & -x  # of two that divides x
        step = min(largest_power, 4)  # so that what is even stays even
        most_steps = max(1, x // step // 3)
        return x + step * draw.randint(1, most_steps)
    return x


def _changed_tensor(x: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """The tensor's numbers in another order; floats are made smaller, too."""
    generator = torch.Generator().manual_seed(draw.getrandbits(32))
    order = torch.randperm(x.numel(), generator=generator)
    mixed = x.flatten()[order].reshape(x.shape)
    if not x.is_floating_point():
        return mixed
    return mixed * (1 - torch.rand(x.shape, generator=generator) / 5)


def _other_bits(case: Case, draw: random.Random) -> Case:
    """Another pattern of the same width, which ends in as many zeros as the open one."""
    bits, *widths = case
    last = max(bits & -bits, 1)  # the last bit that is set
    width = 1 + sum(widths) if widths else 32
    drawn = draw.getrandbits(width)
    multiple = drawn // last | 1
    return type(bits)(multiple * last), *widths


def _further_on(case: Case, draw: random.Random) -> Case:
    """The same walk that begins further on, or that takes every second or third number."""
    step = draw.choice((1, 1, 2, 3))
    begin = draw.randint(1, 99)
    walk, shape = case
    return [begin + step * place for place in walk], shape


def _longer(case: Case, draw: random.Random) -> Case:
    """Each storage several times as long, and its views with a first dimension for that."""
    times = draw.randint(2, 9)
    longer_storages = {}
    views = []
    (tensors,) = case
    for x in tensors:
        storage = x.untyped_storage()
        elements = storage.nbytes() // x.itemsize
        if storage._cdata not in longer_storages:  # _cdata is the same for all views of a storage
            longer_storages[storage._cdata] = x.new_zeros(times * elements)
        longer = longer_storages[storage._cdata]
        shape = (times, *x.shape)
        stride = (elements, *x.stride())
        views.append(longer.as_strided(shape, stride, x.storage_offset()))
    return (type(tensors)(views),)


OWN_WAYS: dict[str, Callable[[Case, random.Random], Case]] = {
    "by_formula": _other_bits,
    "can_view": _further_on,
    "storage_bytes": _longer,
}


def _seeded(check: Check, seed: int) -> Check:
    """The check whose tensors come from another seed."""
    set_seed = torch.manual_seed

    def set_other_seed(own: int) -> torch.Generator:
        return set_seed(own + seed)

    @functools.wraps(check)
    def drawn(answer: object) -> Verdict:
        with mock.patch.object(torch, "manual_seed", set_other_seed):
            return check(answer)

    return drawn
