"""A run that saves itself as it goes, in a process of its own, so that it can be killed and go on."""

import time
from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_utils import checkpoints, models, training
from course_utils.measure import Step
from course_utils.measure.results import OnStep
from course_utils.quantities import Number, count_text

# Rates, dropout and batches of a kind that a forgotten part of the state shows in the losses.
STEPS = 300  # of the whole run: its learning rate ends there
WARMUP, PEAK_RATE, FLOOR_RATE = 20, 0.02, 0.005
DROPOUT = 0.1
BATCH, SEQUENCE, WIDTH = 4, 16, 64


class PositionDropout(nn.Module):
    """A block that drops a share of the positions, drawn by torch's shared generator."""

    def __init__(self, share: Number) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "b s h"], _turn: Tensor | None) -> Float[Tensor, "b s h"]:
        """Drop positions, and scale up the rest so that the mean stays."""
        return x * nn.functional.dropout(torch.ones_like(x[..., :1]), self.share, self.training)


def learning_rate(step: int) -> Number:
    """A line up, then half a cosine down. It depends on the step, so a run that lost its step warms up again."""
    return training.warmup_cosine(step, PEAK_RATE, WARMUP, STEPS, floor=FLOOR_RATE)


def new_run(seed: int = 0, dropout: Number = DROPOUT) -> training.Run:
    """A GPT of one layer with dropout, before its first step; the shared generators are seeded too."""
    training.seed_all(seed)
    generator = training.generator_for("model", seed)
    model = models.Transformer(1, WIDTH, 2, training.VOCABULARY, SEQUENCE, generator=generator)
    model.blocks.append(PositionDropout(dropout))
    return training.Run(
        model,
        torch.optim.AdamW(model.parameters(), lr=PEAK_RATE),
        training.encoded(training.example_text(2000)),
        training.generator_for("batches", seed),
        batch=BATCH,
        sequence=SEQUENCE,
        schedule=learning_rate,
    )


def train(
    on_step: OnStep,
    folder: str,
    until: int,
    every: int,
    *,
    keep: int = 3,
    without: Collection[str] = (),
    pace_s: Number = 0.0,
) -> dict[str, object]:
    """Go on from the newest checkpoint in the folder, or begin. Save every `every` steps and at the end.

    It says each step's number and loss, from which step it was `resumed`, and which were `saved` or
    `not_saved`: where the disk is full it trains on, and tries again at the next turn; at the end that is an
    error. What is left out of a restored state (`without`) is as before the first step. Steps are counted
    even where the run itself forgot its own.
    """
    if until < 1 or every < 1:
        raise ValueError(f"A run has 1 step or more, and saves every 1 or more; got {until} and {every}.")
    torch.set_num_threads(1)  # it has a process of its own, and its products are small
    run, step, saved = new_run(), 0, None

    def report(words: str, **numbers: Number) -> None:
        on_step(Step(min(step / until, 1), words, numbers))

    if found := checkpoints.newest(folder, like=run.state()):
        run.restore(found.state, without=without)
        step = saved = found.step
        left_out = f" without {', '.join(without)}" if without else ""
        damaged = "".join(f" Passed over: {reason}" for _, reason in found.passed_over)
        report(f"Goes on from step {step}{left_out}.{damaged}", resumed=step)
    while step < until:
        loss, step = run.advance(), step + 1
        report(f"{count_text(step, 'step')} of {until}, loss {loss:.3f}.", step=step, loss=loss)
        if step % every == 0 or step == until:
            try:
                checkpoints.save_step(folder, step, run.state(), keep=keep)
            except OSError as error:
                if step == until:
                    lost = f"All steps are made, and those after step {saved or 0} are in no file."
                    raise RuntimeError(f"{error} {lost}") from error
                report(f"{error} The run goes on.", not_saved=step)
            else:
                saved = step
                report(f"Saved at step {step}.", saved=step)
        time.sleep(pace_s)
    return {"step": step, "saved": saved}
