"""Real gradients, and how many of them torch's cast loses at each scale."""

from functools import lru_cache

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
    """The gradients of a micro-batch after so many steps, and what each format makes of them."""
    with cpu_threads(1):  # a second thread, kept waiting, would only slow such small counts
        numbers = precision.gradients(after)
        powers = numbers[numbers != 0].abs().double().log2()
        places, counts = (powers / BIN).floor().unique(return_counts=True)
        return Gradients(
            bins=tuple(zip((places * BIN).tolist(), counts.tolist(), strict=True)),
            ends=(powers.min().item(), powers.max().item()),
            lost={
                fmt: tuple(
                    precision.lost(numbers, fmt, 2.0**power) for power in range(LEAST, MOST + 1)
                )
                for fmt in FORMATS
            },
        )
