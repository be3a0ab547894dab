"""Four optimizers as notebook 6 writes them, and a ravine for them to descend.

A rule takes a parameter p, its gradient g and what it keeps of former steps, and returns the next p and what is kept.
The place of epsilon, sum or average, what is corrected: all is torch's. torch does a multiplication and an addition in
one rounding, so each step differs in its last bits. Where steps enlarge an error again and again, that adds up: losses
of 1.8e-141 here and of 8.9e-138 there are the same way down, but not the same number.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count, islice, repeat
from typing import TypeVar

from course_utils.core.say import Number

T = TypeVar("T")  # numbers go in and numbers come out, tensors go in and tensors come out
Point = tuple[Number, Number]
LOST = 1e4  # whoever is so far away does not come back


@dataclass(frozen=True)
class Ravine:
    """The loss ½(u² + s·v²): u along the ravine, where the curvature is 1, v across it, where it is s.

    By so many degrees the ravine and its start are turned against the parameters x and y.
    """

    steepness: Number
    degrees: Number = 0

    @cached_property
    def direction(self) -> Point:
        """Cosine and sine of the turn. Rounded, they are the same on every machine."""
        turn = math.radians(self.degrees)
        return round(math.cos(turn), 12), round(math.sin(turn), 12)

    @property
    def start(self) -> Point:
        """The place 1.5 before the minimum along the ravine, and 1 beside it across."""
        return self.turned(-1.5, 1.0)

    def turned(self, u: T, v: T) -> tuple[T, T]:
        """(x, y) of a place that is given by (u, v)."""
        cos, sin = self.direction
        return cos * u - sin * v, sin * u + cos * v

    def along(self, x: T, y: T) -> tuple[T, T]:
        """(u, v) of a place that is given by (x, y)."""
        cos, sin = self.direction
        return cos * x + sin * y, cos * y - sin * x

    def loss(self, x: T, y: T) -> T:
        """½(u² + s·v²)."""
        u, v = self.along(x, y)
        return 0.5 * (u * u + self.steepness * (v * v))

    def gradient(self, x: Number, y: Number) -> Point:
        """(u, s·v), turned."""
        u, v = self.along(x, y)
        return self.turned(u, self.steepness * v)

    @property
    def curvatures(self) -> tuple[Number, Number, Number]:
        """The second derivatives of the loss: by x twice, by x and y, by y twice."""
        cos, sin = self.direction
        across = self.steepness
        return (
            cos * cos + across * sin * sin,
            (1 - across) * cos * sin,
            sin * sin + across * cos * cos,
        )

    def contour(self, level: Number) -> list[Point]:
        """The ellipse on which the loss has that value."""
        wide, high = math.sqrt(2 * level), math.sqrt(2 * level / self.steepness)
        turns = (math.pi * n / 60 for n in range(-60, 61))
        return [self.turned(wide * math.sin(turn), high * math.cos(turn)) for turn in turns]


# Rules.


def sgd(p: T, g: T, lr: Number, _: Number) -> tuple[T]:
    """p - lr·g."""
    return (p - lr * g,)


def momentum(p: T, g: T, buffer: T, lr: Number, mu: Number) -> tuple[T, T]:
    """p - lr·b with b = μ·b + g: a sum of gradients, no average."""
    buffer = mu * buffer + g
    return p - lr * buffer, buffer


def rmsprop(p: T, g: T, v: T, lr: Number, alpha: Number) -> tuple[T, T]:
    """p - lr·g/(√v + ε) with v = α·v + (1-α)·g²: an average that starts at 0, so the first steps are long."""
    v = alpha * v + (1 - alpha) * g * g
    return p - lr * g / (v**0.5 + 1e-8), v


def adamw(p: T, g: T, m: T, v: T, t: int, lr: Number, decay: Number) -> tuple[T, T, T]:
    """(1 - lr·decay)·p - lr·m̂/(√v̂ + ε): both averages, each divided by 1 - β^t, for they start at 0."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    size = (v / (1 - 0.999**t)) ** 0.5 + 1e-8
    return p * (1 - lr * decay) - lr * m / (1 - 0.9**t) / size, m, v


@dataclass(frozen=True)
class Rule:
    """A function step(p, g, *kept, lr, option) -> (p, *kept). With `counts`, it takes t, from 1 on, before lr."""

    step: Callable[..., Sequence]
    kept: int  # numbers for each parameter, which are 0 at first
    option: Number = 0.0
    counts: bool = False

    def after(self, t: int, p: T, g: T, kept: Sequence[T], lr: Number) -> Sequence[T]:
        """What step number t makes of p, and what is kept from then on."""
        return self.step(p, g, *kept, *[t] * self.counts, lr, self.option)


RULES = {
    "SGD": Rule(sgd, 0),
    "momentum": Rule(momentum, 1, 0.9),
    "RMSProp": Rule(rmsprop, 1, 0.99),
    "AdamW": Rule(adamw, 2, 0.0, counts=True),
}


# Ways down.

