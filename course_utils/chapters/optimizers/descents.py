"""Four optimizers as notebook 6 writes them, and a ravine for them to descend.

A rule takes a parameter p, its gradient g, and the numbers that it kept of earlier steps. It
returns the next p, and the numbers to keep from then on. All details are torch's: where epsilon
stands, whether gradients are summed or averaged, and which averages are corrected.

But torch rounds once for a multiplication and an addition together, so each of its steps differs
from ours in the last bits. Where steps enlarge an error again and again, that adds up: the same
path may end at a loss of 1.8e-141 here and of 8.9e-138 there.
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
LOST = 1e4  # an optimizer this far from the minimum is lost: it does not come back


@dataclass(frozen=True)
class Ravine:
    """A ravine with the loss ½(u² + s·v²), where s is its steepness.

    u runs along the ravine, where the curvature is 1, and v across it, where the curvature is s.
    The ravine and its start are turned by `degrees` against the parameters x and y.
    """

    steepness: Number
    degrees: Number = 0

    @cached_property
    def direction(self) -> Point:
        """The cosine and sine of the turn, rounded so that they are the same on every machine."""
        turn = math.radians(self.degrees)
        cos = round(math.cos(turn), 12)
        sin = round(math.sin(turn), 12)
        return cos, sin

    @property
    def start(self) -> Point:
        """The point that lies 1.5 before the minimum along the ravine, and 1 beside it."""
        return self.turned(-1.5, 1.0)

    def turned(self, u: T, v: T) -> tuple[T, T]:
        """Return the parameters (x, y) of a point that is given by (u, v)."""
        cos, sin = self.direction
        x = cos * u - sin * v
        y = sin * u + cos * v
        return x, y

    def along(self, x: T, y: T) -> tuple[T, T]:
        """Return the coordinates (u, v) of a point that is given by its parameters (x, y)."""
        cos, sin = self.direction
        u = cos * x + sin * y
        v = cos * y - sin * x
        return u, v

    def loss(self, x: T, y: T) -> T:
        """Return the loss ½(u² + s·v²) at the parameters (x, y)."""
        u, v = self.along(x, y)
        return 0.5 * (u * u + self.steepness * (v * v))

    def gradient(self, x: Number, y: Number) -> Point:
        """Return the gradient by x and y: the gradient along u and v, (u, s·v), turned."""
        u, v = self.along(x, y)
        return self.turned(u, self.steepness * v)

    @property
    def curvatures(self) -> tuple[Number, Number, Number]:
        """The second derivatives of the loss: twice by x, by x and y, and twice by y.

        The minimum is at (0, 0), so the gradient by x is by_x · x + mixed · y, and the gradient by
        y is mixed · x + by_y · y.
        """
        cos, sin = self.direction
        across = self.steepness
        by_x = cos * cos + across * sin * sin
        mixed = (1 - across) * cos * sin
        by_y = sin * sin + across * cos * cos
        return by_x, mixed, by_y

    def contour(self, level: Number) -> list[Point]:
        """Return points on the ellipse where the loss is `level`, the first again at the end."""
        half_length = math.sqrt(2 * level)
        half_width = math.sqrt(2 * level / self.steepness)
        points = []
        for n in range(-60, 61):  # once around, from -π to π, in 120 pieces
            turn = math.pi * n / 60
            u = half_length * math.sin(turn)
            v = half_width * math.cos(turn)
            points.append(self.turned(u, v))
        return points


# Rules.


def sgd(p: T, g: T, lr: Number, _: Number) -> tuple[T]:
    """Return p - lr·g, in a tuple as all rules do. The last argument is the option, unused here."""
    return (p - lr * g,)


def momentum(p: T, g: T, buffer: T, lr: Number, mu: Number) -> tuple[T, T]:
    """Return p - lr·b and b = μ·b + g, which is a sum of gradients and not an average."""
    buffer = mu * buffer + g
    return p - lr * buffer, buffer


def rmsprop(p: T, g: T, v: T, lr: Number, alpha: Number) -> tuple[T, T]:
    """Return p - lr·g/(√v + ε) and v = α·v + (1-α)·g².

    The average v starts at 0 and is not corrected for that, so the first steps are long.
    """
    v = alpha * v + (1 - alpha) * g * g
    return p - lr * g / (v**0.5 + 1e-8), v


def adamw(p: T, g: T, m: T, v: T, t: int, lr: Number, decay: Number) -> tuple[T, T, T]:
    """Return (1 - lr·decay)·p - lr·m̂/(√v̂ + ε) and both averages, m and v.

    The averages start at 0. To correct that, m̂ and v̂ are m and v, each divided by its 1 - β^t.
    """
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    size = (v / (1 - 0.999**t)) ** 0.5 + 1e-8
    return p * (1 - lr * decay) - lr * m / (1 - 0.9**t) / size, m, v


@dataclass(frozen=True)
class Rule:
    """A function step(p, g, *kept, lr, option) that returns (p, *kept) after one step.

    If the rule counts its steps, the function takes their number t, from 1 on, before lr.
    """

    step: Callable[..., Sequence]
    kept_count: int  # how many numbers it keeps for each parameter; all are 0 at first
    option: Number = 0.0  # μ of momentum, α of RMSProp, or the decay of AdamW; SGD has none
    counts: bool = False  # whether the function takes the number t of the step

    def after(self, t: int, p: T, g: T, kept: Sequence[T], lr: Number) -> Sequence[T]:
        """Return p after step number t, followed by the numbers to keep from then on."""
        if self.counts:
            return self.step(p, g, *kept, t, lr, self.option)
        return self.step(p, g, *kept, lr, self.option)


# The function of each rule, how many numbers it keeps, and its option.
RULES = {
    "SGD": Rule(sgd, 0),
    "momentum": Rule(momentum, 1, 0.9),
    "RMSProp": Rule(rmsprop, 1, 0.99),
    "AdamW": Rule(adamw, 2, 0.0, counts=True),
}


# Paths down the ravine.

LATE = 10  # a run is judged by its last tenth


def walk(rule: Rule, ground: Ravine, lr: Number) -> Iterator[Point]:
    """Yield the start, and then the point after each step, until the rule is lost.

    A rule steps one number at a time here, so x and y each have their own kept numbers.
    """
    x, y = ground.start
    kept_x = (0.0,) * rule.kept_count
    kept_y = (0.0,) * rule.kept_count
    for t in count(1):
        yield x, y
        gradient_x, gradient_y = ground.gradient(x, y)
        x, *kept_x = rule.after(t, x, gradient_x, kept_x, lr)
        y, *kept_y = rule.after(t, y, gradient_y, kept_y, lr)
        if not math.hypot(x, y) < LOST:  # NaN is lost, too
            return


@lru_cache(maxsize=4096)
def descent(rule: Rule, ground: Ravine, lr: Number, steps: int) -> Sequence[Point]:
    """Return the start and the points after each step; fewer than `steps` if the rule was lost."""
    points = walk(rule, ground, lr)
    return list(islice(points, steps + 1))


# The same paths as `walk` has, without the start. They are written out for two numbers, because
# runs of thousands of steps then take a tenth of the time. `rates` has the learning rate of each
# step, and a walk ends with them. Only `_walk_momentum` can be lost: the steps of the others are at
# most some ten times lr long.


def _walk_momentum(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """Yield the point after each step of SGD or of momentum, until the rule is lost.

    SGD is momentum with a μ of 0, which is the option of SGD's rule.
    """
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    mu = rule.option
    sum_x = 0.0
    sum_y = 0.0
    for lr in rates:
        gradient_x = by_x * x + mixed * y
        gradient_y = mixed * x + by_y * y
        sum_x = mu * sum_x + gradient_x
        sum_y = mu * sum_y + gradient_y
        x -= lr * sum_x
        y -= lr * sum_y
        if not math.hypot(x, y) < LOST:  # NaN is lost, too
            return
        yield x, y


def _walk_rmsprop(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """Yield the point after each step of RMSProp."""
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    alpha = rule.option
    weight = 1 - alpha  # of a new square in the average
    square_x = 0.0
    square_y = 0.0
    for lr in rates:
        gradient_x = by_x * x + mixed * y
        gradient_y = mixed * x + by_y * y
        square_x = alpha * square_x + weight * gradient_x * gradient_x
        square_y = alpha * square_y + weight * gradient_y * gradient_y
        x -= lr * gradient_x / (math.sqrt(square_x) + 1e-8)
        y -= lr * gradient_y / (math.sqrt(square_y) + 1e-8)
        yield x, y


def _walk_adamw(rule: Rule, ground: Ravine, rates: Iterable[Number]) -> Iterator[Point]:
    """Yield the point after each step of AdamW, with the same β, 0.9 and 0.999, as `adamw`."""
    x, y = ground.start
    by_x, mixed, by_y = ground.curvatures
    mean_x = 0.0
    mean_y = 0.0
    square_x = 0.0
    square_y = 0.0
    power_of_beta1 = 1.0  # 0.9^t
    power_of_beta2 = 1.0  # 0.999^t
    for lr in rates:
        gradient_x = by_x * x + mixed * y
        gradient_y = mixed * x + by_y * y
        power_of_beta1 *= 0.9
        power_of_beta2 *= 0.999
        mean_x = 0.9 * mean_x + 0.1 * gradient_x
        mean_y = 0.9 * mean_y + 0.1 * gradient_y
        square_x = 0.999 * square_x + 0.001 * gradient_x * gradient_x
        square_y = 0.999 * square_y + 0.001 * gradient_y * gradient_y
        size_x = math.sqrt(square_x / (1 - power_of_beta2)) + 1e-8
        size_y = math.sqrt(square_y / (1 - power_of_beta2)) + 1e-8
        shrinking = 1 - lr * rule.option
        x = shrinking * x - lr * mean_x / (1 - power_of_beta1) / size_x
        y = shrinking * y - lr * mean_y / (1 - power_of_beta1) / size_y
        yield x, y


# The walk that is written out for a rule, by the rule's function.
_FAST_WALKS = {
    sgd: _walk_momentum,
    momentum: _walk_momentum,
    rmsprop: _walk_rmsprop,
    adamw: _walk_adamw,
}


def late_points(
    rule: Rule, ground: Ravine, lr: Number, steps: int, *, falling: bool = False
) -> list[Point]:
    """Return the points of the run's last tenth, one a step; none at all if the rule was lost.

    If `falling`, lr falls to 0 in a straight line.
    """
    rates: Iterable[Number] = repeat(lr, steps)
    if falling:
        rates = (lr * (1 - n / steps) for n in range(steps))
    points = _FAST_WALKS[rule.step](rule, ground, rates)
    late_steps = steps // LATE
    late = list(islice(points, steps - late_steps, None))
    # A walk ends early where the rule is lost.
    was_lost = len(late) < late_steps
    return [] if was_lost else late


@lru_cache(maxsize=4096)
def end_loss(
    rule: Rule, ground: Ravine, lr: Number, steps: int, *, falling: bool = False
) -> Number:
    """Return the largest loss of the last tenth of the steps; infinite if the rule was lost.

    A single loss says little, because a rule that goes to and fro may be low at a step by chance.
    """
    points = late_points(rule, ground, lr, steps, falling=falling)
    by_x, mixed, by_y = ground.curvatures
    # Twice the loss of each point. `ground.loss` would take several times as long, and there can be
    # a thousand points.
    doubled = [by_x * x * x + 2 * mixed * x * y + by_y * y * y for x, y in points]
    return 0.5 * max(doubled, default=math.inf)


def measured_largest_lr(ground: Ravine, ends_with: Callable[[Number], Number]) -> Number:
    """Return the learning rate beyond which a run ends with a higher loss than it began with.

    `ends_with` takes a learning rate, walks down the ravine, and returns the loss at the end. The
    limit is found by bisection, to a ten-thousandth, and lies between `least` and `most`. So it is
    assumed that every run with a smaller learning rate than the limit comes down.
    """
    began_with = ground.loss(*ground.start)
    least = 0.0
    most = 16.0  # more than any learning rate of the lab
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
    """Return how many steps it takes until the loss stays below that share of the first loss.

    The loss is watched up to step number `steps`. The result is infinite if the loss is still above
    that share then, or if the rule was lost before.
    """
    near = share * ground.loss(*ground.start)
    points = _FAST_WALKS[rule.step](rule, ground, repeat(lr, steps))
    walked = 0  # it stays 0 if the rule was lost in the first step
    last_above = 0  # the number of the last step after which the loss was not below the share
    for walked, point in enumerate(points, 1):
        if not ground.loss(*point) < near:  # NaN is above, too
            last_above = walked
    was_lost = walked < steps  # a walk ends early where the rule is lost
    if was_lost or last_above == walked:
        return math.inf
    return last_above + 1
