"""A training run on paper: what each of its machines holds, and the fewest changes with which that fits."""

import bisect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from course_utils import predict
from course_utils.datasheets import Machine, machine_named
from course_utils.labs.size_control import LARGEST
from course_utils.predict.training import SHARDED_IN_STAGE
from course_utils.quantities import Ledger, Number

PARTS = ("parameters", "gradients", "optimizer", "master", "activations")
# What can be moved to make it fit, the cheapest first.
LEVERS = ("stage", "fused", "fused_norm", "recompute", "batch", "machines", "recipe")
Changes = dict[str, object]


@dataclass(frozen=True)
class Plan:
    """A model, a recipe, and the machines to train it on; batch and sequence are those of each machine."""

    shape: predict.Transformer
    recipe: str
    batch: int
    sequence: int
    machine_name: str
    machines: int
    stage: int
    fused: bool
    fused_norm: bool
    recompute: bool

    @property
    def machine(self) -> Machine:
        """One of them, by its data sheet."""
        return machine_named(self.machine_name)

    @property
    def dtype(self) -> str:
        """Of the activations: that of the parameters which the products read."""
        return predict.RECIPES[self.recipe].parameters

    @property
    def state(self) -> Ledger:
        """What a machine holds from step to step."""
        return _state(*self._of_state)

    @property
    def kept(self) -> Ledger:
        """What autograd keeps between forward and backward, a cross-entropy among it."""
        ways = {"fused": self.fused, "fused_norm": self.fused_norm, "recompute": self.recompute}
        return self.shape.activation_bytes(self.batch, self.sequence, dtype=self.dtype, loss=True, **ways)

    @property
    def peak(self) -> tuple[str, Ledger]:
        """The moment of a step at which most is held beside the state, and what that is."""
        moments = _moments(*self._of_moments)
        return max(moments.items(), key=lambda moment: moment[1].total)

    @property
    def _of_state(self) -> tuple:
        return self.shape, self.recipe, self.machines, self.stage

    @property
    def _of_moments(self) -> tuple:
        ways = self.fused, self.fused_norm, self.recompute
        return self.shape, self.recipe, self.batch, self.sequence, *ways

    @property
    def held(self) -> Ledger:
        """State and peak: the parts of the bar."""
        return Ledger({**self.state, "activations": _peak_total(*self._of_moments)}, unit="bytes")

    @cached_property
    def left(self) -> int:
        """Bytes of the machine's memory that remain; below 0, bytes that are missing."""
        return self.machine.bytes - _state_total(*self._of_state) - _peak_total(*self._of_moments)

    @property
    def fits(self) -> bool:
        """Whether a machine holds it, to the last byte."""
        return self.left >= 0

    @property
    def whole(self) -> "Plan":
        """The same on one machine, where nothing can be split."""
        return replace(self, machines=1)


def _state(shape: predict.Transformer, recipe: str, machines: int, stage: int) -> Ledger:
    options = {"tensors": shape.tensors, "machines": machines, "stage": stage}
    return predict.training_bytes(shape.parameters, recipe, **options)


def _moments(
    shape: predict.Transformer, recipe: str, batch: int, sequence: int, *ways: bool
) -> dict[str, Ledger]:
    kind, (fused, fused_norm, recompute) = predict.RECIPES[recipe], ways
    return predict.step_moments(
        *(shape, batch, sequence),
        dtype=kind.parameters,
        gradients=kind.gradients[0],
        fused=fused,
        fused_norm=fused_norm,
        recompute=recompute,
    )


# A search asks for the same again and again, and has to be done before the next picture.


@lru_cache(4096)
def _state_total(*what: object) -> int:
    return _state(*what).total


@lru_cache(4096)
def _peak_total(*what: object) -> int:
    return max(moment.total for moment in _moments(*what).values())


def split_parts(plan: Plan) -> tuple[str, ...]:
    """What the sharding stage splits over the machines."""
    return SHARDED_IN_STAGE[plan.stage]


def most_parameters(machine: Machine, machines: int, recipe: str, stage: int) -> int:
    """Bytes × machines / (bytes of a parameter that are whole × machines + those that are split): with no activations.

    >>> [most_parameters(machine_named("H100 SXM"), 8, "fp32 adamw", stage) for stage in (0, 3)]
    [5000000000, 40000000000]
    """
    each = predict.RECIPES[recipe].bytes_by_part
    split = sum(each[part] for part in SHARDED_IN_STAGE[stage])
    return machine.bytes * machines // ((each.total - split) * machines + split)


