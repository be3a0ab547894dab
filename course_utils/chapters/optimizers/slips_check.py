"""Slips of those who write the state's bytes on a GPU, or AdamW's step, with the advice on each."""

import math
import operator
from collections.abc import Callable

from course_utils.chapters.optimizers.cases import held_bytes
from course_utils.chapters.optimizers.state_in_words import Recipe
from course_utils.core.accountant import BYTES, SHARDED_FROM
from course_utils.core.say import Number
from course_utils.engine.judging import Answers

Held = dict[str, Number]


def of_the_stage(numbers: int, recipe: Recipe, share: int, stage: int) -> Answers:
    """Yield states in which the wrong parts are sharded, each with the advice on the mistake."""
    since = "A part that is sharded from a stage on stays sharded in all later stages: >=."
    in_this_one = [part for part in recipe if SHARDED_FROM[part] == stage]
    yield held_bytes(numbers, recipe, share, in_this_one), since
    from_here_on = [part for part in recipe if SHARDED_FROM[part] >= stage]
    yield held_bytes(numbers, recipe, share, from_here_on), since
    whole = [part for part in recipe if SHARDED_FROM[part] > stage]
    exchanged = "A GPU holds its share of a sharded part, and all numbers of any other."
    yield held_bytes(numbers, recipe, share, whole), exchanged


def of_the_share(one_more: Held, of_one_parameter: Held) -> Answers:
    """Yield states in which a GPU's share is wrong; each argument is what such a slip gives."""
    yield one_more, "If numbers is a multiple of gpus, there is nothing to round up."
    yield of_one_parameter, "That is for one parameter. The model has `numbers` of them."


def of_rounded_bytes(unrounded: Held) -> Answers:
    """Yield the whole bytes that a reader gets who divides the bytes, and not the numbers."""
    rounded_up = {part: math.ceil(nbytes) for part, nbytes in unrounded.items()}
    yield rounded_up, "Round up the numbers, not the bytes."
    rounded_down = {part: math.floor(nbytes) for part, nbytes in unrounded.items()}
    yield (
        rounded_down,
        "That divides the bytes, and rounds down. Divide the numbers, rounded up.",
    )


def of_the_table(stage: int) -> Answers:
    """Yield the errors of a reader who compares the stage with all of SHARDED_FROM."""
    for compare in (operator.ge, operator.lt, operator.gt, operator.le):
        yield (
            _error_of(compare, stage, SHARDED_FROM),
            "SHARDED_FROM is a dict: compare the stage with the number of this part, "
            "SHARDED_FROM[part].",
        )


def of_squares(state: tuple, with_rmsprops_beta: tuple) -> Answers:
    """Yield slips with AdamW's average of squares; `state` has what the step is given."""
    yield with_rmsprops_beta, "0.99 is RMSProp's α. In AdamW, v fades by 0.999."
    _, _, _, v, *_ = state
    yield _error_of(math.sqrt, v), "math.sqrt takes a single number. A tensor has v.sqrt()."


def _error_of(call: Callable, *arguments: object) -> Exception:
    """Return the error with which a call stops, whatever this release of Python or torch says."""
    try:
        call(*arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        return error
    raise AssertionError("The call was to stop with an error.")


def of_the_dict(right: Held) -> Answers:
    """Yield the right bytes in another form than a dict of all parts."""
    yield list(right.values()), "Return a dict, with the name of each part as its key."
    first_part, *_ = right
    yield {first_part: right[first_part]}, "That is the first part alone: return after the loop."


def of_bytes(right: dict[str, int], recipe: Recipe) -> Answers:
    """Yield states with wrong bytes for a number, each with the advice on the mistake."""
    in_bits = {part: 8 * nbytes for part, nbytes in right.items()}
    yield in_bits, "Those are bits. BYTES says the bytes."
    counts = {}
    for part, dtypes in recipe.items():
        bytes_each = sum(BYTES[dtype] for dtype in dtypes)
        counts[part] = len(dtypes) * right[part] // max(bytes_each, 1)
    looked_up = "Dtypes differ in their bytes: look each of them up in BYTES."
    yield counts, looked_up
    yield {part: 4 * count for part, count in counts.items()}, looked_up
    first_dtypes, *_ = recipe.values()
    yield KeyError(first_dtypes), "A part has several dtypes: look up each, and add their bytes."
