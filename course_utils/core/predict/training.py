"""Training runs: FLOPs, days, utilisation and memory.

Memory is what is kept for each parameter, and how many parameters that allows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from course_utils.core import accountant
from course_utils.core.accountant import Model
from course_utils.core.datasheets import Machine
from course_utils.core.predict.operations import check_sizes, dtype_bytes
from course_utils.core.predict.transformer import Shape, shape_of
from course_utils.core.say import Ledger, Number

GPUS_A_PRODUCT = 8  # how many GPUs share each product, over NVLink
LINK_BYTES_PER_SEC = 450e9  # of NVLink 4, in each direction
STEP_COUNTER_BYTES = 4  # one fp32 number for each parameter tensor


# Compute.


def training_flops(parameters: Number, tokens: Number) -> Number:
    """Return 6PN: 2 FLOPs forward and 4 backward, for each parameter and token.

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
    """Return 6PN / (count × peak × MFU), in days.

    >>> from course_utils.core.datasheets import MACHINES
    >>> round(training_days(70e9, 15e12, MACHINES["H100 SXM"], 1024, 0.5), 3)
    143.927
    """
    _check_shares("MFU", mfu)
    check_count(count)
    flops = training_flops(parameters, tokens)
    return accountant.days(flops, count, machine.peak(dtype), mfu)


def mfu(
    flops: Number, seconds: Number, machine: Machine, count: int = 1, dtype: str = "bf16"
) -> Number:
    """Return (FLOPs / seconds) / (count × dense peak), which is the model FLOPs utilisation.

    `flops` are those that the mathematics asks for: what checkpointing computes a second time does
    not count. `seconds` is the time that `count` machines took for them.
    """
    check_count(count)
    if not seconds > 0:
        raise ValueError(f"A rate needs a time above 0; got {seconds!r} seconds.")
    flop_per_sec = flops / seconds
    return flop_per_sec / (count * machine.peak(dtype))


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
    """Return the days of each part of a run in bf16: the shortest estimates, then the longest.

    `count` machines share the run. Sequences are as long as the model's context. The first part is
    all FLOPs at the peak, and each further part is the days that it adds. Estimates are no bounds:

    - products, attention: the shares of the peak that they reach, least and most. An attention
      kernel skips the pairs that look ahead, and computes the scores again in the backward pass.
    - passes: a layer's additions, normalisations, rotation and gate, fused as far as they can be,
      once forward and twice backward. Both estimates take the memory's whole bandwidth, so these
      passes can't take less.
    - sending: two sums a layer each way, over eight GPUs that share each product, at the whole
      bandwidth of NVLink in one direction. By the shortest estimate, all of it runs beside the
      products; by the longest, none does.
    - the rest of a step: what the parts before leave of a step's time, which its MFU gives.
    - pauses: by the shortest estimate none; by the longest, all of the time in which the run stands
      still. `running` is the share of the time in which it does not.
    """
    check_count(count)
    _check_shares("What is reached", *products, *attention, step_mfu, running)
    shape = shape_of(model)
    shape.refuse_mixture("The days of each part")
    # `sequences` is how many one machine reads, one after the other. A part that takes one second
    # of each sequence takes `days_a_second` days of the run.
    sequences = tokens / shape.context / count
    days_a_second = sequences / accountant.SECONDS_PER_DAY

    least_s = _seconds_by_part(shape, machine, max(products), max(attention))
    least_s["sending"] = 0
    most_s = _seconds_by_part(shape, machine, min(products), min(attention))
    most_s["sending"] = _sending_seconds(shape)

    shortest = {part: days_a_second * seconds for part, seconds in least_s.items()}
    longest = {part: days_a_second * seconds for part, seconds in most_s.items()}

    # Days of all steps, without pauses: an MFU is the time of the FLOPs at the peak / the steps'
    # time. The FLOPs at the peak take as long in `shortest` as in `longest`.
    in_steps = longest["FLOPs at the peak"] / step_mfu
    shortest["the rest of a step"] = in_steps - sum(shortest.values())
    shortest["pauses"] = 0
    longest["the rest of a step"] = in_steps - sum(longest.values())
    longest["pauses"] = in_steps / running - in_steps
    return Ledger(shortest, unit="days"), Ledger(longest, unit="days")


