"""A check with other cases, drawn from a seed, so that an answer that only knows the open cases fails.

A case is drawn by changing the numbers of an open one. It counts if the listed answers agree on it just as on the open
one: then each mistake shows where it showed before, and gets the same advice. If none is found, the open case stays.
"""

import functools
import random
from dataclasses import replace
from itertools import combinations, islice
from unittest import mock

import torch

from course_utils.core.accountant import Model
from course_utils.engine.judging import sentences
from course_utils.engine.judging.agreement import agree, same
from course_utils.engine.judging.exercises import Check, function
from course_utils.engine.judging.verdict import Verdict

MOST, TRIES = 100, 99  # cases of a check, one of which has 5,000; draws for one case
FLAGS = range(-1, 4)  # integers that are rather a flag, a place or a stage than a size: they stay
FREE = ("inner", "vocabulary", "context")  # sizes of a model on which no other depends
DRAWN_BY_TORCH = "accumulated"  # the exercise that has torch's own seed, and no list of cases
Case = tuple[object, ...]


def drawn_anew(check: Check, seed: int) -> Check:
    """The same exercise's check with cases drawn from the seed. A check that has no cases stays as it is."""
    draw = random.Random(f"{check.__name__} {seed}")
    if check.__name__ == DRAWN_BY_TORCH:
        return _seeded(check, draw.getrandbits(32))
    if not hasattr(check, "asked"):
        return check
    cases = check.asked["cases"]
    cases = [*islice(cases() if callable(cases) else cases, MOST)]
    # Once or twice, so that no answer goes by the order alone.
    drawn = [_drawn(check, case, draw) for case in cases for _ in range(draw.randint(1, 2))]
    return function(**check.asked | {"cases": drawn})(check.__wrapped__)


def _drawn(check: Check, case: Case, draw: random.Random) -> Case:
    wanted, another = _agreeing(check, case), OWN.get(check.__name__, _changed)
    drawn = (another(case, draw) for _ in range(TRIES))
    return next(
        (new for new in drawn if not same(new, case) and _agreeing(check, new) == wanted), case
    )


def _agreeing(check: Check, case: Case) -> list[bool] | None:
    """Whether any two of the listed answers are the same on this case; None if the case has no answer."""
    try:
        listed = [came for came, _ in check.__wrapped__(*case)]
    except Exception:
        return None
    listed = [
        f"{type(x)} {sentences.said_by(x)}" if isinstance(x, Exception) else x for x in listed
    ]
    return [agree(one, other, check.asked["tolerance"]) for one, other in combinations(listed, 2)]


def _changed(x: object, draw: random.Random) -> object:
    """x with some of its numbers changed: sizes grow, other numbers shrink, and those of a tensor change places, too."""
    if isinstance(x, torch.Tensor):
        by = torch.Generator().manual_seed(draw.getrandbits(32))
        mixed = x.flatten()[torch.randperm(x.numel(), generator=by)].reshape(x.shape)
        return (
            mixed * (1 - torch.rand(x.shape, generator=by) / 5) if x.is_floating_point() else mixed
        )
    if isinstance(x, list | tuple):
        return type(x)(_changed(part, draw) for part in x)
    if isinstance(x, Model):
        return replace(x, **{size: _changed(getattr(x, size), draw) for size in FREE})
    if isinstance(x, float) and draw.random() < 0.7:
        return x * draw.uniform(0.8, 1)
    if isinstance(x, int) and x not in FLAGS and draw.random() < 0.7:
        step = min(x & -x, 4)  # what is even stays even
        return x + step * draw.randint(1, max(1, x // step // 3))
    return x


def _other_bits(case: Case, draw: random.Random) -> Case:
    """A pattern of the same width that ends in as many zeros, as one between two others does."""
    bits, *widths = case
    last = bits & -bits or 1
    drawn = draw.getrandbits(1 + sum(widths) if widths else 32)
    return type(bits)((drawn // last | 1) * last), *widths


def _further_on(case: Case, draw: random.Random) -> Case:
    """The same walk from another place on, or through every second or third number."""
    step, begin = draw.choice((1, 1, 2, 3)), draw.randint(1, 99)
    return [begin + step * place for place in case[0]], case[1]


def _longer(case: Case, draw: random.Random) -> Case:
    """Each storage several times as long, and its views with a first dimension for that."""
    times, storages, views = draw.randint(2, 9), {}, []
    for x in case[0]:
        n = x.untyped_storage().nbytes() // x.itemsize
        whole = storages.setdefault(x.untyped_storage()._cdata, x.new_zeros(times * n))
        views.append(whole.as_strided((times, *x.shape), (n, *x.stride()), x.storage_offset()))
    return (type(case[0])(views),)


OWN = {"by_formula": _other_bits, "can_view": _further_on, "storage_bytes": _longer}


def _seeded(check: Check, seed: int) -> Check:
    """The check whose tensors come from another seed."""
    set_seed = torch.manual_seed

    @functools.wraps(check)
    def drawn(answer: object) -> Verdict:
        with mock.patch.object(torch, "manual_seed", lambda own: set_seed(own + seed)):
            return check(answer)

    return drawn
