"""Notebook 03's six patterns. Each is judged by its result; a wrong one is told what it does instead."""

import itertools
import re
from collections.abc import Callable, Iterator

import einops
import torch

from course_utils import einsums
from course_utils.checks.judging import Answers, NotYetError, call, value
from course_utils.checks.judging.agreement import near
from course_utils.checks.judging.exercises import NotAttemptedError
from course_utils.checks.judging.sentences import shown
from course_utils.einsums import Einsum
from course_utils.quantities import listed

SIZES = {"batch": 2, "token": 3, "width": 4, "place": 3, "row": 3, "column": 5}
SIZES |= {"head": 3, "query": 4, "key": 5, "d": 6}
OURS = {
    "sum": "batch token width -> batch",
    "transpose": "batch token width -> batch width token",
    "dot": "place, place ->",
    "outer": "row, column -> row column",
    "scores": "batch head query d, batch head key d -> batch head query key",
    "mix": "batch head query key, batch head key d -> batch head query d",
}
WRITTEN_OUT: dict[str, Callable[..., torch.Tensor]] = {  # what each is to give, by another route
    "sum": lambda a: a.sum((1, 2)),
    "transpose": lambda a: a.transpose(1, 2),
    "dot": lambda u, v: sum(x * y for x, y in zip(u, v, strict=True)),
    "outer": lambda u, v: torch.stack([x * v for x in u]),
    "scores": lambda q, k: torch.stack([(q[..., i, None, :] * k).sum(-1) for i in range(4)], dim=-2),
    "mix": lambda w, v: torch.stack([(w[..., i, :, None] * v).sum(-2) for i in range(4)], dim=-2),
}


def _read_patterns(answer: object) -> object:
    """All six patterns, if they are right; else a NotYetError on the first that is wrong."""
    wanted = f"A dict of patterns is wanted, with the names {listed(list(OURS))}"
    if not isinstance(answer, dict):
        raise NotYetError(f"{wanted}; {shown(answer)} is none.")
    if set(answer) != set(OURS):
        raise NotYetError(f"{wanted}, and no others.")
    opened = [name for name in OURS if answer[name] is ...]
    if len(opened) == len(OURS):
        raise NotAttemptedError
    for name in OURS:
        if name not in opened and (wrong := _objection_to(name, answer[name])):
            raise NotYetError(f"{name}: {wrong}")
    if opened:
        raise NotYetError(f"What you wrote is right. Still open: {listed(opened)}.")
    return OURS


@value(wanted="a pattern for each of the six", read=_read_patterns)
def patterns() -> Answers:
    """Six einsum patterns: a sum, a transpose, two products of vectors, the two of attention."""
    yield dict(OURS), "All six agree with sums and products that were written out."


def _objection_to(name: str, pattern: object) -> str:
    """What is wrong with the pattern of that name, or an empty string."""
    if not isinstance(pattern, str):
        return f"a pattern is a string, like 'b d, d k -> b k'; {shown(pattern)} is none."
    try:
        came = einsums.parsed(pattern)
    except ValueError as error:
        words = re.sub(r"If every letter.*", "Put spaces between the names, as in 'b d, d k'.", str(error))
        twice = "Two dimensions need two names." if "twice" in words else ""
        return f"{words} {twice}".strip()
    expected = einsums.parsed(OURS[name])
    shapes = [[SIZES[dimension] for dimension in operand] for operand in expected.operands]
    ranks = list(map(len, shapes))
    if [len(names) for names in came.operands] != ranks:
        return f"in front of the arrow, {shown(pattern)} should name {_counted(ranks)}."
    draw = torch.Generator().manual_seed(3)
    tensors = [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes]
    result, error = call(einops.einsum, *tensors, pattern)
    if not error and near(result, WRITTEN_OUT[name](*tensors), 1e-9):
        return ""
    if advice := next(_other_products(came, expected), ""):
        return f"{shown(pattern)} is another product. {advice}"
    *_, last = str(error).strip().splitlines()
    return f"einops says: {last.strip().rstrip('.')}."


def _counted(ranks: list[int]) -> str:
    """How many dimensions each operand has.

    >>> _counted([4, 4]), _counted([3])
    ('4 dimensions, then 4', '3 dimensions')
    """
    first, *rest = ranks
    return ", then ".join([f"{first} dimension{'s' * (first > 1)}", *map(str, rest)])


def _other_products(came: Einsum, expected: Einsum) -> Iterator[str]:
    """Sentences on what makes it another product than the one that is meant."""
    meant = list(itertools.chain(*expected.operands))
    pairs = list(zip(meant, itertools.chain(*came.operands), strict=True))
    for (one, ours), (other, theirs) in itertools.combinations(pairs, 2):
        if one != other and ours == theirs:
            yield f"{one.capitalize()} and {other} are two dimensions, and you call both {ours}: give them two names."
        if one == other and ours != theirs:
            yield f"The {one} is the same dimension on both sides of the comma: give it one name."
    called = dict(pairs)
    for name, ours in called.items():
        if name in expected.output and ours not in came.output:
            yield f"A dimension that the result lacks is summed: keep {ours}."
        if name not in expected.output and ours in came.output:
            yield f"A name that is kept is not summed: leave {ours} out of the result."
    order = [called[name] for name in expected.output]
    if list(came.output) != order:
        yield f"The result's order is {' '.join(order)}."
