"""The exercises of notebook 07."""

import math
from functools import cache

import torch

from course_utils.chapters.mixed_precision import repair
from course_utils.core import floats
from course_utils.core.say import Number
from course_utils.engine.judging import Answers, NotYetError, call, function, objection
from course_utils.engine.judging.exercises import Check, NotAttemptedError
from course_utils.engine.judging.sentences import name_of, stopped

MASTERS_AND_UPDATES = [  # of the first both copies move, one of them thanks to the master
    (torch.tensor([1.003, 1.0]), torch.tensor([0.002, 0.0125])),
    (torch.tensor([1.00390625, 0.5, -3.0]), torch.tensor([0.001, -3e-4, 0.002])),
    (torch.ones(()), torch.tensor(0.004)),
]


@function(MASTERS_AND_UPDATES)
def master_step(master: torch.Tensor, update: torch.Tensor) -> Answers:
    """(the fp32 master after the update, its bf16 copy), number by number."""
    pairs = zip(master.flatten().tolist(), update.flatten().tolist(), strict=True)
    sums = [floats.stored(weight + change, "fp32") for weight, change in pairs]
    new = torch.tensor(sums, dtype=torch.float32).reshape(master.shape)
    copies = [floats.stored(weight, "bf16") for weight in sums]
    copy = torch.tensor(copies, dtype=torch.bfloat16).reshape(master.shape)
    yield (new, copy), "Three steps: updates go to the fp32 master, products read its rounded copy."
    in_bf16 = master.bfloat16() + update.bfloat16()
    both_in_bf16 = (in_bf16.float(), in_bf16)
    yield both_in_bf16, "Add in fp32 first. In bf16 the update is lost, and no cast brings it back."
    two_sums = (new, in_bf16)
    yield (
        two_sums,
        "Make the copy from the new master. A copy that adds up in bf16 loses its updates.",
    )
    yield (
        (master, copy),
        "The master has to keep the update, or every step begins where the first one began.",
    )
    upper_half = new.view(torch.int32) & ~0xFFFF
    cut = (new, upper_half.view(torch.float32).bfloat16())
    yield cut, "That copy is cut off, always towards 0. Round it to the nearest: bfloat16() does."
    rounded = (copy.float(), copy)
    yield (
        rounded,
        "Your master is rounded to bf16, too. Keep the sum in fp32, and round the copy alone.",
    )
    yield (new, master.bfloat16()), "That copies the master before the update. Round the new one."
    yield (new, new), "The second one is what the products read: the new master, rounded to bf16."
    yield (copy, new), "The master comes first, and its copy in bf16 second."
    yield (
        (master - update, (master - update).bfloat16()),
        "The update is added here, whatever its sign.",
    )
    yield (new, new.half()), "half() is fp16. The copy is to be in bf16."


SCALED = ((65_536.0, 3, 5), (1024.0, 4, 5), (1.0, 0, 1))


@function(
    [(scale, good, finite, steps) for scale, good, steps in SCALED for finite in (True, False)]
)
def updated_scale(scale: Number, good_steps: int, finite: bool, interval: int) -> Answers:
    """(scale, good steps) after a step, as torch's GradScaler has them."""

    def after(*, doubles: bool) -> tuple[Number, int]:
        if not finite:
            return scale / 2, 0
        return (2 * scale, 0) if doubles else (scale, good_steps + 1)

    doubles = good_steps + 1 == interval
    right = new, good = after(doubles=doubles)
    yield (
        right,
        "Six steps: finite ones, infinite ones, and a doubling after five good ones or after one.",
    )
    one_too_late = after(doubles=good_steps == interval)
    yield (
        one_too_late,
        "The present step counts: after the fifth good step of five the scale doubles.",
    )
    yield (new, good_steps + 1 if finite else 0), "After a doubling the count begins again at 0."
    yield (new, 1 if new > scale else good), "After a doubling the count begins again at 0."
    yield (good, new), "The scale comes first."
    keeps = new, good if finite else good_steps
    yield (
        keeps,
        "After an infinity the count begins again at 0: the good steps have to follow each other.",
    )
    each_time = after(doubles=True)
    yield (
        each_time,
        "One good step is not enough: it takes `interval` of them, one after the other.",
    )
    yield right if finite else (scale, 0), "An infinity halves the scale."


TRAINS = "Products in 16 bits, no gradient lost, the right norm, updates that arrive, and a loss that falls as in fp32."


def _mended(letter: str) -> Check:
    """The check of one of the repair shop's loops; the record knows each by its own name."""

    def mended(loop: repair.Loop) -> None:
        """A broken loop of the repair shop, mended: it trains as in fp32, with products in 16 bits."""
        _judge(loop)

    mended.__name__ = f"mended_{letter}"
    return objection(TRAINS, ours=repair.loop())(mended)


