"""What the jobs of several labs have in common."""

import time
from collections.abc import Generator
from contextlib import closing
from typing import TypeVar

from course_utils.core.measure import MeasurementProgress
from course_utils.core.say import Number
from course_utils.core.say.language import translated
from course_utils.engine.labs.lab import Progress

Result = TypeVar("Result")


def as_progress(
    steps: Generator[MeasurementProgress, None, Result],
    *,
    at_most_s: Number,
    begun: Number = 0,
    share: Number = 1,
) -> Generator[Progress, None, Result]:
    """Yield the steps of a measurement as steps of a job, and return the measurement's result.

    A job may make several measurements, so the fractions of this one, from 0 to 1, become fractions
    of the job from `begun` to `begun + share`: for the second of two, both are 0.5. ValueError once
    the measurement has taken more than `at_most_s`.
    """
    deadline = time.monotonic() + at_most_s
    # If the job is closed early, so is the measurement, which may run in a process of its own.
    with closing(steps):
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value  # what the generator `steps` has returned: the result
            if time.monotonic() > deadline:
                refusal = translated(
                    "Ended after {seconds} s, which is the most that this lab waits.",
                    seconds=f"{at_most_s:.0f}",
                )
                raise ValueError(refusal)
            # A fraction of 1 would mean that the job has ended, and its result is still to come.
            fraction = min(0.98, step.fraction)
            report = translated(step.report, **step.gaps)
            yield Progress(begun + share * fraction, report)
