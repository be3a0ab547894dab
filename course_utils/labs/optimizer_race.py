"""A race of optimizers as the lab's controls ask for it, and what can be predicted of it before it is run."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from course_utils.labs.surfaces import (
    SURFACES,
    Surface,
    error_factor,
    noise,
    noise_floor,
)
from course_utils.labs.update_rules import RULES, Descent, Settings, descent
from course_utils.quantities import Number

PREDICTED = ("SGD", "momentum")  # linear in the gradient: on a quadratic their way is known beforehand
OFF_THE_RIDGE = 0.5
MOST_STEPS, SEEDS = 300, 10


@dataclass(frozen=True)
class Asked:
    """A race: the surface, who takes part, with which settings, how noisy and how long, and the step to look at."""

    surface: Surface
    racing: Sequence[str]
    settings: Settings
    sigma: Number
    steps: int
    seed: int
    step: int

    @cached_property
    def descents(self) -> dict[str, Descent]:
        """By name."""
        gradients = noise(self.sigma, self.steps, self.seed)
        return {name: descent(name, self.surface, self.settings, gradients) for name in self.racing}

    def momentum_of(self, name: str) -> Number:
        """μ, which for SGD is 0."""
        return self.settings.momentum if name == "momentum" else 0.0

    @property
    def curvatures(self) -> tuple[Number, Number]:
        """Where it starts, and what weight decay adds: through the gradient it is a curvature more."""
        decay = self.settings.weight_decay
        flat, steep = self.surface.curvatures(*self.surface.start)
        return flat + decay, steep + decay

    @property
    def limiting(self) -> Number:
        """The largest curvature that stays as it is: on a saddle only the one across the way to the ridge does."""
        return max(self.curvatures) if self.surface.quadratic else self.curvatures[0]

    def predicted_loss(self, name: str, step: int) -> Number:
        """Of SGD or momentum on a quadratic without noise: ½·λ·error², summed over both directions."""
        lr, mu = self.settings.lr, self.momentum_of(name)
        start = self.surface.along(*self.surface.start)
        bare = self.surface.curvatures(*self.surface.start)
        factors = [error_factor(step, lr * curvature, mu) for curvature in self.curvatures]
        errors = [factor * e for factor, e in zip(factors, start, strict=True)]
        return sum(0.5 * c * e * e for c, e in zip(bare, errors, strict=True) if c)

    def predicted_floor(self, name: str) -> Number:
        """The loss at which noise holds SGD or momentum on a quadratic."""
        mu, bare = self.momentum_of(name), self.surface.curvatures(*self.surface.start)
        return sum(
            noise_floor(self.settings.lr, c, self.sigma, mu) * b / c
            for b, c in zip(bare, self.curvatures, strict=True)
            if b > 0 and c > 0
        )

    def measured_floor(self, name: str) -> Number:
        """The mean loss of the second half, over the ten seeds."""
        half, seeds = self.steps // 2, [noise(self.sigma, self.steps, seed) for seed in range(SEEDS)]
        runs = [descent(name, self.surface, self.settings, gradients) for gradients in seeds]
        losses = [loss for run in runs for loss in run.losses[half:]]
        return sum(losses) / len(losses) if all(len(run.lengths) == self.steps for run in runs) else math.inf

    def leaves_the_ridge(self, name: str) -> int | None:
        """The first step at which |y| is more than a half."""
        points = self.descents[name].points
        return next((t for t, (_, y) in enumerate(points) if abs(y) > OFF_THE_RIDGE), None)

    def predicted_to_leave(self, name: str) -> int | None:
        """The same for SGD or momentum without noise, if the ridge curved everywhere as it does where it starts."""
        a, mu, (_, y) = self.settings.lr * self.curvatures[1], self.momentum_of(name), self.surface.start
        steps = range(10 * MOST_STEPS)
        if a >= 0:  # weight decay pulls back as much as the ridge pushes off
            return None
        step = bisect_right(steps, OFF_THE_RIDGE, key=lambda t: y * error_factor(t, a, mu))
        return step if step in steps else None

    def first_length(self, name: str) -> Number:
        """Predicted for the first step: lr times the gradient; for those who divide by its size, lr in each coordinate."""
        s, at = self.settings, self.surface.start
        pushes = zip(self.surface.gradient(*at), noise(self.sigma, self.steps, self.seed)[0], strict=True)
        bare = [g + push for g, push in pushes]
        full = [g + s.weight_decay * p for g, p in zip(bare, at, strict=True)]
        if name in PREDICTED:
            return s.lr * math.hypot(*full)
        signs = [math.copysign(1, g) if g else 0 for g in (bare if name == "AdamW" else full)]
        if name == "AdamW":
            signs = [sign + s.weight_decay * p for sign, p in zip(signs, at, strict=True)]
        return s.lr * math.hypot(*signs) / (math.sqrt(1 - s.beta2) if name == "RMSProp" else 1)


def asked_for(
    surface: str,
    steepness: Number,
    racing: Sequence[str],
    lr: Number,
    momentum: Number,
    beta2: Number,
    weight_decay: Number,
    noise: Number,
    seed: int,
    steps: int,
    step: int,
) -> Asked:
    """What the controls ask for, or a sentence on what they can."""
    strangers = [name for name in racing if name not in RULES]
    if strangers:
        raise ValueError(f"There is no optimizer {strangers[0]} here. There are: {', '.join(RULES)}.")
    if not racing:
        raise ValueError("Nobody races. Tick at least one optimizer.")
    if not (lr > 0 and math.isfinite(lr)):
        raise ValueError(f"A learning rate is a number above 0; got {lr}.")
    settings = Settings(lr, momentum, beta2, weight_decay)
    names = tuple(name for name in RULES if name in racing)
    return Asked(SURFACES[surface](steepness), names, settings, noise, steps, seed, min(step, steps))