def _seconds_by_part(
    shape: Shape, machine: Machine, products_share: Number, attention_share: Number
) -> dict[str, Number]:
    """Return the seconds that one machine alone would take for one sequence, by part."""
    peak = machine.peak("bf16")
    step = shape.training_flops(1, shape.context, fused=True)
    scores_again = step["scores again"]  # FLOPs of fused attention's backward pass
    needed = step.total - scores_again  # FLOPs that the mathematics asks for
    # Attention's FLOPs: forward, and twice as many backward.
    attention = 3 * shape.forward_flops(1, shape.context)["attention"]
    products = needed - attention
    in_kernel = (attention + scores_again) / 2  # half of all pairs look ahead, and are skipped
    # Once forward, and twice backward.
    passed_bytes = 3 * _passed_numbers(shape) * _bytes_per_number(shape)
    # Each part is the time that it takes beyond the parts before: FLOPs / (share × peak) for what
    # is computed at a share of the peak, without the FLOPs / peak that the first part has already.
    # The first part has counted all pairs. A fast kernel takes less, and then its part is below 0.
    kernel_s = in_kernel / (attention_share * peak)
    counted_s = attention / peak
    return {
        "FLOPs at the peak": needed / peak,
        "products below the peak": products * (1 / products_share - 1) / peak,
        "attention's kernel": kernel_s - counted_s,
        "passes over memory": passed_bytes / machine.bytes_per_sec,
    }


def _sending_seconds(shape: Shape) -> Number:
    """Return the seconds of sending for one sequence, added up over the GPUs that share it.

    Where GPUs share a product, each has a part of every result's sum: an all-reduce adds these up.
    """
    sums = 4  # in a layer: two forward, two backward
    # For one token in one layer. In a ring of N GPUs, a sum of one number is sent 2 (N - 1) times.
    sent_numbers = sums * 2 * (GPUS_A_PRODUCT - 1) * shape.width
    return sent_numbers * _bytes_per_number(shape) / LINK_BYTES_PER_SEC


def _bytes_per_number(shape: Shape) -> int:
    """Return the bytes that one number takes if each token of a sequence has it in each layer."""
    return shape.context * shape.layers * dtype_bytes("bf16")


def _passed_numbers(shape: Shape) -> int:
    """Return how many numbers are read or written between a layer's products, for one token.

    The operations between the products are fused as far as they can be.
    """
    # Two additions, each with the normalisation behind it. For each, two summands are read, and the
    # sum and the normalised sum are written: four tensors.
    numbers = 8 * shape.width
    if shape.rotary:
        numbers += 2 * (shape.width + shape.kv_width)  # queries and keys, read and written
    if shape.gated:
        return numbers + 3 * shape.inner  # the gate and up are read, their product is written
    return numbers + 2 * shape.inner  # up is read, its activation is written


def _check_shares(name: str, *shares: Number) -> None:
    """Raise a ValueError on the first share that is not above 0 and at most 1."""
    for share in shares:
        if not 0 < share <= 1:
            raise ValueError(f"{name} is a share, above 0 and at most 1; got {share!r}.")


def check_count(count: int) -> None:
    """Raise a ValueError unless the count is one machine or more."""
    check_sizes(count=count)
    if count == 0:
        raise ValueError("Training needs at least one machine; got count 0.")


# Memory.


@dataclass(frozen=True)
class Recipe:
    """What training keeps for each parameter from step to step.

    With a master copy, the products read low-precision parameters, and the optimizer writes the
    master copy.
    """

    dtypes: Mapping[str, tuple[str, ...]]  # by part: the dtype of each number that the part keeps
    counts_steps: bool  # in one number for each tensor of parameters

    @property
    def parameters(self) -> str:
        """The dtype of the parameters that matrix products read."""
        (dtype,) = self.dtypes["parameters"]
        return dtype

    @property
    def gradients(self) -> tuple[str, ...]:
        """The dtypes in which gradients are held: the parameters' first, then the master's."""
        return self.dtypes["gradients"]

    @property
    def master(self) -> tuple[str, ...]:
        """The dtype of the master copy; empty if there is none."""
        return self.dtypes["master"]

    @property
    def bytes_by_part(self) -> Ledger:
        """The bytes that are kept for one parameter, by part.

        >>> RECIPES["bf16+master adamw"].bytes_by_part
                    bytes
        parameters      2
        gradients       2
        optimizer       8
        master          4
        total          16
        """
        return Ledger(accountant.state_bytes(1, self.dtypes, gpus=1, stage=0), unit="bytes")


