"""The exercises of notebook 07."""

import math

import torch

from course_utils import floats
from course_utils.checks.accountant import recipe  # noqa: F401  a term of the accountant
from course_utils.checks.judging import Answers, function
from course_utils.quantities import Number

WEIGHTS_AND_UPDATES = [
    *((1.0, 0.001), (1.0, 0.01), (1.0, 0.005), (1.0, 0.003)),
    *((0.01904296875, 0.0001), (1.9921875, 0.0045), (96.0, 0.3), (2.0**-20, 2.0**-27)),  # bf16 numbers, too
    *((1.0, 2.0**-8), (1.0078125, 2.0**-8), (3.0, 2.0**-7)),  # half a step exactly
]


MASTERS_AND_UPDATES = [  # of the first both copies move, one of them thanks to the master
    (torch.tensor([1.003, 1.0]), torch.tensor([0.002, 0.005])),
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
    yield two_sums, "Make the copy from the new master. A copy that adds up in bf16 loses its updates."
    yield (master, copy), "The master has to keep the update, or every step begins where the first one began."
    rounded = (copy.float(), copy)
    yield rounded, "Your master is rounded to bf16, too. Keep the sum in fp32, and round the copy alone."
    yield (new, master.bfloat16()), "That copies the master before the update. Round the new one."
    yield (new, new), "The second one is what the products read: the new master, rounded to bf16."
    yield (copy, new), "The master comes first, and its copy in bf16 second."
    yield (master - update, (master - update).bfloat16()), "The update is added here, whatever its sign."
    yield (new, new.half()), "half() is fp16. The copy is to be in bf16."


@function(WEIGHTS_AND_UPDATES)
def moves(weight: Number, update: Number) -> Answers:
    """Whether weight + update, rounded to bf16, is another number."""
    right, step = floats.stored(weight + update, "bf16") != weight, floats.spacing(weight, "bf16")
    yield right, "Eleven weights from 2^-20 to 96, three of them with exactly half a step."
    yield update > 2**-8, "Steps grow with the weight: 2^-8 is half a step only between 1 and 2."
    growing = update > 2**-8 * weight
    yield growing, "Between two powers of two the step stays the same: it does not grow with the weight."
    in_python = weight + update != weight
    yield in_python, "Rounded to bf16, with 7 fraction bits, the sum is the weight."
    yield update > step / 4, "bf16 has 7 fraction bits: from 1 on a step is 2^-7, and half of it 2^-8."
    yield update >= step, "More than half a step is enough: then the next number is nearer."
    to_even = "Exactly half a step goes to the neighbour whose fraction ends in 0. That may be the"
    yield update > step / 2, f"{to_even} next one."
    yield update >= step / 2, f"{to_even} weight itself."


@function([(x,) for x in (1.0, 3e-5, 300.0, 65_504.0, 1e6, 1.9998, 1.99951171875, 65_519.0, 65_520.0)])
def loss_scale(largest: Number) -> Answers:
    """The largest power of two at which the largest gradient stays finite in fp16."""
    right = 2.0 ** math.floor(math.log2(2**16 / largest) + 1)
    while floats.overflows(right * largest, "fp16"):
        right /= 2
    yield right, "Nine gradients, two of them at the very edge."
    yield 65_504 / largest, "A power of two is asked for: it changes no digit."
    up_to_the_edge = 2.0 ** math.floor(math.log2(65_520 / largest))
    yield up_to_the_edge, "65,520 itself is infinite already: the product has to stay below it."
    by_the_power = 2.0 ** (15 - math.floor(math.log2(largest)))
    yield by_the_power, "Just below a power of two, take one factor of 2 less: 1.9998 × 2^15 is infinite."
    below_the_largest = right if right * largest <= 65_504 else right / 2
    yield below_the_largest, "Up to 65,520 fp16 rounds down to 65,504: that is still finite."
    yield 2.0**15, "That is for a largest gradient near 1: smaller ones can be scaled up further."
    yield 2 * right, "With that scale the largest gradient becomes infinite."
    yield math.log2(right), "That is the exponent: 2 to that power."
    towards_0 = 2.0 ** int(math.log2(65_504 / largest))
    yield towards_0, "int() rounds towards 0, and so a negative exponent up: take math.floor."


SCALED = ((65_536.0, 3, 5), (1024.0, 4, 5), (1.0, 0, 1))


@function([(scale, good, finite, steps) for scale, good, steps in SCALED for finite in (True, False)])
def updated_scale(scale: Number, good_steps: int, finite: bool, interval: int) -> Answers:
    """(scale, good steps) after a step, as torch's GradScaler has them."""

    def after(*, doubles: bool) -> tuple[Number, int]:
        if not finite:
            return scale / 2, 0
        return (2 * scale, 0) if doubles else (scale, good_steps + 1)

    doubles = good_steps + 1 == interval
    right = new, good = after(doubles=doubles)
    yield right, "Six steps: finite ones, infinite ones, and a doubling after five good ones or after one."
    one_too_late = after(doubles=good_steps == interval)
    yield one_too_late, "The present step counts: after the fifth good step of five the scale doubles."
    yield (new, good_steps + 1 if finite else 0), "After a doubling the count begins again at 0."
    yield (new, 1 if new > scale else good), "After a doubling the count begins again at 0."
    yield (good, new), "The scale comes first."
    keeps = new, good if finite else good_steps
    yield keeps, "After an infinity the count begins again at 0: the good steps have to follow each other."
    each_time = after(doubles=True)
    yield each_time, "One good step is not enough: it takes `interval` of them, one after the other."
    yield right if finite else (scale, 0), "An infinity halves the scale."
