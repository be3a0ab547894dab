"""The exercises of notebook 03."""

import itertools
import math
from collections.abc import Iterator

import torch

from course_utils.chapters import by_torch
from course_utils.chapters.small_models import EACH
from course_utils.core import einsums
from course_utils.core.accountant import Model
from course_utils.core.einsums import Einsum
from course_utils.core.say import listed
from course_utils.engine.judging import Answers, NotYetError, function, outcome, value
from course_utils.engine.judging.exercises import NotAttemptedError
from course_utils.engine.judging.sentences import shown


def _columns() -> list[tuple[torch.Tensor, int, int]]:
    sizes = (
        ((2, 4, 6), 1, 2),
        ((4, 6), 0, 3),
        ((3, 5, 12), 2, 4),
        ((1, 2, 8), 7, 8),
        ((2, 3, 24), 3, 4),
    )
    return [
        (torch.arange(math.prod(shape)).view(shape), head, heads) for shape, head, heads in sizes
    ]


def _not_sliced(way: str) -> str:
    return (
        f"Those are the right columns, but {way} is what your slices will judge, and whoever takes "
        "the same route can make the same mistake. Slice the width: x[..., begin:end]."
    )


NOT_SLICED = {
    "rearrange": _not_sliced("a pattern"),
    "view": _not_sliced("a view"),
    "reshape": _not_sliced("reshape, a view or a copy,"),
}


@function(_columns, without=NOT_SLICED)
def columns_of_head(x: torch.Tensor, head: int, heads: int) -> Answers:
    """The columns that belong to one head, by slicing alone."""
    places = x.shape[-1] // heads
    mine = [column for column in range(x.shape[-1]) if column // places == head]
    right = torch.stack([x[..., column] for column in mine], dim=-1)
    yield right, "Column by column, it is the head's own part of the width."
    every = "Those columns are not neighbours, as by (place head). A head's columns are."
    yield x[..., head::heads], every
    heads_wide = x[..., head * heads : (head + 1) * heads]
    yield heads_wide, "A head has width // heads columns, and not as many as there are heads."
    one_on = x[..., head : head + places]
    yield one_on, "The earlier heads' columns come first: begin at head × the width of a head."
    of_second = x[:, head * places : (head + 1) * places]
    yield of_second, "That cuts the second dimension. The width is the last one: x[..., begin:end]."
    one_less = x[..., head * places : (head + 1) * places - 1]
    yield one_less, "A slice leaves its end out: do not subtract 1."
    yield x.reshape(heads, -1, places)[head], "That cuts between tokens, as x.view(2, 4, 3) does."
    divided = outcome(lambda: x[..., int(head) * x.shape[-1] / heads :])
    yield divided, "Whole numbers are wanted: // instead of /."


SIX_PATTERNS = {
    "sum": "batch token width -> batch",
    "transpose": "batch token width -> batch width token",
    "dot": "place, place ->",
    "outer": "row, column -> row column",
    "scores": "batch head query d, batch head key d -> batch head query key",
    "mix": "batch head query key, batch head key d -> batch head query d",
}


def _read_patterns(answer: object) -> object:
    """All six patterns, if they are right; else a NotYetError on the first that is wrong."""
    wanted = f"A dict of patterns is wanted, with the names {listed(list(SIX_PATTERNS))}"
    if not isinstance(answer, dict):
        raise NotYetError(f"{wanted}; {shown(answer)} is none.")
    if set(answer) != set(SIX_PATTERNS):
        raise NotYetError(f"{wanted}, and no others.")
    opened = [name for name in SIX_PATTERNS if answer[name] is ...]
    if len(opened) == len(SIX_PATTERNS):
        raise NotAttemptedError
    for name, ours in SIX_PATTERNS.items():
        if name not in opened and (wrong := _objection_to(answer[name], einsums.parsed(ours))):
            raise NotYetError(f"{name}: {wrong}")
    if opened:
        raise NotYetError(f"What you wrote is right. Still open: {listed(opened)}.")
    return SIX_PATTERNS


@value(wanted="a pattern for each of the six", read=_read_patterns)
def patterns() -> Answers:
    """Six einsum patterns: a sum, a transpose, two products of vectors, the two of attention."""
    yield (
        dict(SIX_PATTERNS),
        "All six say the product that is meant, whatever its dimensions are called.",
    )


def _objection_to(pattern: object, expected: Einsum) -> str:
    """What makes the pattern another product than the expected one; nothing if only its names differ."""
    if not isinstance(pattern, str):
        return f"a pattern is a string, like 'b d, d k -> b k'; {shown(pattern)} is none."
    if "→" in pattern:
        return "an arrow is written ->."
    try:
        came = einsums.parsed(pattern)
    except ValueError as error:
        return f"{error} Two dimensions need two names." if "twice" in str(error) else str(error)
    ranks = [len(names) for names in expected.operands]
    if [len(names) for names in came.operands] != ranks:
        many = ", then ".join(map(str, ranks))
        return f"in front of the arrow, {shown(pattern)} should name so many dimensions: {many}."
    advice = next(_differences(came, expected), "")
    return advice and f"{shown(pattern)} is another product. {advice}"


def _differences(came: Einsum, expected: Einsum) -> Iterator[str]:
    """A sentence on each difference between two patterns whose operands have as many dimensions."""
    meant = itertools.chain(*expected.operands)
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


# The accountant's term.


@function(EACH)
def matrices(m: Model) -> Answers:
    """A reader's matrices(m): the name of each matrix of a layer, with (inputs, outputs)."""
    right = by_torch.matrices(m)
    yield right, "As torch builds them: a GPT-2, a Llama and a Qwen."
    turned = {name: shape[::-1] for name, shape in right.items()}
    yield turned, "Inputs first, then outputs: x W has W of (D, K)."
    all_heads = dict.fromkeys(("key", "value"), right["query"])
    yield right | all_heads, "Keys and values have kv_heads heads, and not all."
    square = dict.fromkeys(("query", "out"), (m.width, m.width))
    yield right | square, "Queries are heads × head_width wide, which need not be the width."
    yield right | {"out": right["query"]}, "out leads back, from heads × head_width to the width."
    yield right | {"down": right["up"]}, "down leads back, from inner to the width."
    yield right | {"gate": right["up"]}, "There is a gate only if m.gated."
    ungated = {name: shape for name, shape in right.items() if name != "gate"}
    yield ungated, "If m.gated, there is a gate, with the shape of up."
