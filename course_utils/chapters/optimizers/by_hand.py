"""An optimizer whose step is a function of the reader's, as notebook 6 writes them, and a small run to try it on."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from course_utils.chapters.optimizers.descents import RULES, Point, Ravine
from course_utils.core import predict
from course_utils.core.say import Number
from course_utils.subjects import models, training

SEQUENCE = 32
TINY = {
    "layers": 1,
    "batch": 8,
}  # enough to see which optimizer is ahead; nine of these runs take two seconds


class ByHand(torch.optim.Optimizer):
    """The optimizer of that name, with this function as its step: (p, g, *what is kept, lr, option)."""

    def __init__(self, parameters: Iterable[Tensor], name: str, step: Callable, lr: Number) -> None:
        if name not in RULES:
            raise ValueError(f"There is no optimizer {name!r} here. There are: {', '.join(RULES)}.")
        super().__init__(parameters, {"lr": lr})
        self.rule, self.steps = replace(RULES[name], step=step), 0

    @torch.no_grad()
    def step(self) -> None:
        """One step of all parameters: as one vector, since the rule is the same for each number."""
        self.steps += 1
        for group in self.param_groups:
            parameters = group["params"]
            p = torch.cat([one.detach().flatten() for one in parameters])
            g = torch.cat([one.grad.flatten() for one in parameters])
            kept = group.get("kept", [torch.zeros_like(p)] * self.rule.kept)
            new, *group["kept"] = self.rule.after(self.steps, p, g, kept, group["lr"])
            parts = new.split([one.numel() for one in parameters])
            for one, part in zip(parameters, parts, strict=True):
                one.copy_(part.view_as(one))


def way(ground: Ravine, name: str, step: Callable, lr: Number, steps: int) -> Sequence[Point]:
    """The places that the optimizer comes to on that ground. autograd gives the gradients."""
    p = torch.tensor(ground.start, dtype=torch.float64, requires_grad=True)
    optimizer, places = ByHand([p], name, step, lr), [tuple(p.tolist())]
    for _ in range(steps):
        optimizer.zero_grad()
        ground.loss(*p).backward()
        optimizer.step()
        places.append(tuple(p.tolist()))
    return places


def small_run(
    make: Callable[[Iterable[Tensor]], torch.optim.Optimizer],
    seed: int,
    *,
    layers: int = 2,
    batch: int = 16,
    **options: object,
) -> training.Run:
    """A transformer, 64 wide, that learns sums of digits with the optimizer that is made for it."""
    weights = training.generator_for("weights", seed)
    shape = predict.Transformer(layers, 64, 4, training.VOCABULARY, SEQUENCE)
    model = models.Transformer(shape, fused=True, generator=weights)
    tokens = training.encoded(training.example_text(2_000))
    batches = training.generator_for("batches", seed)
    return training.Run(
        model, make(model.parameters()), tokens, batches, batch=batch, sequence=SEQUENCE, **options
    )


def loss_after(steps: int, name: str, step: Callable, lr: Number, *, seed: int = 1) -> Number:
    """The mean loss of the last ten of these steps."""
    run = small_run(lambda parameters: ByHand(parameters, name, step, lr), seed, **TINY)
    return sum(list(run.losses(steps))[-10:]) / 10
