"""What is trained and how, at which moment it is looked at, and what a reader guesses of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from course_utils.chapters.gradients.step_over_time import Step, step_on
from course_utils.core import predict
from course_utils.core.predict import Shape, Timeline
from course_utils.engine.labs.fields import Said, choice, drawn, reveal, size, tick, whole

SLIDER_PX = 96  # three sizes in a row
NAMES = ("T4", "L4", "A100 SXM 40GB", "A100 SXM", "H100 SXM", "H200 SXM", "B200", "MI300X")
MACHINES = {name.replace(" SXM", ""): name for name in NAMES}
STAGES = {f"{stage}": stage for stage in range(4)}
HELD, FULLEST = "held", "fullest"
GUESSES = {"nothing": "", "what is held": HELD, "the fullest moment": FULLEST}
MOMENTS = 100  # of a step, all of the same length
EIGHTHS = [f"after {n}/8 of the step" for n in range(9)]  # where a reader draws marks
PIECES, LONGEST = 16, 8  # of the loss; and of a segment, in layers
Found = Mapping[
    Timeline, Sequence[int]
]  # the bytes held at each operation, of each step that was measured

_ONE = {"batch": 1, "sequence": 1024, "machines": 1, "stage": 0}
_SMALL = _ONE | {"model": "GPT-2 small", "recipe": "fp32 sgd"}
_LARGE = {
    "model": "Llama 3 8B",
    "recipe": "bf16+master adamw",
    "batch": 1,
    "sequence": 8192,
    "machines": 8,
}
_PLAIN = {"fused": True, "segment": 0, "pieces": False, "accumulate": False, "machine": "H100 SXM"}
PRESETS = {
    "do 8 H100s hold 8B?": _LARGE | _PLAIN | {"stage": 0},
    "what do scores take?": _SMALL | _PLAIN | {"fused": False},
    "GPT-2 XL on a T4?": _ONE
    | _PLAIN
    | {"model": "GPT-2 XL", "recipe": "fp32 sgd", "machine": "T4"},
    "what is left to recompute?": _LARGE | _PLAIN | {"stage": 3, "segment": 1},
    "and in pieces?": _LARGE | _PLAIN | {"stage": 3, "segment": 1, "pieces": True},
    "does 405B fit?": _LARGE | _PLAIN | {"model": "Llama 3.1 405B", "machines": 1024, "stage": 3},
}


def _segments(said: Said) -> int:
    return min(LONGEST, predict.MODELS[said["model"]].layers)


def _at(_: int, level: int) -> str:
    return f"at {level} % of the step"


def _asks_something(said: Said) -> bool:
    return said["ask"] != ""


@dataclass(frozen=True)
class Asked:
    """A model, a recipe, the tokens on each machine, the machines, what is split over them; and a moment."""

    model: str = choice("model", list(predict.MODELS), "Llama 3 8B", menu=True)
    recipe: str = choice("recipe", tuple(predict.RECIPES), "bf16+master adamw", menu=True)
    machine: str = choice("machine", MACHINES, "H100 SXM", menu=True)
    batch: int = size("batch on each", 1, slider_px=SLIDER_PX)
    sequence: int = size("sequence", 8192, slider_px=SLIDER_PX)
    machines: int = size("machines", 1, slider_px=SLIDER_PX)
    stage: int = choice("sharding", STAGES, 0)
    fused: bool = tick("fused attention", True)
    pieces: bool = tick("loss in pieces", False)
    accumulate: bool = tick("accumulate", False)
    segment: int = whole("layers recomputed together", 0, 0, _segments, width_px=290)
    moment: int = whole("moment, %", 33, 0, MOMENTS, play=True, width_px=270)
    ask: str = choice("guess first", GUESSES, "", menu=True)
    held: tuple = drawn(
        "what is held", marks=EIGHTHS, levels=101, says=lambda _, level: f"{level} % of the most"
    )
    fullest: tuple = drawn("the fullest moment", marks=["the fullest moment"], levels=101, says=_at)
    shown: bool = reveal(when=_asks_something)

    @property
    def hides(self) -> bool:
        """Whether a guess is asked for, and not yet answered."""
        return self.ask != "" and not self.shown

    @property
    def shape(self) -> Shape:
        """The model's sizes."""
        return predict.MODELS[self.model]

    @property
    def tokens(self) -> int:
        """The length of a sequence. A GPT reads no more than it has positions for."""
        return (
            min(self.sequence, self.shape.context)
            if self.shape.learned_positions
            else self.sequence
        )

    @property
    def ways(self) -> dict[str, bool | int]:
        """How the step computes."""
        again = {"recompute": self.segment > 0, "segment": max(1, self.segment)}
        loss = {"pieces": PIECES if self.pieces else 1}
        return {"fused": self.fused, "accumulate": self.accumulate} | again | loss

    @property
    def step(self) -> Step:
        """The same on the machine's axis of time."""
        return step_on(self.machine, self.dtype, self.timeline)

    @property
    def dtype(self) -> str:
        """The activations' dtype: that of the parameters which products read."""
        return predict.RECIPES[self.recipe].parameters

    @cached_property
    def timeline(self) -> Timeline:
        """A step on each machine, operation by operation."""
        where = {
            "recipe": self.recipe,
            "machines": self.machines,
            "stage": self.stage,
            "gathered": True,
        }
        return predict.timeline(self.shape, self.batch, self.tokens, **where, **self.ways)
