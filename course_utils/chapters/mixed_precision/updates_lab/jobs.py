"""A training in bf16 alone, and what became of its updates."""

from functools import lru_cache

from torch import Tensor

from course_utils.chapters.mixed_precision.updates_lab.asked import STEPS, UpdateHistogram
from course_utils.core.measure import cpu_threads
from course_utils.subjects.training import precision


@lru_cache(maxsize=2)
def steps(rate: str) -> tuple[UpdateHistogram, ...]:
    """Return each step's updates, of a training whose learning rate is "constant" or "falling"."""
    is_falling = rate == "falling"
    with cpu_threads(1):  # these counts are so small that a second thread would slow them down
        updates = precision.updates(STEPS, falling=is_falling)
        return tuple(_histogram(half_gaps, moved) for half_gaps, moved in updates)


def _histogram(half_gaps: Tensor, moved: Tensor) -> UpdateHistogram:
    """Count a step's updates, from their sizes in half gaps and whether their weights moved.

    A bin goes from one power of two to the next: 0.3 half gaps are in the bin that begins at 2^-2.
    """
    powers, counts = half_gaps.log2().floor().unique(return_counts=True)
    return UpdateHistogram(
        bins=tuple(zip(powers.int().tolist(), counts.tolist(), strict=True)),
        below=(half_gaps < 1).double().mean().item(),
        still=(~moved).double().mean().item(),
    )
