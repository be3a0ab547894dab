"""The exercises of notebook 08."""

import math
from dataclasses import replace

from course_utils.chapters import by_torch
from course_utils.chapters.checkpointing.file_check import write_whole  # noqa: F401  exercises, too
from course_utils.chapters.small_models import GPT, LLAMA, QWEN
from course_utils.core.accountant import BYTES, LOGIT_BYTES, Model
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

STEPS = [  # of which the loss is the fullest moment, and so the most that torch holds
    (
        replace(GPT, vocabulary=2600),
        2,
        64,
        "bf16",
        0,
    ),  # else one layer is as large as a third of its loss
    (LLAMA, 1, 96, "bf16", 1),
    (LLAMA, 1, 96, "fp32", 3),
    (QWEN, 2, 48, "bf16", 2),
]


@function(
    STEPS, tolerance=0.01
)  # the angles of rotary positions, which all layers share, are left out, too
def step_bytes(m: Model, batch: int, sequence: int, dtype: str, recomputed: int) -> Answers:
    """A reader's step_bytes(m, batch, sequence, dtype, recomputed): what a step adds to the state at the loss."""
    right = by_torch.step_bytes(m, batch, sequence, dtype, recomputed)
    logits = batch * sequence * m.vocabulary
    inputs, layer = (
        batch * sequence * m.width * BYTES[dtype],
        by_torch.layer_bytes(m, batch, sequence, dtype),
    )
    without_loss = right - LOGIT_BYTES * logits
    yield right, "As three models hold it at the loss, with none, some and all layers recomputed."
    yield without_loss, "The loss holds three fp32 tensors of the logits' shape: 12 bytes a logit."
    yield (
        without_loss + 4 * logits,
        "The loss holds three tensors of the logits' shape, and not one.",
    )
    yield (
        without_loss + 8 * logits,
        "The loss holds three tensors of the logits' shape, and not two.",
    )
    yield without_loss + BYTES[dtype] * logits, "The loss holds 12 bytes a logit: LOGIT_BYTES."
    yield right + recomputed * (layer - inputs), "A recomputed layer keeps its input alone."
    yield right - recomputed * inputs, "A recomputed layer still keeps its input."
    yield right - 2 * inputs, "The last normalisation keeps its input and its result, too."
    yield right - (m.layers - 1 - recomputed) * layer, "All layers keep theirs until the way back."


@function([(GPT, 3, 32, 0), (GPT, 3, 32, 2), (LLAMA, 1, 64, 1), (QWEN, 3, 16, 2)])
def step_flops(m: Model, batch: int, sequence: int, recomputed: int) -> Answers:
    """A reader's step_flops(m, batch, sequence, recomputed): forward, backward, some layers forward once more."""
    plain, again = (by_torch.step(m, batch, sequence, layers).flops for layers in (0, recomputed))
    right, forward, last = again.total, plain["forward"], 2 * batch * sequence * m.inner * m.width
    yield right, "As torch counts three models, with none, some and all layers recomputed."
    yield (
        right + recomputed * last,
        "Recomputing stops early: a layer's last product is not needed again.",
    )
    yield plain.total, "A recomputed layer runs forward once more."
    yield (
        3 * forward + recomputed * forward,
        "One layer runs forward again, and not the whole model.",
    )
    a_share = recomputed * (forward // m.layers - last)
    yield 3 * forward + a_share, "The output's product is no part of a layer: it is not recomputed."
    yield (
        2 * forward + right - plain.total,
        "The backward pass takes twice the forward pass: 3 in all.",
    )


@function([(60.0, 11_128.0), (10.0, 86_400.0), (300.0, 3_600.0)], tolerance=1e-3)
def interval(save_s: Number, failure_s: Number) -> Answers:
    """A reader's interval(save_s, failure_s): the time between two saves at which the lost share is least."""
    tried = (10 * 1.0002**n for n in range(60_000))
    right = min(tried, key=lambda every_s: save_s / every_s + every_s / (2 * failure_s))
    yield right, "There C / τ and τ / 2M are equal: τ = √(2CM)."
    yield right / math.sqrt(2), "The loss of a failure is half of τ: C / τ = τ / 2M gives √(2CM)."
    yield right**2, "Take the square root: τ² = 2CM."
    yield right / 2, "From C / τ = τ / 2M follows τ² = 2CM, and not CM / 2."
    yield right / 60, "That is in minutes. Seconds are wanted."


@function(
    [(1_155.0, 60.0, 11_128.0, 300.0), (600.0, 10.0, 86_400.0, 0.0), (1e3, 300.0, 3_600.0, 120.0)],
    tolerance=1e-9,
)
def lost_share(interval_s: Number, save_s: Number, failure_s: Number, restart_s: Number) -> Answers:
    """A reader's lost_share(interval_s, save_s, failure_s, restart_s): of the time, to saves, failures, restarts."""
    saves, failures, restarts = (
        save_s / interval_s,
        interval_s / 2 / failure_s,
        restart_s / failure_s,
    )
    yield (
        saves + failures + restarts,
        "A save of every τ, half of τ at each failure, and a restart each.",
    )
    yield saves + failures, "Each failure also costs a restart: one in M seconds."
    yield saves + 2 * failures + restarts, "On average a failure throws half of τ away."
    yield saves + restarts, "What was done since the last save is lost, too."
    yield failures + restarts, "Saving takes its time, too: C of every τ."
