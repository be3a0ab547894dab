"""An optimizer that steps by the reader's function, and a small run to try the optimizer on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from course_utils.chapters.optimizers.descents import RULES, Point, Ravine
from course_utils.core import predict
from course_utils.core.say import Number
from course_utils.subjects import models, training

SEQUENCE = 32
# Options of `small_run`. A run of this size shows which optimizer is ahead, and nine runs take two
# seconds.
TINY = {"layers": 1, "batch": 8}


class ByHand(torch.optim.Optimizer):
    """One of the optimizers in RULES, which steps by the function `step` that a reader wrote.

    What `step` takes and returns is said at `descents.Rule`, such as step(p, g, buffer, lr, mu).
    """

    def __init__(self, parameters: Iterable[Tensor], name: str, step: Callable, lr: Number) -> None:
        """Take the rule of that name in RULES, with the reader's function as its step."""
        if name not in RULES:
            raise ValueError(f"There is no optimizer {name!r} here. There are: {', '.join(RULES)}.")
        super().__init__(parameters, {"lr": lr})
        self.rule = replace(RULES[name], step=step)
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Step all parameters as one vector, because the rule is the same for each number."""
        self.steps += 1
        for group in self.param_groups:
            self._step_group(group)

    def _step_group(self, group: dict) -> None:
        """Step one group of parameters, and keep the rule's numbers in the group's dict."""
        parameters = group["params"]
        p = torch.cat([parameter.detach().flatten() for parameter in parameters])
        g = torch.cat([parameter.grad.flatten() for parameter in parameters])
        # All numbers are 0 before the first step. They may be one and the same tensor, because the
        # check of the exercise refuses a function that changes its arguments in place.
        zeros = [torch.zeros_like(p)] * self.rule.kept_count
        kept = group.get("kept", zeros)
        new_p, *new_kept = self.rule.after(self.steps, p, g, kept, group["lr"])
        group["kept"] = new_kept
        parts = new_p.split([parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.copy_(part.view_as(parameter))


def way(ground: Ravine, name: str, step: Callable, lr: Number, steps: int) -> Sequence[Point]:
    """Return the start and the points after each step down the ravine `ground`.

    Autograd computes the gradients, and the reader's function `step` makes the steps.
    """
    p = torch.tensor(ground.start, dtype=torch.float64, requires_grad=True)
    optimizer = ByHand([p], name, step, lr)
    points = [tuple(p.tolist())]
    for _ in range(steps):
        optimizer.zero_grad()
        ground.loss(*p).backward()  # p has two numbers, x and y
        optimizer.step()
        points.append(tuple(p.tolist()))
    return points


def small_run(
    make: Callable[[Iterable[Tensor]], torch.optim.Optimizer],
    seed: int,
    *,
    layers: int = 2,
    batch: int = 16,
    **options: object,
) -> training.Run:
    """Return a run of a transformer, 64 wide, that learns sums of digits.

    `make` takes the model's parameters and returns their optimizer. `options` are those of
    `training.Run`, such as `schedule` and `max_norm`. The seed decides the first weights and
    which data each step reads, so runs with different optimizers can be compared.
    """
    shape = predict.Transformer(
        layers=layers,
        width=64,
        heads=4,
        vocabulary=training.VOCABULARY,
        context=SEQUENCE,
    )
    weights = training.generator_for("weights", seed)
    model = models.Transformer(shape, fused=True, generator=weights)
    return training.Run(
        model,
        make(model.parameters()),
        training.encoded(training.example_text(2_000)),
        training.generator_for("batches", seed),
        batch=batch,
        sequence=SEQUENCE,
        **options,
    )


def loss_after(steps: int, name: str, step: Callable, lr: Number, *, seed: int = 1) -> Number:
    """Train a tiny model for that many steps, and return the mean loss of the last ten.

    The optimizer is the one of that name in RULES, and steps by the reader's function `step`.
    """
    run = small_run(lambda parameters: ByHand(parameters, name, step, lr), seed, **TINY)
    losses = list(run.losses(steps))
    return sum(losses[-10:]) / 10  # a single loss depends too much on the batch
