"""Slips of those who write a step's FLOPs and bytes, each with the advice on it."""

from collections.abc import Iterator

from course_utils.core.accountant import BYTES, LOGIT_BYTES, Model
from course_utils.core.say import Number
from course_utils.core.say.language import template
from course_utils.engine.judging import Answers, outcome

ROWS = template("There are batch × sequence rows, in the output and in a layer's last product.")


def run_again(m: Model, recomputed: int, forward: int, output: int, down: int) -> Answers:
    """Yield wrong FLOPs of what runs again, each with the advice on the mistake.

    `output` and `down` have the FLOPs of these two products.
    """
    layer = (forward - output) // m.layers
    yield recomputed * layer, "Recomputing stops early: a layer's last product is not needed again."
    yield 0, "A recomputed layer runs forward once more."
    yield recomputed * forward, "One layer runs forward again, and not the whole model."
    yield forward, "Only `recomputed` layers run again, and not the whole model."
    with_output = "The output's product is no part of a layer: it is not recomputed."
    yield recomputed * (forward // m.layers - down), with_output
    yield recomputed * forward // m.layers - recomputed * down, with_output
    yield (
        recomputed * layer - down,
        "Each recomputed layer leaves its last product out: are there brackets?",
    )
    yield (
        recomputed * (layer + down),
        "A layer's last product does not run again: that is less, and not more.",
    )
    no_two = "A product takes 2 FLOPs for each multiplication: is the 2 in both that you subtract?"
    half_output = (forward - output // 2) // m.layers
    yield recomputed * (layer - down // 2), no_two
    yield recomputed * (half_output - down), no_two
    yield recomputed * (half_output - down // 2), no_two
    undivided = "The layers share what is left of the forward pass. What is one layer's share?"
    yield recomputed * (forward - output - down), undivided
    yield m.layers * (layer - down), "Not all layers run again, but `recomputed` of them."
    exchanged = (m.layers - recomputed) * (layer - down)
    yield exchanged, "`recomputed` says how many layers run again, and not how many are kept."
    square = down * m.width // m.inner
    yield (
        recomputed * (layer - square),
        "In a layer's last product, rows of m.inner numbers become rows of m.width.",
    )
    yield recomputed * (layer - output), "A layer's last product is its own, and not the output's."


def of_fewer_rows(
    m: Model, batch: int, sequence: int, recomputed: int, forward: int
) -> Iterator[int]:
    """Yield wrong FLOPs of what runs again, if the rows of a product are miscounted.

    They may be one row, or those of the batch or the sequence alone, in one product or in both.
    """
    rows = batch * sequence
    for mistaken in (1, batch, sequence):
        for down_rows, output_rows in ((mistaken, mistaken), (mistaken, rows), (rows, mistaken)):
            output = 2 * output_rows * m.width * m.vocabulary
            down = 2 * down_rows * m.inner * m.width
            yield recomputed * ((forward - output) // m.layers - down)


def of_loss(m: Model, batch: int, sequence: int, dtype: str, right: int) -> Answers:
    """Yield sums whose loss is wrong, each with the advice on the mistake."""
    logits = batch * sequence * m.vocabulary
    without = right - LOGIT_BYTES * logits
    yield without, "The loss holds three fp32 tensors of the logits' shape: 12 bytes a logit."
    in_fp32 = "LOGIT_BYTES takes the place of a dtype's bytes: the loss holds three fp32 tensors."
    yield without + 4 * logits, in_fp32
    yield without + BYTES[dtype] * logits, in_fp32
    yield without + 8 * logits, "The loss holds three tensors of the logits' shape, and not two."
    yield without + logits, "That counts the logits. Each of them takes LOGIT_BYTES."
    bytes_of_bytes = without + LOGIT_BYTES * logits * BYTES[dtype]
    yield bytes_of_bytes, "LOGIT_BYTES are bytes already: multiply them by the number of logits."
    of_one_sequence = without + LOGIT_BYTES * logits // batch
    yield of_one_sequence, "Each sequence of the batch has logits: a factor is missing in the loss."
    of_one_token = without + LOGIT_BYTES * logits // sequence
    yield of_one_token, "Each token has logits: a factor is missing in the loss."
    of_a_vocabulary = without + LOGIT_BYTES * m.vocabulary
    two_missing = "Each token of each sequence has logits: two factors are missing in the loss."
    yield of_a_vocabulary, two_missing
    of_one_logit = without + LOGIT_BYTES * batch * sequence
    of_each_entry = (
        "A token has a logit for each entry of the vocabulary: a factor is missing in the loss."
    )
    yield of_one_logit, of_each_entry


def of_last_norm(m: Model, batch: int, sequence: int, dtype: str, right: int) -> Answers:
    """Yield a step's bytes with a wrong last normalisation, each with the advice on the mistake."""
    numbers = batch * sequence * m.width
    one_input = numbers * BYTES[dtype]
    without = right - 2 * one_input
    as_hidden = "The last normalisation keeps its input and its result, each as large as `hidden`."
    yield without, as_hidden
    for size in (2 * m.width, 2 * sequence * m.width, 2 * batch * m.width):
        yield without + size, as_hidden
        yield without + size * BYTES[dtype], as_hidden
    yield without + numbers, as_hidden
    yield (
        without + 2 * numbers,
        "The last normalisation's two tensors are counted in numbers. In bytes, each is `hidden`.",
    )
    yield (
        without + one_input,
        "The last normalisation keeps two tensors: its input and its result.",
    )
    once = "The last normalisation comes once, after all layers, and not in each of them."
    yield right + 2 * (m.layers - 1) * one_input, once


def of_units(right: int) -> Answers:
    """Yield the right bytes in larger units, with the advice to return bytes."""
    for unit in (10**9, 2**30, 10**6, 2**20):
        yield right / unit, "That is in MB or GB. Return the bytes themselves."


def of_fractions(
    interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number
) -> Answers:
    """Yield lost shares with seconds that are not divided, or with a fraction upside down."""
    saves = save_s / interval_s
    failures = interval_s / 2 / failure_s
    restarts = restart_s / failure_s
    yield (
        save_s + interval_s / 2 + restart_s,
        "Those are seconds. Divide each by the time in which it comes once.",
    )
    of_a_save = "A save's seconds are no share yet: divide them by τ, in which one save comes."
    yield save_s + failures + restarts, of_a_save
    of_work = (
        "Half of τ is in seconds, and no share yet: divide it by M, in which one failure comes."
    )
    yield saves + interval_s / 2 + restarts, of_work
    of_a_restart = "A restart's seconds are no share yet: divide them by M, in which one comes."
    yield saves + failures + restart_s, of_a_restart
    upside_down = (
        "A fraction is upside down: the lost time goes above, and below it the time in which that "
        "is lost once."
    )
    yield 1 / saves + failures + restarts, upside_down
    yield saves + 1 / failures + restarts, upside_down
    yield 1 / saves + 1 / failures + restarts, upside_down
    # Where a restart takes no time, that is an error.
    yield outcome(lambda: saves + failures + 1 / restarts), upside_down


def still_open(operator: str) -> Answers:
    """Yield the errors of a half-written function in which a part is still `...`."""
    for left, right in (("int", "ellipsis"), ("ellipsis", "int"), ("ellipsis", "ellipsis")):
        error = TypeError(f"unsupported operand type(s) for {operator}: '{left}' and '{right}'")
        yield error, "A part is still open: something has to take the place of each `...`."
