"""A race of optimizers down a ravine: the settings, the computed runs, and the reader's guess."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from course_utils.chapters.optimizers.descents import (
    LATE,
    RULES,
    Point,
    Ravine,
    Rule,
    descent,
    end_loss,
    late_points,
    measured_largest_lr,
    steps_to_come_near,
)
from course_utils.core import predict
from course_utils.core.say import Guess, Number
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.fields import Said, among, choice, drawn, reveal, several, whole

# The steps of these are linear in the gradient, so a formula gives the limit of their lr.
LINEAR = ("SGD", "momentum")
STEPS = 100  # of a short run, and as many of a long run are drawn: its last ones
LONG_STEPS = 10_000
NOBODY = "nobody"
# Nearly even on a logarithmic scale, but numbers that one can reckon with. Around 2 they are close
# to each other, because SGD's limit is 0.02 where the curvature is 100.
_LEADING_DIGITS = (
    "1 1.1 1.2 1.3 1.5 1.6 1.8 1.9 1.95 2 2.05 2.2 2.4 2.7 "
    "3 3.3 3.6 3.8 3.9 4.3 4.7 5 5.6 6.2 6.8 7.5 8.2 9.1"
)


def _offered_rates() -> list[float]:
    """Return the learning rates from 0.001 to 10."""
    rates = []
    for power in range(-3, 1):
        for digits in _LEADING_DIGITS.split():
            # Read as a text such as "2.05e-2": a product of 2.05 and 10**-2 may be another float.
            rates.append(float(f"{digits}e{power}"))
    rates.append(10.0)
    return rates


RATES = _offered_rates()
DRAWN_RATES = RATES[::4]  # the rates at which curves of short runs are computed
FEWER_RATES = RATES[::14]  # those of long runs, which take thousands of steps each
SHORT = "100 steps"
LONG = "10,000 steps"
FALLING = "10,000 steps, lr falling to 0"
_ALL = {"racing": tuple(RULES), "steepness": 100, "degrees": 0, "run": SHORT}
PRESETS: dict[str, Said] = {
    "who diverges?": _ALL | {"lr": 0.0205},
    "who overshoots?": _ALL | {"racing": LINEAR, "lr": 0.03, "steepness": 1},
    "who comes back?": _ALL | {"lr": 1.0, "run": LONG},
    "who minds a turn?": _ALL | {"lr": 0.1, "degrees": 45},
    "what does less momentum buy?": _ALL | {"racing": LINEAR, "momentum": 0.67, "lr": 0.033},
}


def _is_free(said: Said) -> bool:
    """Whether the reader may try other settings: not while a guess waits for its answer.

    Meanwhile the fields that have this as their `when` are at their defaults. `said` has what the
    controls hold, by the names of the fields of Race.
    """
    return said["guessed"] == NOBODY or bool(said["shown"])


@dataclass(frozen=True)
class Race:
    """The ravine, the optimizers that race, and the step to look at.

    The reader may guess the largest learning rate of one optimizer. The curve of this optimizer,
    which would give the answer away, is drawn only when the answer is shown.
    """

    # `several` and `among` take a label, the options and the default; `whole` takes a label, the
    # default, the least and the most.
    racing: tuple[str, ...] = several("racing", tuple(RULES), tuple(RULES))
    lr: float = among("lr", RATES, 0.018, width_px=260, when=_is_free)
    momentum: float = among("μ", (0.0, 0.5, 0.67, 0.8, 0.9, 0.95), 0.9, width_px=150, when=_is_free)
    steepness: int = among(
        "steepness", (1, 3, 10, 30, 100, 300, 1000), 100, width_px=190, when=_is_free
    )
    degrees: int = whole("turned by, °", 0, 0, 45, step=5, width_px=220, play=True, when=_is_free)
    # Which run is judged: SHORT, LONG or FALLING.
    run: str = choice("after", (SHORT, LONG, FALLING), SHORT)
    step: int = whole("step", STEPS, 0, STEPS, width_px=220, play=True)
    guessed: str = choice("guess for", (NOBODY, *RULES), NOBODY)
    guess: Sequence[int | None] = drawn(
        "learning rate",
        marks=(template("learning rate"),),
        levels=len(RATES),
        says=lambda mark, level: f"{RATES[level]:g}",
        about=("guessed", "momentum", "steepness", "degrees", "run"),
    )
    shown: bool = reveal()

    def __post_init__(self) -> None:
        """Refuse a race without optimizers."""
        if not self.racing:
            raise ValueError(translated("Nobody races. Tick at least one optimizer."))

    @property
    def ground(self) -> Ravine:
        """The ravine with the chosen steepness and turn."""
        return Ravine(self.steepness, self.degrees)

    @property
    def hidden(self) -> str:
        """The optimizer whose curve would answer the open guess, or else an empty string."""
        if self.shown or self.guessed == NOBODY:
            return ""
        return self.guessed

    def rule(self, name: str) -> Rule:
        """Return the rule of that optimizer, with the chosen μ."""
        if name == "momentum":
            return replace(RULES[name], option=self.momentum)
        return RULES[name]

    @property
    def is_falling(self) -> bool:
        """Whether the learning rate falls to 0 during the run."""
        return self.run == FALLING

    @property
    def steps(self) -> int:
        """How many steps the run has."""
        return _steps_of(self.run)

    @property
    def last_steps(self) -> int:
        """How many steps the last tenth of the run has, by which the run is judged."""
        return self.steps // LATE

    @property
    def drawn_rates(self) -> Sequence[Number]:
        """The learning rates at which the curves are computed."""
        if self.run == SHORT:
            return DRAWN_RATES
        return FEWER_RATES

    def descent(self, name: str) -> Sequence[Point]:
        """Return the points of a run of 100 steps, or of the last 100 steps of a longer run.

        There are fewer if the optimizer was lost.
        """
        if self.run == SHORT:
            return descent(self.rule(name), self.ground, self.lr, STEPS)
        return _last_points(self.rule(name), self.ground, self.lr, self.is_falling)

    def end_loss(self, name: str, lr: Number) -> Number:
        """Return the largest loss of the last tenth of the run."""
        return end_loss(self.rule(name), self.ground, lr, self.steps, falling=self.is_falling)

    def lowest(self, name: str) -> tuple[Number, Number]:
        """Return the lowest `end_loss` over the drawn learning rates, and its learning rate.

        A short run has a dot at the present lr, which could lie below the curve, so that lr counts,
        too. Of equal losses, the one at the smallest learning rate is taken.
        """
        rates = [*self.drawn_rates]
        if self.run == SHORT:
            rates.append(self.lr)
        return min((self.end_loss(name, lr), lr) for lr in rates)

    def steps_to_come_near(self, name: str) -> tuple[Number, Number]:
        """Return the fewest steps to come near the minimum, over all learning rates, and their lr.

        Near means that up to step 1,000 the loss stays below a thousandth of the first one.
        """
        rule = self.rule(name)
        steps_and_rates = []
        for lr in DRAWN_RATES:
            steps = steps_to_come_near(rule, self.ground, lr, share=0.001, steps=1000)
            steps_and_rates.append((steps, lr))
        return min(steps_and_rates)  # the fewest steps; of equal ones, those at the smallest lr

    def limit(self, name: str) -> Number:
        """Return the learning rate beyond which the loss ends higher than at the start.

        A formula gives it. Where there is none, the limit is infinite: for AdamW, and for RMSProp
        unless its run is LONG.
        """
        # At the end of a long run RMSProp goes to and fro in steps of one length, and a formula has
        # the loss of such steps.
        if name == "RMSProp" and self.run == LONG:
            return predict.largest_settled_lr(self.first_loss, self.steepness, self.degrees)
        if name == "momentum":
            return predict.largest_lr(self.steepness, self.momentum)
        if name == "SGD":
            return predict.largest_lr(self.steepness, 0.0)
        return math.inf

    @property
    def first_loss(self) -> Number:
        """The loss at the start."""
        return self.ground.loss(*self.ground.start)

    def settled_loss(self, lr: Number) -> Number:
        """RMSProp's loss in the long run, by the formula."""
        return predict.settled_loss(lr, self.steepness, self.degrees)

    def measured_limit(self, name: str) -> Number:
        """Return the largest lr with which the optimizer comes down, found by walking.

        A limit above the last of RATES is given as that one, because the picture's axis ends there.
        """
        return min(_measured_limit(self.rule(name), self.ground, self.run), RATES[-1])

    @property
    def guesses(self) -> Sequence[Guess]:
        """The reader's mark, if there is one, beside the limit that is found by walking."""
        (level,) = self.guess  # a place in RATES, or None as long as the mark is not set
        if level is None or self.guessed == NOBODY:
            return ()
        question = f"largest lr with which {self.guessed} comes down, after {self.run}"
        return [Guess(question, RATES[level], self.measured_limit(self.guessed), digits=2)]


def _steps_of(run: str) -> int:
    return STEPS if run == SHORT else LONG_STEPS


@lru_cache(maxsize=64)
def _last_points(rule: Rule, ground: Ravine, lr: Number, falling: bool) -> Sequence[Point]:
    """Return the last STEPS + 1 points of a long run; none if the optimizer was lost.

    There is one more than steps, because the first point is the one before these steps.
    """
    late = late_points(rule, ground, lr, LONG_STEPS, falling=falling)
    return late[-STEPS - 1 :]


@lru_cache(maxsize=256)
def _measured_limit(rule: Rule, ground: Ravine, run: str) -> Number:
    """Return the lr beyond which a run ends with a higher loss than at the start.

    `run` is SHORT, LONG or FALLING. The result is kept for later calls, because each takes a dozen
    runs or more, of thousands of steps if they are long.
    """
    steps = _steps_of(run)

    def ends_with(lr: Number) -> Number:
        return end_loss(rule, ground, lr, steps, falling=run == FALLING)

    return measured_largest_lr(ground, ends_with)
