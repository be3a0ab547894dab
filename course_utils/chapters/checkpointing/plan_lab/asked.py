"""The levels, each a task to plan for, and the plan that the reader sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property

from course_utils.chapters.checkpointing.plans import (
    BATCHES,
    MINUTES,
    RECIPES,
    Outcome,
    Plan,
    Planner,
    Task,
)
from course_utils.core.predict import known
from course_utils.engine.labs.fields import Said, among, choice, whole

LEVELS = {
    "8B · 32 A100s": Task(
        name="Llama 3 8B",
        model=known("llama-3-8b"),
        sequence=8192,
        tokens=1e12,
        sequences=8,
        gpus=32,
        machine="A100 SXM",
        gbit_per_sec=50,
    ),
    "13B · 16 H100s": Task(
        name="Llama 2 13B",
        model=known("llama-2-13b"),
        sequence=2048,
        tokens=1e12,
        sequences=16,
        gpus=16,
        machine="H100 SXM",
        gbit_per_sec=200,
    ),
    "13B · 64 A100s": Task(
        name="Llama 2 13B",
        model=known("llama-2-13b"),
        sequence=2048,
        tokens=1e12,
        sequences=32,
        gpus=64,
        machine="A100 SXM",
        gbit_per_sec=100,
    ),
    "70B · 512 H100s": Task(
        name="Llama 3 70B",
        model=known("llama-3-70b"),
        sequence=8192,
        tokens=1e12,
        sequences=8,
        gpus=512,
        machine="H100 SXM",
        gbit_per_sec=400,
    ),
    "Mixtral · 64 H100s": Task(
        name="Mixtral 8x7B",
        model=known("mixtral-8x7b"),
        sequence=8192,
        tokens=1e12,
        sequences=8,
        gpus=64,
        machine="H100 SXM",
        gbit_per_sec=400,
    ),
}
FIRST = "13B · 64 A100s"
FP32_GRADIENTS = "bf16+master adamw, fp32 gradients"
# The GPUs over which the state is split: the words on the control `over_node`, and its values.
OVER = {"all GPUs": False, "a node of 8": True}

# The values of the controls from which the presets start.
_PLAN = {
    "recipe": FP32_GRADIENTS,
    "stage": 3,
    "over_node": False,
    "batch": 1,
    "recomputed": 0,
    "minutes": 60,
}
_MOST_LAYERS = max(task.model.layers for task in LEVELS.values())
_ALL_AGAIN = {"recomputed": _MOST_LAYERS}  # a level with fewer layers takes all of them
PRESETS = {  # none of them sets the level, so the reader's level stays
    "one at a time?": _PLAN,
    "all layers again?": _PLAN | _ALL_AGAIN | {"batch": 8},
    "a node has it all?": _PLAN | _ALL_AGAIN | {"over_node": True, "batch": 2},
    "no sharding?": _PLAN | {"stage": 0},
    "one micro-batch?": _PLAN | _ALL_AGAIN | {"recipe": "bf16+master adamw", "batch": BATCHES[-1]},
}


def _layers(said: Said) -> int:
    """Return how many layers the model of the chosen level has."""
    return LEVELS[said["level"]].model.layers


@dataclass(frozen=True)
class Asked:
    """The level, then the plan."""

    level: str = choice("level", tuple(LEVELS), FIRST)
    recipe: str = choice("recipe", RECIPES, FP32_GRADIENTS, menu=True)
    stage: int = choice("sharding stage", {f"{stage}": stage for stage in range(4)}, 3)
    over_node: bool = choice("over", OVER, False, when=lambda said: said["stage"] > 0)
    batch: int = among("micro-batch", BATCHES, 1, width_px=220)
    # The default, 40, is all layers of FIRST; the least and the most follow.
    recomputed: int = whole("layers recomputed", 40, 0, _layers, width_px=320)
    minutes: int = among("minutes between saves", MINUTES, 60, width_px=290)

    @cached_property
    def plan(self) -> Plan:
        """The plan that the controls are set to, cut to what the level's task allows.

        A micro-batch has at most all sequences of a step, and at most all layers are recomputed.
        """
        task = LEVELS[self.level]
        values = {field.name: getattr(self, field.name) for field in fields(Plan)}
        values["batch"] = min(self.batch, task.sequences)
        values["recomputed"] = min(self.recomputed, task.model.layers)
        return Plan(**values)


@dataclass(frozen=True)
class Found:
    """The outcomes by the reader's accountant, and what the reader has done in each level."""

    outcomes: Mapping[Asked, Outcome] = field(default_factory=dict)
    solved: frozenset[str] = frozenset()  # levels whose best plan the reader has found
    shown: frozenset[str] = frozenset()  # levels whose best plan was shown
    # The reader's plan in each of these levels, as it was before the best one was shown.
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@cache
def planner(level: str) -> Planner:
    """Return the level's planner, by the course's accountant."""
    return Planner(LEVELS[level])


def outcome_of(asked: Asked, found: Found) -> Outcome:
    """Return the plan's outcome by the reader's accountant.

    Where `found` does not have it, it is computed by the course's accountant.
    """
    if asked in found.outcomes:
        return found.outcomes[asked]
    return planner(asked.level).outcome(asked.plan)


def is_best(outcome: Outcome) -> bool:
    """Whether the plan counts, and no plan takes noticeably fewer days.

    The score is the best plan's days over this plan's. It is 0 for a plan that does not count,
    because it does not fit or sums gradients in bf16. Up to a ten-thousandth fewer days are not
    noticeable.
    """
    return outcome.score > 0.9999
