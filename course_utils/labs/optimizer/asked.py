"""A race of optimizers down a ravine as it is asked for, and what can be guessed of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from course_utils import predict
from course_utils.labs.fields import Said, among, choice, drawn, reveal, several, whole
from course_utils.predict.descents import RULES, Point, Ravine, Rule, descent, end_loss, measured_largest_lr
from course_utils.quantities import Guess, Number

LINEAR = ("SGD", "momentum")  # in the gradient: how far lr may go is known beforehand
STEPS = 100
NOBODY = "nobody"
# As even as a logarithmic slider's, but numbers that one can reckon with; a curvature of 100 has its limit at 0.02.
_LEADING = "1 1.1 1.2 1.3 1.5 1.6 1.8 1.9 1.95 2 2.05 2.2 2.4 2.7 3 3.3 3.6 3.8 3.9 4.3 4.7 5 5.6 6.2 6.8 7.5 8.2 9.1"
RATES = [float(f"{digits}e{power}") for power in range(-3, 1) for digits in _LEADING.split()] + [10.0]
DRAWN_RATES = RATES[::4]  # those at which the curves are computed
PRESETS: dict[str, Said] = {
    "who diverges?": {"racing": tuple(RULES), "lr": 0.0205, "steepness": 100, "degrees": 0},
    "who overshoots?": {"racing": LINEAR, "lr": 0.03, "steepness": 1, "degrees": 0},
    "who minds a turn?": {"racing": tuple(RULES), "lr": 0.1, "steepness": 100, "degrees": 45},
    "what does less momentum buy?": {"racing": LINEAR, "momentum": 0.67, "lr": 0.033, "degrees": 0},
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
    steepness: int = among("steepness", (1, 3, 10, 30, 100, 300, 1000), 100, width_px=190, when=_is_free)
    degrees: int = whole("turned by", 0, 0, 45, step=5, width_px=220, play=True, when=_is_free)
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

    def descent(self, name: str) -> Sequence[Point]:
        """The places that it comes to."""
        return descent(self.rule(name), self.ground, self.lr, STEPS)

    def end_loss(self, name: str, lr: Number) -> Number:
        """The loss that it ends with: the largest of its last ten steps."""
        return end_loss(self.rule(name), self.ground, lr, STEPS)

    def lowest(self, name: str) -> tuple[Number, Number]:
        """Its lowest loss over all learning rates that are drawn, and that learning rate."""
        return min((self.end_loss(name, lr), lr) for lr in DRAWN_RATES)

    def limit(self, name: str) -> Number:
        """The learning rate beyond which it diverges, by the formula; infinite for those that divide."""
        mu = self.momentum if name == "momentum" else 0.0
        return predict.largest_lr(self.steepness, mu) if name in LINEAR else math.inf

    def measured_limit(self, name: str) -> Number:
        """The same, by walking; at most the largest learning rate that is drawn."""
        return min(measured_largest_lr(self.rule(name), self.ground, STEPS), RATES[-1])

    @property
    def guesses(self) -> Sequence[Guess]:
        """The mark, if there is one, beside the limit that was found by walking."""
        (level,), name = self.guess, self.guessed
        if level is None or name == NOBODY:
            return ()
        asked = f"largest lr with which {name} comes down"
        return [Guess(asked, RATES[level], self.measured_limit(name), digits=2)]
