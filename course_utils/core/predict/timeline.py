"""The memory of a training step, moment by moment: each operation, what it makes, and what goes after it."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import add

from course_utils.core.accountant import Model
from course_utils.core.predict.operations import dtype_bytes
from course_utils.core.predict.step_config import FusedLoss, Recompute, StepConfig
from course_utils.core.predict.storages import GRADIENTS, Held, Operation
from course_utils.core.predict.stretches import Stretch, stretches
from course_utils.core.predict.training import optimizer_of, recipe_named, split_in, training_bytes
from course_utils.core.predict.transformer import Shape, shape_of
from course_utils.core.say import Ledger

LOSS = (
    "output",
    "cross-entropy",
    "output and cross-entropy",
)  # where the output's gradient is still to come


@dataclass(frozen=True)
class Timeline:
    """All operations of a step, one after the other. `timeline` makes it."""

    config: StepConfig
    recipe: str
    machines: int
    stage: int
    gathered: bool

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """In the order in which they run."""
        turns = ((each, turn) for each in self.stretches for turn in range(each.times))
        return tuple(self._here(one) for each, turn in turns for one in each.at(turn))

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The operations in stretches, where layers that repeat stand once. What is held before the step is added to each; the update comes last."""
        begun = (
            one._replace(start=Held(*map(add, one.start, self._begin)))
            for one in stretches(self.config)
        )
        return *begun, Stretch([*self._update], 1, Held(), Held(), 0, 0)

    @property
    def peak(self) -> int:
        """The most bytes that are held."""
        return self.fullest.during.total

    @cached_property
    def fullest(self) -> Operation:
        """The operation during which most is held; the first, if several are alike.

        What is held grows evenly from layer to layer, so of layers that are alike the first or the last has the most;
        and these two stand alone.
        """
        some = (self._here(one) for each in self.stretches for one in each.at(0))
        return max(some, key=lambda one: sum(one.during))

    @property
    def kept(self) -> int:
        """What autograd keeps between the forward and the backward pass, the loss's numbers among it; not the tokens."""
        *_, last = (
            one for each in stretches(self.config) for one in each.at(0) if one.phase == "loss"
        )
        return last.after.total

    @cached_property
    def state(self) -> Ledger:
        """What a machine holds when the optimizer takes its step."""
        model = self.config.model
        options = {"tensors": model.tensors, "machines": self.machines, "stage": self.stage}
        return training_bytes(model.parameters, self.recipe, **options)

    @property
    def _begin(self) -> Held:
        """What is held before the step. Its gradients are those of all machines together."""
        gradients = (
            self.config.accumulate * self.config.model.parameters * self.config.gradient_bytes
        )
        return Held(**{**self.state, "gradients": gradients})

    @property
    def _update(self) -> tuple[Operation, Operation]:
        """The optimizer's step, in one kernel that needs no space of its own; then no gradient is left."""
        state, name = Held(**self.state), optimizer_of(self.recipe)
        where = "optimizer", None, 0
        return (
            Operation(name, "update", *where, 2 * state.total - state.gradients, state, state),
            Operation("zero_grad", "gradients", *where, 0, state, state._replace(gradients=0)),
        )

    # On several machines.

    def _here(self, one: Operation) -> Operation:
        """The same operations, with the bytes that one machine holds."""
        if self.machines == 1:
            return one
        *said, during, after = one
        return Operation(*said, self.held_by(one, during), self.held_by(one, after))

    def held_by(self, one: Operation, held: Held) -> Held:
        """The bytes that one machine holds at an operation, of those that a stretch gives for all machines."""
        if self.machines == 1 or one.phase == "optimizer":
            return held
        *parts, _ = held
        parts[GRADIENTS] = self._split(held.gradients)
        return Held(*parts, gathered=self._gathered(one))

    def _split(self, gradients: int) -> int:
        """A machine's share of the gradients, rounded up to a whole number."""
        if self.machines == 1 or "gradients" not in split_in(self.stage):
            return gradients
        each = self.config.gradient_bytes
        return -(-(gradients // each) // self.machines) * each

    def _gathered(self, one: Operation) -> int:
        """Bytes of weights and gradients that are gathered for a while, as with `fully_shard` on each layer and on the model.

        What stands around the layers has whole weights during the whole step. A layer has them while it computes, and
        so has the next one, which is fetched meanwhile. On the way back a layer's gradients are whole until all are
        made. The output's is whole from when it is made to the step's end; at the operations that make it, it is
        among what is held in passing.
        """
        if not (self.gathered and self.machines > 1 and "parameters" in split_in(self.stage)):
            return 0
        back = one.phase in ("backward", "recompute")
        around = one.where if one.layer is None else None
        return self.config.n * _whole(self.config.model, back, around)


@lru_cache
def _whole(model: Shape, back: bool, around: str | None) -> int:
    """How many numbers of weights and gradients a machine has gathered at once: around the layers, or inside of them."""
    of_a_layer = model.parameters_of_a_layer
    numbers = model.parameters - model.layers * of_a_layer
    if around is None:
        numbers += min(2, model.layers) * of_a_layer
    if around is None and back:
        numbers += of_a_layer
    if back and around == "last norm":  # its own gradient is still to come
        numbers += model.parameters_by_part["output"]
    elif back and around not in LOSS:
        numbers += model.parameters_of_output
    return numbers


@lru_cache(4096)
def timeline(
    model: Model,
    batch: int,
    sequence: int,
    *,
    recipe: str = "fp32 adamw",
    fused: bool = True,
    recompute: Recompute = False,
    segment: int = 1,
    fused_loss: FusedLoss = False,
    pieces: int = 1,
    accumulate: bool = False,
    machines: int = 1,
    stage: int = 0,
    gathered: bool = False,
) -> Timeline:
    """Every operation of forward, cross-entropy, backward and the optimizer's step, in the order in which they run.

    - fused: attention in one kernel. Each normalisation is one.
    - recompute: each layer keeps its input alone, or segments of so many layers do; or "every other layer"; or in each
      layer all runs once more but "every other product", which torchtitan calls selective.
    - fused_loss: in one kernel, which writes the gradient over the logits; or in one "with output", which never has all
      logits.
    - pieces: the output and its loss are computed for so many parts of the tokens, one at a time, and once more on the
      way back.
    - accumulate: gradients of an earlier micro-batch are there from the start. Otherwise there are none before the
      backward pass, as after `zero_grad()`.
    - machines, stage: batch and sequence are those of one machine; what ZeRO's stage splits is held in equal parts,
      rounded up. `gathered` is what they put together, as `fully_shard` does.

    Exact to the byte for `models.Transformer` with `fused_norm` on one CPU, operation by operation, with heads of four
    numbers or more. Several machines are arithmetic on that. Not in it: scratch inside a kernel, gaps between
    allocations, what machines send each other, tokens, and copies that an optimizer makes. A sequence may be longer
    than the context, although a GPT has no positions there.

    >>> from course_utils.core.predict import MODELS
    >>> step = timeline(MODELS["GPT-2 small"], 1, 1024)
    >>> step.fullest.where, step.peak
    ('cross-entropy', 2721902360)
    """
    kind, _ = recipe_named(recipe), split_in(stage)
    sizes = dtype_bytes(kind.parameters), dtype_bytes(kind.gradients[0])
    ways = (accumulate, fused, recompute, segment, fused_loss, pieces)
    return Timeline(
        StepConfig(shape_of(model), batch, sequence, *sizes, *ways),
        recipe,
        machines,
        stage,
        gathered,
    )
