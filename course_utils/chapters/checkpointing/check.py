"""The exercises of notebook 08.

An exercise takes the arguments of a case. It yields the right answer with the sentence on it, and
then the answers of likely mistakes, each with the advice on the mistake. In some cases a mistake
equals the right answer: it explains a reader's error only if it fits all cases so far.
"""

import math
from dataclasses import replace

from course_utils.chapters import by_torch
from course_utils.chapters.checkpointing import parts, slips_check
from course_utils.chapters.checkpointing.beyond_check import (  # noqa: F401  exercises, too
    best_segment,
    days_with_failures,
    flops_ratio,
    lost_in_background,
    rows_to_read,
)
from course_utils.chapters.checkpointing.cases_in_words import (
    interval_case_in_words,
    lost_case_in_words,
)
from course_utils.chapters.checkpointing.file_check import write_whole  # noqa: F401  exercises, too
from course_utils.chapters.checkpointing.sending_check import (  # noqa: F401  exercises, too
    context_parallel_bytes,
    data_parallel_bytes,
)
from course_utils.chapters.small_models import GPT, LLAMA, QWEN, case_in_words
from course_utils.core import accountant
from course_utils.core.accountant import BYTES, Model
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

# In these steps the loss is the fullest moment, so the most bytes that torch holds are those at the
# loss. GPT's own vocabulary is too small for that: one layer holds more than the loss. In the first
# step no two factors are equal, so that a slip in one cannot look like a slip in another.
STEPS = [  # model, batch, sequence, dtype, recomputed layers
    (replace(LLAMA, layers=7, vocabulary=1500), 5, 24, "fp32", 4),
    (LLAMA, 1, 96, "bf16", 1),
    (replace(GPT, vocabulary=2600), 2, 64, "bf16", 0),
    (LLAMA, 2, 96, "fp32", 3),
    (QWEN, 2, 48, "bf16", 2),
]


