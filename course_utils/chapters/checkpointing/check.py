"""The exercises of notebook 08.

An exercise takes the arguments of a case. It yields the right answer with the sentence on it, and
then the answers of likely mistakes, each with the advice on the mistake. In some cases a mistake
equals the right answer: it explains a reader's error only if it fits all cases so far.
"""

import math
from dataclasses import replace

from course_utils.chapters import by_torch
from course_utils.chapters.checkpointing import parts
from course_utils.chapters.checkpointing.beyond_check import (  # noqa: F401  exercises, too
    best_segment,
    days_with_failures,
    flops_ratio,
    lost_in_background,
    rows_to_read,
)
from course_utils.chapters.checkpointing.file_check import write_whole  # noqa: F401  exercises, too
from course_utils.chapters.checkpointing.sending_check import (  # noqa: F401  exercises, too
    context_parallel_bytes,
    data_parallel_bytes,
)
from course_utils.chapters.small_models import GPT, LLAMA, QWEN, case_in_words
from course_utils.core.accountant import BYTES, LOGIT_BYTES, Model
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

# In these steps the loss is the fullest moment, so the most bytes that torch holds are those at the
# loss. GPT's own vocabulary is too small for that: one layer holds more than the loss.
STEPS = [  # model, batch, sequence, dtype, recomputed layers
    (replace(GPT, vocabulary=2600), 2, 64, "bf16", 0),
    (LLAMA, 1, 96, "bf16", 1),
    (LLAMA, 1, 96, "fp32", 3),
    (QWEN, 2, 48, "bf16", 2),
]


# The tolerance is for the angles of rotary positions, which the term leaves out.
@function(
    STEPS,
    tolerance=0.01,
    case_words=case_in_words,
    parts=parts.of_step_bytes,
    unit="bytes",
    hints=(
        "It is a sum of four: the layers that are kept whole, the inputs of those that are "
        "recomputed, the last normalisation, and the loss.",
        "m.layers - recomputed layers keep layer_bytes(m, batch, sequence, dtype) each. An input "
        "is tensor_bytes((batch, sequence, m.width), dtype).",
        "The loss holds three fp32 tensors of the logits' shape: LOGIT_BYTES for each logit, "
        "whatever the dtype.",
    ),
)
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> Answers:
    """The check of a reader's step_bytes(…): the bytes that a training step adds at the loss."""
    right = by_torch.step_bytes(m, batch, sequence, dtype, recomputed)
    logits = batch * sequence * m.vocabulary
    one_input = batch * sequence * m.width * BYTES[dtype]
    layer = by_torch.layer_bytes(m, batch, sequence, dtype)
    yield right, "As three models hold it at the loss, with none, some and all layers recomputed."
    without_loss = right - LOGIT_BYTES * logits
    yield without_loss, "The loss holds three fp32 tensors of the logits' shape: 12 bytes a logit."
    one_tensor = without_loss + 4 * logits
    yield one_tensor, "The loss holds three tensors of the logits' shape, and not one."
    two_tensors = without_loss + 8 * logits
    yield two_tensors, "The loss holds three tensors of the logits' shape, and not two."
    logits_alone = without_loss + BYTES[dtype] * logits
    yield logits_alone, "The loss holds 12 bytes for each logit: LOGIT_BYTES."
    nothing_recomputed = right + recomputed * (layer - one_input)
    yield nothing_recomputed, "A recomputed layer keeps its input alone."
    without_inputs = right - recomputed * one_input
    yield without_inputs, "A recomputed layer still keeps its input."
    without_last_norm = right - 2 * one_input
    yield without_last_norm, "The last normalisation keeps its input and its result, too."
    one_layer = right - (m.layers - 1 - recomputed) * layer
    yield one_layer, "All layers keep their part until the backward pass comes to them."


@function(
    [(GPT, 3, 32, 0), (GPT, 3, 32, 2), (LLAMA, 1, 64, 1), (QWEN, 3, 16, 2)],
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
    last_product = 2 * batch * sequence * m.inner * m.width
    yield right, "As torch counts three models, with none, some and all layers recomputed."
    without_early_stop = right + recomputed * last_product
    yield (
        without_early_stop,
        "Recomputing stops early: a layer's last product is not needed again.",
    )
    yield plain.total, "A recomputed layer runs forward once more."
    # A step without recomputing takes 3 times the forward pass.
    whole_model_again = 3 * forward + recomputed * forward
    yield whole_model_again, "One layer runs forward again, and not the whole model."
    with_a_share_of_logits = 3 * forward + recomputed * (forward // m.layers - last_product)
    yield (
        with_a_share_of_logits,
        "The output's product is no part of a layer: it is not recomputed.",
    )
    # Forward and backward take as many FLOPs each, and what is recomputed is added.
    cheap_backward = 2 * forward + right - plain.total
    yield (
        cheap_backward,
        "The backward pass takes twice the FLOPs of the forward pass.",
    )


@function(
    [(60.0, 11_128.0), (10.0, 86_400.0), (300.0, 3_600.0)],
    tolerance=1e-3,
    unit="s",
    hints=(
        "The sum is least where the two terms are equal, as their product is the same for each τ.",
        "Set C / τ equal to τ / (2M), and solve for τ.",
    ),
)
def interval(save_s: Number, failure_s: Number) -> Answers:
    """The check of a reader's interval(save_s, failure_s): the one that loses the least time."""
    # The right one is found by trying, and not by the formula that the reader writes.
    # Intervals from 10 seconds to 19 days, each 0.02 % longer than the one before.
    tried = (10 * 1.0002**n for n in range(60_000))
    right = min(tried, key=lambda every_s: save_s / every_s + every_s / (2 * failure_s))
    yield right, "It is least where C / τ and τ / 2M are equal: τ = √(2CM)."
    yield right / math.sqrt(2), "On average, a failure destroys half of τ, and not all of it."
    yield right**2, "That is the square of τ."
    yield right / 2, "The 2 of τ / (2M) is on the wrong side."
    yield right / 60, "That is in minutes. Seconds are wanted."


@function(
    [(1_155.0, 60.0, 11_128.0, 300.0), (600.0, 10.0, 86_400.0, 0.0), (1e3, 300.0, 3_600.0, 120.0)],
    tolerance=1e-9,
    parts=parts.of_lost_share,
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
