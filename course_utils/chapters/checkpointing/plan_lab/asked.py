"""A level, and a plan for it."""

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
    "8B · 32 A100s": Task("Llama 3 8B", known("llama-3-8b"), 8192, 1e12, 8, 32, "A100 SXM", 50),
    "13B · 16 H100s": Task(
        "Llama 2 13B", known("llama-2-13b"), 2048, 1e12, 16, 16, "H100 SXM", 200
    ),
    "13B · 64 A100s": Task(
        "Llama 2 13B", known("llama-2-13b"), 2048, 1e12, 32, 64, "A100 SXM", 100
    ),
    "70B · 512 H100s": Task(
        "Llama 3 70B", known("llama-3-70b"), 8192, 1e12, 8, 512, "H100 SXM", 400
    ),
}
FIRST, FP32_GRADIENTS = "13B · 64 A100s", "bf16+master adamw, fp32 gradients"
OVER = {"all GPUs": False, "a node of 8": True}

_MOST_LAYERS = max(task.model.layers for task in LEVELS.values())
_PLAN = {
    "recipe": FP32_GRADIENTS,
    "stage": 3,
    "over_node": False,
    "batch": 1,
    "recomputed": 0,
    "minutes": 60,
}
_ALL_AGAIN = {"recomputed": _MOST_LAYERS}  # of a level with fewer, all
PRESETS = {  # of a plan alone: the level stays
    "one at a time?": _PLAN,
    "all layers again?": _PLAN | {"batch": 8} | _ALL_AGAIN,
    "a node has it all?": _PLAN | {"over_node": True, "batch": 2} | _ALL_AGAIN,
    "no sharding?": _PLAN | {"stage": 0},
    "one micro-batch?": _PLAN | {"recipe": "bf16+master adamw", "batch": BATCHES[-1]} | _ALL_AGAIN,
}


def _layers(said: Said) -> int:
    return LEVELS[said["level"]].model.layers


@dataclass(frozen=True)
class Asked:
    """The level, then the plan."""

    level: str = choice("level", tuple(LEVELS), FIRST)
    recipe: str = choice("recipe", RECIPES, FP32_GRADIENTS, menu=True)
    stage: int = choice("sharding stage", {f"{stage}": stage for stage in range(4)}, 3)
    over_node: bool = choice("over", OVER, False, when=lambda said: said["stage"] > 0)
    batch: int = among("micro-batch", BATCHES, 1, width_px=220)
    recomputed: int = whole("layers recomputed", 40, 0, _layers, width_px=320)
    minutes: int = among("minutes between saves", MINUTES, 60, width_px=290)

    @cached_property
    def plan(self) -> Plan:
        """What is asked, without the level: a micro-batch has at most all sequences of a step."""
        said = {one.name: getattr(self, one.name) for one in fields(Plan)}
        task = LEVELS[self.level]
        said["batch"] = min(self.batch, task.sequences)
        said["recomputed"] = min(self.recomputed, task.model.layers)
        return Plan(**said)


@dataclass(frozen=True)
class Found:
    """What the reader's accountant says of a plan; the levels that they have solved, those whose best plan they were shown, and their plans before that."""

    outcomes: Mapping[Asked, Outcome] = field(default_factory=dict)
    solved: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@cache
def planner(level: str) -> Planner:
    """The level, seen by the course's accountant."""
    return Planner(LEVELS[level])


def outcome_of(asked: Asked, found: Found) -> Outcome:
    """By the reader's accountant where it was asked, else by the course's."""
    return found.outcomes.get(asked) or planner(asked.level).outcome(asked.plan)


def is_best(outcome: Outcome) -> bool:
    """Whether no plan takes fewer days."""
    return outcome.score > 0.9999
