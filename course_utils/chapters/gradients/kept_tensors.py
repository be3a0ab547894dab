"""What a wrong answer to "What a layer keeps" counts, found without reading its code.

A layer keeps tensors that are each as wide as one of the model's sizes. If that size is 1 larger,
the bytes grow by exactly those tensors. So the reader's function is called with one size changed
after the other, and so is the right sum.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from course_utils.chapters.gradients.parts import of_layer_bytes
from course_utils.core.accountant import BYTES, Model
from course_utils.core.say import number_text
from course_utils.core.say.language import template, translated
from course_utils.engine.judging import call
from course_utils.engine.judging.agreement import is_number, near, plain

Case = tuple[Model, int, int, str]  # the model, the batch, the sequence and the dtype
LayerBytes = Callable[..., float]  # takes the parts of a case
SAME = 1e-9  # relative: how far rounding may move a sum
# The names of the two kinds that are not counted as so many tensors of one size.
HEAD_NORMS = template("head norms' inputs")
ROW_SUMS = template("row sums")
RIGHT = template("{counted} ✓")
TOO_FEW = template("{counted} (too few)")
TOO_MANY = template("{counted} (too many)")
LEFT_OUT = template("no {name}")
COUNTED = template("For each token, your function counts {tensors}.")
NOT_TWICE = template(
    "With twice the {argument}, a layer keeps twice the bytes, but your function gives {times} "
    "times as many."
)
AS_BEFORE = template(
    "With twice the {argument}, a layer keeps twice the bytes, but your function gives as many as "
    "before."
)
EVERY_DTYPE = template(
    "Your function gives as many bytes in fp32 as in bf16, but a number takes BYTES[dtype] of them."
)
NO_HEAD_WIDTH = template(
    "Your function does not use m.head_width, but a head need not be m.width / m.heads wide."
)
NO_SUM = template(
    "For each token, every tensor that is kept has one of the sizes in the picture. "
    "Your function counts something else, too."
)


def what_is_counted(answer: Callable[..., object], case: Case) -> str:
    """Return a sentence on what the reader's function counts; empty if that cannot be told."""

    def theirs(*case: object) -> float:
        result, error = call(answer, *case)
        number = plain(result)
        # NaN equals nothing, so that nothing is said about a function that gives no number.
        return number if is_number(number) and not error else math.nan

    m, batch, sequence, dtype = case
    now = theirs(*case)
    if not abs(now) > 0:  # also for NaN
        return ""
    growth_by_argument = {
        "batch": theirs(m, 2 * batch, sequence, dtype) / now,
        "sequence": theirs(m, batch, 2 * sequence, dtype) / now,
    }
    for argument, times in growth_by_argument.items():
        if near(times, 1, SAME):
            return translated(AS_BEFORE, argument=argument)
        if not near(times, 2, SAME):
            return translated(NOT_TWICE, argument=argument, times=number_text(times, 3))
    in_bf16 = theirs(m, batch, sequence, "bf16")
    if near(theirs(m, batch, sequence, "fp32"), in_bf16, SAME):
        return translated(EVERY_DTYPE)
    return _in_tensors(theirs, case)


def _in_tensors(theirs: LayerBytes, case: Case) -> str:
    """Return a sentence with the tensors that the function counts, or why there is no such list."""
    counted = _counts(theirs, case)
    sizes = _sizes(case)
    numbers = sum(count * sizes[name] for name, count in counted.items())
    if not near(numbers, _numbers_of_a_token(theirs, case), SAME):
        return _on_no_sum(theirs, case)
    wanted = _counts(lambda *case: sum(of_layer_bytes(*case).values()), case)
    words = _in_words(counted, wanted)
    return translated(COUNTED, tensors=", ".join(words))


def _on_no_sum(theirs: LayerBytes, case: Case) -> str:
    """Return a sentence on a function that is no sum of tensors, each as wide as a size."""
    m, *others = case
    if near(theirs(replace(m, head_width=2 * m.head_width), *others), theirs(*case), SAME):
        return translated(NO_HEAD_WIDTH)
    return translated(NO_SUM)


def _in_words(counted: dict[str, float], wanted: dict[str, float]) -> Iterator[str]:
    """Yield each count in words, with a ✓ or with whether it is too low or too high."""
    for name, count in counted.items():
        if name in (HEAD_NORMS, ROW_SUMS):
            words = translated(name if count else LEFT_OUT, name=translated(name))
        else:
            words = f"{number_text(count, 3)} · {name}"
        if near(count, wanted[name], SAME):
            yield translated(RIGHT, counted=words)
        elif name in (HEAD_NORMS, ROW_SUMS) and not count:
            yield words
        else:
            remark = TOO_FEW if count < wanted[name] else TOO_MANY
            yield translated(remark, counted=words)


def _numbers_of_a_token(layer_bytes: LayerBytes, case: Case) -> float:
    """Return the bytes by the function, as numbers of the case's dtype for each token."""
    _, batch, sequence, dtype = case
    return layer_bytes(*case) / (batch * sequence * BYTES[dtype])


def _sizes(case: Case) -> dict[str, float]:
    """Return how many numbers each kind of tensor has for a token, by the name of the kind."""
    m, _, _, dtype = case
    queries = m.heads * m.head_width
    keys = m.kv_heads * m.head_width
    return {
        "m.width": m.width,
        "m.heads · m.head_width": queries,
        "m.kv_heads · m.head_width": keys,
        "m.inner": m.inner,
        HEAD_NORMS: queries + keys,
        ROW_SUMS: m.heads * BYTES["fp32"] / BYTES[dtype],
    }


def _counts(layer_bytes: LayerBytes, case: Case) -> dict[str, float]:
    """Return how many tensors of each kind a function counts, as far as the model has the kind."""
    m, *others = case
    sizes = _sizes(case)

    def numbers(**changed: int) -> float:
        """Return the numbers of a token in the model without head norms, some sizes changed."""
        plain_model = replace(m, head_norms=False, **changed)
        return _numbers_of_a_token(layer_bytes, (plain_model, *others))

    now = numbers()
    wider = m.head_width + 1
    by_wider_heads = numbers(head_width=wider) - now
    # Of a tensor with m.heads · m.head_width numbers, one more head adds one number more if the
    # heads are wider by 1.
    by_a_head = numbers(heads=m.heads + 1) - now
    by_a_wider_head = numbers(heads=m.heads + 1, head_width=wider) - now
    by_a_kv_head = numbers(kv_heads=m.kv_heads + 1) - now
    by_a_wider_kv_head = numbers(kv_heads=m.kv_heads + 1, head_width=wider) - now
    queries = by_a_wider_head - by_a_head - by_wider_heads
    row_sums = by_a_head - queries * m.head_width  # numbers for each head
    counts = {
        "m.width": numbers(width=m.width + 1) - now,
        "m.heads · m.head_width": queries,
        "m.kv_heads · m.head_width": by_a_wider_kv_head - by_a_kv_head - by_wider_heads,
        "m.inner": numbers(inner=m.inner + 1) - now,
        HEAD_NORMS: (_numbers_of_a_token(layer_bytes, case) - now) / sizes[HEAD_NORMS],
        ROW_SUMS: row_sums * m.heads / sizes[ROW_SUMS],
    }
    if not m.head_norms:
        del counts[HEAD_NORMS]
    # Rounded, so that the difference of two large numbers is whole again.
    return {name: round(count, 6) for name, count in counts.items()}
