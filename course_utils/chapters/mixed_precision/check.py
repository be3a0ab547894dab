"""The exercises of notebook 07.

For one case, an exercise yields the right answer first, and then what tempting mistakes lead to.
Each has a sentence: why it is right, or the advice on the mistake. The decorator makes the check
that a notebook calls with the reader's answer. Those of the repair shop are in `repair_check`.
"""

import torch

from course_utils.chapters.mixed_precision import slips_check
from course_utils.chapters.mixed_precision.beyond_check import (  # noqa: F401  exercises, too
    bytes_in_blocks,
    delayed_scale,
    loss_scale,
    moves,
    rounded_by_chance,
)
from course_utils.chapters.mixed_precision.cases_in_words import (
    recipe_in_words,
    scale_in_words,
    step_in_words,
)
from course_utils.chapters.mixed_precision.repair_check import (  # noqa: F401  exercises, too
    mended_a,
    mended_b,
    mended_c,
    mended_d,
    mended_e,
)
from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, function

MASTERS_AND_UPDATES = [
    # Both copies in bf16 move here. The first update is less than half a gap between two numbers of
    # bf16, and moves its copy only because the master, 1.003, already lies above one of them.
    (torch.tensor([1.003, 1.0]), torch.tensor([0.002, 0.0125])),
    (torch.tensor([1.00390625, 0.5, -3.0]), torch.tensor([0.001, -3e-4, 0.002])),
    (torch.ones(()), torch.tensor(0.004)),
]


def _stored_as(
    numbers: list[Number], fmt: str, dtype: torch.dtype, shape: torch.Size
) -> torch.Tensor:
    """Return the numbers in a tensor, rounded to `fmt` by our own code and not by torch's cast.

    The names `fmt` and `dtype` stand for the same format, here and in torch.
    """
    stored = [floats.stored(number, fmt) for number in numbers]
    return torch.tensor(stored, dtype=dtype).reshape(shape)


@function(
    MASTERS_AND_UPDATES,
    gives=("master", "copy"),
    case_words=step_in_words,
    hints=(
        "The new master is a sum of two tensors in fp32, so nothing has to be cast for it.",
        "The copy is that new master, rounded by bfloat16(). Return both, the master first.",
    ),
)
def master_step(master: torch.Tensor, update: torch.Tensor) -> Answers:
    """The check of a reader's master_step(master, update): (the new fp32 master, its bf16 copy)."""
    pairs = zip(master.flatten().tolist(), update.flatten().tolist(), strict=True)
    sums = [weight + change for weight, change in pairs]
    new = _stored_as(sums, "fp32", torch.float32, master.shape)
    copy = _stored_as(new.flatten().tolist(), "bf16", torch.bfloat16, master.shape)
    yield (new, copy), "Three steps: updates go to the fp32 master, products read its rounded copy."
    yield from slips_check.of_sums(master, update, new)
    yield (
        (master, copy),
        "The master has to keep the update, or every step begins where the first one began.",
    )
    upper_half = new.view(torch.int32) & ~0xFFFF  # the 16 bits of fp32 that bf16 has, too
    cut = upper_half.view(torch.float32).bfloat16()
    yield (
        (new, cut),
        "That copy is cut off, always towards 0. Round it to the nearest: bfloat16() does.",
    )
    yield (
        (copy.float(), copy),
        "Your master is rounded to bf16, too. Keep the sum in fp32, and round the copy alone.",
    )
    yield (new, master.bfloat16()), "That copies the master before the update. Round the new one."
    yield (new, new), "The second one is what the products read: the new master, rounded to bf16."
    yield (copy, new), "The master comes first, and its copy in bf16 second."
    subtracted = master - update
    yield (
        (subtracted, subtracted.bfloat16()),
        "The update is added here, whatever its sign.",
    )
    yield (new, new.half()), "half() is fp16. The copy is to be in bf16."


# GradScaler halves the scale after a step with an infinite gradient, and doubles the scale after
# `interval` good steps in a row.
SCALES_AND_STEPS = [  # scale, good steps before, whether all gradients are finite, interval
    (65_536.0, 3, True, 5),
    (65_536.0, 3, False, 5),
    (1024.0, 4, True, 5),
    (1024.0, 4, False, 5),
    (1.0, 0, True, 1),
    (1.0, 0, False, 1),
]


