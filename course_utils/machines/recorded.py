"""What was measured on machines that the reader may not have, as data."""

import functools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from course_utils.datasheets import Machine
from course_utils.quantities import Comparison, Ledger, Number, Table, rate_text, seconds_text

FOLDER = Path(__file__).parent.parent / "recorded"


@dataclass(frozen=True)
class Workload:
    """One of the things that training does, and how long it took.

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
    predicted_peak_bytes: int = 0  # beyond parameters, averages and data, which are there before the step
    peak_bytes: int = 0

    @property
    def flop_per_sec(self) -> Number:
        """FLOPs / seconds."""
        return self.flops / self.seconds

    @property
    def bytes_per_sec(self) -> Number:
        """Bytes / seconds: above the bandwidth of the memory where a cache holds them."""
        return self.bytes / self.seconds

    @property
    def tokens_per_sec(self) -> Number:
        """Tokens / seconds."""
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Recording:
    """What was measured on a machine that the reader may not have."""

    machine: Machine
    taken: str
    software: str
    seconds_by_size: Mapping[str, Mapping[tuple[int, int, int], Number]]  # by dtype, then (B, D, K)
    spread: Number  # the median over all products
    workloads: tuple[Workload, ...] = ()
    left_out: tuple[str, ...] = ()  # a sentence on each workload that is missing
    state: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)  # power, clocks; when, then what

    def nearest(self, b: int, d: int, k: int, dtype: str) -> tuple[int, int, int]:
        """The recorded product that is nearest in size, by the ratio of each side."""
        if dtype not in self.seconds_by_size:
            known = ", ".join(self.seconds_by_size)
            raise ValueError(f"{dtype!r} was not recorded on {self.machine.name}. There are: {known}.")

        def distance(recorded: tuple[int, int, int]) -> Number:
            return sum(abs(math.log(mine / theirs)) for mine, theirs in zip((b, d, k), recorded, strict=True))

        return min(self.seconds_by_size[dtype], key=distance)

    def workload(self, name: str) -> Workload:
        """The workload of that name, or a sentence on which there are."""
        for one in self.workloads:
            if one.name == name:
                return one
        known = ", ".join(one.name for one in self.workloads) or "none"
        raise ValueError(f"{name!r} was not recorded on {self.machine.name}. There are: {known}.")

    def workload_table(self) -> Table:
        """Every workload: its time, its FLOP/s or, where it multiplies nothing, its bytes/s, and the share of the limit.

        The limit is the data sheet's peak, or the largest rate that was measured. Of a training step the share
        of the peak is its MFU: what is computed again is not counted.
        """
        share = "of peak" if self.machine.has_data_sheet else "of largest"
        return Table(
            [[self.machine.name, "sizes", "dtype", "time", "rate", share], *map(self._row, self.workloads)]
        )

    def _row(self, one: Workload) -> list[str]:
        if one.flops:
            limit, reached = self.machine.peak_flop_per_sec.get(one.dtype), one.flop_per_sec
            rate = rate_text(reached)
        else:
            limit, reached = self.machine.bytes_per_sec, one.bytes_per_sec
            rate = rate_text(reached, "B")
        sizes = " × ".join(f"{size:,}" for size in one.sizes.values())
        return [
            one.name,
            sizes,
            one.dtype,
            seconds_text(one.seconds),
            rate,
            f"{reached / limit:.1%}" if limit else "",
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


@functools.cache
def recordings() -> dict[str, Recording]:
    """Every recording there is, by the machine's name."""
    read = (
        _recording(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json"))
    )
    return {recording.machine.name: recording for recording in read}


def _recording(data: Mapping) -> Recording:
    return Recording(
        machine=Machine(**data["machine"]),
        taken=data["taken"],
        software=data["software"],
        seconds_by_size={
            dtype: {(b, d, k): seconds for b, d, k, seconds in rows}
            for dtype, rows in data["products"].items()
        },
        spread=data["median_spread"],
        # The older recordings hold products alone.
        workloads=tuple(Workload(**one) for one in data.get("workloads", ())),
        left_out=tuple(data.get("left_out", ())),
        state=data.get("state", {}),
    )


def text_of(recording: Recording) -> str:
    """The recording as JSON, a product or a workload a line."""
    data = {
        "machine": vars(recording.machine),
        "taken": recording.taken,
        "software": recording.software,
        "median_spread": recording.spread,
        "state": recording.state,
        "left_out": recording.left_out,
    }
    changed = [
        {f.name: value for f in fields(one) if (value := getattr(one, f.name)) != f.default}
        for one in recording.workloads
    ]
    products = ",\n".join(
        f' "{dtype}": [\n' + _lines([*size, seconds] for size, seconds in seconds_by_size.items()) + "\n ]"
        for dtype, seconds_by_size in recording.seconds_by_size.items()
    )
    begun = json.dumps(data, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{begun},\n "workloads": [\n{_lines(changed)}\n ],\n "products": {{\n{products}\n }}\n}}\n'


def _lines(rows: Iterable[object]) -> str:
    return ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
