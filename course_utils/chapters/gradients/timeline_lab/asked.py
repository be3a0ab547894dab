"""What is trained and how, which moment of a step is looked at, and what the reader guesses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from course_utils.chapters.gradients.step_over_time import Step, step_on
from course_utils.chapters.gradients.trained_models import (
    MACHINES,
    MIXTRAL,
    MODELS,
    longest_segment,
    shape_named,
)
from course_utils.core import predict
from course_utils.core.predict import Shape, Timeline
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.fields import choice, drawn, reveal, size, tick, whole

SLIDER_PX = 96  # three sizes in a row
STAGES = {f"{stage}": stage for stage in range(4)}
# What a reader can be asked to guess: each is also the name of the field of Asked with the marks.
HELD = "held"
FULLEST = "fullest"
GUESSES = {"nothing": "", "what is held": HELD, "the fullest moment": FULLEST}
MOMENTS = 100  # the equal parts of a step's time from which the reader chooses a moment
EIGHTHS = (  # where a reader draws marks
    template("after 0/8 of the step"),
    template("after 1/8 of the step"),
    template("after 2/8 of the step"),
    template("after 3/8 of the step"),
    template("after 4/8 of the step"),
    template("after 5/8 of the step"),
    template("after 6/8 of the step"),
    template("after 7/8 of the step"),
    template("after 8/8 of the step"),
)
# What the guess at each of these marks is about.
HELD_AT_EIGHTHS = (
    template("after 0/8 of the step, in % of the most"),
    template("after 1/8 of the step, in % of the most"),
    template("after 2/8 of the step, in % of the most"),
    template("after 3/8 of the step, in % of the most"),
    template("after 4/8 of the step, in % of the most"),
    template("after 5/8 of the step, in % of the most"),
    template("after 6/8 of the step, in % of the most"),
    template("after 7/8 of the step, in % of the most"),
    template("after 8/8 of the step, in % of the most"),
)
PIECES = 16  # how many a loss in pieces has
# For each step that was measured, the bytes held at each of its operations.
Found = Mapping[Timeline, Sequence[int]]

# The values of controls that several presets share.
_PLAIN = {"fused": True, "segment": 0, "pieces": False, "accumulate": False, "machine": "H100 SXM"}
_ONE_GPU = {
    "recipe": "fp32 sgd",
    "batch": 1,
    "sequence": 1024,
    "machines": 1,
    "stage": 0,
    **_PLAIN,
}
_LARGE = {
    "model": "Llama 3 8B",
    "recipe": "bf16+master adamw",
    "batch": 1,
    "sequence": 8192,
    "machines": 8,
    "stage": 0,
    **_PLAIN,
}
# What marks can say, in percent; and what the step depends on, which is all that presets set.
MARKS = {"levels": 101, "about": tuple(_LARGE)}
PRESETS = {
    "do 8 H100s hold 8B?": _LARGE,
    "what do scores take?": {**_ONE_GPU, "model": "GPT-2 small", "fused": False},
    "GPT-2 XL on a T4?": {**_ONE_GPU, "model": "GPT-2 XL", "machine": "T4"},
    "what is left to recompute?": {**_LARGE, "stage": 3, "segment": 1},
    "and in pieces?": {**_LARGE, "stage": 3, "segment": 1, "pieces": True},
    "a mixture of experts?": {**_LARGE, "model": MIXTRAL, "machines": 64, "stage": 3, "segment": 1},
    "does 405B fit?": {**_LARGE, "model": "Llama 3.1 405B", "machines": 1024, "stage": 3},
}


# What stands at a mark. The first argument, the number of the mark, makes no difference.
def _share_of_the_most(_: int, level: int) -> str:
    return translated("{percent} % of the most", percent=f"{level}")


def moment_text(percent: int) -> str:
    return translated("at {percent} % of the step", percent=f"{percent}")


@dataclass(frozen=True)
class Asked:
    """What is trained, on which machines and how, the moment to look at, and the reader's marks."""

    # Of each `whole`: its label, its default, the least and the most.
    model: str = choice("model", MODELS, "Llama 3 8B", menu=True)
    recipe: str = choice("recipe", tuple(predict.RECIPES), "bf16+master adamw", menu=True)
    machine: str = choice("machine", MACHINES, "H100 SXM", menu=True)
    batch: int = size("batch on each", 1, slider_px=SLIDER_PX)
    sequence: int = size("sequence", 8192, slider_px=SLIDER_PX)
    machines: int = size("machines", 1, slider_px=SLIDER_PX)
    stage: int = choice("sharding", STAGES, 0)
    fused: bool = tick("fused attention", True)
    pieces: bool = tick("loss in pieces", False)
    accumulate: bool = tick("accumulate", False)
    # With 0 no layer is recomputed.
    segment: int = whole("layers recomputed together", 0, 0, longest_segment, width_px=290)
    # Before *Show*, no memory is drawn, and so there is no moment to look at.
    moment: int = whole(
        "moment, %",
        33,
        0,
        MOMENTS,
        play=True,
        width_px=270,
        when=lambda said: said["shown"] or not said["ask"],
    )
    ask: str = choice("guess first", GUESSES, "", menu=True)
    # The levels of the marks, in percent: at each eighth of the step, and of one moment. A level is
    # None while its mark is not set.
    held: tuple = drawn("what is held", marks=EIGHTHS, says=_share_of_the_most, **MARKS)
    fullest: tuple = drawn(
        "the fullest moment",
        marks=[template("the fullest moment")],
        says=lambda _, level: moment_text(level),
        **MARKS,
    )
    shown: bool = reveal(when=lambda said: said["ask"] != "")

    @property
    def hides(self) -> bool:
        """Whether the memory is hidden, because the reader is asked to guess it first."""
        return self.ask != "" and not self.shown

    @property
    def shape(self) -> Shape:
        """The model's sizes."""
        return shape_named(self.model)

    @property
    def tokens(self) -> int:
        """The length of a sequence, which for a GPT is at most the number of its positions."""
        if self.shape.learned_positions:
            return min(self.sequence, self.shape.context)
        return self.sequence

    @property
    def options(self) -> dict[str, bool | int]:
        """The step's options, such as fused attention, as arguments for `predict.timeline`."""
        return {
            "fused": self.fused,
            "accumulate": self.accumulate,
            "recompute": self.segment > 0,
            "segment": max(1, self.segment),  # it may not be 0, not even without recomputing
            "pieces": PIECES if self.pieces else 1,
        }

    @property
    def step(self) -> Step:
        """The step's moments over the time that the step takes on the chosen machine."""
        return step_on(self.machine, self.dtype, self.timeline)

    @property
    def dtype(self) -> str:
        """The dtype of the activations: that of the parameters in the matrix products."""
        return predict.RECIPES[self.recipe].parameters

    @cached_property
    def timeline(self) -> Timeline:
        """What one of the machines does in a step, operation by operation."""
        return predict.timeline(
            self.shape,
            self.batch,
            self.tokens,
            recipe=self.recipe,
            machines=self.machines,
            stage=self.stage,
            gathered=True,  # counts what machines put together for a while, too
            **self.options,
        )
