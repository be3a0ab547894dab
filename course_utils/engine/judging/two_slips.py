"""Two slips at once in the parts of a sum: with two parts, or with one part.

They are tried where no single slip explains a wrong answer. Many pairs are possible, so one may
give the reader's number by chance. A pair is named only if at least two cases are wrong, if it
explains every case, and if no other pair does so with other parts. Slips that readers seldom make
are not tried in pairs: a part that is as large as another, or counted four times.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from course_utils.core.accountant import Model
from course_utils.core.say import Number
from course_utils.engine.judging.agreement import is_number, plain
from course_utils.engine.judging.exercises import Outcome, PartsOf
from course_utils.engine.judging.slips import (
    HALF,
    LEFT_OUT,
    OF_ONE_LAYER,
    SAME,
    TWICE,
    Parts,
    Slip,
)

Pair = tuple[Slip, Slip]
LIKELIEST_FIRST = (LEFT_OUT, TWICE, OF_ONE_LAYER, HALF)


@dataclass(frozen=True)
class Judged:
    """A case, the parts of its right answer, and the number that the reader's function gave."""

    case: tuple[object, ...]
    parts: Parts
    number: Number

    def is_given_by(self, *slips: Slip) -> bool:
        """Whether a reader who makes these slips gets the number; without slips, if it is right."""
        wanted = sum(self.parts.values())
        if slips:
            wanted += _change(slips, self.parts, self.case)
        return math.isclose(self.number, wanted, rel_tol=SAME)


def explaining_pair(
    past: Sequence[Outcome],
    further: Sequence[Outcome],
    parts_of: PartsOf,
) -> Pair | None:
    """Return the likeliest two slips that explain the result in every case, or None.

    `past` and `further` are as in `in_parts`: the last result of `past` is wrong.
    """
    all_judged = []
    for case, result, error in (past[-1], *past[:-1], *further):
        number = plain(result)
        if is_number(number) and not error:
            parts = parts_of(*case)
            all_judged.append(Judged(case, parts, number))
    wrong = [judged for judged in all_judged if not judged.is_given_by()]
    if len(wrong) < 2:
        return None
    first = wrong[0]
    fitting = _pairs(first.parts, first.case)
    for judged in all_judged:  # the first one leaves few pairs
        fitting = [pair for pair in fitting if judged.is_given_by(*pair)]
    return _likeliest(fitting)


def _likeliest(pairs: Sequence[Pair]) -> Pair | None:
    """Return the likeliest pair; None if they have different parts, or if two are as likely."""
    if len({_names(pair) for pair in pairs}) != 1:
        return None
    ranked = sorted(pairs, key=_rank)
    best = ranked[0]
    as_likely = [pair for pair in ranked if _rank(pair) == _rank(best)]
    return best if len(as_likely) == 1 else None


def _names(pair: Pair) -> frozenset[str]:
    first, second = pair
    return frozenset(first.names + second.names)


def _rank(pair: Pair) -> int:
    return sum(LIKELIEST_FIRST.index(slip.how) for slip in pair)


def _pairs(parts: Parts, case: Sequence[object]) -> Iterator[Pair]:
    """Yield all pairs of slips: with two parts, or with one of which one layer is counted."""
    has_layers = any(isinstance(given, Model) for given in case)
    kinds = [how for how in LIKELIEST_FIRST if has_layers or how != OF_ONE_LAYER]
    for name, other in combinations(parts, 2):
        for how, also in product(kinds, repeat=2):
            yield Slip((name,), how), Slip((other,), also)
    if has_layers:
        for name in parts:
            of_one_layer = Slip((name,), OF_ONE_LAYER)
            for also in (TWICE, HALF):
                yield of_one_layer, Slip((name,), also)


def _change(pair: Pair, parts: Parts, case: Sequence[object]) -> Number:
    """Return what both slips add to the sum."""
    counted = dict(parts)
    for slip in pair:
        (name,) = slip.names
        counted[name] = _counted(slip, counted[name], case)
    return sum(counted.values()) - sum(parts.values())


def _counted(slip: Slip, size: Number, case: Sequence[object]) -> Number:
    """Return as how large a reader who makes this slip counts a part of this size."""
    if slip.how == LEFT_OUT:
        return 0
    if slip.how == TWICE:
        return 2 * size
    if slip.how == HALF:
        return size / 2
    (model,) = (given for given in case if isinstance(given, Model))
    return size / model.layers


def slips_in(pair: Pair, parts: Parts, case: Sequence[object]) -> list[Slip]:
    """Return those slips of the pair that change something in this case, at least one."""
    changing = []
    for slip in pair:
        (name,) = slip.names
        size = parts[name]
        if _counted(slip, size, case) != size:
            changing.append(slip)
    return changing or list(pair)
