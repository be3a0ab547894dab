"""Six optimizers as torch has them, and three surfaces for them to descend, in plain Python numbers.

A rule takes one coordinate p, its gradient g and what it keeps of former steps, and returns the next p.
The place of epsilon, sum or average, what is corrected: all is torch's. Only the last bits can differ, for torch
does a multiplication and an addition in one rounding.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TypeVar

from course_utils.quantities import Number

T = TypeVar("T")  # numbers go in and numbers come out, tensors go in and tensors come out
Point = tuple[Number, Number]
State = dict[str, Number]
LOST = 1e4  # whoever is so far away does not come back
_HALF, _FAR = math.sqrt(0.5), 8.0


# Surfaces.


@dataclass(frozen=True)
class Surface:
    """A loss over two coordinates: where to start on it, where it is least, and how it curves."""

    steepness: Number

    start = (-1.5, 1.0)
    minima = ((0.0, 0.0),)
    quadratic = True


class Ravine(Surface):
    """½(x² + s·y²): curvature 1 along x, s along y."""

    def distance(self, x: Number, y: Number) -> Number:
        """The distance to the minimum. Without steepness the minimum is a whole line."""
        across, along = self.along(x, y)
        return math.hypot(across, along if self.steepness else 0.0)

    def along(self, x: Number, y: Number) -> Point:
        """The coordinates along the directions whose curvatures are `curvatures`."""
        return x, y

    def curvatures(self, x: Number, y: Number) -> Point:
        """The second derivatives along those directions at a place: here everywhere the same."""
        return 1.0, self.steepness

    def loss(self, x: T, y: T) -> T:
        """½(x² + s·y²)."""
        return 0.5 * (x * x + self.steepness * (y * y))

    def gradient(self, x: Number, y: Number) -> Point:
        """(x, s·y)."""
        return x, self.steepness * y

    def contour(self, level: Number) -> list[list[Point]]:
        """x = ±√(2L - s·y²): an ellipse, and without steepness a pair of lines."""
        if not self.steepness:
            return [[(x, -_FAR), (x, _FAR)] for x in (math.sqrt(2 * level), -math.sqrt(2 * level))]
        wide, high = math.sqrt(2 * level), math.sqrt(2 * level / self.steepness)
        return [[(wide * math.sin(turn), high * math.cos(turn)) for turn in _turns(math.pi)]]


class TurnedRavine(Ravine):
    """The same ravine, turned by 45°: ½(u² + s·v²) with u = (x + y)/√2 and v = (y - x)/√2."""

    start = (-1.5 * _HALF - _HALF, -1.5 * _HALF + _HALF)  # the ravine's own start, turned with it

    def along(self, x: Number, y: Number) -> Point:
        return (x + y) * _HALF, (y - x) * _HALF

    def loss(self, x: T, y: T) -> T:
        """½(u² + s·v²)."""
        u, v = x + y, y - x  # each √2 times too long
        return 0.25 * (u * u + self.steepness * (v * v))

    def gradient(self, x: Number, y: Number) -> Point:
        """(u - s·v, u + s·v)/√2."""
        u, v = 0.5 * (x + y), 0.5 * self.steepness * (y - x)
        return u - v, u + v

    def contour(self, level: Number) -> list[list[Point]]:
        return [[((u - v) * _HALF, (u + v) * _HALF) for u, v in line] for line in super().contour(level)]


class Saddle(Surface):
    """½s·x² + ¼(y² - 1)²: flat on top of the ridge y = 0, with a minimum on either side of it."""

    start = (-1.5, 0.001)
    minima = ((0.0, 1.0), (0.0, -1.0))
    quadratic = False

    def curvatures(self, x: Number, y: Number) -> Point:
        """(s, 3y² - 1): negative on the ridge."""
        return self.steepness, 3 * y * y - 1.0

    def loss(self, x: T, y: T) -> T:
        """½s·x² + ¼(y² - 1)²."""
        beside = y * y - 1.0
        return 0.5 * self.steepness * (x * x) + 0.25 * (beside * beside)

    def gradient(self, x: Number, y: Number) -> Point:
        """(s·x, y(y² - 1))."""
        return self.steepness * x, y * (y * y - 1.0)

    def contour(self, level: Number) -> list[list[Point]]:
        """x = √(2L/s)·sin t, y² = 1 + 2√L·cos t: below the saddle a loop around each minimum, above it one in halves."""
        reach = 2 * math.sqrt(level)  # of y², on either side of 1
        if not self.steepness:
            squares = [square for square in (1 + reach, 1 - reach) if square >= 0]
            heights = [side * math.sqrt(square) for square in squares for side in (1, -1)]
            return [[(-_FAR, y), (_FAR, y)] for y in heights]
        turns, wide = _turns(math.acos(max(-1.0, -1 / reach))), math.sqrt(2 * level / self.steepness)
        upper = [(wide * math.sin(turn), math.sqrt(max(0.0, 1 + reach * math.cos(turn)))) for turn in turns]
        return [upper, [(x, -y) for x, y in upper]]


def _turns(end: Number) -> list[Number]:
    return [end * n / 60 for n in range(-60, 61)]


SURFACES = {"ravine": Ravine, "turned ravine": TurnedRavine, "saddle": Saddle}


# Rules.


@dataclass(frozen=True)
class Settings:
    """The numbers that the rules take; each rule uses some of them."""

    lr: Number
    momentum: Number = 0.9  # Adam's β1 as well
    beta2: Number = 0.99  # RMSProp's α as well
    weight_decay: Number = 0.0


def sgd(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g."""
    return p - s.lr * (g + s.weight_decay * p)


