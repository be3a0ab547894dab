"""torch's own optimizers on the same surfaces."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

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
