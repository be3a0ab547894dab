"""Six optimizers as torch has them, on plain numbers, and the way that each takes down a surface.

A rule takes one coordinate p, its gradient g and what it keeps of former steps, and returns the next p.
The place of epsilon, sum or average, what is corrected: all is torch's. Two roundings are not: torch does
a multiplication and an addition in one rounding, and its square root can be off in the last bit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from course_utils.labs.surfaces import Point, Surface
from course_utils.quantities import Number

State = dict[str, Number]
FAR = 1e4  # whoever is so far away does not come back


@dataclass(frozen=True)
class Settings:
    """The numbers that the rules have in common; each uses what it has a use for."""

    lr: Number
    momentum: Number = 0.9  # Adam's β1 as well
    beta2: Number = 0.99  # RMSProp's α as well
    weight_decay: Number = 0.0


def multiply_add(a: Number, b: Number, c: Number) -> Number:
    """a·b + c."""
    return a * b + c


def sgd(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g."""
    g = multiply_add(s.weight_decay, p, g)
    return multiply_add(-s.lr, g, p)


def momentum(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·b with b = μ·b + g: a sum of gradients, no average."""
    g = multiply_add(s.weight_decay, p, g)
    state["sum"] = s.momentum * state.get("sum", 0.0) + g
    return multiply_add(-s.lr, state["sum"], p)


def adagrad(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g/(√v + ε) with v = v + g²: a sum, so the steps get shorter and shorter."""
    g = multiply_add(s.weight_decay, p, g)
    state["squares"] = multiply_add(g, g, state.get("squares", 0.0))
    return p + -s.lr * g / (sqrt(state["squares"]) + 1e-10)


def rmsprop(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g/(√v + ε) with v = β2·v + (1-β2)·g²: an average that starts at 0, so the first steps are long."""
    g = multiply_add(s.weight_decay, p, g)
    state["squares"] = _averaged_square(g, state, s)
    return p + -s.lr * g / (sqrt(state["squares"]) + 1e-8)


def adam(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·m̂/(√v̂ + ε): both averages, each divided by 1 - β^t, for they start at 0."""
    return _adam(p, multiply_add(s.weight_decay, p, g), state, s)


def adamw(p: Number, g: Number, state: State, s: Settings) -> Number:
    """Adam on (1 - lr·wd)·p: the weight decay does not go through the gradient, and is not divided by its size."""
    return _adam(p * (1 - s.lr * s.weight_decay), g, state, s)


def _adam(p: Number, g: Number, state: State, s: Settings) -> Number:
    t = state["t"] = state.get("t", 0) + 1
    state["mean"] = _between(state.get("mean", 0.0), g, 1 - s.momentum)
    state["squares"] = _averaged_square(g, state, s)
    size = sqrt(state["squares"]) / (1 - s.beta2**t) ** 0.5 + 1e-8
    return p + -(s.lr / (1 - s.momentum**t)) * state["mean"] / size


def _averaged_square(g: Number, state: State, s: Settings) -> Number:
    return multiply_add((1 - s.beta2) * g, g, s.beta2 * state.get("squares", 0.0))


def _between(old: Number, new: Number, weight: Number) -> Number:
    """(1 - weight)·old + weight·new, reckoned from the nearer end, as torch.lerp does."""
    if weight < 0.5:
        return multiply_add(weight, new - old, old)
    return multiply_add(-(new - old), 1 - weight, new)


Rule = Callable[[Number, Number, State, Settings], Number]
RULES: dict[str, Rule] = {
    "SGD": sgd,
    "momentum": momentum,
    "AdaGrad": adagrad,
    "RMSProp": rmsprop,
    "Adam": adam,
    "AdamW": adamw,
}


@dataclass(frozen=True)
class Descent:
    """The places that an optimizer came to, the start first; fewer than asked for if it left for good."""

    points: Sequence[Point]
    losses: Sequence[Number]
    lengths: Sequence[Number]  # of each step

    def at(self, step: int) -> int:
        """That step, or the last one that there was."""
        return min(step, len(self.lengths))


@lru_cache(maxsize=256)
def descent(name: str, surface: Surface, settings: Settings, noise: Sequence[Point]) -> Descent:
    """One step for each pair of noise, which is added to the gradient."""
    rule, along_x, along_y = RULES[name], {}, {}
    x, y = surface.start
    points, lengths = [(x, y)], []
    for noise_x, noise_y in noise:
        gradient_x, gradient_y = surface.gradient(x, y)
        next_x = rule(x, gradient_x + noise_x, along_x, settings)
        next_y = rule(y, gradient_y + noise_y, along_y, settings)
        if not math.hypot(next_x, next_y) < FAR:
            break
        lengths.append(math.hypot(next_x - x, next_y - y))
        x, y = next_x, next_y
        points.append((x, y))
    return Descent(points, [surface.loss(*point) for point in points], lengths)