mended_a, mended_b, mended_c, mended_d, mended_e = map(_mended, "abcde")


@cache
def _right() -> repair.Seen:
    return repair.seen(repair.loop())


def _judge(loop: repair.Loop) -> None:
    if repair.is_untouched(loop):
        raise NotAttemptedError("Change the loop above, and run both cells again.")
    seen, error = call(lambda: repair.seen(loop))
    if error := error or seen.error:
        raise NotYetError(f"{name_of(loop)} {stopped(loop, error)}")
    if len(seen.losses) < repair.STEPS:
        raise NotYetError(
            f"It gave {len(seen.losses)} losses, and {repair.STEPS} are wanted: keep the last line, yield."
        )
    if objected := _objection(seen, _right()):
        raise NotYetError(objected)


def _objection(seen: repair.Seen, right: repair.Seen) -> str:
    """What is still wrong with a loop that ran to its end; the margins are far from what any processor's rounding does."""
    if not seen.norms:
        return "The optimizer made no step. Where are scaler.step(optimizer) and scaler.update()?"
    if torch.float32 in seen.products:
        return "The products are in fp32 now, and their speed is lost. Leave autocast as it was: another line is wrong."
    first, largest = seen.norms[0], max(seen.norms)
    if seen.zeros[0] > 0:
        return f"{repair.percent(seen.zeros[0])} of the first gradients are 0. What brings them into fp16's reach before backward?"
    if far_too_small := _why_far_too_small(first, right.norms[0]):
        return f"The optimizer gets gradients of norm {first:.1e}: {far_too_small}"
    for norm, wanted in zip(seen.norms[:3], right.norms, strict=False):
        if not wanted / 2 < norm < 2 * wanted:
            return f"A gradient's norm is {norm:.2g}, and should be {wanted:.2g}. Which line makes it other than that?"
    if largest > 1.1 * repair.MAX_NORM:
        return f"A norm of {largest:.2g} reaches the optimizer: the loop no longer clips to {repair.MAX_NORM}."
    if seen.lost[-1] > 0.5:
        return f"{repair.percent(seen.lost[-1])} of the last updates are lost. In which format are the weights that get them?"
    if len(seen.scalers) > 1:
        return "A new scaler in each step begins with the first scale again, and learns from no infinity. Make one, before the loop."
    if not seen.losses[-1] < 0.03:
        return f"The loss ends at {seen.losses[-1]:.2g}, and should end at {right.losses[-1]:.1g}."
    return ""


def _why_far_too_small(norm: Number, wanted: Number) -> str:
    """Why gradients are thousands of times too small, if their norm tells; an empty string if it doesn't."""
    if norm > wanted / 1000:
        return ""
    if abs(norm * repair.MICRO_BATCHES / wanted - 1) < 0.1:
        return f"those of one micro-batch. Where are the gradients of all {repair.MICRO_BATCHES:,} added up?"
    powers = math.log2(repair.MAX_NORM / norm)  # a scale is a power of two
    if abs(powers - round(powers)) < 0.1:
        return "clipping still sees them with the scale on."
    return ""


# The accountant's term.

# By name: the parameters' dtype, the gradients', the optimizer's numbers, the master's.
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


@function([(name,) for name in RECIPES])
def recipe(name: str) -> Answers:
    """A reader's recipe(name): the dtypes of each part."""
    dtype, gradients, numbers, master = RECIPES[name]
    wide, kept = (master or (dtype,))[0], len(numbers)
    right = {
        "parameters": (dtype,),
        "gradients": (gradients,),
        "optimizer": numbers,
        "master": master,
    }
    yield right, "Nine recipes, in four formats and with three optimizers."
    two_formats = "bf16" if dtype == "bf16" else "fp32"
    with_two = {
        part: tuple(two_formats if one == dtype else one for one in right[part]) for part in right
    }
    yield (
        with_two,
        "Other formats than bf16 and fp32 can stand in a name: take the one that stands there.",
    )
    yield (
        right | {"optimizer": (dtype,) * kept},
        "With a master, the optimizer's numbers are in fp32, too.",
    )
    yield (
        right | {"optimizer": ("fp32",) * kept},
        "Without a master, the optimizer's are as the parameters.",
    )
    yield (
        right | {"gradients": (dtype,)},
        'Where the name ends in ", fp32 gradients", they are in fp32.',
    )
    yield right | {"gradients": (wide,)}, "Gradients have the dtype of the parameters."
    yield right | {"parameters": (wide,)}, "The first dtype of the name is that of the parameters."
    yield right | {"master": ()}, "With +master there is a copy in fp32."
    yield right | {"master": ("fp32",)}, "There is a master only if the name says so."
    yield (
        right | {"optimizer": (wide, wide)},
        "SGD keeps nothing, momentum one number: OPTIMIZER_NUMBERS.",
    )
