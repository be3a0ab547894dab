"""Measurements on machines that the reader may not have, as data."""

import functools
import json
import math
import re
import statistics
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_utils.core import predict
from course_utils.core.datasheets import Machine
from course_utils.core.record import workspace
from course_utils.core.say import Comparison, Ledger, Number, Table, rate_text, seconds_text
from course_utils.core.say.language import translated
from course_utils.subjects.machines import schema
from course_utils.subjects.machines.schema import MatmulSize

READERS_RECORDINGS = "recorded"  # the folder of the reader's own recordings
FOLDER = Path(__file__).with_name("recordings")


@dataclass(frozen=True)
class Workload:
    """One of the operations of training, and how long it took.

    FLOPs are counted as `predict` counts them: an operation element by element has 0. Bytes are the
    fewest that have to move, if each operand is read once and each result is written once. A whole
    training step has 0, because its bytes are not counted.
    """

    name: str
    sizes: Mapping[str, int]
    dtype: str
    seconds: Number
    spread: Number  # of repeated timings: (typical - best) / best
    flops: int = 0
    bytes: int = 0
    tokens: int = 0  # of a training step
    # The most bytes that are held during a training step, beyond those that are held before it:
    # parameters, averages and data.
    predicted_peak_bytes: int = 0
    peak_bytes: int = 0  # measured

    @property
    def flop_per_sec(self) -> Number:
        """FLOPs / seconds."""
        return self.flops / self.seconds

    @property
    def bytes_per_sec(self) -> Number:
        """Bytes / seconds: more than the memory's bandwidth if the bytes are in a cache."""
        return self.bytes / self.seconds


@dataclass(frozen=True)
class Source:
    """Who measured a machine, if it was not this course, and where the measurement is published.

    `method` is how it was measured, and `not_said` what the publication leaves open.
    """

    by: str
    where: str
    licence: str
    method: str
    not_said: str


@dataclass(frozen=True)
class SetApart:
    """Matrix products of a recording that are in doubt and not to be used, and why."""

    dtype: str
    why: str
    seconds_by_size: Mapping[MatmulSize, Number]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Measurements on a machine that the reader may not have.

    The fields are in the order in which the recording's file has them.
    """

    machine: Machine
    source: Source | None = None  # None if this course has measured the machine
    taken: str  # the day; if others measured, the day of their table
    software: str
    median_spread: Number | None = None  # over all products; None if it was not stated
    workloads: tuple[Workload, ...] = ()
    set_apart: tuple[SetApart, ...] = ()
    seconds_by_size: Mapping[str, Mapping[MatmulSize, Number]]  # by dtype

    @property
    def name(self) -> str:
        """The machine's name, and who recorded it, if others did."""
        if self.source:
            return f"{self.machine.name}, by {self.source.by}"
        return self.machine.name

    @property
    def file_name(self) -> str:
        """The file's name, such as h100_sxm_by_openxla.json."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_") + ".json"

    def _seconds(self, dtype: str) -> Mapping[MatmulSize, Number]:
        """Return the products' seconds by size. ValueError, with all dtypes, for another dtype."""
        if dtype not in self.seconds_by_size:
            refused = translated(
                "{dtype} was not recorded on {machine}. There are: {known}.",
                dtype=repr(dtype),
                machine=self.machine.name,
                known=", ".join(self.seconds_by_size),
            )
            raise ValueError(refused)
        return self.seconds_by_size[dtype]

    def nearest(self, b: int, d: int, k: int, dtype: str) -> MatmulSize:
        """Return the sizes of the nearest recorded product, by the ratios of the sides.

        ValueError if nothing was recorded in that dtype.
        """

        def factor(recorded: MatmulSize) -> Number:
            """Return how far the recorded sides are from the wanted ones: 1 if they are equal.

            If one side is twice as long or half as long as the wanted one, it is 2.
            """
            # The product of the ratios and not the sum of their logarithms: the last bit of a
            # logarithm differs by machine, and so another machine might find another product of two
            # that are equally near.
            sides = zip((b, d, k), recorded, strict=True)
            return math.prod(max(side) / min(side) for side in sides)

        return min(self._seconds(dtype), key=factor)

    def as_published(self, dtype: str) -> dict[MatmulSize, Number]:
        """Return the seconds of every product in that dtype, in the order of the sizes.

        Products that were set apart are included, so that a reader can judge them.
        """
        products = list(self.seconds_by_size.get(dtype, {}).items())  # pairs (size, seconds)
        for apart in self.set_apart:
            if apart.dtype == dtype:
                products += apart.seconds_by_size.items()
        return dict(sorted(products))

    def workload(self, name: str) -> Workload:
        """Return the workload of that name. ValueError, with all names, if there is none."""
        by_name = {workload.name: workload for workload in self.workloads}
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ValueError(
                f"{name!r} was not recorded on {self.machine.name}. There are: {known}."
            )
        return by_name[name]

    def workload_table(self) -> Table:
        """Return a table of all workloads: each one's time, its rate, and its share of the limit.

        The rate is in FLOP/s; or in bytes/s, if a workload multiplies nothing. The limit is the
        data sheet's peak; or the largest rate that was measured, if there is no data sheet. For a
        training step the share of the peak is its MFU: what is recomputed is not counted.
        """
        share = "of peak" if self.machine.has_data_sheet else "of largest"
        head = [self.machine.name, "sizes", "dtype", "time", "rate", share]
        rows = [self._row(workload) for workload in self.workloads]
        return Table([head, *rows])

    def _row(self, workload: Workload) -> list[str]:
        """Return the row of `workload_table` for one workload."""
        if workload.flops:
            rate = workload.flop_per_sec
            unit = "FLOP"
            limit = self.machine.peak_flop_per_sec.get(workload.dtype)
        else:
            rate = workload.bytes_per_sec
            unit = "B"
            limit = self.machine.bytes_per_sec
        return [
            workload.name,
            " × ".join(f"{size:,}" for size in workload.sizes.values()),
            workload.dtype,
            seconds_text(workload.seconds),
            rate_text(rate, unit),
            f"{rate / limit:.1%}" if limit else "",  # no limit is known for some dtypes
        ]

    def memory_peaks(self) -> Comparison:
        """Compare the most bytes that each training step held beyond its state with the prediction.

        ValueError if no training step was recorded.
        """
        predicted = {}
        measured = {}
        for workload in self.workloads:
            if workload.peak_bytes:
                predicted[workload.name] = workload.predicted_peak_bytes
                measured[workload.name] = workload.peak_bytes
        if not measured:
            raise ValueError(f"No training step was recorded on {self.machine.name}.")
        return Comparison(Ledger(predicted, unit="bytes"), Ledger(measured, unit="bytes"))


