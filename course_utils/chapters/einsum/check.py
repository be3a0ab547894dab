"""The exercises of notebook 03; those of *Beyond* are in `beyond_check`.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake. The decorator makes the check
that a notebook calls with the reader's answer.
"""

import math
from collections.abc import Iterator, Mapping

import torch

from course_utils.chapters import by_torch
from course_utils.chapters.einsum.beyond_check import (  # noqa: F401  exercises, too
    chain_flops,
    grouped_scores,
    patches_of,
    pattern_flops,
    sizes_of,
)
from course_utils.chapters.einsum.pattern_words import objection_to
from course_utils.chapters.small_models import EACH, case_in_words
from course_utils.core.accountant import Model
from course_utils.core.say import listed
from course_utils.core.say.language import template, translated
from course_utils.engine.judging import Answers, NotYetError, function, outcome, value
from course_utils.engine.judging.exercises import NotAttemptedError
from course_utils.engine.judging.sentences import shown


def _heads() -> Iterator[tuple[torch.Tensor, int, int]]:
    """Yield a tensor of different numbers, the index of a head, and how many heads there are."""
    for shape, head, heads in (
        ((2, 4, 6), 1, 2),
        ((4, 6), 0, 3),
        ((3, 5, 12), 2, 4),
        ((1, 2, 8), 7, 8),
        ((2, 3, 24), 3, 4),
    ):
        yield torch.arange(math.prod(shape)).view(shape), head, heads


def _not_sliced(way: str) -> str:
    """Return the verdict on a function that returns the right columns by `way` and not by a slice.

    `way` is such as "a view". Later in the notebook the reader's slices judge a split by a view or
    a pattern, so the slices may not be made by one.
    """
    return (
        f"Those are the right columns, but {way} is what your slices will judge, and whoever takes "
        "the same route can make the same mistake. Slice the width: x[..., begin:end]."
    )


# For each forbidden call, the verdict on a function that makes it and is otherwise right.
NOT_SLICED = {
    "rearrange": _not_sliced("a pattern"),
    "view": _not_sliced("a view"),
    "reshape": _not_sliced("reshape, a view or a copy,"),
}