# Recipes that the accountant does not have. For each, the recipe of the accountant's that it is a
# variant of, and the parts whose dtypes differ.
VARIANTS = {
    "fp32 adagrad": ("fp32 sgd", {"optimizer": ("fp32",)}),  # the sum of squared gradients
    "fp32 rmsprop": ("fp32 sgd", {"optimizer": ("fp32",)}),  # their average
    "fp32 amsgrad": ("fp32 adamw", {"optimizer": ("fp32",) * 3}),  # the average's maximum as well
    # The optimizer needs the master's gradients in fp32. Both copies are held until they are freed.
    "bf16+master adamw, gradients twice": ("bf16+master adamw", {"gradients": ("bf16", "fp32")}),
}
COUNT_NO_STEPS = ("sgd", "momentum")  # all other optimizers count their steps


def _recipe(name: str) -> Recipe:
    """Return the recipe of that name: the accountant's own, or one of VARIANTS."""
    unchanged = (name, {})  # the accountant's own: nothing differs from it
    # A variant is such as ("fp32 sgd", {"optimizer": ("fp32",)}): a recipe, and what differs.
    base, differing = VARIANTS.get(name, unchanged)
    dtypes = {**accountant.recipe(base), **differing}
    return Recipe(dtypes, counts_steps=optimizer_of(name) not in COUNT_NO_STEPS)


def optimizer_of(recipe: str) -> str:
    """Return the optimizer in a recipe's name: the last word, or the last one before a comma.

    >>> optimizer_of("bf16+master adamw, gradients twice")
    'adamw'
    """
    formats_and_optimizer, _, _ = recipe.partition(",")
    return formats_and_optimizer.split()[-1]


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
    """Return the parts of the state that ZeRO's stage splits; the others are on every machine.

    ValueError if there is no such stage. FSDP's full sharding is stage 3.
    """
    if stage not in range(4):
        raise ValueError(
            f"ZeRO has the stages 0 (nothing is split) to 3 (everything is); got {stage!r}."
        )
    first_stages = accountant.SHARDED_FROM.items()  # such as ("gradients", 2): from stage 2 on
    return tuple(part for part, first in first_stages if stage >= first)


def recipe_named(name: str) -> Recipe:
    """Return the recipe of that name. ValueError, with all names, if there is none."""
    if name not in RECIPES:
        raise ValueError(f"There is no recipe {name!r} here. There are: {'; '.join(RECIPES)}.")
    return RECIPES[name]


def training_bytes(
    parameters: Number, recipe: str, *, tensors: int = 0, machines: int = 1, stage: int = 3
) -> Ledger:
    """Return P × the recipe's bytes, by part: what a machine holds between two steps.

    Most optimizers also count steps, with 4 bytes for each tensor of parameters; these bytes are
    added if `tensors` says how many tensors there are. On several machines, what ZeRO's `stage`
    splits is held in equal parts. If the parts cannot be equal, the largest counts. A fraction of a
    parameter counts as a whole one.

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
    split_in(stage)  # raises a ValueError if there is no such stage
    whole = -(-parameters // 1)  # rounded up
    held = accountant.state_bytes(whole, kind.dtypes, machines, stage)
    if kind.counts_steps:
        held["optimizer"] += STEP_COUNTER_BYTES * tensors
    return Ledger(held, unit="bytes")


def largest_model(
    machine: Machine, count: int, recipe: str, *, sharded: bool = True, stage: int | None = None
) -> Number:
    """Return the number of parameters that fit, if nothing is left for activations.

    The number is the memory / the bytes that the recipe keeps for one parameter. If `sharded`, all
    machines hold one state together; otherwise each holds a whole state; with a `stage` of ZeRO,
    each holds all of what the stage does not split.

    >>> from course_utils.core.datasheets import MACHINES
    >>> h100 = MACHINES["H100 SXM"]
    >>> largest_model(h100, 8, "fp32 adamw"), largest_model(h100, 8, "fp32 adamw", sharded=False)
    (40000000000, 5000000000)
    >>> largest_model(h100, 8, "fp32 adamw", stage=1)
    8888888888
    """
    check_count(count)
    if stage is None:
        stage = 3 if sharded else 0  # 3 splits everything, 0 nothing
    by_part = recipe_named(recipe).bytes_by_part
    split = sum(by_part[part] for part in split_in(stage))  # held once, by all together
    on_every_machine = by_part.total - split
    bytes_of_a_parameter = on_every_machine * count + split  # on all machines together
    return machine.bytes * count // bytes_of_a_parameter
