"""An account as a person says it."""

from course_utils.chapters.checkpointing.account_texts import account_texts
from course_utils.core import accountant, predict


def test_an_account_has_units_and_at_most_three_digits():
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
        "bytes of parameters": "138 MB",
        "bytes of gradients": "138 MB",
        "bytes of optimizer": "551 MB",
        "bytes of master": "276 MB",
        "fullest moment of a step": "the loss",
        "bytes that the step adds then": "23.6 GB",
        "bytes gathered then": "4.2 GB",
        "bytes of the rest": "2.1 MB",
        "bytes together": "28.9 GB",
        "fits": "yes",
        "FLOPs": "9.03 × 10^24",
        "days without saves and failures": "206 days",
        "seconds between two saves": "77.1 minutes",
        "share that is lost, at most": "2.76 %",
    }
