"""Training runs: FLOPs, days and utilisation; what is kept for each parameter, and how many parameters that allows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.core import accountant
from course_utils.core.accountant import Model
from course_utils.core.datasheets import Machine
from course_utils.core.predict.operations import check_sizes, dtype_bytes
from course_utils.core.predict.transformer import Shape, shape_of
from course_utils.core.say import Ledger, Number

SPLIT, LINK_BYTES_PER_SEC = 8, 450e9  # GPUs that share each product, over NVLink 4, each way
STEP_COUNTER_BYTES = 4  # one fp32 number for each parameter tensor


# Compute.


def training_flops(parameters: Number, tokens: Number) -> Number:
    """6PN: forward 2 and backward 4 for each parameter and token.

    >>> training_flops(70e9, 15e12)
    6.3e+24
    """
    return 6 * parameters * tokens


def training_days(
    parameters: Number,
    tokens: Number,
    machine: Machine,
    count: int,
    mfu: Number,
    *,
    dtype: str = "bf16",
) -> Number:
    """6PN / (count × peak × MFU), in days.

    >>> from course_utils.core.datasheets import MACHINES
    >>> round(training_days(70e9, 15e12, MACHINES["H100 SXM"], 1024, 0.5), 3)
    143.927
    """
    _check_shares("MFU", mfu)
    check_count(count)
    return accountant.days(training_flops(parameters, tokens), count, machine.peak(dtype), mfu)


def mfu(
    flops: Number, seconds: Number, machine: Machine, count: int = 1, dtype: str = "bf16"
) -> Number:
    """(FLOPs that the model needs / seconds) / (count × dense peak): model FLOPs utilisation.

    Only what the mathematics asks for counts; work that is done twice, as in checkpointing, does not.
    """
    check_count(count)
    if not seconds > 0:
        raise ValueError(f"A rate needs a time above 0; got {seconds!r} seconds.")
    return flops / seconds / (count * machine.peak(dtype))


def days_by_part(
    model: Model,
    tokens: Number,
    machine: Machine,
    count: int,
    *,
    products: tuple[Number, Number],
    attention: tuple[Number, Number],
    step_mfu: Number,
    running: Number,
) -> tuple[Ledger, Ledger]:
    """Days of a run in bf16 at its whole context, by the shortest and by the longest estimate of each part.

    The first part is all FLOPs at the peak; each further one says what it adds. Estimates are no bounds:

    - products, attention: the shares of the peak that they reach, least and most. An attention kernel skips the pairs
      that look ahead, and computes the scores again on the way back.
    - passes: a layer's additions, normalisations, rotation and gate, fused as far as they can be, once forward and
      twice backward. Both estimates take the memory's whole bandwidth, so these passes can't take less.
    - sending: two sums a layer each way, over eight GPUs that share each product, at the whole bandwidth of NVLink in
      one direction. By the shortest, all of it runs beside the products; by the longest, none does.
    - the rest of a step whose MFU is known; and pauses, from none to all but the known share in which a run goes on.
    """
    check_count(count)
    _check_shares("What is reached", *products, *attention, step_mfu, running)
    model = shape_of(model)
    step, peak = model.training_flops(1, model.context, fused=True), machine.peak("bf16")
    pairs, again = 3 * model.forward_flops(1, model.context)["attention"], step["scores again"]
    passed = _passed_numbers(model)
    sent = 4 * 2 * (SPLIT - 1) * model.width  # numbers, by all that share a product
    numbers_bytes = model.context * model.layers * dtype_bytes("bf16")
    scale = tokens / model.context / count / accountant.SECONDS_PER_DAY

    def ledger(of_products: Number, of_attention: Number, hidden: bool) -> dict[str, Number]:
        seconds = {  # of one machine, for a sequence
            "FLOPs at the peak": (step.total - again) / peak,
            "products below the peak": (step.total - again - pairs) * (1 / of_products - 1) / peak,
            "attention's kernel": ((pairs + again) / 2 / of_attention - pairs) / peak,
            "passes over memory": 3 * passed * numbers_bytes / machine.bytes_per_sec,
            "sending": 0 if hidden else sent * numbers_bytes / LINK_BYTES_PER_SEC,
        }
        return {part: scale * s for part, s in seconds.items()}

    least, most = (
        ledger(max(products), max(attention), True),
        ledger(min(products), min(attention), False),
    )
    in_steps = most["FLOPs at the peak"] / step_mfu
    shortest, longest = (
        parts | {"the rest of a step": in_steps - sum(parts.values()), "pauses": pauses}
        for parts, pauses in ((least, 0), (most, in_steps / running - in_steps))
    )
    return Ledger(shortest, unit="days"), Ledger(longest, unit="days")


def _passed_numbers(shape: Shape) -> int:
    """Numbers of a token that go in and out of what stands between a layer's products, fused as far as can be."""
    additions_and_norms = 8 * shape.width
    rotation = 2 * (shape.width + shape.kv_width) * shape.rotary
    return additions_and_norms + rotation + (3 if shape.gated else 2) * shape.inner


def _check_shares(name: str, *shares: Number) -> None:
    """Above 0 and at most 1, or a sentence on the first that is not."""
    if wrong := [share for share in shares if not 0 < share <= 1]:
        raise ValueError(f"{name} is a share, above 0 and at most 1; got {wrong[0]!r}.")


def check_count(count: int) -> None:
    """One machine or more, or a sentence."""
    check_sizes(count=count)
    if count == 0:
        raise ValueError("Training needs at least one machine; got count 0.")


# Memory.


