"""The updates lab's settings: a step of the training, its learning rate, and a guess."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_utils.core.say import Number
from course_utils.core.say.language import template
from course_utils.engine.labs.fields import choice, drawn, reveal, said_is, whole

STEPS = 200
# What a guess is about, by the step whose share of lost updates the reader guesses.
QUESTIONS = {
    25: template("the share in % that is lost in step 25"),
    75: template("the share in % that is lost in step 75"),
    125: template("the share in % that is lost in step 125"),
    200: template("the share in % that is lost in step 200"),
}
ASKED_AT = tuple(QUESTIONS)
MARKS = (
    template("lost in step 25"),
    template("lost in step 75"),
    template("lost in step 125"),
    template("lost in step 200"),
)
RATES = ("constant", "falling")
_NO_GUESS = (None,) * len(ASKED_AT)
PRESETS: Mapping[str, Mapping[str, object]] = {
    "how many are lost?": {"shown": False, "guess": _NO_GUESS, "rate": "constant"},
    "at first?": {"shown": True, "step": 5, "rate": "constant"},
    "and at the end?": {"shown": True, "step": STEPS, "rate": "constant"},
    "if the learning rate falls?": {"shown": True, "step": 150, "rate": "falling"},
}


@dataclass(frozen=True)
class Asked:
    """A step of the training, and how its learning rate changes."""

    guess: Sequence[int | None] = drawn(
        "share of the updates that are lost",
        marks=MARKS,
        levels=101,  # 0 % to 100 %
        says=lambda mark, level: f"{level} %",
        about=("rate",),
    )
    shown: bool = reveal()
    # Of `whole`: its label, its default, the least and the most.
    step: int = whole("step", 5, 5, STEPS, step=5, play=True, when=said_is("shown", True))
    rate: str = choice("learning rate", RATES, "constant")


@dataclass(frozen=True)
class UpdateHistogram:
    """The sizes of one step's updates, in halves of their weights' gaps, and how many are lost."""

    bins: Sequence[tuple[int, int]]  # the power of two at which a bin begins, and its count
    below: Number  # the share of the updates that are smaller than half a gap
    still: Number  # the share of the updates whose weight stayed as it was


@dataclass(frozen=True)
class Found:
    """The updates of each step of the training; empty until they are computed."""

    steps: Sequence[UpdateHistogram] = ()  # steps count from 1, so step n is at the place n - 1
