"""What a long measurement reports on the way, and its result."""

import statistics
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from course_utils.core.say import Number, seconds_text
from course_utils.core.say.language import translated


@dataclass(frozen=True)
class MeasurementProgress:
    """A measurement's progress: the fraction done, and a report.

    The report is a template with what comes into its gaps. A process of its own has no reader, so
    whoever shows the report translates it.
    """

    fraction: Number
    report: str
    numbers: Mapping[str, Number] = field(default_factory=dict)  # for whoever draws them
    gaps: Mapping[str, str] = field(default_factory=dict)


Result = TypeVar("Result")
# A generator of progress that returns the result: Steps[Timing] returns a Timing.
Steps = Generator[MeasurementProgress, None, Result]
OnProgress = Callable[[MeasurementProgress], None]


def result_of(steps: Steps[Result], on_progress: OnProgress = lambda step: None) -> Result:
    """Run the generator to its end and return its result; call `on_progress` with each step."""
    while True:
        try:
            on_progress(next(steps))
        except StopIteration as end:
            return end.value  # what the generator returned


@dataclass(frozen=True)
class Timing:
    """The time of a call, and how far it can be believed."""

    samples: tuple[Number, ...]  # seconds of one call
    statistic: str  # which of the samples `seconds` is: "best" or "typical"
    converged: bool  # sampling ended because the samples agreed, and not because time was up
    clock: str  # "thread time", "wall time" or "device events"
    spent_s: Number  # the whole measurement, waiting included
    disturbance: str = ""  # a clause on other work meanwhile; empty on a quiet machine

    @property
    def best(self) -> Number:
        """The fastest sample."""
        return min(self.samples)

    @property
    def typical(self) -> Number:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def seconds(self) -> Number:
        """Seconds of one call: the best sample on a CPU, the typical one on a GPU."""
        if self.statistic == "best":
            return self.best
        return self.typical

    @property
    def spread(self) -> Number:
        """How much longer the typical sample is than the best, as a share of the best."""
        return self.typical / self.best - 1

    @property
    def quiet(self) -> bool:
        """Whether nothing makes the time doubtful."""
        return not self.doubt

    @property
    def doubt(self) -> str:
        """What makes the time doubtful; empty if nothing does."""
        if self.disturbance:
            return self.disturbance
        if self.converged:
            return ""
        if len(self.samples) > 2:
            return translated("the samples do not agree")
        if len(self.samples) == 2:
            return translated("only 2 samples")
        return translated("only one sample")

    def __repr__(self) -> str:
        doubt = f"; {self.doubt}" if self.doubt else ""
        return (
            f"{seconds_text(self.seconds)} ({self.statistic} of {len(self.samples)} samples, "
            f"{self.clock}, spread {self.spread:.1%}{doubt})"
        )
