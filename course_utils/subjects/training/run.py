"""A step of training, and a run that can stop after any step and go on, bit for bit."""

import copy
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from course_utils.core.say import Number
from course_utils.subjects.training.randomness import restore_shared_states, shared_states
from course_utils.subjects.training.tokens import token_batch

# The parts of a run's state. "data" is the state of the generator that draws the batches, and
# "generators" has the states of the generators that all code of the process shares.
PARTS = ("model", "optimizer", "step", "data", "generators")


# One step.


def next_token_loss(
    logits: Float[Tensor, "b s v"], targets: Int[Tensor, "b s"]
) -> Float[Tensor, ""]:
    """Return the mean of -log p(target), computed in fp32."""
    return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def clip_gradients(parameters: Iterable[Tensor], max_norm: Number) -> Float[Tensor, ""]:
    """Scale all gradients by max_norm / norm if their common norm is larger than `max_norm`.

    Return the norm that the gradients had before.
    """
    if not max_norm > 0:  # and not `max_norm <= 0`, which is False for NaN
        raise ValueError(f"The largest norm is above 0; got {max_norm!r}.")
    return nn.utils.clip_grad_norm_(parameters, max_norm)


def warmup_cosine(step: int, peak: Number, warmup: int, total: int, *, floor: Number = 0) -> Number:
    """Return the learning rate of a step, which counts from 0.

    In `warmup` steps the rate rises on a straight line to the peak. Then it falls along half a
    cosine, and is at the floor from step `total` on.

    >>> [round(warmup_cosine(step, 1.0, 4, 8), 2) for step in range(9)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if not 0 <= warmup < total:
        raise ValueError(f"The warm-up ends before the run does; got {warmup} of {total} steps.")
    if step < 0:
        raise ValueError(f"Steps are counted from 0; got {step}.")
    if step < warmup:
        return peak * (step + 1) / warmup  # + 1, so that the first rate is above 0
    done = min((step - warmup) / (total - warmup), 1)
    cosine = math.cos(math.pi * done)  # from 1 to -1
    return floor + (peak - floor) * (1 + cosine) / 2


# A run.


@dataclass
class Run:
    """A training run: a model, its optimizer, its data, and the number of steps so far.

    `tokens` is the whole text, as `tokens.encoded` or `tokens.open_tokens` returns it. A step reads
    `batch` windows of `sequence` tokens.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    tokens: np.ndarray
    generator: torch.Generator  # draws where the windows of a batch begin
    _: KW_ONLY
    batch: int
    sequence: int
    schedule: Callable[[int], Number] | None = None  # the learning rate of a step
    max_norm: Number | None = None  # to which gradients are clipped; None for no clipping
    step: int = 0  # how many steps were made

    def advance(self) -> Number:
        """Make one step, and return its loss."""
        device = next(self.model.parameters()).device
        inputs, targets = token_batch(self.tokens, self.batch, self.sequence, self.generator)
        loss = next_token_loss(self.model(inputs.to(device)), targets.to(device))
        self.optimizer.zero_grad()
        loss.backward()
        if self.max_norm is not None:
            clip_gradients(self.model.parameters(), self.max_norm)
        if self.schedule is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.schedule(self.step)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def losses(self, until: int) -> Iterator[Number]:
        """Make the steps up to `until`, and yield the loss of each. The caller may stop early."""
        while self.step < until:
            yield self.advance()

    def state(self) -> dict[str, object]:
        """Return all that the steps to come depend on, by part, in tensors and plain values.

        The state is a copy, so the run may go on.
        """
        parts = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "data": self.generator.get_state(),
            "generators": shared_states(),
        }
        return copy.deepcopy(parts)

    def restore(self, state: dict[str, object], *, without: Collection[str] = ()) -> None:
        """Set the run to this state. Parts named in `without` stay as they are.

        Notebook 8 leaves out one part at a time, to show what each of them is good for. ValueError
        if the state lacks another part, or if there is no part of such a name.
        """
        unknown = [part for part in without if part not in PARTS]
        if unknown:
            raise ValueError(
                f"A run has no part {unknown[0]!r}. Its parts are: {', '.join(PARTS)}."
            )
        missing = [part for part in PARTS if part not in state and part not in without]
        if missing:
            lacks = ", ".join(missing)
            raise ValueError(
                f"The state lacks {lacks}; to go on without, say so: without={missing}."
            )
        if "model" not in without:
            self.model.load_state_dict(state["model"])
        if "optimizer" not in without:
            # Without a copy, the following steps would be written into the tensors of `state`.
            self.optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        if "step" not in without:
            self.step = state["step"]
        if "data" not in without:
            self.generator.set_state(state["data"])
        if "generators" not in without:
            restore_shared_states(state["generators"])
