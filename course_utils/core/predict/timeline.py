"""The memory of a training step, moment by moment.

Each operation of the step has the bytes that are held while it runs, and those held after it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import add

from course_utils.core.accountant import Model
from course_utils.core.predict.operations import dtype_bytes
from course_utils.core.predict.step_config import FusedLoss, Recompute, Routing, StepConfig
from course_utils.core.predict.storages import GRADIENTS, Held, Operation
from course_utils.core.predict.stretches import Stretch, once, stretches
from course_utils.core.predict.training import optimizer_of, recipe_named, split_in, training_bytes
from course_utils.core.predict.transformer import Shape, shape_of
from course_utils.core.say import Ledger

# Values of `Operation.where` in the backward pass, which begins with them: the output matrix has no
# gradient before they are done.
LOSS = ("output", "cross-entropy", "output and cross-entropy")


@dataclass(frozen=True)
class Timeline:
    """All operations of a step, one after the other, with the bytes that one machine holds.

    `config` says what is computed, and `recipe` names the dtypes and the optimizer. With several
    `machines`, each holds only its part of what ZeRO's `stage` splits, and with `gathered` also
    what the machines put together for a while. The docstring of `timeline` says more.
    """

    config: StepConfig
    recipe: str
    machines: int
    stage: int
    gathered: bool

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All operations, in the order in which they run."""
        in_order = []
        for stretch in self.stretches:
            for repetition in range(stretch.times):
                in_order += map(self._on_one_machine, stretch.at(repetition))
        return tuple(in_order)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The operations in stretches, of which the last one is the optimizer's update.

        Operations that layers repeat are there once. What a machine holds before the step is added
        to what each stretch holds.
        """
        in_order = []
        before = self._before_step
        # The function `stretches` has only what the step itself adds to these bytes.
        for stretch in stretches(self.config):
            start = Held._make(map(add, stretch.start, before))
            in_order.append(stretch._replace(start=start))
        # The rows of the update have all that a machine holds already, so nothing is added.
        update = once([*self._update], start=Held(), layer_start=0)
        return (*in_order, update)

    @property
    def peak(self) -> int:
        """The most bytes that are held at one time."""
        return self.fullest.during.total

    @cached_property
    def fullest(self) -> Operation:
        """The operation during which most bytes are held; the first, if several hold as many.

        What is held grows evenly from layer to layer. So of layers that are alike, the first or the
        last holds the most, and these two are in stretches that do not repeat.
        """
        return max(self._first_repetitions(), key=lambda operation: sum(operation.during))

    def _first_repetitions(self) -> Iterator[Operation]:
        """Yield the operations of each stretch in its first repetition alone.

        Each operation has the bytes that one machine holds.
        """
        for stretch in self.stretches:
            yield from map(self._on_one_machine, stretch.at(0))

    @cached_property
    def parts_held(self) -> set[str]:
        """The names of the parts of the memory in which something is held during an operation.

        What a part holds grows evenly from layer to layer, so a stretch's first and last repetition
        tell whether it is ever above 0.
        """
        held = set()
        for stretch in self.stretches:
            for repetition in {0, stretch.times - 1}:
                for operation in stretch.at(repetition):
                    during = self.held_by(operation, operation.during)
                    held |= {part for part, nbytes in during._asdict().items() if nbytes}
        return held

    @property
    def kept(self) -> int:
        """The bytes that autograd keeps between the forward and the backward pass.

        The numbers that the loss keeps are counted, and the tokens are not.
        """
        # Here `stretches` is the function, whose bytes are without those held before the step.
        for stretch in stretches(self.config):
            for operation in stretch.at(0):
                if operation.phase == "loss":
                    last_of_loss = operation  # the last one stays: the backward pass follows it
        return last_of_loss.after.total

    @cached_property
    def state(self) -> Ledger:
        """The bytes that a machine holds, by part, when the optimizer takes its step."""
        model = self.config.model
        return training_bytes(
            model.parameters,
            self.recipe,
            tensors=model.tensors,
            machines=self.machines,
            stage=self.stage,
        )

    @property
    def _before_step(self) -> Held:
        """What a machine holds before the step; but of gradients, those that are added up already.

        The step adds its own to these. Then `held_by` takes the machine's share of all.
        """
        gradients = 0
        if self.config.accumulate:
            gradients = self.config.model.parameters * self.config.gradient_bytes
        # The state counts gradients in any case, and perhaps only the machine's share of them.
        return Held(**{**self.state, "gradients": gradients})

    @property
    def _update(self) -> tuple[Operation, Operation]:
        """The last two operations: the optimizer's step, then `zero_grad`, which frees gradients.

        The optimizer's step is one kernel that needs no memory of its own.
        """
        state = Held(**self.state)
        step = Operation(
            name=optimizer_of(self.recipe),
            where="update",
            phase="optimizer",
            layer=None,
            flops=0,
            # All is read and written, except that gradients are only read.
            moved=2 * state.total - state.gradients,
            during=state,
            after=state,
        )
        end = step._replace(
            name="zero_grad",
            where="gradients",
            moved=0,
            after=state._replace(gradients=0),
        )
        return step, end

    # On several machines.

    def _on_one_machine(self, operation: Operation) -> Operation:
        """Return the same operation, with the bytes that one machine holds."""
        if self.machines == 1:
            return operation
        during = self.held_by(operation, operation.during)
        after = self.held_by(operation, operation.after)
        return operation._replace(during=during, after=after)

    def held_by(self, operation: Operation, held: Held) -> Held:
        """Return what one machine holds during or after `operation`.

        `held` is what the stretch of the operation says, with whole gradients.
        """
        # What the optimizer holds is one machine's share already.
        if self.machines == 1 or operation.phase == "optimizer":
            return held
        *parts, _ = held  # the last part, `gathered`, is 0 so far
        parts[GRADIENTS] = self._share_of_gradients(held.gradients)
        return Held(*parts, gathered=self._gathered_bytes(operation))

    @cached_property  # since it is asked for each operation, of which there may be ten thousand
    def _split(self) -> tuple[str, ...]:
        """The parts of the state that are split among the machines."""
        return split_in(self.stage) if self.machines > 1 else ()

    def _share_of_gradients(self, gradients: int) -> int:
        """Return a machine's share of the gradients' bytes, rounded up to whole numbers."""
        if "gradients" not in self._split:
            return gradients
        numbers = gradients // self.config.gradient_bytes
        share = -(-numbers // self.machines)  # rounded up
        return share * self.config.gradient_bytes

    def _gathered_bytes(self, operation: Operation) -> int:
        """Return the bytes of weights and gradients that are whole on each machine for a while.

        They are gathered as by `fully_shard` on each layer and on the model.
        """
        if not (self.gathered and "parameters" in self._split):
            return 0
        back = operation.phase in ("backward", "recompute")
        # Such as "last norm", or None for an operation inside a layer.
        outside = operation.where if operation.layer is None else None
        return self.config.dtype_bytes * _gathered_numbers(self.config.model, back, outside)


@lru_cache
def _gathered_numbers(model: Shape, back: bool, outside: str | None) -> int:
    """Return how many weights and gradients a machine has gathered at once.

    Weights outside the layers are whole during the whole step. A layer's weights are whole while it
    computes, and so are those of the next layer, which are fetched meanwhile. In the backward pass,
    a layer's gradients are whole until all of them are made. The output's gradient is whole until
    the step's end; while it is made, it is counted among the bytes that operations hold in passing.

    `back` says whether this is in the backward pass. `outside` is the place of an operation outside
    the layers, such as "last norm", and None for an operation inside a layer.
    """
    of_a_layer = model.parameters_of_a_layer
    numbers = model.parameters_outside_layers
    if outside is None:
        numbers += min(2, model.layers) * of_a_layer  # weights of this layer and of the next
    if outside is None and back:
        numbers += of_a_layer  # this layer's gradients
    if back and outside not in LOSS:  # the output matrix has its gradient by now
        if outside == "last norm":
            numbers += model.parameters_by_part["output"]
        else:  # in a layer or the embedding, where the last normalisation has its gradient, too
            numbers += model.parameters_of_output_and_last_norm
    return numbers


# Cached, because a lab asks for the same timeline again and again while it draws, and a Timeline
# keeps its operations once they were computed.
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
    routing: Routing | None = None,
) -> Timeline:
    """Return every operation of forward, cross-entropy, backward and the optimizer's step.

    - fused: attention is one kernel. Each normalisation is one kernel in any case.
    - recompute: if True, each segment of `segment` layers keeps its input alone. If it is "every
      other layer", every second layer does. If it is "every other product", each layer keeps the
      result of every second product and runs the rest again; torchtitan calls that selective.
    - fused_loss: if True, the loss is one kernel, which writes the gradient over the logits. If it
      is "with output", the output is part of the kernel, so there are never all logits.
    - pieces: the output and its loss are computed for that many parts of the tokens, one at a time,
      and once more in the backward pass.
    - accumulate: gradients of an earlier micro-batch are there from the start. Otherwise there are
      none before the backward pass, as after `zero_grad()`.
    - machines, stage: batch and sequence are those of one machine; what ZeRO's stage splits is held
      in equal parts, rounded up. `gathered` adds the weights and gradients that machines put
      together for a while, as `fully_shard` does.
    - routing: for each layer with a mixture of experts, how many tokens go to each expert. Without
      it, all experts of a layer get as many tokens, or one more. Experts work one after the other.

    The timeline is exact to the byte for `models.Transformer` with `fused_norm` on one CPU,
    operation by operation, with heads of four numbers or more. What several machines hold is
    computed from it. Not counted are scratch memory inside a kernel, gaps between allocations, what
    machines send each other, tokens, and copies that an optimizer makes. A sequence may be longer
    than the context, although a GPT has no positions there.

    >>> from course_utils.core.predict import MODELS
    >>> step = timeline(MODELS["GPT-2 small"], 1, 1024)
    >>> step.fullest.where, step.peak
    ('cross-entropy', 2721902360)
    """
    dtypes = recipe_named(recipe)
    split_in(stage)  # raises a ValueError if there is no such stage
    config = StepConfig(
        model=shape_of(model),
        batch=batch,
        sequence=sequence,
        dtype_bytes=dtype_bytes(dtypes.parameters),
        gradient_bytes=dtype_bytes(dtypes.gradients[0]),  # a second one is the master copy's
        accumulate=accumulate,
        fused=fused,
        recompute=recompute,
        segment=segment,
        fused_loss=fused_loss,
        pieces=pieces,
        routing=routing,
    )
    return Timeline(config, recipe, machines, stage, gathered)
