"""A run in which a forgotten part of the state shows in the losses."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_utils.core import predict
from course_utils.core.say import Number
from course_utils.subjects import models, training

# These numbers are chosen so that every forgotten part of the state shows in the losses.
STEPS = 300  # of the whole run; at its end the learning rate is lowest
WARMUP = 20
PEAK_RATE = 0.02
FLOOR_RATE = 0.005
DROPOUT = 0.1
BATCH = 4
SEQUENCE = 16
WIDTH = 64


class PositionDropout(nn.Module):
    """A block that drops a share of the positions, which torch's shared generator draws.

    So a run that has forgotten the state of that generator drops other positions from then on.
    """

    def __init__(self, share: Number) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Float[Tensor, "b s h"], _turn: Tensor | None) -> Float[Tensor, "b s h"]:
        """Drop positions, and scale up the others, so that the mean stays the same.

        A transformer gives each block the angles of rotary positions, too. They are not used here.
        """
        one_each = torch.ones_like(x[..., :1])  # a number for each position, of shape (b, s, 1)
        kept = nn.functional.dropout(one_each, self.share, self.training)
        return x * kept


def learning_rate(step: int) -> Number:
    """Return the learning rate at a step: a line up, then half a cosine down.

    So a run that has forgotten its step warms up again, and its losses show that.
    """
    return training.warmup_cosine(step, PEAK_RATE, WARMUP, STEPS, floor=FLOOR_RATE)


def new_run(seed: int = 0, dropout: Number = DROPOUT) -> training.Run:
    """Return a run of a one-layer GPT with dropout, before its first step.

    The shared generators of Python, NumPy and torch are seeded, too.
    """
    training.seed_all(seed)
    generator = training.generator_for("model", seed)
    shape = predict.Transformer(
        layers=1,
        width=WIDTH,
        heads=2,
        vocabulary=training.VOCABULARY,
        context=SEQUENCE,
    )
    model = models.Transformer(shape, generator=generator)
    model.blocks.append(PositionDropout(dropout))
    return training.Run(
        model,
        torch.optim.AdamW(model.parameters(), lr=PEAK_RATE),
        training.encoded(training.example_text(sentences=2000)),
        training.generator_for("batches", seed),
        batch=BATCH,
        sequence=SEQUENCE,
        schedule=learning_rate,
    )
