"""Slips of those who write a step of a master, the scale's rule and a recipe, with their advice."""

import torch

from course_utils.core.say import Number
from course_utils.engine.judging import Answers

Recipe = dict[str, tuple[str, ...]]


def of_sums(master: torch.Tensor, update: torch.Tensor, new: torch.Tensor) -> Answers:
    """Yield masters and copies that were summed in bf16, or on the rounded copy.

    `new` is the right master.
    """
    in_bf16 = master.bfloat16() + update.bfloat16()
    yield (
        (in_bf16.float(), in_bf16),
        "Add in fp32 first. In bf16 the update is lost, and no cast brings it back.",
    )
    yield (
        (new, in_bf16),
        "Make the copy from the new master. A copy that adds up in bf16 loses its updates.",
    )
    of_copy = master.bfloat16() + update  # in fp32, since torch takes the wider format
    to_the_master = "Add the update to the master, and not to its rounded copy."
    yield (new, of_copy), to_the_master
    yield (of_copy, of_copy.bfloat16()), to_the_master


def of_infinity(scale: Number, good_steps: int, right: tuple[Number, int], finite: bool) -> Answers:
    """Yield wrong scales and counts after a step with an infinite gradient.

    `right` are the right scale and count; with finite gradients, these slips give them, too.
    """
    new, good = right
    halves = "An infinity halves the scale."
    yield right if finite else (scale, 0), halves
    yield right if finite else (2 * scale, 0), halves
    yield right if finite else (scale, good_steps + 1), halves
    again = (
        "After an infinity the count begins again at 0: the good steps have to follow each other."
    )
    yield right if finite else (new, good_steps + 1), again
    whole = new if finite else scale // 2
    yield (whole, good), "Divide by 2 with /, as the scale may get below 1: // rounds down."


def of_dtypes(right: Recipe) -> Answers:
    """Yield recipes with a wrong dtype, or a wrong number of them."""
    (dtype,) = right["parameters"]
    numbers = right["optimizer"]
    wide = "fp32" if right["master"] else dtype
    yield (
        right | {"optimizer": (wide,)},
        "AdamW keeps two numbers, SGD none: OPTIMIZER_NUMBERS says how many.",
    )
    yield (
        right | {"master": (dtype,) if right["master"] else ()},
        "The master is in fp32, whatever the format of the parameters: updates add up in it.",
    )
    yield (
        right | {"master": right["master"] or None},
        "Without a master, its tuple is the empty one: ().",
    )
    times = "Multiply a tuple, and not its string: (dtype,) * n has n dtypes."
    yield right | {"optimizer": wide * len(numbers)}, times
    yield right | {"optimizer": len(numbers)}, times


def of_tuples(right: dict[str, tuple[str, ...]], name: str) -> Answers:
    """Yield recipes with a dtype without its tuple, or with the name's words in place of dtypes."""
    comma = "A tuple of one dtype has a comma: (dtype,). Without the comma, it is the dtype itself."
    of_one = {part: dtypes[0] for part, dtypes in right.items() if len(dtypes) == 1}
    for part in ("parameters", "gradients", "master"):
        yield right | {part: of_one.get(part, right[part])}, comma
    first_two = {part: of_one[part] for part in ("parameters", "gradients")}
    yield right | first_two, comma
    yield right | of_one, comma
    formats_and_optimizer, _, gradients = name.partition(", ")
    _, _, master = formats_and_optimizer.split()[0].partition("+")
    words = "That is a word of the name, and no dtype: it only says whether there is a part."
    yield right | {"master": (master,)}, words
    yield right | {"gradients": (gradients,)}, words
    if gradients:
        gradients_of = (gradients,)
    else:
        gradients_of = right["gradients"]
    yield right | {"gradients": gradients_of}, words