@function(
    SCALES_AND_STEPS,
    gives=("scale", "good steps"),
    case_words=scale_in_words,
    hints=(
        "There are three cases: an infinity, the good step that completes the interval, and any "
        "other good step.",
        "After an infinity the scale is halved, and the count begins again at 0.",
        "The present step counts: if good_steps + 1 == interval, the scale doubles, and the count "
        "begins again at 0.",
    ),
)
def updated_scale(scale: Number, good_steps: int, finite: bool, interval: int) -> Answers:
    """The check of a reader's my_rule(scale, good_steps, finite, interval), as in GradScaler."""

    def after(*, doubles: bool) -> tuple[Number, int]:
        """Return the scale and the good steps after this step, which may double the scale."""
        if not finite:
            return scale / 2, 0
        if doubles:
            return 2 * scale, 0
        return scale, good_steps + 1

    new, good = after(doubles=good_steps + 1 == interval)
    yield (
        (new, good),
        "Six steps: finite ones, infinite ones, and a doubling after five good ones or after one.",
    )
    one_too_late = after(doubles=good_steps == interval)
    yield (
        one_too_late,
        "The present step counts: after the fifth good step of five the scale doubles.",
    )
    never_reset = good_steps + 1 if finite else 0
    yield (new, never_reset), "After a doubling the count begins again at 0."
    reset_to_1 = 1 if new > scale else good  # as if the present step counted after the doubling
    yield (new, reset_to_1), "After a doubling the count begins again at 0."
    yield (good, new), "The scale comes first."
    kept_at_infinity = good if finite else good_steps
    yield (
        (new, kept_at_infinity),
        "After an infinity the count begins again at 0: the good steps have to follow each other.",
    )
    each_time = after(doubles=True)
    yield (
        each_time,
        "One good step is not enough: it takes `interval` of them, one after the other.",
    )
    yield from slips_check.of_infinity(
        scale, good_steps, after(doubles=good_steps + 1 == interval), finite
    )


# The accountant's term.

# By the recipe's name: the dtype of the parameters, the dtype of the gradients, the dtypes of the
# numbers that the optimizer keeps for each parameter, and the dtype of the master, if there is one.
RECIPES = {
    "fp32 adamw": ("fp32", "fp32", ("fp32", "fp32"), ()),
    "fp32 sgd": ("fp32", "fp32", (), ()),
    "fp32 momentum": ("fp32", "fp32", ("fp32",), ()),
    "bf16 adamw": ("bf16", "bf16", ("bf16", "bf16"), ()),
    "bf16+master adamw": ("bf16", "bf16", ("fp32", "fp32"), ("fp32",)),
    "bf16+master adamw, fp32 gradients": ("bf16", "fp32", ("fp32", "fp32"), ("fp32",)),
    "fp16+master momentum": ("fp16", "fp16", ("fp32",), ("fp32",)),
    "fp64 adamw": ("fp64", "fp64", ("fp64", "fp64"), ()),
    "fp16+master sgd, fp32 gradients": ("fp16", "fp32", (), ("fp32",)),
}


@function(
    [(name,) for name in RECIPES],
    case_words=recipe_in_words,
    hints=(
        "The given lines take the name apart. `master` and `gradients` are strings, and empty ones "
        "count as false: `if master` asks whether there is a master.",
        "With a master, the optimizer's numbers are in fp32, and else in `dtype`.",
        "A tuple of n equal dtypes is (dtype,) * n, and OPTIMIZER_NUMBERS says n.",
    ),
)
def recipe(name: str) -> Answers:
    """The check of a reader's recipe(name): the dtypes of each part."""
    dtype, gradients, numbers, master = RECIPES[name]
    wide = "fp32" if master else dtype
    kept_count = len(numbers)
    right = {
        "parameters": (dtype,),
        "gradients": (gradients,),
        "optimizer": numbers,
        "master": master,
    }
    yield right, "Nine recipes, in four formats and with three optimizers."
    yield (
        _with_two_formats(right),
        "A name can have other formats than bf16 and fp32: take the one that it has.",
    )
    yield (
        right | {"optimizer": (dtype,) * kept_count},
        "With a master, the optimizer's numbers are in fp32, too.",
    )
    yield (
        right | {"optimizer": ("fp32",) * kept_count},
        "Without a master, the optimizer's numbers have the dtype of the parameters.",
    )
    yield (
        right | {"gradients": (dtype,)},
        'If the name ends in ", fp32 gradients", the gradients are in fp32.',
    )
    yield right | {"gradients": (wide,)}, "Gradients have the dtype of the parameters."
    yield right | {"parameters": (wide,)}, "The first dtype of the name is that of the parameters."
    yield right | {"master": ()}, "With +master there is a copy in fp32."
    yield right | {"master": ("fp32",)}, "There is a master only if the name says so."
    yield (
        right | {"optimizer": (wide, wide)},
        "SGD keeps nothing, momentum one number: OPTIMIZER_NUMBERS.",
    )
    yield from slips_check.of_dtypes(right)
    yield from slips_check.of_tuples(right, name)


def _with_two_formats(right: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the recipe of a reader who takes every format but bf16 for fp32."""
    recipe = {}
    for part, dtypes in right.items():
        recipe[part] = tuple("bf16" if dtype == "bf16" else "fp32" for dtype in dtypes)
    return recipe
