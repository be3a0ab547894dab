"""A race of optimizers down a ravine as it is asked for, and what can be guessed of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from course_utils.chapters.optimizers.descents import (
    LATE,
    RULES,
    Point,
    Ravine,
    Rule,
    descent,
    end_loss,
    late_places,
    measured_largest_lr,
    steps_to_come_near,
)
from course_utils.core import predict
from course_utils.core.say import Guess, Number
from course_utils.engine.labs.fields import Said, among, choice, drawn, reveal, several, whole

LINEAR = ("SGD", "momentum")  # in the gradient: how far lr may go is known beforehand
STEPS = 100
NOBODY = "nobody"
# As even as a logarithmic slider's, but numbers that one can reckon with; a curvature of 100 has its limit at 0.02.
_LEADING = "1 1.1 1.2 1.3 1.5 1.6 1.8 1.9 1.95 2 2.05 2.2 2.4 2.7 3 3.3 3.6 3.8 3.9 4.3 4.7 5 5.6 6.2 6.8 7.5 8.2 9.1"
RATES = [float(f"{digits}e{power}") for power in range(-3, 1) for digits in _LEADING.split()] + [
    10.0
]
DRAWN_RATES = RATES[::4]  # those at which the curves are computed
FEWER_RATES = RATES[::14]  # where each takes thousands of steps; both end with the largest
SHORT, LONG, FALLING = "100 steps", "10,000 steps", "10,000 steps, lr falling to 0"
LONG_STEPS = 10_000
_ALL = {"racing": tuple(RULES), "steepness": 100, "degrees": 0, "run": SHORT}
PRESETS: dict[str, Said] = {
    "who diverges?": _ALL | {"lr": 0.0205},
    "who overshoots?": _ALL | {"racing": LINEAR, "lr": 0.03, "steepness": 1},
    "who comes back?": _ALL | {"lr": 1.0, "run": LONG},
    "who minds a turn?": _ALL | {"lr": 0.1, "degrees": 45},
    "what does less momentum buy?": _ALL | {"racing": LINEAR, "momentum": 0.67, "lr": 0.033},
}


def _is_free(said: Said) -> bool:
    """Whether all but the step may be moved: before a guess is shown, trying would be knowing."""
    return said["guessed"] == NOBODY or bool(said["shown"])


@dataclass(frozen=True)
class Race:
    """The ravine, who takes part, and the step to look at; and whose learning rate is guessed in the picture.

    Where one is guessed, its curve is drawn when it is shown; the others' curves are known by then.
    """

    racing: tuple[str, ...] = several("racing", tuple(RULES), tuple(RULES))
    lr: float = among("lr", RATES, 0.018, width_px=260, when=_is_free)
    momentum: float = among("μ", (0.0, 0.5, 0.67, 0.8, 0.9, 0.95), 0.9, width_px=150, when=_is_free)
    steepness: int = among(
        "steepness", (1, 3, 10, 30, 100, 300, 1000), 100, width_px=190, when=_is_free
    )
    degrees: int = whole("turned by", 0, 0, 45, step=5, width_px=220, play=True, when=_is_free)
    run: str = choice("after", (SHORT, LONG, FALLING), SHORT)
    step: int = whole("step", STEPS, 0, STEPS, width_px=220, play=True)
    guessed: str = choice("guess for", (NOBODY, *RULES), NOBODY)
    guess: Sequence[int | None] = drawn(
        "learning rate",
        marks=("learning rate",),
        levels=len(RATES),
        says=lambda mark, level: f"{RATES[level]:g}",
    )
    shown: bool = reveal()

    def __post_init__(self) -> None:
        """Refuse a race without optimizers."""
        if not self.racing:
            raise ValueError("Nobody races. Tick at least one optimizer.")

    @property
    def ground(self) -> Ravine:
        """The ravine."""
        return Ravine(self.steepness, self.degrees)

    @property
    def hidden(self) -> str:
        """The optimizer whose curve is not drawn yet, or an empty string."""
        return "" if self.shown or self.guessed == NOBODY else self.guessed

    def rule(self, name: str) -> Rule:
        """That optimizer's rule, with this momentum."""
        return replace(RULES[name], option=self.momentum) if name == "momentum" else RULES[name]

    @property
    def steps(self) -> int:
        """How many steps the run has."""
        return STEPS if self.run == SHORT else LONG_STEPS

    @property
    def last_steps(self) -> int:
        """How many steps at the run's end it is judged by."""
        return self.steps // LATE

    @property
    def drawn_rates(self) -> Sequence[Number]:
        """The learning rates at which the curves are computed."""
        return DRAWN_RATES if self.run == SHORT else FEWER_RATES

    def descent(self, name: str) -> Sequence[Point]:
        """The places that it comes to in a run of 100 steps, or in the last 100 of a longer one; fewer if it was lost."""
        if self.run == SHORT:
            return descent(self.rule(name), self.ground, self.lr, STEPS)
        return _last_places(self.rule(name), self.ground, self.lr, self.run == FALLING)

    def end_loss(self, name: str, lr: Number) -> Number:
        """The loss that it ends with: the largest of the last tenth of its steps."""
        return end_loss(self.rule(name), self.ground, lr, self.steps, falling=self.run == FALLING)

    def lowest(self, name: str) -> tuple[Number, Number]:
        """Its lowest loss over all learning rates that are drawn, and that learning rate."""
        return min((self.end_loss(name, lr), lr) for lr in self.drawn_rates)

    def steps_to_come_near(self, name: str) -> tuple[Number, Number]:
        """After how many steps at its best rate the loss stays below a thousandth, to step 1,000; and that rate."""
        near = partial(steps_to_come_near, self.rule(name), self.ground, share=0.001, steps=1000)
        return min((near(lr), lr) for lr in DRAWN_RATES)

    def limit(self, name: str) -> Number:
        """The learning rate beyond which it ends higher than it began, by the formula; infinite where there is none."""
        if name == "RMSProp" and self.run == LONG:
            return predict.largest_settled_lr(self.first_loss, self.steepness, self.degrees)
        mu = self.momentum if name == "momentum" else 0.0
        return predict.largest_lr(self.steepness, mu) if name in LINEAR else math.inf

    @property
    def first_loss(self) -> Number:
        """The loss at the start."""
        return self.ground.loss(*self.ground.start)

    def settled_loss(self, lr: Number) -> Number:
        """RMSProp's loss in the long run, by the formula."""
        return predict.settled_loss(lr, self.steepness, self.degrees)

    def measured_limit(self, name: str) -> Number:
        """The same as `limit`, by walking; at most the largest learning rate that is drawn."""
        return min(_measured_limit(self.rule(name), self.ground, self.run), RATES[-1])

    @property
    def guesses(self) -> Sequence[Guess]:
        """The mark, if there is one, beside the limit that was found by walking."""
        (level,), name = self.guess, self.guessed
        if level is None or name == NOBODY:
            return ()
        asked = f"largest lr with which {name} comes down, after {self.run}"
        return [Guess(asked, RATES[level], self.measured_limit(name), digits=2)]


@lru_cache(maxsize=64)
def _last_places(rule: Rule, ground: Ravine, lr: Number, falling: bool) -> Sequence[Point]:
    return late_places(rule, ground, lr, LONG_STEPS, falling=falling)[-STEPS - 1 :]


@lru_cache(maxsize=256)
def _measured_limit(rule: Rule, ground: Ravine, run: str) -> Number:
    steps = STEPS if run == SHORT else LONG_STEPS
    return measured_largest_lr(
        ground, lambda lr: end_loss(rule, ground, lr, steps, falling=run == FALLING)
    )
