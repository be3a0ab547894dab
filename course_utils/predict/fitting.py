"""Whether a training run fits its machines, and the fewest changes with which it does: a search over closed forms."""

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from course_utils.datasheets import Machine, machine_named
from course_utils.predict.operations import dtype_bytes
from course_utils.predict.step import has_known_peak, held_bytes, peak_moment, state_bytes
from course_utils.predict.training import RECIPES, SHARDED_IN_STAGE, recipe_named
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
    fused_norm: bool = False
    recompute: bool = False
    accumulate: bool = False

    @property
    def machine(self) -> Machine:
        """One of them, by its data sheet."""
        return machine_named(self.machine_name)

    @property
    def dtype(self) -> str:
        """Of the activations: that of the parameters which the products read."""
        return recipe_named(self.recipe).parameters

    @property
    def split(self) -> tuple[str, ...]:
        """What each machine holds a part of."""
        return SHARDED_IN_STAGE[self.stage] if self.machines > 1 else ()

    @property
    def ways(self) -> dict[str, bool]:
        """How the model computes, as the formulas' options."""
        return {"fused": self.fused, "fused_norm": self.fused_norm, "recompute": self.recompute}

    @property
    def step(self) -> tuple:
        """What a step's bytes on one machine depend on."""
        return *self._sizes, *self._step_ways.values()

    @property
    def _sizes(self) -> tuple:
        return self.shape, self.recipe, self.batch, self.sequence

    @property
    def _step_ways(self) -> dict[str, bool]:
        return self.ways | {"accumulate": self.accumulate}

    @property
    def state(self) -> Ledger:
        """What a machine holds when the optimizer takes its step."""
        return state_bytes(self.shape, self.recipe, self.machines, self.stage)

    @property
    def kept(self) -> Ledger:
        """What autograd keeps between forward and backward, a cross-entropy among it."""
        options = self.ways | {"dtype": self.dtype, "loss": True}
        return self.shape.activation_bytes(self.batch, self.sequence, **options)

    @property
    def peak(self) -> tuple[str, Ledger]:
        """The moment of a step at which most is held, and what that is beside parameters and optimizer, gradients first."""
        return peak_moment(*self._sizes, self.machines, self.stage, **self._step_ways)

    @property
    def has_known_peak(self) -> bool:
        """Whether a step cannot hold more than `held` says."""
        return has_known_peak(self.shape, **self._step_ways)

    @property
    def held(self) -> Ledger:
        """What a machine holds at that moment."""
        return held_bytes(*self._sizes, machines=self.machines, stage=self.stage, **self._step_ways)

    @property
    def left(self) -> int:
        """Bytes of the machine's memory that remain; below 0, bytes that are missing."""
        return self.machine.bytes - self.held.total

    @property
    def fits(self) -> bool:
        """Whether a machine holds it, to the last byte."""
        return self.left >= 0

    @property
    def alone(self) -> "TrainingPlan":
        """The same on one machine, where nothing can be split."""
        return replace(self, machines=1)


def _weight(recipe: str) -> tuple[int, int]:
    """Bytes of a parameter, and of a number among the activations."""
    return RECIPES[recipe].bytes_by_part.total, dtype_bytes(RECIPES[recipe].parameters)


# What can be moved to make a plan fit, the cheapest first, and how far.
FURTHEST: Changes = {
    "stage": len(SHARDED_IN_STAGE) - 1,
    "fused": True,
    "fused_norm": True,
    "recompute": True,
    "batch": 1,
    "machines": MOST,
    "recipe": min(RECIPES, key=_weight),
}


@lru_cache(256)
def remedies(plan: TrainingPlan) -> tuple[Changes, ...]:
    """Each smallest set of changes with which it fits, and the mildest such; none if it fits, or if nothing helps.

    Smallest: of all sets of so many, and none of fewer would do, however far they are moved.

    >>> plan = TrainingPlan(Transformer(12, 768, 12, 50257, 1024), "fp32 adamw", 8, 1024, "T4", 1)
    >>> remedies(plan)
    ({'fused': True}, {'recompute': True}, {'batch': 7}, {'recipe': 'bf16+master adamw'})
    """
    if plan.fits:
        return ()
    for count in range(1, len(FURTHEST) + 1):
        sets = [{name: FURTHEST[name] for name in some} for some in itertools.combinations(FURTHEST, count)]
        enough = [changes for changes in sets if replace(plan, **changes).fits]
        if enough:
            return tuple(_mildest(plan, changes) for changes in enough)
    return ()


def _mildest(plan: TrainingPlan, changes: Changes) -> Changes:
    """The dearest change as little as it takes with the others as far as they go; then the next."""
    for name in reversed(changes):
        changes = {**changes, name: _least(plan, changes, name)}
    return changes


def _least(plan: TrainingPlan, changes: Changes, name: str) -> object:
    """The mildest setting of one of them with which it fits; of numbers, with all beyond it it does."""

    def fits(value: object) -> bool:
        return replace(plan, **{**changes, name: value}).fits

    values = _settings(plan, name)
    if isinstance(values, range):
        return values[bisect.bisect_left(values, True, key=fits)]
    return next(filter(fits, values))


def _settings(plan: TrainingPlan, name: str) -> Sequence[object]:
    """Where one of them can be moved to make less of something, the mildest first."""
    now, end = getattr(plan, name), FURTHEST[name]
    if name == "recipe":
        return _lighter_recipes(plan.recipe)
    if isinstance(now, bool):
        return (True,)
    return range(now + 1, end + 1) if now < end else range(now - 1, end - 1, -1)


def _lighter_recipes(recipe: str) -> list[str]:
    """The same optimizer's first, and of those the heaviest: every step down gives something up."""
    lighter = [name for name in RECIPES if name != recipe and _weight(name)[0] <= _weight(recipe)[0]]
    return sorted(lighter, key=lambda name: (_optimizer(name) != _optimizer(recipe), -_weight(name)[0]))


def _optimizer(recipe: str) -> str:
    return recipe.split(",")[0].split()[-1]


def largest_batch(plan: TrainingPlan) -> int:
    """With which a plan that fits still does, everything else left as it is."""
    larger = range(plan.batch + 1, MOST + 1)
    return plan.batch + bisect.bisect_left(larger, True, key=lambda n: not replace(plan, batch=n).fits)


def longest_sequence(plan: TrainingPlan) -> int:
    """That fits once all is moved as far as it goes; 0 if none does."""
    plan, shorter = replace(plan, **FURTHEST), range(plan.sequence, 0, -1)
    return plan.sequence - bisect.bisect_left(shorter, True, key=lambda n: replace(plan, sequence=n).fits)
