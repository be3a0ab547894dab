"""How a verdict on the accountant's state names the case: the numbers, the recipe, GPUs, stage."""

from collections.abc import Mapping

from course_utils.core.accountant import recipe as recipe_of
from course_utils.core.say import listed
from course_utils.core.say.language import template, translated

Recipe = Mapping[str, tuple[str, ...]]
NAMED = ("bf16+master adamw", "fp32 adamw", "bf16 sgd")
CASES = {  # by whether there is one GPU
    True: template("For {numbers} numbers ({recipe}), {gpus} GPU, stage {stage}"),
    False: template("For {numbers} numbers ({recipe}), {gpus} GPUs, stage {stage}"),
}


def state_in_words(numbers: int, recipe: Recipe, gpus: int, stage: int) -> str:
    """Return the case in words, such as "For 1,003 numbers (bf16 sgd), 8 GPUs, stage 3"."""
    return translated(
        CASES[gpus == 1],
        numbers=f"{numbers:,}",
        recipe=_recipe_in_words(recipe),
        gpus=f"{gpus:,}",
        stage=f"{stage}",
    )


def _recipe_in_words(recipe: Recipe) -> str:
    """Return the recipe's name; of one without a name, its parts."""
    for name in NAMED:
        if recipe == recipe_of(name):
            return name
    return translated("{parts} alone", parts=listed(list(recipe)))
