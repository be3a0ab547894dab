"""Real gradients, and how many of them torch's cast loses at each scale."""

from functools import lru_cache

from torch import Tensor

from course_utils.chapters.mixed_precision.precision_lab.asked import (
    BIN,
    FORMATS,
    LEAST,
    MOST,
    Gradients,
)
from course_utils.core.measure import cpu_threads
from course_utils.subjects.training import precision


@lru_cache(maxsize=8)
def gradients(after: int) -> Gradients:
    """Return a micro-batch's gradients after that many steps, and how many each format loses."""
    with cpu_threads(1):  # these counts are so small that a second thread would slow them down
        numbers = precision.gradients(after)
        powers = numbers[numbers != 0].abs().double().log2()
        # Bins have numbers here: 0 is the one that begins at 2^0, and -1 the one below it.
        bins, counts = (powers / BIN).floor().unique(return_counts=True)
        begins = (bins * BIN).tolist()
        return Gradients(
            bins=tuple(zip(begins, counts.tolist(), strict=True)),
            ends=(powers.min().item(), powers.max().item()),
            lost={fmt: _lost_by_scale(numbers, fmt) for fmt in FORMATS},
        )


def _lost_by_scale(numbers: Tensor, fmt: str) -> tuple[tuple[int, int], ...]:
    """Return a pair for each scale from 2^LEAST on: how many become zero, and how many infinite."""
    powers = range(LEAST, MOST + 1)
    return tuple(precision.lost(numbers, fmt, 2.0**power) for power in powers)
