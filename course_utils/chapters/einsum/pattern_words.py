"""How a reader's pattern differs from ours, in words."""

import itertools
from collections.abc import Iterator, Sequence

from course_utils.core import einsums
from course_utils.core.einsums import Einsum
from course_utils.core.say.language import template, translated
from course_utils.engine.judging.sentences import shown

ONE_NAME_FOR_TWO = template(
    "{pattern} computes something else. It has one name, {name}, for two dimensions, {one} and "
    "{other}: give them two names."
)
TWO_NAMES_FOR_ONE = template(
    "{pattern} computes something else. {one} and {other} are the same dimension on both sides of "
    "the comma: give it one name."
)
NOT_KEPT = template(
    "{pattern} computes something else. A dimension that the result lacks is summed: keep {name}."
)
NOT_SUMMED = template(
    "{pattern} computes something else. A name that is kept is not summed: leave {name} out of "
    "the result."
)
OTHER_ORDER = template(
    "{pattern} has the result's dimensions in another order. The result's order is {names}."
)
NO_COMMA = template(
    "{pattern} names the dimensions of one tensor, and there are two: a comma is missing between "
    "the two tensors."
)
A_COMMA = template("{pattern} has a comma, and there is one tensor: a comma parts two tensors.")


def objection_to(pattern: object, ours: str) -> str:
    """Return what is wrong with a reader's pattern, or "" if only its names differ from `ours`."""
    if not isinstance(pattern, str):
        return translated(
            "a pattern is a string, like 'b d, d k -> b k'; {answer} is none.",
            answer=shown(pattern),
        )
    if "→" in pattern:
        return translated("an arrow is written ->.")
    expected = einsums.parsed(ours)
    of_comma = _of_comma(pattern, len(expected.operands))
    if of_comma:
        return of_comma
    try:
        readers = einsums.parsed(pattern)
    except ValueError as error:
        return str(error)
    ranks = [len(names) for names in expected.operands]
    if [len(names) for names in readers.operands] != ranks:
        wanted = str(ranks[0])
        for rank in ranks[1:]:
            wanted = translated("{number}, then {next}", number=wanted, next=rank)
        return translated(
            "left of the arrow, {pattern} should name this many dimensions: {wanted}.",
            pattern=shown(pattern),
            wanted=wanted,
        )
    return next(_differences(shown(pattern), readers, expected), "")  # the first one, if there is


def _of_comma(pattern: str, tensors: int) -> str:
    """Return what is wrong if a comma between two tensors is missing, or parts one; else "".

    Without it, the names of two tensors look like those of one in which some stand twice.
    """
    left, arrow, _ = pattern.partition("->")
    if not arrow or not left.strip():
        return ""
    if tensors > 1 and "," not in left:
        return translated(NO_COMMA, pattern=shown(pattern))
    if tensors == 1 and "," in left:
        return translated(A_COMMA, pattern=shown(pattern))
    return ""


def _differences(pattern: str, readers: Einsum, expected: Einsum) -> Iterator[str]:
    """Yield a sentence or two for each difference.

    `pattern` is the reader's, as it is quoted, `readers` the same taken apart, and `expected` ours.
    The operands of both have the same ranks. Only the first difference is used. Those in the
    operands come first, because a later sentence may be wrong if there is a difference before it.
    """
    dimensions = itertools.chain(*expected.operands)
    names = itertools.chain(*readers.operands)
    pairs = list(zip(dimensions, names, strict=True))  # what is meant, and the reader's name for it
    yield from _misnamed(pattern, pairs)

    name_of = dict(pairs)
    for dimension, name in name_of.items():
        if dimension in expected.output and name not in readers.output:
            yield translated(NOT_KEPT, pattern=pattern, name=name)
        if dimension not in expected.output and name in readers.output:
            yield translated(NOT_SUMMED, pattern=pattern, name=name)
    order = [name_of[dimension] for dimension in expected.output]
    if list(readers.output) != order:
        yield translated(OTHER_ORDER, pattern=pattern, names=" ".join(order))


def _misnamed(pattern: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield sentences, as `_differences` does, on names in the reader's operands.

    Two dimensions may have one name, or one dimension two names. A pair is a dimension, as our
    pattern calls it, and the reader's name in the same place, such as ("token", "t").
    """
    for (dimension, name), (other, its_name) in itertools.combinations(pairs, 2):
        if dimension != other and name == its_name:
            yield translated(
                ONE_NAME_FOR_TWO,
                pattern=pattern,
                one=dimension,
                other=other,
                name=name,
            )
        if dimension == other and name != its_name:
            yield translated(TWO_NAMES_FOR_ONE, pattern=pattern, one=name, other=its_name)
