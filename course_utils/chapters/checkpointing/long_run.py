"""A run in which a forgotten part of the state shows in the losses."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_utils.core import predict
from course_utils.core.say import Number
from course_utils.subjects import models, training

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
    shape = predict.Transformer(1, WIDTH, 2, training.VOCABULARY, SEQUENCE)
    model = models.Transformer(shape, generator=generator)
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
