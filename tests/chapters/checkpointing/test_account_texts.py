"""An account as a person says it."""

from course_utils.chapters.checkpointing.account_texts import account_texts
from course_utils.core import accountant, predict


def test_an_account_has_units_at_most_three_digits_and_no_other_unit_in_its_names():
    lines = accountant.account(
        predict.known("llama-3-70b"),
        gpus=1024,
        tokens=15e12,
        recipe_name="bf16+master adamw",
        stage=3,
        batch=1,
        sequence=8192,
        recomputed=80,
        memory=80e9,
        peak=989.5e12,
        share=0.5,
    )
    assert account_texts(lines) == {
        "parameters": "70.6 billion parameters",
        "tokens of a sequence": "8,192",
        "memory of parameters": "138 MB",
        "memory of gradients": "138 MB",
        "memory of optimizer": "551 MB",
        "memory of master": "276 MB",
        "fullest moment of a step": "the loss",
        "memory that the step adds then": "23.6 GB",
        "memory gathered then": "4.2 GB",
        "memory of the rest": "2.1 MB",
        "memory together": "28.9 GB",
        "fits": "yes",
        "FLOPs": "9.03 × 10^24",
        "time without saves and failures": "206 days",
        "time between two saves": "77.1 minutes",
        "share that is lost, at most": "2.76 %",
    }
