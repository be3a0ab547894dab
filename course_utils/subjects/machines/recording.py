"""What was measured on machines that the reader may not have, as data."""

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
from course_utils.subjects.machines import schema
from course_utils.subjects.machines.schema import MatmulSize

READERS_RECORDINGS = "recorded"  # the folder of the reader's own
FOLDER = Path(__file__).with_name("recordings")


@dataclass(frozen=True)
class Workload:
    """One of the operations of training, and how long it took.

    FLOPs are counted as `predict` counts them: element by element they are 0. Bytes are the fewest that have
    to move, each operand read once and each result written once; of a whole step nobody counts them, and they are 0.
    """

    name: str
    sizes: Mapping[str, int]
    dtype: str
    seconds: Number
    spread: Number  # (typical - best) / best
    flops: int = 0
    bytes: int = 0
    tokens: int = 0  # of a training step
    predicted_peak_bytes: int = (
        0  # beyond parameters, averages and data, which are there before the step
    )
    peak_bytes: int = 0

    @property
    def flop_per_sec(self) -> Number:
        """FLOPs / seconds."""
        return self.flops / self.seconds

    @property
    def bytes_per_sec(self) -> Number:
        """Bytes / seconds: above the bandwidth of the memory where a cache holds them."""
        return self.bytes / self.seconds


@dataclass(frozen=True)
class Source:
    """Who measured, if it was not this course: where it is published, how it was done, what is not said."""

    by: str
    where: str
    licence: str
    method: str
    not_said: str


@dataclass(frozen=True)
class SetApart:
    """Products that were recorded and are not to be used, and why."""

    dtype: str
    why: str
    seconds_by_size: Mapping[MatmulSize, Number]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was measured on a machine that the reader may not have, in the order of its file."""

    machine: Machine
    source: Source | None = None  # nothing of it was measured by this course, if there is one
    taken: str  # the day; of what others measured, that of the table
    software: str
    median_spread: Number | None = None  # over all products; None where nobody said
    workloads: tuple[Workload, ...] = ()
    set_apart: tuple[SetApart, ...] = ()
    seconds_by_size: Mapping[str, Mapping[MatmulSize, Number]]  # by dtype

    @property
    def name(self) -> str:
        """The machine's, and who recorded it, if others did."""
        return f"{self.machine.name}, by {self.source.by}" if self.source else self.machine.name

    @property
    def file_name(self) -> str:
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_") + ".json"

    def _seconds(self, dtype: str) -> Mapping[MatmulSize, Number]:
        if dtype not in self.seconds_by_size:
            known = ", ".join(self.seconds_by_size)
            raise ValueError(
                f"{dtype!r} was not recorded on {self.machine.name}. There are: {known}."
            )
        return self.seconds_by_size[dtype]

    def nearest(self, b: int, d: int, k: int, dtype: str) -> MatmulSize:
        """The recorded product that is nearest in size, by the ratio of each side."""

        def factor(recorded: MatmulSize) -> Number:
            # A logarithm's last bit differs by machine, and would break ties there in other ways.
            sides = zip((b, d, k), recorded, strict=True)
            return math.prod(max(side) / min(side) for side in sides)

        return min(self._seconds(dtype), key=factor)

    def as_published(self, dtype: str) -> dict[MatmulSize, Number]:
        """Every product's time in the order of the sizes, those in doubt among them: to be judged, and not to be used."""
        tables = [self.seconds_by_size.get(dtype, {})]
        tables += [one.seconds_by_size for one in self.set_apart if one.dtype == dtype]
        return dict(sorted(product for table in tables for product in table.items()))

    def workload(self, name: str) -> Workload:
        """The workload of that name, or a sentence on which there are."""
        by_name = {one.name: one for one in self.workloads}
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ValueError(
                f"{name!r} was not recorded on {self.machine.name}. There are: {known}."
            )
        return by_name[name]

    def workload_table(self) -> Table:
        """Every workload: its time, its FLOP/s or, where it multiplies nothing, its bytes/s, and the share of the limit.

        The limit is the data sheet's peak, or the largest rate that was measured. Of a training step the share
        of the peak is its MFU: what is computed again is not counted.
        """
        share = "of peak" if self.machine.has_data_sheet else "of largest"
        head = [self.machine.name, "sizes", "dtype", "time", "rate", share]
        return Table([head, *map(self._row, self.workloads)])

    def _row(self, one: Workload) -> list[str]:
        reached, unit, limit = one.bytes_per_sec, "B", self.machine.bytes_per_sec
        if one.flops:
            reached, unit, limit = (
                one.flop_per_sec,
                "FLOP",
                self.machine.peak_flop_per_sec.get(one.dtype),
            )
        sizes = " × ".join(f"{size:,}" for size in one.sizes.values())
        share = f"{reached / limit:.1%}" if limit else ""
        return [
            one.name,
            sizes,
            one.dtype,
            seconds_text(one.seconds),
            rate_text(reached, unit),
            share,
        ]

    def memory_peaks(self) -> Comparison:
        """The most bytes that each training step held beyond its state, predicted and measured."""
        steps = [one for one in self.workloads if one.peak_bytes]
        if not steps:
            raise ValueError(f"No training step was recorded on {self.machine.name}.")
        return Comparison(
            Ledger({one.name: one.predicted_peak_bytes for one in steps}, unit="bytes"),
            Ledger({one.name: one.peak_bytes for one in steps}, unit="bytes"),
        )


