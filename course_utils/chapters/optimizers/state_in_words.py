"""How a verdict on the accountant's state names the case: the numbers, the recipe, GPUs, stage."""

from collections.abc import Mapping

from course_utils.core.say.language import template, translated

Recipe = Mapping[str, tuple[str, ...]]
CASES = {  # by whether there is one GPU
    True: template("For {numbers} numbers ({recipe}), {gpus} GPU, stage {stage}"),
    False: template("For {numbers} numbers ({recipe}), {gpus} GPUs, stage {stage}"),
}


def state_in_words(numbers: int, recipe: Recipe, gpus: int, stage: int) -> str:
    """Return the case in words, such as "For 8 numbers (parameters: bf16), 2 GPUs, stage 3"."""
    return translated(
        CASES[gpus == 1],
        numbers=f"{numbers:,}",
        recipe=_recipe_in_words(recipe),
        gpus=f"{gpus:,}",
        stage=f"{stage}",
    )


def _recipe_in_words(recipe: Recipe) -> str:
    """Return the parts by their dtypes, such as "parameters: bf16; optimizer: 2 × fp32".

    Parts that are alike come together, and one that keeps nothing is left out.
    """
    alike = {}
    for part, dtypes in recipe.items():
        if dtypes:
            alike.setdefault(_dtypes_in_words(dtypes), []).append(part)
    return "; ".join(f"{', '.join(parts)}: {dtypes}" for dtypes, parts in alike.items())


def _dtypes_in_words(dtypes: tuple[str, ...]) -> str:
    """Return the dtypes of a part, in which all are the same in each case here."""
    first, *others = dtypes
    return f"{1 + len(others)} × {first}" if others else first
