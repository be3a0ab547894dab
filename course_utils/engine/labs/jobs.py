"""What the jobs of several labs have in common."""

import time
from collections.abc import Generator
from contextlib import closing
from typing import TypeVar

from course_utils.core.measure import MeasurementProgress
from course_utils.core.say import Number
from course_utils.engine.labs.lab import Progress

Result = TypeVar("Result")


def as_progress(
    steps: Generator[MeasurementProgress, None, Result],
    *,
    at_most_s: Number,
    begun: Number = 0,
    share: Number = 1,
) -> Generator[Progress, None, Result]:
    """A measurement's steps as a job's; the measurement is ended when its time is up.

    Its fractions, 0 to 1, become `begun` to `begun + share`: a job may make several measurements.
    """
    deadline = time.monotonic() + at_most_s
    with closing(steps):
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            if time.monotonic() > deadline:
                raise ValueError(
                    f"Ended after {at_most_s:.0f} s, which is the most that this lab waits."
                )
            yield Progress(begun + share * min(0.98, step.fraction), step.report)