LATE = 10  # a run is judged by its last tenth


def walk(rule: Rule, ground: Ravine, lr: Number) -> Iterator[Point]:
    """One place after the other, from the start. It ends where the rule is lost."""
    x, y = ground.start
    along_x = along_y = (0.0,) * rule.kept
    for t in count(1):
        yield x, y
        to_x, to_y = ground.gradient(x, y)
        x, *along_x = rule.after(t, x, to_x, along_x, lr)
        y, *along_y = rule.after(t, y, to_y, along_y, lr)
        if not math.hypot(x, y) < LOST:
            return


@lru_cache(maxsize=4096)
def descent(rule: Rule, ground: Ravine, lr: Number, steps: int) -> Sequence[Point]:
    """The start and the places after each step; fewer than asked for if the rule was lost."""
    return [place for place, _ in zip(walk(rule, ground, lr), range(steps + 1), strict=False)]


def _pulled(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """The way of SGD or of momentum, to where it is lost."""
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    kept = rule.option
    sum_x = sum_y = 0.0
    for lr in rates:
        g = by_x * x + mixed * y
        h = mixed * x + by_y * y
        sum_x = kept * sum_x + g
        sum_y = kept * sum_y + h
        x -= lr * sum_x
        y -= lr * sum_y
        if not math.hypot(x, y) < LOST:
            return
        yield x, y


def _divided(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """The way of RMSProp."""
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    old, new = rule.option, 1 - rule.option
    square_x = square_y = 0.0
    for lr in rates:
        g = by_x * x + mixed * y
        h = mixed * x + by_y * y
        square_x = old * square_x + new * g * g
        square_y = old * square_y + new * h * h
        x -= lr * g / (math.sqrt(square_x) + 1e-8)
        y -= lr * h / (math.sqrt(square_y) + 1e-8)
        yield x, y


def _corrected(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """The way of AdamW."""
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    mean_x = mean_y = square_x = square_y = 0.0
    left = left_of_squares = 1.0
    for lr in rates:
        g = by_x * x + mixed * y
        h = mixed * x + by_y * y
        left *= 0.9
        left_of_squares *= 0.999
        mean_x = 0.9 * mean_x + 0.1 * g
        mean_y = 0.9 * mean_y + 0.1 * h
        square_x = 0.999 * square_x + 0.001 * g * g
        square_y = 0.999 * square_y + 0.001 * h * h
        size_x = math.sqrt(square_x / (1 - left_of_squares)) + 1e-8
        size_y = math.sqrt(square_y / (1 - left_of_squares)) + 1e-8
        kept = 1 - lr * rule.option
        x = kept * x - lr * mean_x / (1 - left) / size_x
        y = kept * y - lr * mean_y / (1 - left) / size_y
        yield x, y


# The same ways as `walk`'s, for thousands of steps: written for two numbers, they take a tenth of the time.
_QUICKLY = {sgd: _pulled, momentum: _pulled, rmsprop: _divided, adamw: _corrected}


def late_places(
    rule: Rule, ground: Ravine, lr: Number, steps: int, *, falling: bool = False
) -> list[Point]:
    """The places after each step of the last tenth; none if the rule was lost. A falling lr ends at 0, on a straight line."""
    rates = (lr * (1 - n / steps) for n in range(steps)) if falling else repeat(lr, steps)
    late = list(islice(_QUICKLY[rule.step](rule, ground, rates), steps - steps // LATE, None))
    return late if len(late) == steps // LATE else []


@lru_cache(maxsize=4096)
def end_loss(
    rule: Rule, ground: Ravine, lr: Number, steps: int, *, falling: bool = False
) -> Number:
    """The largest loss of the last tenth of so many steps; infinite if the rule was lost."""
    places = late_places(rule, ground, lr, steps, falling=falling)
    by_x, mixed, by_y = ground.curvatures
    twice = (
        by_x * x * x + 2 * mixed * x * y + by_y * y * y for x, y in places
    )  # of a thousand places, in haste
    return 0.5 * max(twice, default=math.inf)


def measured_largest_lr(ground: Ravine, ends_with: Callable[[Number], Number]) -> Number:
    """The learning rate beyond which the loss ends above where it began; found by walking, and bisection."""
    began_with = ground.loss(*ground.start)
    least, most = 0.0, 16.0
    while most - least > least / 10_000:
        middle = (least + most) / 2
        if ends_with(middle) < began_with:
            least = middle
        else:
            most = middle
    return least


@lru_cache(maxsize=256)
def steps_to_come_near(
    rule: Rule, ground: Ravine, lr: Number, *, share: Number, steps: int
) -> Number:
    """After how many steps the loss is below that share of the first one, and stays there; infinite if never."""
    enough = share * ground.loss(*ground.start)
    above = 0
    walked = 0
    for walked, place in enumerate(_QUICKLY[rule.step](rule, ground, repeat(lr, steps)), 1):
        if not ground.loss(*place) < enough:
            above = walked
    return above + 1 if above < walked == steps else math.inf
