"""What a long measurement reports on the way, and its result."""

import statistics
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from course_utils.core.say import Number, seconds_text


@dataclass(frozen=True)
class MeasurementProgress:
    """A measurement's progress: the fraction done, and a report."""

    fraction: Number
    report: str
    numbers: Mapping[str, Number] = field(default_factory=dict)  # for whoever draws them


Result = TypeVar("Result")
Steps = Generator[MeasurementProgress, None, Result]  # such as Steps[Timing]: they end in one
OnProgress = Callable[[MeasurementProgress], None]


def result_of(steps: Steps[Result], on_progress: OnProgress = lambda step: None) -> Result:
    """What the generator returns. `on_progress` is called with each of its steps."""
    while True:
        try:
            on_progress(next(steps))
        except StopIteration as end:
            return end.value


@dataclass(frozen=True)
class Timing:
    """What was measured: every sample in seconds a call, and what to make of them."""

    samples: tuple[Number, ...]
    statistic: str  # which of the samples `seconds` is: "best" or "typical"
    converged: (
        bool  # whether sampling ended because the samples agreed, and not because time was up
    )
    clock: str  # "thread time", "wall time" or "device events"
    spent_s: Number  # the whole measurement, waiting included
    disturbance: str = ""  # what was seen of other work; nothing on a quiet machine

    @property
    def best(self) -> Number:
        return min(self.samples)

    @property
    def typical(self) -> Number:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def seconds(self) -> Number:
        """Seconds of one call: the best sample on a CPU, the typical one on a GPU; `statistic` says which."""
        return self.best if self.statistic == "best" else self.typical

    @property
    def spread(self) -> Number:
        """(typical - best) / best."""
        return self.typical / self.best - 1

    @property
    def quiet(self) -> bool:
        return not self.doubt

    @property
    def doubt(self) -> str:
        """What makes the time doubtful, if anything does."""
        if self.disturbance or self.converged:
            return self.disturbance
        if len(self.samples) >= 3:
            return "the samples do not agree"
        return f"only {len(self.samples)} samples" if len(self.samples) > 1 else "only one sample"

    def __repr__(self) -> str:
        doubt = f"; {self.doubt}" if self.doubt else ""
        return (
            f"{seconds_text(self.seconds)} ({self.statistic} of {len(self.samples)} samples, {self.clock}, "
            f"spread {self.spread:.1%}{doubt})"
        )