# The tolerance is for the angles of rotary positions, which the term leaves out. In each of
# the steps a layer's input is more than that, so that none can be forgotten.
@function(
    STEPS,
    tolerance=0.004,
    case_words=case_in_words,
    parts=parts.of_step_bytes,
    unit="bytes",
    hints=(
        "How many of the m.layers layers are not recomputed? Each of these keeps "
        "layer_bytes(m, batch, sequence, dtype).",
        "The last normalisation comes once, and both of its tensors are as large as an input.",
        "The loss holds three fp32 tensors of the logits' shape: LOGIT_BYTES for each logit, "
        "whatever the dtype.",
    ),
)
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> Answers:
    """The check of a reader's step_bytes(…): the bytes that a training step adds at the loss."""
    case = (m, batch, sequence, dtype, recomputed)
    # Counted by torch, so that a term that agrees with ours does not check itself.
    right = by_torch.step_bytes(*case)
    yield right, "It agrees with four models, with none, some and all layers recomputed."
    # By terms, as a reader adds up: of a small sum, torch's angles are more than the tolerance.
    of_terms = sum(parts.of_step_bytes(*case).values())
    yield from slips_check.of_loss(m, batch, sequence, dtype, of_terms)
    yield from _of_kept_layers(case, of_terms)
    yield from slips_check.of_last_norm(m, batch, sequence, dtype, of_terms)
    yield from slips_check.still_open("+")
    # Of every size with the width, its numbers are counted and not its bytes.
    one_input = batch * sequence * m.width * BYTES[dtype]
    in_numbers = of_terms - (recomputed + 2) * (one_input - one_input // BYTES[dtype])
    yield in_numbers, "That counts numbers, and not their bytes: use tensor_bytes."
    yield from slips_check.of_units(of_terms)


def _of_kept_layers(case: tuple, right: int) -> Answers:
    """Yield sums whose layers are wrong, each with the advice on the mistake."""
    m, batch, sequence, dtype, recomputed = case
    one_input = batch * sequence * m.width * BYTES[dtype]
    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    kept = m.layers - recomputed
    nothing_recomputed = right + recomputed * (layer - one_input)
    yield nothing_recomputed, "A recomputed layer keeps its input alone."
    yield right - recomputed * one_input, "A recomputed layer still keeps its input."
    one_layer = right - (kept - 1) * layer
    yield one_layer, "All layers keep their part until the backward pass comes to them."
    of_one_input = right - (recomputed - 1) * one_input
    yield of_one_input, "Each recomputed layer keeps an input of its own."
    of_recomputed = right + (recomputed - kept) * layer
    yield of_recomputed, "`recomputed` says how many layers run again, and not how many are kept."
    exchanged = right + (recomputed - kept) * (layer - one_input)
    yield (
        exchanged,
        "Kept and recomputed are exchanged: a recomputed layer is the one that keeps its input "
        "alone.",
    )
    all_inputs = right + kept * one_input
    yield (
        all_inputs,
        "Only a recomputed layer's input is added: what layer_bytes counts of a layer has its "
        "input already.",
    )
    counted_as_both = right + recomputed * layer
    yield (
        counted_as_both,
        "A recomputed layer is counted twice: whole, and by its input. How many layers stay whole?",
    )


@function(
    [
        (replace(LLAMA, layers=8), 7, 12, 5),
        (GPT, 3, 32, 0),
        (GPT, 3, 32, 2),
        (LLAMA, 1, 64, 1),
        (QWEN, 3, 16, 2),
    ],
    case_words=case_in_words,
    parts=parts.of_step_flops,
    unit="FLOPs",
    hints=(
        "Without recomputing, a step takes 3 * forward_flops(m, batch, sequence).",
        "One layer's forward pass is what is left of the whole without the output's product, "
        "divided by m.layers.",
        "A recomputed layer leaves its last product out: 2 * batch * sequence * m.inner * m.width.",
    ),
)
def step_flops(m: Model, batch: int, sequence: int, recomputed: int) -> Answers:
    """The check of a reader's step_flops(…): the FLOPs of a step that recomputes some layers."""
    plain = by_torch.step(m, batch, sequence, 0).flops
    right = by_torch.step(m, batch, sequence, recomputed).flops.total
    forward = plain["forward"]
    tokens = batch * sequence
    output = 2 * tokens * m.width * m.vocabulary
    down = 2 * tokens * m.inner * m.width
    layer = (forward - output) // m.layers
    yield (
        right,
        "It agrees with torch's count of four models, with none, some and all layers recomputed.",
    )
    # Each is what the recomputed layers take by the mistake, without the forward and backward pass.
    for again, advice in slips_check.run_again(m, recomputed, forward, output, down):
        yield plain.total + again, advice
    for again in slips_check.of_fewer_rows(m, batch, sequence, recomputed, forward):
        yield plain.total + again, slips_check.ROWS
    # Forward and backward take as many FLOPs each, and what is recomputed is added.
    cheap_backward = 2 * forward + right - plain.total
    yield cheap_backward, "Together, the two passes take three times the forward pass."
    yield from slips_check.still_open("-")
    backward_again = plain.total + 3 * recomputed * (layer - down)
    yield backward_again, "Only the forward pass of a recomputed layer runs once more."


# Above the best τ the first term is below the second one, so what is lost has one lowest point.
def _best_interval_s(save_s: Number, failure_s: Number) -> Number:
    """Return the interval that loses least, found by trying and not by the reader's formula."""
    least = 1.0
    most = 1e7  # four months
    for _ in range(200):
        third = (most - least) / 3
        earlier = least + third
        later = most - third
        if _lost_at(earlier, save_s, failure_s) < _lost_at(later, save_s, failure_s):
            most = later
        else:
            least = earlier
    return least


def _lost_at(every_s: Number, save_s: Number, failure_s: Number) -> Number:
    return save_s / every_s + every_s / (2 * failure_s)


@function(
    [(45.0, 20_000.0), (10.0, 86_400.0), (300.0, 3_600.0)],
    tolerance=1e-3,
    case_words=interval_case_in_words,
    unit="s",
    hints=(
        "The sum is least where the two terms are equal, as their product is the same for each τ.",
        "Set C / τ equal to τ / (2M), and solve for τ.",
    ),
)
def interval(save_s: Number, failure_s: Number) -> Answers:
    """The check of a reader's interval(save_s, failure_s): the one that loses the least time."""
    right = _best_interval_s(save_s, failure_s)
    yield right, "It is least where C / τ and τ / 2M are equal: τ = √(2CM)."
    yield right / math.sqrt(2), "On average, a failure destroys half of τ, and not all of it."
    yield right * math.sqrt(2), "The 2 of τ / (2M) comes under the root, too."
    yield right**2, "That is the square of τ."
    yield right**2 / 2, "`**` goes before `/`: for a root, put 1 / 2 in brackets."
    yield right / 2, "The 2 of τ / (2M) is on the wrong side."
    yield right / 60, "That is in minutes. Seconds are wanted."
    lost = _lost_at(right, save_s, failure_s)
    yield lost, "That is the share that is lost at the best τ. Return this τ itself."


LOSSES = [  # seconds between two saves, of a save, between two failures, of a restart
    (1_800.0, 40.0, 25_000.0, 500.0),
    (600.0, 10.0, 86_400.0, 0.0),
    (1e3, 300.0, 3_600.0, 120.0),
]


@function(
    LOSSES,
    tolerance=1e-9,
    case_words=lost_case_in_words,
    parts=parts.of_lost_share,
    unit="of the time",
    hints=(
        "Saves take save_s out of every interval_s seconds: that is the first share.",
        "The other two come once in failure_s seconds: half of interval_s, and restart_s.",
    ),
)
def lost_share(interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number) -> Answers:
    """The check of a reader's lost_share(interval_s, save_s, failure_s, restart_s)."""
    saves = save_s / interval_s
    failures = interval_s / 2 / failure_s
    restarts = restart_s / failure_s
    right = saves + failures + restarts
    yield right, "One save in each τ, and at each failure half of τ and a restart."
    yield saves + failures, "Each failure also costs a restart: one in M seconds."
    yield saves + 2 * failures + restarts, "On average a failure throws half of τ away."
    yield saves + restarts, "What was done since the last save is lost, too."
    yield failures + restarts, "Saving takes time, too: C of every τ."
    after_saves = saves + failures + restart_s / interval_s
    yield after_saves, "A restart comes with each failure, and not with each save."
    at_failures = save_s / failure_s + failures + restarts
    yield at_failures, "A save comes once in τ, and not once in M."
    multiplied = saves + interval_s / 2 * failure_s + restarts
    yield multiplied, "Python divides by 2 and then multiplies: 2 * failure_s needs brackets."
    longer = save_s / (interval_s + save_s) + failures + restarts
    yield longer, "The formula above takes C of every τ: divide by τ alone."
    yield 100 * right, "That is in percent. Return the share itself, such as 0.25 for 25 %."
    yield 1 - right, "That is the share that is left for the work. Return the one that is lost."
    yield from slips_check.of_fractions(interval_s, save_s, failure_s, restart_s)
    for digits in (1, 2, 3, 4):
        yield round(right, digits), "That is rounded. Return all digits."
