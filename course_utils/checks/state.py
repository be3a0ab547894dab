"""Two of the accountant's terms, on what a training run keeps for each parameter: judged by torch's sizes of dtypes."""

import math
from collections.abc import Iterable, Mapping
from itertools import count

from course_utils import measure, predict
from course_utils.accountant.accountant import SHARDED_FROM
from course_utils.accountant.accountant import recipe as recipe_of
from course_utils.checks.judging import Answers, function
from course_utils.quantities import Number

STATES = [*((1003, recipe_of("bf16+master adamw"), 8, stage) for stage in (3, 2, 1, 0))]
STATES += [(1000, recipe_of("fp32 adamw"), 1, 0), (70_553_706_496, recipe_of("bf16 sgd"), 1024, 3)]
# Parts that are not there: torch keeps no master, and whoever only runs a model keeps neither of the others.
STATES += [(64**2, {"gradients": ("fp32",), "parameters": ("fp32",), "optimizer": ("fp32", "fp32")}, 1, 0)]
STATES += [(1003, {"parameters": ("bf16",)}, 8, 3)]


@function(STATES)
def state_bytes(numbers: int, recipe: Mapping[str, tuple[str, ...]], gpus: int, stage: int) -> Answers:
    """A reader's state_bytes(numbers, recipe, gpus, stage): each part's bytes on each GPU."""
    share, last = next(n for n in count(numbers // gpus) if n * gpus >= numbers), max(stage - 1, 0)
    split, split_before = (predict.training.SHARDED_IN_STAGE[each] for each in (stage, last))

    def held(share: Number, split: Iterable[str]) -> dict[str, Number]:
        return {
            part: (share if part in split else numbers) * sum(measure.DTYPES[d].itemsize for d in dtypes)
            for part, dtypes in recipe.items()
        }

    right, exact = held(share, split), held(numbers / gpus, split)
    yield (
        right,
        "Four stages, five recipes, two of which lack a part, and a number that the GPUs do not divide.",
    )
    yield held(share, ()), "What the stage shards is split over the GPUs."
    yield held(share, recipe), "SHARDED_FROM says from which stage on a part is sharded."
    yield held(share, split_before), "A part is sharded from its stage on, that stage included."
    yield held(numbers // gpus, split), "Round up: the largest share has to fit."
    yield exact, "Nobody holds a part of a number: round the share up."
    yield {part: math.ceil(nbytes) for part, nbytes in exact.items()}, "Round up the numbers, not the bytes."
    yield sum(right.values()), "The bytes of each part are wanted, by its name."
    one_each = {part: nbytes // max(len(recipe[part]), 1) for part, nbytes in right.items()}
    yield one_each, "The optimizer may keep several numbers: add up the bytes of all dtypes of a part."
    lacking = [part for part in SHARDED_FROM if part not in recipe]
    yield KeyError(*lacking[-1:]) if lacking else right, "A recipe may lack a part: go through those it has."
    yield right | dict.fromkeys(lacking, 0), "Only the parts that the recipe has are wanted."


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
    right = {"parameters": (dtype,), "gradients": (gradients,), "optimizer": numbers, "master": master}
    yield right, "Nine recipes, in four formats and with three optimizers."
    two_formats = "bf16" if dtype == "bf16" else "fp32"
    with_two = {part: tuple(two_formats if one == dtype else one for one in right[part]) for part in right}
    yield with_two, "Other formats than bf16 and fp32 can stand in a name: take the one that stands there."
    yield right | {"optimizer": (dtype,) * kept}, "With a master, the optimizer's numbers are in fp32, too."
    yield right | {"optimizer": ("fp32",) * kept}, "Without a master, the optimizer's are as the parameters."
    yield right | {"gradients": (dtype,)}, 'Where the name ends in ", fp32 gradients", they are in fp32.'
    yield right | {"gradients": (wide,)}, "Gradients have the dtype of the parameters."
    yield right | {"parameters": (wide,)}, "The first dtype of the name is that of the parameters."
    yield right | {"master": ()}, "With +master there is a copy in fp32."
    yield right | {"master": ("fp32",)}, "There is a master only if the name says so."
    yield right | {"optimizer": (wide, wide)}, "SGD keeps nothing, momentum one number: OPTIMIZER_NUMBERS."
