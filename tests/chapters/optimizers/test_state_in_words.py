"""How a verdict on the accountant's term for the state names the case."""

import pytest

from course_utils.chapters.optimizers.check import STATES
from course_utils.chapters.optimizers.state_in_words import state_in_words
from course_utils.core.say.language import speak


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (0, "For 1,003 numbers (bf16+master adamw), 6 GPUs, stage 2"),
        (4, "For 1,000 numbers (fp32 adamw), 1 GPU, stage 0"),
        (6, "For 4,096 numbers (gradients, parameters and optimizer alone), 1 GPU, stage 0"),
    ],
)
def test_a_case_has_its_recipes_name_or_its_parts(place, words):
    assert state_in_words(*STATES[place]) == words


def test_a_case_is_ordered_as_the_language_has_it():
    speak(
        {
            "For {numbers} numbers ({recipe}), {gpus} GPUs, stage {stage}": (
                "Stufe {stage}, {gpus} GPUs, {numbers} Zahlen ({recipe})"
            ),
            "{parts} alone": "nur {parts}",
        }
    )
    try:
        said = state_in_words(*STATES[-1])
    finally:
        speak({})
    assert said == "Stufe 3, 8 GPUs, 1,003 Zahlen (nur parameters)"
