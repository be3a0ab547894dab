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
from course_utils.core.say import Number, decimal_bytes_text

COLUMNS = 200  # into which the time of a step is divided


@dataclass(frozen=True)
class Moment:
    """An operation of a step, and the bytes that are held while it runs."""

    where: str  # such as "query" or "cross-entropy"
    phase: str  # "forward", "loss", "backward", "recompute" or "optimizer"
    layer: int | None  # from 0; None outside the layers
    share: Number  # of the step's time, after which the operation begins
    held: Held

    @property
    def percent(self) -> Number:
        """The share in percent, in which a reader chooses a moment."""
        return 100 * self.share


@dataclass(frozen=True)
class Step:
    """A step on a machine: the fullest moment of each column, and when each phase begins."""

    seconds: Number
    columns: Sequence[Moment]  # COLUMNS of them, which divide the time equally
    phases: Mapping[str, Number]  # as shares of the step's time, by the names of the phases

    @cached_property
    def fullest(self) -> Moment:
        """The moment at which the most bytes are held."""
        return max(self.columns, key=lambda moment: moment.held.total)

    @property
    def most(self) -> int:
        """The bytes that are held at the fullest moment."""
        return self.fullest.held.total

    def at(self, share: Number) -> Moment:
        """Return the fullest moment of the column that lies at this share of the step's time."""
        column = int(COLUMNS * share)
        return self.columns[min(column, COLUMNS - 1)]


@lru_cache(8)
def step_on(machine_name: str, dtype: str, timeline: Timeline) -> Step:
    """Return the step on a machine, at the rates of the machine's data sheet.

    It is cached, because a picture asks for its step several times, and a slider may come back.
    """
    # Thousands of tuples come and go here. Each search for garbage among them goes through all of
    # torch's objects as well, and takes longer than a frame of the picture may.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _step_on(machine_named(machine_name), dtype, timeline)
    finally:
        if was_enabled:
            gc.enable()


def _step_on(machine: Machine, dtype: str, timeline: Timeline) -> Step:
    """Return the step: find the fullest moment of each column, and when each phase begins."""
    stretches = timeline.stretches
    # For each stretch, the seconds of its operations. A stretch runs `times` times.
    seconds = [seconds_of(stretch.rows, machine, dtype) for stretch in stretches]
    pairs = zip(stretches, seconds, strict=True)
    whole_s = sum(stretch.times * sum(row_seconds) for stretch, row_seconds in pairs)

    columns: list[Moment | None] = [None] * COLUMNS
    phases: dict[str, Number] = {}
    for column, moment in _moments(timeline, stretches, seconds, whole_s):
        phases.setdefault(moment.phase, moment.share)  # the phase's first moment counts
        fullest = columns[column]
        if fullest is None or fullest.held.total < moment.held.total:
            columns[column] = moment
    return Step(whole_s, columns, phases)


def seconds_of(rows: Sequence[Operation], machine: Machine, dtype: str) -> list[float]:
    """Return the seconds of each operation: for its FLOPs or for its bytes, whichever are more."""
    peak = machine.peak(rate_for(machine, dtype))
    return [max(row.flops / peak, row.moved / machine.bytes_per_sec) for row in rows]


def rate_for(machine: Machine, dtype: str) -> str:
    """Return the dtype whose peak rate is used for `dtype`.

    It is `dtype` itself, if the data sheet has a rate for `dtype`; else fp32, or tf32 if the sheet
    has no fp32 either. A T4, for example, has no bf16, so its rate for bf16 is that of fp32. A
    ValueError if the sheet has none of the three.
    """
    for name in (dtype, "fp32", "tf32"):
        if name in machine.peak_flop_per_sec:
            return name
    known = ", ".join(machine.peak_flop_per_sec)
    raise ValueError(f"The data sheet of {machine.name} has no rate for {dtype}, but for: {known}.")


def highest(
    measured: Sequence[int], machine_name: str, dtype: str, timeline: Timeline
) -> list[int]:
    """Return the most bytes that were measured in each column.

    `measured` has the bytes at each operation of a real step. If torch ran another number of
    operations than predicted, the operations are spread evenly over the step.
    """
    seconds = seconds_of(timeline.operations, machine_named(machine_name), dtype)
    if len(seconds) != len(measured):
        seconds = [1] * len(measured)
    # Each operation begins where the one before it ends.
    ends = list(accumulate(seconds))
    begins = [0, *ends[:-1]]
    whole_s = ends[-1]
    most = [0] * COLUMNS
    for begin, nbytes in zip(begins, measured, strict=True):
        column = min(COLUMNS - 1, int(COLUMNS * begin / whole_s))
        most[column] = max(most[column], nbytes)
    for column in range(1, COLUMNS):
        if most[column] == 0:  # no operation begins there: the one before is still running
            most[column] = most[column - 1]
    return most


def _moments(
    timeline: Timeline,
    stretches: Sequence[Stretch],
    seconds: Sequence[Sequence[float]],
    whole_s: float,
) -> Iterator[tuple[int, Moment]]:
    """Yield pairs (column, moment): the fullest operation of each repetition in each column.

    Layers that are alike are repetitions of one stretch. Its operations are compared by their bytes
    in the first repetition, because a later one adds the same number to all of them.
    """
    begin = 0.0  # of this repetition, as a share of the step's time
    for stretch, row_seconds in zip(stretches, seconds, strict=True):
        totals = [timeline.held_by(row, row.during).total for row in stretch.rows]
        # Shares of the step's time, counted from the beginning of a repetition.
        ends = [end / whole_s for end in accumulate(row_seconds)]
        starts = [0.0, *ends[:-1]]
        for turn in range(stretch.times):  # `turn` is the number of the repetition
            end = begin + ends[-1]
            first_column = int(COLUMNS * begin)
            end_column = min(COLUMNS, math.ceil(COLUMNS * end))
            for column in range(first_column, end_column):
                # The operations that end after the column begins, and start before it ends.
                first = bisect_right(ends, column / COLUMNS - begin)
                stop = bisect_left(starts, (column + 1) / COLUMNS - begin)
                if first < stop:  # rounding may leave none at the edge of a column
                    # The row in which the most bytes are held.
                    fullest = max(range(first, stop), key=totals.__getitem__)
                    share = begin + starts[fullest]
                    yield column, _moment(timeline, stretch, fullest, turn, share)
            begin = end


def _moment(timeline: Timeline, stretch: Stretch, row: int, turn: int, share: Number) -> Moment:
    """Return the operation in a row of the stretch as a Moment, in repetition number `turn`."""
    alone = stretch._replace(rows=[stretch.rows[row]])  # so that no other row is computed
    (operation,) = alone.at(turn)
    held = timeline.held_by(operation, operation.during)
    return Moment(operation.where, operation.phase, operation.layer, share, held)


def held_text(nbytes: int) -> str:
    """Return bytes with three digits, such as 2.10 GB, so that those below each other compare."""
    text = decimal_bytes_text(nbytes)
    number, unit = text.split(" ")
    if unit == "bytes":
        return text
    three_digits = f"{float(number.replace(',', '')):#.3g}"
    return f"{three_digits.removesuffix('.')} {unit}"  # `#` keeps zeros, and a point after 688