def momentum(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·b with b = μ·b + g: a sum of gradients, no average."""
    state["sum"] = s.momentum * state.get("sum", 0.0) + g + s.weight_decay * p
    return p - s.lr * state["sum"]


def adagrad(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g/(√v + ε) with v = v + g²: a sum, so the steps get shorter and shorter."""
    g += s.weight_decay * p
    state["squares"] = state.get("squares", 0.0) + g * g
    return p - s.lr * g / (math.sqrt(state["squares"]) + 1e-10)


def rmsprop(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·g/(√v + ε) with v = β2·v + (1-β2)·g²: an average that starts at 0, so the first steps are long."""
    g += s.weight_decay * p
    state["squares"] = _average(state.get("squares", 0.0), g * g, s.beta2)
    return p - s.lr * g / (math.sqrt(state["squares"]) + 1e-8)


def adam(p: Number, g: Number, state: State, s: Settings) -> Number:
    """p - lr·m̂/(√v̂ + ε): both averages, each divided by 1 - β^t, for they start at 0."""
    return _adam(p, g + s.weight_decay * p, state, s)


def adamw(p: Number, g: Number, state: State, s: Settings) -> Number:
    """Adam on (1 - lr·wd)·p: the weight decay does not go through the gradient, and is not divided by its size."""
    return _adam(p * (1 - s.lr * s.weight_decay), g, state, s)


def _adam(p: Number, g: Number, state: State, s: Settings) -> Number:
    t = state["t"] = state.get("t", 0) + 1
    mean = state["mean"] = _average(state.get("mean", 0.0), g, s.momentum)
    squares = state["squares"] = _average(state.get("squares", 0.0), g * g, s.beta2)
    size = math.sqrt(squares / (1 - s.beta2**t)) + 1e-8
    return p - s.lr * mean / (1 - s.momentum**t) / size


def _average(old: Number, new: Number, beta: Number) -> Number:
    return beta * old + (1 - beta) * new


Rule = Callable[[Number, Number, State, Settings], Number]
RULES: dict[str, Rule] = {
    "SGD": sgd,
    "momentum": momentum,
    "AdaGrad": adagrad,
    "RMSProp": rmsprop,
    "Adam": adam,
    "AdamW": adamw,
}


# Ways down.


@lru_cache(256)
def noise(sigma: Number, steps: int, seed: int) -> Sequence[Point]:
    """The noise added to each step's gradient: two normal numbers with that deviation, the same for all optimizers."""
    draw = Random(seed).gauss
    return tuple((sigma * draw(0.0, 1.0), sigma * draw(0.0, 1.0)) for _ in range(steps))


@dataclass(frozen=True)
class Descent:
    """The places that an optimizer visited, from the start; fewer than asked for if it diverged."""

    points: Sequence[Point]
    losses: Sequence[Number]
    lengths: Sequence[Number]  # of each step

    def at(self, step: int) -> int:
        """The place at that step, or the last place."""
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
        if not math.hypot(next_x, next_y) < LOST:
            break
        lengths.append(math.hypot(next_x - x, next_y - y))
        x, y = next_x, next_y
        points.append((x, y))
    return Descent(points, [surface.loss(*point) for point in points], lengths)
