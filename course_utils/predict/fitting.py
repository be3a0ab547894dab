"""Whether a training run fits its machines, and the cheapest changes with which it does."""

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from course_utils.datasheets import Machine, machine_named
from course_utils.predict.operations import dtype_bytes
from course_utils.predict.run import FusedLoss, Recompute
from course_utils.predict.timeline import Timeline, timeline
from course_utils.predict.training import RECIPES, SHARDED_IN_STAGE, optimizer_of, recipe_named
from course_utils.predict.transformer import Transformer
from course_utils.quantities import Ledger

MOST = 2**20  # that a search tries, of machines and of a batch
Changes = Mapping[str, object]  # values for what can be moved


@dataclass(frozen=True)
class TrainingPlan:
    """A model, a recipe, and the machines to train it on; batch and sequence are those of each machine.

    >>> plan = TrainingPlan(Transformer(12, 768, 12, 50257, 1024), "fp32 adamw", 1, 1024, "T4", 1)
    >>> plan.held.total, plan.left
    (3325292312, 12674707688)
    """

    shape: Transformer
    recipe: str
    batch: int
    sequence: int
    machine_name: str
    machines: int
    stage: int = 0
    fused: bool = False
    recompute: Recompute = False
    accumulate: bool = False
    fused_loss: FusedLoss = False
    gathered: bool = False
    segment: int = 1
    pieces: int = 1

    @property
    def machine(self) -> Machine:
        """One of them, by its data sheet."""
        return machine_named(self.machine_name)

    @property
    def dtype(self) -> str:
        """The activations' dtype: that of the parameters which products read."""
        return recipe_named(self.recipe).parameters

    @property
    def timeline(self) -> Timeline:
        """A step on one machine, operation by operation."""
        named = {name: value for name, value in vars(self).items() if name not in ("shape", "machine_name")}
        return timeline(self.shape, **named)

    @property
    def held(self) -> Ledger:
        """What a machine holds at the moment of a step at which it holds most.

        Before the backward pass there are no gradients, unless they `accumulate`.
        """
        most = self.timeline.fullest.during
        state = {part: getattr(most, part) for part in ("parameters", "gradients", "optimizer", "master")}
        return Ledger(state | {"activations": most.total - sum(state.values())}, unit="bytes")

    @property
    def left(self) -> int:
        """Bytes of the machine's memory that remain; below 0, bytes that are missing."""
        return self.machine.bytes - self.timeline.peak

    @property
    def fits(self) -> bool:
        """Whether a machine holds it, to the last byte."""
        return self.left >= 0


def _weight(recipe: str) -> tuple[int, int]:
    """Bytes of a parameter, and of a number among the activations."""
    return RECIPES[recipe].bytes_by_part.total, dtype_bytes(RECIPES[recipe].parameters)


# What can be changed to make a plan fit, the cheapest change first, and how far it goes.
FURTHEST: Changes = {
    "stage": len(SHARDED_IN_STAGE) - 1,
    "fused": True,
    "recompute": True,
    "batch": 1,
    "machines": MOST,
    "recipe": min(RECIPES, key=_weight),
}


@lru_cache(256)
def remedy(plan: TrainingPlan) -> Changes:
    """The changes with which it fits, as cheap as can be; none if it fits, or if nothing helps.

    The cheapest change is made as far as it goes, then the next one, until the plan fits. Then those that are not
    needed are left out, and the others are taken back as far as the plan still fits, the dearest first.

    >>> remedy(TrainingPlan(Transformer(12, 768, 12, 50257, 1024), "fp32 adamw", 8, 1024, "T4", 1))
    {'fused': True}
    """
    changes: dict[str, object] = {}
    for name, furthest in FURTHEST.items():
        if not replace(plan, **changes).fits:
            changes[name] = furthest
    if not replace(plan, **changes).fits:
        return {}
    for name in FURTHEST:
        others = {other: value for other, value in changes.items() if other != name}
        changes = others if replace(plan, **others).fits else changes
    for name in reversed(changes):
        changes[name] = _mildest(plan, changes, name)
    return changes


def _mildest(plan: TrainingPlan, changes: Changes, name: str) -> object:
    """The setting nearest to the plan's own with which it fits, all other changes made."""

    def fits(value: object) -> bool:
        return replace(plan, **{**changes, name: value}).fits

    now, end = getattr(plan, name), FURTHEST[name]
    if name in ("stage", "batch", "machines"):
        values = range(now, end + 1) if now <= end else range(now, end - 1, -1)
        return values[bisect.bisect_left(values, True, key=fits)]
    others = _lighter_recipes(now) if name == "recipe" else [end]
    return next(filter(fits, [now, *others]))


def _lighter_recipes(recipe: str) -> list[str]:
    """Recipes that hold less: those of the same optimizer first, the heaviest of them first. Each next one gives something up."""
    lighter = [name for name in RECIPES if name != recipe and _weight(name)[0] <= _weight(recipe)[0]]
    return sorted(lighter, key=lambda name: (optimizer_of(name) != optimizer_of(recipe), -_weight(name)[0]))


def longest_sequence(plan: TrainingPlan) -> int:
    """The longest sequence that fits once all changes are made as far as they go; 0 if none does."""
    plan, shorter = replace(plan, **FURTHEST), range(plan.sequence, 0, -1)
    return plan.sequence - bisect.bisect_left(shorter, True, key=lambda n: replace(plan, sequence=n).fits)
