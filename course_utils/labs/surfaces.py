"""Surfaces of two coordinates with their gradients, and what a quadratic one lets us predict of a descent.

They are plain formulas: numbers go in and numbers come out, tensors go in and tensors come out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TypeVar

from course_utils.quantities import Number

T = TypeVar("T")
Point = tuple[Number, Number]
EDGE = 2.0  # what is drawn reaches from -2 to 2 in both coordinates
_HALF, _FAR = math.sqrt(0.5), 4 * EDGE


@dataclass(frozen=True)
class Surface:
    """A loss over two coordinates, where to start on it, and where it is least."""

    steepness: Number

    start = (0.0, 0.0)
    minima = ((0.0, 0.0),)
    quadratic = True

    def loss(self, x: T, y: T) -> T:
        """The height."""
        raise NotImplementedError

    def gradient(self, x: Number, y: Number) -> Point:
        """Its two partial derivatives."""
        raise NotImplementedError

    def along(self, x: Number, y: Number) -> Point:
        """The coordinates along the directions whose curvatures are `curvatures`."""
        return x, y

    def curvatures(self, x: Number, y: Number) -> Point:
        """The second derivatives along those directions at a place."""
        return 1.0, self.steepness

    def contour(self, level: Number) -> list[list[Point]]:
        """The lines on which the loss is that."""
        raise NotImplementedError

    def distance(self, x: Number, y: Number) -> Number:
        """To the nearest minimum."""
        return min(math.hypot(x - a, y - b) for a, b in self.minima)


class Ravine(Surface):
    """½(x² + s·y²): curvature 1 along x, s along y."""

    start = (-1.5, 1.0)

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
        top = math.sqrt(2 * level / self.steepness)
        return [_loop(-top, top, lambda y: 2 * level - self.steepness * y * y)]


class TurnedRavine(Surface):
    """The same ravine, turned by 45°: ½(u² + s·v²) with u = (x + y)/√2 and v = (y - x)/√2."""

    start = (-1.5 * _HALF - _HALF, -1.5 * _HALF + _HALF)  # the ravine's own start, turned with it

    def along(self, x: Number, y: Number) -> Point:
        """(u, v)."""
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
        """The ravine's, turned."""
        straight = Ravine(self.steepness).contour(level)
        return [[((u - v) * _HALF, (u + v) * _HALF) for u, v in line] for line in straight]


class Saddle(Surface):
    """½s·x² + ¼(y² - 1)²: flat on top of the ridge y = 0, with a minimum on either side of it."""

    start = (-1.5, 0.001)
    minima = ((0.0, 1.0), (0.0, -1.0))
    quadratic = False

    def loss(self, x: T, y: T) -> T:
        """½s·x² + ¼(y² - 1)²."""
        beside = y * y - 1.0
        return 0.5 * self.steepness * (x * x) + 0.25 * (beside * beside)

    def gradient(self, x: Number, y: Number) -> Point:
        """(s·x, y(y² - 1))."""
        return self.steepness * x, y * (y * y - 1.0)

    def curvatures(self, x: Number, y: Number) -> Point:
        """(s, 3y² - 1): negative on the ridge."""
        return self.steepness, 3 * y * y - 1.0

    def contour(self, level: Number) -> list[list[Point]]:
        """x = ±√((2L - ½(y² - 1)²)/s): below the saddle one loop around each minimum, above it one around both."""
        far, near = 1 + 2 * math.sqrt(level), 1 - 2 * math.sqrt(level)  # y² where x is 0
        ends = [math.sqrt(far), math.sqrt(near) if near > 0 else -math.sqrt(far)]
        sides = (1, -1) if near > 0 else (1,)
        if not self.steepness:
            return [[(-_FAR, side * y), (_FAR, side * y)] for y in ends for side in sides]

        def width(y: Number) -> Number:
            return (2 * level - 0.5 * (y * y - 1) ** 2) / self.steepness

        return [_loop(side * ends[0], side * ends[1], width) for side in sides]


def _loop(start: Number, end: Number, squared_width: Callable[[Number], Number]) -> list[Point]:
    """Around from one end to the other and back, with points closer together near the ends."""
    turns = [math.pi * n / 60 for n in range(121)]
    heights = [(start + end) / 2 + (start - end) / 2 * math.cos(turn) for turn in turns]
    widths = [math.sqrt(max(0.0, squared_width(y))) for y in heights]
    return [(math.copysign(x, math.sin(turn)), y) for x, y, turn in zip(widths, heights, turns, strict=True)]


SURFACES = {"ravine": Ravine, "turned ravine": TurnedRavine, "saddle": Saddle}


@lru_cache(256)
def noise(sigma: Number, steps: int, seed: int) -> Sequence[Point]:
    """What is added to the gradient at each step: two normal numbers with that deviation, the same for all who race."""
    draw = Random(seed).gauss
    return tuple((sigma * draw(0.0, 1.0), sigma * draw(0.0, 1.0)) for _ in range(steps))


# What can be predicted of SGD and momentum. Everywhere, a is lr times the curvature.


def error_factor(steps: int, a: Number, momentum: Number = 0.0) -> Number:
    """error after t steps ÷ error at the start: (1 - a)^t, and with momentum the t-th power of a matrix.

    Momentum makes error(t+1) = (1 + μ - a)·error(t) - μ·error(t-1), which is one product with a matrix.

    >>> error_factor(2, 0.5), error_factor(2, 0.5, momentum=0.5)
    (0.25, 0.0)
    """
    power, factor = ((1.0, 0.0), (0.0, 1.0)), ((1.0 + momentum - a, -momentum), (1.0, 0.0))
    while steps:
        if steps & 1:
            power = _product(power, factor)
        factor, steps = _product(factor, factor), steps >> 1
    found = power[0][0] + power[0][1]
    return found if found == found else math.inf  # beyond all floats, on either side of 0


def _product(p: tuple[Point, Point], q: tuple[Point, Point]) -> tuple[Point, Point]:
    (a, b), (c, d) = p
    (e, f), (g, h) = q
    return (a * e + b * g, a * f + b * h), (c * e + d * g, c * f + d * h)


def rate(a: Number, momentum: Number = 0.0) -> Number:
    """The error's factor per step in the long run: |1 - a|; with momentum the larger root of r² = (1 + μ - a)·r - μ.

    >>> rate(0.1), round(rate(0.1, momentum=0.81), 3)
    (0.9, 0.9)
    """
    half = (1 + momentum - a) / 2
    inside = half * half - momentum
    return abs(half) + math.sqrt(inside) if inside > 0 else math.sqrt(momentum)


def largest_lr(curvature: Number, momentum: Number = 0.0) -> Number:
    """2(1 + μ) / curvature: with a larger learning rate the error grows.

    >>> largest_lr(100)
    0.02
    """
    return 2 * (1 + momentum) / curvature if curvature > 0 else math.inf


def noise_floor(lr: Number, curvature: Number, sigma: Number, momentum: Number = 0.0) -> Number:
    """lr·σ²·(1+μ) / (2(1-μ)(2(1+μ) - lr·curvature)): the loss at which noise holds a descent, one direction's part.

    >>> noise_floor(0.5, 2, sigma=1)
    0.25
    """
    room = 2 * (1 + momentum) - lr * curvature
    if curvature <= 0 or room <= 0:
        return math.inf if room <= 0 else 0.0
    return lr * sigma * sigma * (1 + momentum) / (2 * (1 - momentum) * room)