def largest_batch(plan: Plan) -> int:
    """With which a plan that fits still does, everything else left as it is."""
    larger = range(plan.batch + 1, LARGEST + 1)
    return plan.batch + bisect.bisect_left(larger, True, key=lambda b: not replace(plan, batch=b).fits)


# What would make it fit.


def remedies(plan: Plan) -> Iterator[Changes]:
    """Each smallest set of controls with which it fits, and their mildest settings; nothing, if nothing helps.

    Smallest: of all sets of so many controls, and none of fewer would do, however far they are moved.
    """
    for count in range(1, len(LEVERS) + 1):
        found = [levers for levers in itertools.combinations(LEVERS, count) if _can_fit(plan, levers)]
        if found:
            yield from (_mildest(plan, levers) for levers in found)
            return


def longest_sequence(plan: Plan) -> int:
    """That fits once every control is moved as far as it goes; 0 if none does."""
    levers = [lever for lever in LEVERS if settings(plan, lever)]
    lengths = range(plan.sequence, 0, -1)
    return len(lengths) - bisect.bisect_left(
        lengths, True, key=lambda n: _can_fit(replace(plan, sequence=n), levers)
    )


def settings(plan: Plan, lever: str) -> Sequence[object]:
    """Where a control could be moved to make less of something, the mildest first."""
    if lever == "recipe":
        return _lighter_recipes(plan.recipe)
    now = getattr(plan, lever)
    if lever == "stage":
        return range(now + 1, len(SHARDED_IN_STAGE))
    if lever == "machines":
        return range(now + 1, LARGEST + 1)
    if lever == "batch":
        return range(now - 1, 0, -1)
    return () if now else (True,)


@lru_cache
def _lighter_recipes(recipe: str) -> tuple[str, ...]:
    """The same optimizer's first, and of those the heaviest: every step down gives something up."""
    nbytes = {name: kind.bytes_by_part.total for name, kind in predict.RECIPES.items()}
    lighter = [name for name in nbytes if name != recipe and nbytes[name] <= nbytes[recipe]]
    return tuple(sorted(lighter, key=lambda name: (_optimizer(name) != _optimizer(recipe), -nbytes[name])))


def _optimizer(recipe: str) -> str:
    return recipe.split(",")[0].split()[-1]


def _can_fit(plan: Plan, levers: Sequence[str]) -> bool:
    """Whether it fits with all of these moved as far as they go."""
    choices = {lever: settings(plan, lever) for lever in levers}
    if not all(map(len, choices.values())):
        return False
    return replace(plan, **{lever: _furthest(lever, choice) for lever, choice in choices.items()}).fits


def _furthest(lever: str, choices: Sequence[object]) -> object:
    """The last setting; of recipes, the one with the fewest bytes, of a parameter and then of an activation."""
    return min(choices, key=_weight) if lever == "recipe" else choices[-1]


@lru_cache
def _weight(recipe: str) -> tuple[int, int]:
    kind = predict.RECIPES[recipe]
    return kind.bytes_by_part.total, predict.dtype_bytes(kind.parameters)


def _mildest(plan: Plan, levers: Sequence[str]) -> Changes:
    """The dearest control first, as little as it takes with the others moved as far as they go; then the next."""
    changes: Changes = {}
    for place in reversed(range(len(levers))):
        lever, others = levers[place], levers[:place]

        def enough(value: object, lever: str = lever, others: Sequence[str] = others) -> bool:
            changed = replace(plan, **changes, **{lever: value})
            return _can_fit(changed, others) if others else changed.fits

        changes[lever] = _first(settings(plan, lever), enough)
    return {lever: changes[lever] for lever in levers}


def _first(values: Sequence[object], enough: Callable[[object], bool]) -> object:
    """The first value that is enough; in a range, all that follow it are."""
    if isinstance(values, range):
        return values[bisect.bisect_left(values, True, key=enough)]
    return next(filter(enough, values))


def changes_text(changes: Mapping[str, object]) -> str:
    """A remedy in words.

    >>> changes_text({"stage": 3, "recompute": True, "batch": 2})
    'sharding stage 3, recompute and a batch of at most 2'
    """
    said: dict[str, Callable[[Number | str], str]] = {
        "stage": lambda n: f"sharding stage {n}",
        "fused": lambda _: "fused attention",
        "fused_norm": lambda _: "norms in one kernel",
        "recompute": lambda _: "recompute",
        "batch": lambda n: f"a batch of at most {n:,}",
        "machines": lambda n: f"at least {n:,} machines",
        "recipe": lambda name: f"the recipe {name}",
    }
    *some, last = (said[lever](value) for lever, value in changes.items())
    return f"{', '.join(some)} and {last}" if some else last
