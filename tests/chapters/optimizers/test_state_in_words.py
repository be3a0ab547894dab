"""How a verdict on the accountant's term for the state names the case."""

import pytest

from course_utils.chapters.optimizers.check import STATES
from course_utils.chapters.optimizers.state_in_words import state_in_words
from course_utils.core.say.language import speak


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            0,
            "For 1,003 numbers (parameters, gradients: bf16; optimizer: 2 × fp32; master: fp32), "
            "6 GPUs, stage 2",
        ),
        (
            5,
            "For 70,553,706,496 numbers (parameters, gradients: bf16), 1,024 GPUs, stage 3",
        ),
        (
            6,
            "For 4,096 numbers (gradients, parameters: fp32; optimizer: 2 × fp32), 1 GPU, stage 0",
        ),
    ],
)
def test_a_case_has_each_part_with_its_dtypes_and_none_that_keeps_nothing(place, words):
    assert state_in_words(*STATES[place]) == words


def test_a_case_is_ordered_as_the_language_has_it():
    speak(
        {
            "For {numbers} numbers ({recipe}), {gpus} GPUs, stage {stage}": (
                "Stufe {stage}, {gpus} GPUs, {numbers} Zahlen ({recipe})"
            ),
        }
    )
    try:
        said = state_in_words(*STATES[-1])
    finally:
        speak({})
    assert said == "Stufe 3, 8 GPUs, 1,003 Zahlen (parameters: bf16)"
