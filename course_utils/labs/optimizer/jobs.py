"""torch's own optimizers, on the same way as ours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import torch

from course_utils.labs.lab import Progress
from course_utils.labs.optimizer.asked import Race
from course_utils.predict.descents import Point, Settings, noise

Maker = Callable[[Sequence[torch.Tensor], Settings], torch.optim.Optimizer]


TORCH: Mapping[str, Maker] = {
    "SGD": lambda p, s: torch.optim.SGD(p, s.lr, weight_decay=s.weight_decay),
    "momentum": lambda p, s: torch.optim.SGD(p, s.lr, s.momentum, weight_decay=s.weight_decay),
    "AdaGrad": lambda p, s: torch.optim.Adagrad(p, s.lr, weight_decay=s.weight_decay),
    "RMSProp": lambda p, s: torch.optim.RMSprop(p, s.lr, s.beta2, weight_decay=s.weight_decay),
    "Adam": lambda p, s: torch.optim.Adam(p, s.lr, (s.momentum, s.beta2), weight_decay=s.weight_decay),
    "AdamW": lambda p, s: torch.optim.AdamW(p, s.lr, (s.momentum, s.beta2), weight_decay=s.weight_decay),
}


def torchs_points(asked: Race, name: str) -> Iterator[Point]:
    """Where torch.optim goes in fp64, with gradients by autograd."""
    x, y = (torch.tensor(start, dtype=torch.float64, requires_grad=True) for start in asked.ground.start)
    optimizer = TORCH[name]([x, y], asked.settings)
    for push_x, push_y in noise(asked.noise, asked.steps, asked.seed):
        optimizer.zero_grad()
        (asked.ground.loss(x, y) + push_x * x + push_y * y).backward()
        optimizer.step()
        yield x.item(), y.item()


def check(asked: Race, found: object) -> Iterator[Progress]:
    """Let torch.optim take the same steps, and compare every coordinate at every step."""
    apart = {}
    for name, run in asked.descents.items():
        yield Progress(len(apart) / len(asked.racing), f"{name}: {asked.steps} steps.")
        pairs = zip(chain(*run.points[1:]), chain.from_iterable(torchs_points(asked, name)), strict=False)
        apart[name] = max((abs(ours - theirs) / max(1.0, abs(theirs)) for ours, theirs in pairs), default=0.0)
    steps, worst = sum(len(run.lengths) for run in asked.descents.values()), max(apart, key=apart.__getitem__)
    said = f"torch.optim took the same {steps:,} steps ({', '.join(apart)})"
    yield Progress(1, f"{said}: the largest difference in a coordinate is {apart[worst]:.1e}, {worst}'s.")