def forecast_table(dtypes: Mapping[str, str]) -> Table:
    """How far off roof and forecast are: for recordings by name, in a dtype of each.

    c, e and the roof's errors are of all products. A forecast's are of products that its fit has not seen: of a random
    half, by a fit to the other; of ten such halves, the median.
    """
    rows = [
        [
            "",
            "c",
            "e",
            "roof: median error",
            "worst factor",
            "forecast: median error",
            "worst factor",
        ]
    ]
    for name, dtype in dtypes.items():
        timed, of = recordings()[name].seconds_by_size[dtype], (recordings()[name].machine, dtype)
        c, e = predict.fitted_forecast(timed, *of)
        halves = (predict.random_halves(timed, seed) for seed in range(10))
        tried = [
            predict.forecast_errors(half, *of, *predict.fitted_forecast(other, *of))
            for other, half in halves
        ]
        row = [f"{name}, {dtype}", seconds_text(c), f"{e:.2f}"]
        for median, worst in (
            predict.forecast_errors(timed, *of, 0, 1),
            map(statistics.median, zip(*tried, strict=True)),
        ):
            row += [f"{median:.0%}", f"{worst:.1f}"]
        rows.append(row)
    return Table(rows)


# Files.


@functools.cache
def recordings() -> dict[str, Recording]:
    """Every recording, by its name, the reader's last. A file that holds none gets a sentence; the others are read."""
    found: dict[str, Recording] = {}
    theirs = workspace() / READERS_RECORDINGS if workspace() else FOLDER / "none"
    for path in (*sorted(FOLDER.glob("*.json")), *sorted(theirs.glob("*.json"))):
        try:
            recording = read(path)
            if recording.name in found:
                raise ValueError(f"there is another recording of {recording.name}.")
            found[recording.name] = recording
        except ValueError as error:
            warnings.warn(f"The recording {path.name} is left out: {error}", stacklevel=2)
    return found


def read(path: Path) -> Recording:
    """The recording in that file, or a sentence on the first field that is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"it cannot be opened ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({str(error)[:80]}).") from None
    return schema.decoded(Recording, data)


def text_of(recording: Recording) -> str:
    """The recording as JSON, a product a line."""
    text = json.dumps(schema.encoded(recording), indent=1, ensure_ascii=False)
    numbers = r"\[\n([^][{}\"]+)\n *\]"  # within a text there is no new line
    return re.sub(numbers, lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"
