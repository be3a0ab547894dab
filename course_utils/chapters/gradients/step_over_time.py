"""A step's operations on an axis of time, in as many columns as a picture has space for."""

import gc
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from course_utils.core.datasheets import Machine, machine_named
from course_utils.core.predict import Operation, Timeline
from course_utils.core.predict.storages import Held
from course_utils.core.predict.stretches import Stretch
from course_utils.core.say import Number

COLUMNS = 200


@dataclass(frozen=True)
class Moment:
    """An operation, when it begins as a share of the step's time, and what is held while it runs."""

    where: str
    phase: str
    layer: int | None
    share: Number
    held: Held


@dataclass(frozen=True)
class Step:
    """A step on a machine. Of each column's time, the fullest moment; of each phase, when it begins."""

    seconds: Number
    columns: Sequence[Moment]
    phases: Mapping[str, Number]

    @cached_property
    def fullest(self) -> Moment:
        """The moment at which most is held."""
        return max(self.columns, key=lambda moment: moment.held.total)

    def at(self, share: Number) -> Moment:
        """The fullest moment of the column in which this share of the step is over."""
        return self.columns[min(COLUMNS - 1, int(COLUMNS * share))]


@lru_cache(8)
def step_on(machine_name: str, dtype: str, timeline: Timeline) -> Step:
    """The step on a machine, by the rates of its data sheet."""
    collects = gc.isenabled()
    gc.disable()  # thousands of tuples come and go: looking for garbage among all of torch's takes longer than a frame
    try:
        return _step_on(machine_named(machine_name), dtype, timeline)
    finally:
        if collects:
            gc.enable()


def _step_on(machine: Machine, dtype: str, timeline: Timeline) -> Step:
    parts = timeline.stretches
    seconds = [seconds_of(part.rows, machine, dtype) for part in parts]
    whole_s = sum(part.times * sum(each) for part, each in zip(parts, seconds, strict=True))
    columns: list[Moment | None] = [None] * COLUMNS
    phases: dict[str, Number] = {}
    for place, moment in _moments(timeline, parts, seconds, whole_s):
        phases.setdefault(moment.phase, moment.share)
        if columns[place] is None or columns[place].held.total < moment.held.total:
            columns[place] = moment
    return Step(whole_s, columns, phases)


def seconds_of(rows: Sequence[Operation], machine: Machine, dtype: str) -> list[float]:
    """Each operation takes as long as its FLOPs or its bytes, whichever takes longer."""
    peak = machine.peak(rate_for(machine, dtype))
    return [max(row.flops / peak, row.moved / machine.bytes_per_sec) for row in rows]


def rate_for(machine: Machine, dtype: str) -> str:
    """The dtype whose rate counts: that dtype if the data sheet has it, else fp32, else tf32, which is fp32's stand-in."""
    return next(name for name in (dtype, "fp32", "tf32") if name in machine.peak_flop_per_sec)


def highest(
    measured: Sequence[int], machine_name: str, dtype: str, timeline: Timeline
) -> list[int]:
    """The most bytes that were measured in each column. If torch ran other operations than predicted, they are spread evenly."""
    seconds = seconds_of(timeline.operations, machine_named(machine_name), dtype)
    begins = [0, *accumulate(seconds if len(seconds) == len(measured) else [1] * len(measured))]
    columns = [0] * COLUMNS
    for begin, nbytes in zip(begins, measured, strict=False):
        place = min(COLUMNS - 1, int(COLUMNS * begin / begins[-1]))
        columns[place] = max(columns[place], nbytes)
    return [*accumulate(columns, lambda before, now: now or before)]


def _moments(
    timeline: Timeline, parts: Sequence[Stretch], seconds: Sequence[Sequence[float]], whole_s: float
) -> Iterator[tuple[int, Moment]]:
    """The fullest operation of each column. Layers that are alike are looked at once."""
    begin = 0.0
    totals = [[timeline.held_by(row, row.during).total for row in part.rows] for part in parts]
    ends = [[end / whole_s for end in accumulate(each)] for each in seconds]
    for n, turn in ((n, turn) for n, part in enumerate(parts) for turn in range(part.times)):
        starts = [0.0, *ends[n][:-1]]
        for place in range(
            int(COLUMNS * begin), min(COLUMNS, math.ceil(COLUMNS * (begin + ends[n][-1])))
        ):
            first = bisect_right(ends[n], place / COLUMNS - begin)
            last = bisect_left(starts, (place + 1) / COLUMNS - begin)
            if first < last:
                fullest = max(range(first, last), key=totals[n].__getitem__)
                (one,) = parts[n]._replace(rows=parts[n].rows[fullest : fullest + 1]).at(turn)
                now = timeline.held_by(one, one.during)
                yield place, Moment(one.where, one.phase, one.layer, begin + starts[fullest], now)
        begin += ends[n][-1]
