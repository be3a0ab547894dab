"""How a verdict of notebook 7 names its case."""

import torch

from course_utils.core.say import Number, listed, number_text
from course_utils.core.say.language import template, translated

SCALES = {  # by whether all gradients are finite
    True: template(
        "At scale {scale}, with {good_steps} good steps before, an interval of {interval} and "
        "finite gradients"
    ),
    False: template(
        "At scale {scale}, with {good_steps} good steps before, an interval of {interval} and an "
        "infinite gradient"
    ),
}


def step_in_words(master: torch.Tensor, update: torch.Tensor) -> str:
    """Return the case in words.

    >>> step_in_words(torch.ones(()), torch.tensor(0.004))
    'For a master of 1 and an update of 0.004'
    """
    return translated(
        "For a master of {master} and an update of {update}",
        master=_in_a_row(master),
        update=_in_a_row(update),
    )


def _in_a_row(numbers: torch.Tensor) -> str:
    # Of fp32's digits, those that were typed.
    return listed([f"{number:.7g}" for number in numbers.flatten().tolist()])


def scale_in_words(scale: Number, good_steps: int, finite: bool, interval: int) -> str:
    """Return the case in words.

    >>> scale_in_words(1024.0, 4, True, 5)
    'At scale 1,024, with 4 good steps before, an interval of 5 and finite gradients'
    """
    return translated(
        SCALES[finite],
        scale=number_text(scale),
        good_steps=f"{good_steps}",
        interval=f"{interval}",
    )


def recipe_in_words(name: str) -> str:
    """Return the case in words, such as 'For "fp32 adamw"'."""
    return translated('For "{name}"', name=name)