@dataclass(frozen=True)
class Recipe:
    """What training keeps for each parameter from step to step: the dtypes of each part, as the accountant has them.

    With a master copy, the products read low-precision parameters and the optimizer writes the master.
    """

    dtypes: Mapping[str, tuple[str, ...]]
    counts_steps: bool  # a number for each tensor, and not for each parameter

    @property
    def parameters(self) -> str:
        """The dtype that products read."""
        (dtype,) = self.dtypes["parameters"]
        return dtype

    @property
    def gradients(self) -> tuple[str, ...]:
        """The dtypes of the gradients: those of the parameters first, and then the master's."""
        return self.dtypes["gradients"]

    @property
    def master(self) -> tuple[str, ...]:
        return self.dtypes["master"]

    @property
    def bytes_by_part(self) -> Ledger:
        """Bytes of one parameter.

        >>> RECIPES["bf16+master adamw"].bytes_by_part
                    bytes
        parameters      2
        gradients       2
        optimizer       8
        master          4
        total          16
        """
        return Ledger(accountant.state_bytes(1, self.dtypes, 1, 0), unit="bytes")


# Of which recipe of the accountant each of these is a variant, and in what.
VARIANTS = {
    "fp32 adagrad": ("fp32 sgd", {"optimizer": ("fp32",)}),  # the sum of squared gradients
    "fp32 rmsprop": ("fp32 sgd", {"optimizer": ("fp32",)}),  # their average
    "fp32 amsgrad": ("fp32 adamw", {"optimizer": ("fp32",) * 3}),  # the average's maximum as well
    # The optimizer needs the master's gradients in fp32. Both copies are held until they are freed.
    "bf16+master adamw, gradients twice": ("bf16+master adamw", {"gradients": ("bf16", "fp32")}),
}
COUNT_NO_STEPS = ("sgd", "momentum")


def _recipe(name: str) -> Recipe:
    base, other = VARIANTS.get(name, (name, {}))
    return Recipe(accountant.recipe(base) | other, optimizer_of(name) not in COUNT_NO_STEPS)


def optimizer_of(recipe: str) -> str:
    """The last word of a recipe's name, up to a comma."""
    return recipe.split(",")[0].split()[-1]


_NAMES = (
    "fp32 sgd",
    "fp32 momentum",
    "fp32 adagrad",
    "fp32 rmsprop",
    "fp32 adamw",
    "fp32 amsgrad",
    "bf16 adamw",  # as torch does if the model itself is bf16: the averages are bf16, too
    "bf16+master adamw",
    "bf16+master adamw, fp32 gradients",
    "bf16+master adamw, gradients twice",
)
RECIPES: Mapping[str, Recipe] = {name: _recipe(name) for name in _NAMES}


def split_in(stage: int) -> tuple[str, ...]:
    """The parts that ZeRO's stage splits over the machines, or a sentence if there is no such stage.

    The rest is on all of them. FSDP's full sharding is stage 3.
    """
    if stage not in range(4):
        raise ValueError(
            f"ZeRO has the stages 0 (nothing is split) to 3 (everything is); got {stage!r}."
        )
    return tuple(part for part, first in accountant.SHARDED_FROM.items() if stage >= first)


def recipe_named(name: str) -> Recipe:
    """The recipe, or a sentence on which there are."""
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r} here. There are: {'; '.join(RECIPES)}.")
    return RECIPES[name]


def training_bytes(
    parameters: Number, recipe: str, *, tensors: int = 0, machines: int = 1, stage: int = 3
) -> Ledger:
    """P × the recipe's bytes: what a machine holds between two steps, activations aside.

    Most optimizers also count steps, with 4 bytes for each parameter tensor; they are added if `tensors` says
    how many there are. On several machines, what ZeRO's `stage` splits is held in equal parts, the largest
    of which is told. A fraction of a parameter counts as a whole one.

    >>> training_bytes(70_553_706_496, "bf16+master adamw", machines=1024)
                        bytes
    parameters    137,800,208
    gradients     137,800,208
    optimizer     551,200,832
    master        275,600,416
    total       1,102,401,664
    """
    if not 0 <= parameters < math.inf:
        raise ValueError(f"The number of parameters is 0 or more; got {parameters!r}.")
    check_sizes(tensors=tensors)
    check_count(machines)
    kind = recipe_named(recipe)
    split_in(stage)  # or a sentence
    whole = -(-parameters // 1)  # rounded up
    held = accountant.state_bytes(whole, kind.dtypes, machines, stage)
    held["optimizer"] += STEP_COUNTER_BYTES * tensors * kind.counts_steps
    return Ledger(held, unit="bytes")


def largest_model(
    machine: Machine, count: int, recipe: str, *, sharded: bool = True, stage: int | None = None
) -> Number:
    """Bytes of memory / what a machine holds of the recipe's bytes of a parameter, with nothing left for activations.

    Sharded, all machines hold one state together; replicated, each holds all of it; in between, each holds all of what
    ZeRO's `stage` does not split.

    >>> from course_utils.core.datasheets import MACHINES
    >>> h100 = MACHINES["H100 SXM"]
    >>> largest_model(h100, 8, "fp32 adamw"), largest_model(h100, 8, "fp32 adamw", sharded=False)
    (40000000000, 5000000000)
    >>> largest_model(h100, 8, "fp32 adamw", stage=1)
    8888888888
    """
    check_count(count)
    each = recipe_named(recipe).bytes_by_part
    split = sum(each[part] for part in split_in(3 * sharded if stage is None else stage))
    return machine.bytes * count // ((each.total - split) * count + split)
