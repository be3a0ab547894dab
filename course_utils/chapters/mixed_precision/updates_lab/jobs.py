"""A training in bf16 alone, and what became of its updates."""

from functools import lru_cache

from course_utils.chapters.mixed_precision.updates_lab.asked import STEPS, UpdateHistogram
from course_utils.core.measure import cpu_threads
from course_utils.subjects.training import precision


@lru_cache(maxsize=2)
def steps(rate: str) -> tuple[UpdateHistogram, ...]:
    """Each step of the training with that learning rate."""
    found = []
    with cpu_threads(1):  # a second thread, kept waiting, would only slow such small counts
        for half_steps, moved in precision.updates(STEPS, falling=rate == "falling"):
            powers, counts = half_steps.log2().floor().unique(return_counts=True)
            bins = tuple(zip(powers.int().tolist(), counts.tolist(), strict=True))
            below, still = half_steps < 1, ~moved
            found.append(
                UpdateHistogram(bins, below.double().mean().item(), still.double().mean().item())
            )
    return tuple(found)