@function(_heads, without=NOT_SLICED)
def columns_of_head(x: torch.Tensor, head: int, heads: int) -> Answers:
    """The check of a reader's columns_of_head(x, head, heads): one head's columns, by slicing."""
    width = x.shape[-1]
    head_width = width // heads
    columns = [x[..., column] for column in range(width) if column // head_width == head]
    right = torch.stack(columns, dim=-1)
    yield right, "Column by column, it is the head's own part of the width."
    yield (
        x[..., head::heads],
        "Those columns are dealt out, as by (place head). A head has neighbouring columns.",
    )
    as_wide_as_heads = x[..., head * heads : (head + 1) * heads]
    yield as_wide_as_heads, "A head has width // heads columns, and not as many as there are heads."
    from_head = x[..., head : head + head_width]
    yield from_head, "The earlier heads' columns come first: begin at head × the width of a head."
    of_tokens = x[:, head * head_width : (head + 1) * head_width]
    yield of_tokens, "That cuts the second dimension. The width is the last one: x[..., begin:end]."
    one_less = x[..., head * head_width : (head + 1) * head_width - 1]
    yield one_less, "A slice leaves its end out: do not subtract 1."
    between_tokens = x.reshape(heads, -1, head_width)[head]
    yield between_tokens, "That cuts between tokens, as x.view(2, 4, 3) does."
    # A slice cannot begin at a float, so this is an error, and `outcome` returns it.
    divided = outcome(lambda: x[..., head * width / heads :])
    yield divided, "Whole numbers are wanted: // instead of /."


SIX_PATTERNS = {
    "sum": "batch token width -> batch",
    "transpose": "batch token width -> batch width token",
    "dot": "place, place ->",
    "outer": "row, column -> row column",
    "scores": "batch head query d, batch head key d -> batch head query key",
    "mix": "batch head query key, batch head key d -> batch head query d",
}


NO_DICT = template("A dict of patterns is wanted, with the names {names}; {answer} is none.")
OTHER_NAMES = template("A dict of patterns is wanted, with the names {names}, and no others.")

PATTERN_HINTS = (
    "A name that the result lacks is summed. Left of the arrow, a comma parts two tensors.",
    "Give one name to dimensions that are multiplied number by number, and two to all others.",
)


def _read_patterns(answer: object) -> object:
    """Return our six patterns if the reader's are right, whatever their dimensions are called.

    If all six are still `...`, raise a NotAttemptedError. If some are `...` or wrong, raise a
    NotYetError that goes through all six.
    """
    names = listed(list(SIX_PATTERNS))
    if not isinstance(answer, dict):
        raise NotYetError(translated(NO_DICT, names=names, answer=shown(answer)))
    if set(answer) != set(SIX_PATTERNS):
        raise NotYetError(translated(OTHER_NAMES, names=names))
    still_open = [name for name in SIX_PATTERNS if answer[name] is ...]
    if len(still_open) == len(SIX_PATTERNS):
        raise NotAttemptedError
    written = {name: answer[name] for name in SIX_PATTERNS if name not in still_open}
    right, wrong = _right_and_wrong(written)
    if not (wrong or still_open):
        return SIX_PATTERNS
    lines = [f"{', '.join(right)}."] if right else []
    lines += wrong
    rest = ""
    if still_open:
        rest = translated("Still open: {names}.", names=listed(still_open))
        lines.append(rest)
    # With advice, no hint comes: whoever has gone right so far needs none.
    raise NotYetError("\n".join(lines), advice="" if wrong else rest)


def _right_and_wrong(written: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the names of the right patterns, each with a ✓, and a line on each wrong one."""
    right = []
    wrong = []
    for name, pattern in written.items():
        objection = objection_to(pattern, SIX_PATTERNS[name])
        if objection:
            wrong.append(translated("{name}: {objection}", name=name, objection=objection))
        else:
            right.append(f"{name} ✓")
    return right, wrong


@value(
    wanted="a pattern for each of the six",
    read=_read_patterns,
    hints=PATTERN_HINTS,
)
def patterns() -> Answers:
    """The check of a reader's six patterns, in which `_read_patterns` finds what is wrong."""
    yield (
        dict(SIX_PATTERNS),  # a copy, because a reader who gets our answer may change it
        "All six say what is meant, whatever the dimensions are called.",
    )


# The accountant's term.


@function(
    EACH,
    case_words=case_in_words,
    hints=(
        "All queries together are m.heads * m.head_width numbers wide, all keys and all values "
        "m.kv_heads * m.head_width. Neither need be m.width.",
        "query, key and value read m.width numbers. out reads the merged heads, so its inputs are "
        "as many as the query's outputs, and it returns m.width.",
        "up and gate lead from m.width to m.inner, down leads back. Only a gated model has a gate.",
    ),
)
def matrices(m: Model) -> Answers:
    """The check of a reader's matrices(m): (inputs, outputs) of each matrix of a layer, by name."""
    right = by_torch.matrices(m)
    yield right, "It agrees with what torch builds: a GPT-2, a Llama and a Qwen."
    exchanged = {name: (outputs, inputs) for name, (inputs, outputs) in right.items()}
    yield exchanged, "Inputs first, then outputs: x W has W of (D, K)."
    all_heads = right | {"key": right["query"], "value": right["query"]}
    yield all_heads, "Keys and values have kv_heads heads, and not all."
    width_by_width = (m.width, m.width)
    yield (
        right | {"query": width_by_width, "out": width_by_width},
        "Queries are heads × head_width wide, which need not be the width.",
    )
    yield right | {"out": right["query"]}, "out leads back, from heads × head_width to the width."
    yield right | {"down": right["up"]}, "down leads back, from inner to the width."
    yield right | {"gate": right["up"]}, "There is a gate only if m.gated."
    ungated = {name: shape for name, shape in right.items() if name != "gate"}
    yield ungated, "If m.gated, there is a gate, with the shape of up."
    yield from _of_one_head(m, right)
    products = {name: inputs * outputs for name, (inputs, outputs) in right.items()}
    yield products, "Return the pair (inputs, outputs) of each matrix, and not its product."


def _of_one_head(m: Model, right: Mapping[str, tuple[int, int]]) -> Answers:
    """Yield the shapes if matrices of attention are as wide as a single head."""
    all_heads = "m.head_width is the width of one head. Each matrix serves all of its heads."
    of_one = (m.width, m.head_width)
    query = {"query": of_one}
    keys = {"key": of_one, "value": of_one}
    out = {"out": (m.head_width, m.width)}
    for wrong in (query, keys, query | keys, query | out, query | keys | out):
        yield right | wrong, all_heads
