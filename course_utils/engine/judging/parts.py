"""An answer in parts: which part of a sum explains a wrong one.

An exercise whose answer is a sum may name its parts and their sizes. If an answer is wrong, the
slips that a reader makes with a part are tried: it is left out, counted twice, as large as another
part, or counted to a fraction. A slip explains the answer if it gives exactly what came, in this
case and in those before it, in which the answer was right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from course_utils.core.accountant import Model
from course_utils.core.say import Number, listed
from course_utils.engine.judging.agreement import is_number, near, plain
from course_utils.engine.judging.sentences import number_in_full

Parts = Mapping[str, Number]
PartsOf = Callable[..., Parts]  # takes a case
SAME = 1e-9  # relative: two sums of the same numbers may differ in their last bits
LEFT_OUT = "left out"
TWICE = "counted twice"
NO_PART = "No single part explains the difference."
MOST = 1e30  # more than any count of the course
FRACTIONS = (2, 3, 4, 8)  # 8 bits in a byte, and the small numbers of tensors that are alike
MOST_THAT_FIT = 3  # parts of one size that are named in one sentence


@dataclass(frozen=True)
class Slip:
    """What was done to some parts of the sum, in words."""

    names: tuple[str, ...]
    how: str


def in_parts(
    past: Sequence[tuple[tuple, object]], parts_of: PartsOf, unit: str, *, is_advised: bool
) -> tuple[str, bool]:
    """The sentence on a wrong sum, and whether a part explains the difference.

    `past` has each case so far with what came; the last one is wrong. The sentence is empty if what
    came there is no number that can be subtracted. If the reader `is_advised` on a listed mistake,
    only a part that is left out or counted twice is named, because another explanation may
    contradict the advice.
    """
    case, came = past[-1]
    came = plain(came)
    if not is_number(came) or not -MOST < came < MOST:
        return "", False
    parts = parts_of(*case)
    right = sum(parts.values())
    amount = _apart(came - right)
    slips = _that_explain(past, parts_of)
    if is_advised and any(slip.how not in (LEFT_OUT, TWICE) for slip in slips):
        slips = []
    gave = f"gave {number_in_full(came)} instead of {number_in_full(right)} {unit}".strip()
    if not slips:
        return f"{gave}, {amount}.", False
    return f"{gave}. {_checklist(parts, slips, amount)}", True


def _apart(difference: Number) -> str:
    if difference < 0:
        return f"{number_in_full(-difference)} short"
    is_count = difference == int(difference)
    return f"{number_in_full(difference)} too {'many' if is_count else 'much'}"


def _checklist(parts: Parts, slips: Sequence[Slip], amount: str) -> str:
    """The parts that are right, each with a ✓, and then the ones that the slips are about."""
    wrong = {name for slip in slips for name in slip.names}
    words = [f"{name} ✓" for name, size in parts.items() if size and name not in wrong]
    names = " or ".join(listed(slip.names) for slip in slips)
    words.append(f"{names} {slips[0].how}: {amount}.")
    checklist = ", ".join(words)
    return checklist[0].upper() + checklist[1:]


def _that_explain(past: Sequence[tuple[tuple, object]], parts_of: PartsOf) -> list[Slip]:
    """The likeliest slips that explain what came in every case; none if they are too many.

    If they are several, they are one slip with parts of the same size.
    """
    fitting: dict[Slip, int] = {}
    for number, (case, came) in enumerate(past):
        parts = parts_of(*case)
        changes = _changes(parts, case)
        right = sum(parts.values())
        explaining = {}
        for slip, (rank, change) in changes.items():
            is_known = number == 0 or slip in fitting
            if is_known and near(plain(came), right + change, SAME):
                explaining[slip] = rank
        fitting = explaining
    likeliest = min(fitting.values(), default=0)
    slips = [slip for slip, rank in fitting.items() if rank == likeliest]
    are_alike = len({slip.how for slip in slips}) == 1
    is_clear = len(slips) == 1 or all(len(slip.names) == 1 for slip in slips)
    if are_alike and is_clear and len(slips) <= MOST_THAT_FIT:
        return slips
    return []


def _changes(parts: Parts, case: Sequence[object]) -> dict[Slip, tuple[int, Number]]:
    """By slip, its rank, where the likeliest has the lowest, and what it adds to the sum."""
    ranked = {}
    for rank, group in enumerate(_groups(parts, case)):
        for slip, change in group.items():
            ranked[slip] = (rank, change)
    return ranked


def _groups(parts: Parts, case: Sequence[object]) -> Iterator[dict[Slip, Number]]:
    """Yield slips with what each adds to the sum, the likeliest first."""
    yield {Slip((name,), LEFT_OUT): -size for name, size in parts.items()}
    yield {Slip((name,), TWICE): size for name, size in parts.items()}
    for count in range(2, len(parts)):
        left_out = {}
        for names in combinations(parts, count):
            left_out[Slip(names, LEFT_OUT)] = -sum(parts[name] for name in names)
        yield left_out
    for model in case:
        # Of two layers, a half may be anything, and not one layer alone.
        if isinstance(model, Model) and model.layers > 2:
            rest = 1 / model.layers - 1
            yield {Slip((name,), "of one layer alone"): rest * parts[name] for name in parts}
    as_large = {}
    for name, other in permutations(parts, 2):
        slip = Slip((name,), f"as large as {other}")
        as_large[slip] = parts[other] - parts[name]
    yield as_large
    for n in FRACTIONS:
        share = "half" if n == 2 else f"1/{n}"
        yield {Slip((name,), f"only {share} counted"): (1 / n - 1) * parts[name] for name in parts}
        if n > 2:
            yield {Slip((name,), f"counted {n} times"): (n - 1) * parts[name] for name in parts}