def forecast_table(dtypes: Mapping[str, str]) -> Table:
    """Return the errors of roof and forecast, in a row for each recording.

    The forecast is c + roof / e: c is a kernel's own price in seconds, and e the share of the
    roof's speed that large products reach. `dtypes` maps a recording's name to the dtype of its
    row.

    c, e and the roof's errors are computed from all products. For its errors, the forecast is
    fitted to a random half of the products and tested on the other half; they are medians over ten
    such splits.
    """
    head = [
        "",
        "c",
        "e",
        "roof: median error",
        "worst factor",
        "forecast: median error",
        "worst factor",
    ]
    rows = [_forecast_row(name, dtype) for name, dtype in dtypes.items()]
    return Table([head, *rows])


def _forecast_row(name: str, dtype: str) -> list[str]:
    """Return the row of `forecast_table` for one recording."""
    recording = recordings()[name]
    machine = recording.machine
    timed = recording.seconds_by_size[dtype]
    c, e = predict.fitted_forecast(timed, machine, dtype)
    # With c = 0 and e = 1, the forecast is the roof.
    roof_median, roof_worst = predict.forecast_errors(timed, machine, dtype, 0, 1)
    medians = []
    worst = []
    for seed in range(10):  # a random split for each
        seen, unseen = predict.random_halves(timed, seed)
        half_c, half_e = predict.fitted_forecast(seen, machine, dtype)
        median, worst_factor = predict.forecast_errors(unseen, machine, dtype, half_c, half_e)
        medians.append(median)
        worst.append(worst_factor)
    return [
        f"{name}, {dtype}",
        seconds_text(c),
        f"{e:.2f}",
        f"{100 * roof_median:.0f} %",
        f"{roof_worst:.1f}",
        f"{100 * statistics.median(medians):.0f} %",
        f"{statistics.median(worst):.1f}",
    ]


# Files.


@functools.cache
def recordings() -> dict[str, Recording]:
    """Return every recording by its name; the reader's own recordings come last.

    A file that holds no recording is left out, with a warning.
    """
    paths = sorted(FOLDER.glob("*.json"))
    if workspace():
        readers = workspace() / READERS_RECORDINGS
        paths += sorted(readers.glob("*.json"))
    by_name: dict[str, Recording] = {}
    for path in paths:
        try:
            recording = read(path)
            if recording.name in by_name:  # the error ends up in the warning below
                raise ValueError(f"there is another recording of {recording.name}.")
            by_name[recording.name] = recording
        except ValueError as error:
            warnings.warn(f"The recording {path.name} is left out: {error}", stacklevel=2)
    return by_name


def read(path: Path) -> Recording:
    """Return the recording in that file.

    ValueError if the file cannot be opened, is no JSON, or has a wrong field. The error names the
    first wrong field.
    """
    try:
        # utf-8-sig also reads a file that an editor has begun with a byte order mark.
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"it cannot be opened ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({str(error)[:80]}).") from None
    return schema.decoded(Recording, data)


def text_of(recording: Recording) -> str:
    """Return the recording as indented JSON.

    Each innermost list, such as a product's sizes and time, is on one line.
    """
    text = json.dumps(schema.encoded(recording), indent=1, ensure_ascii=False)
    # Brackets around numbers on lines of their own, such as "[\n 64,\n 0.5\n]", which becomes
    # "[64, 0.5]". No text in the file has a line break.
    rows_of_numbers = r"\[\n([^][{}\"]+)\n *\]"

    def in_one_line(row: re.Match) -> str:
        return f"[{' '.join(row[1].split())}]"

    return re.sub(rows_of_numbers, in_one_line, text) + "\n"
