"""What the notebooks say about GPUs, held against recordings of GPUs: each statement stands word for word in its cell."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from course_utils import machines, predict
from course_utils.machines import Recording, Size, Workload
from tests import NOTEBOOKS
from tests.notebooks import read
from tests.tools.glossary import unlinked

HOPPER = ("H100 SXM", "H200 SXM")


@dataclass(frozen=True)
class Statement:
    """Words of a notebook's cell, and whether a recording bears them out."""

    notebook: str
    cell: str
    words: str
    holds: Callable[[Recording], bool]
    only: tuple[str, ...] = ()  # machines that it is about; all that have a data sheet, if none is named


class NotRecordedError(LookupError):
    """What a statement is about is not in the recording, or stands there in doubt."""


def seconds_in(recording: Recording, dtype: str) -> Mapping[Size, float]:
    if dtype not in recording.seconds_by_size or any(doubt.dtype == dtype for doubt in recording.set_apart):
        raise NotRecordedError(dtype)
    return recording.seconds_by_size[dtype]


def seconds_of(recording: Recording, dtype: str, *size: int) -> float:
    if size not in seconds_in(recording, dtype):
        raise NotRecordedError(size)
    return recording.seconds_by_size[dtype][size]


def best(recording: Recording, dtype: str) -> float:
    """The largest FLOP/s of any recorded product."""
    return max(2 * math.prod(size) / s for size, s in seconds_in(recording, dtype).items())


def workload(recording: Recording, ending: str) -> Workload:
    for one in recording.workloads:
        if one.name.endswith(ending):
            return one
    raise NotRecordedError(ending)


def ratio_between(low: float, high: float, dtype: str, other: str) -> Callable[[Recording], bool]:
    return lambda recording: low <= best(recording, dtype) / best(recording, other) <= high


def of_the_bandwidth(recording: Recording, name: str) -> float:
    return workload(recording, name).bytes_per_sec / recording.machine.bytes_per_sec


def mfu(recording: Recording, ending: str) -> float:
    step = workload(recording, ending)
    return step.flop_per_sec / recording.machine.peak(step.dtype)


def steps(recording: Recording) -> list[Workload]:
    return [workload(recording, ending) for ending in ("a training step", "recomputed")]


def no_faster_than_the_rule(recording: Recording) -> bool:
    """Of the products that are larger than an H100's cache; of those by others, which the notebook shows, all."""
    off = {
        (dtype, size): ratio
        for dtype in recording.seconds_by_size
        for ratios in recording.over_prediction(dtype).values()
        for size, ratio in ratios.items()
        if recording.source or predict.matmul_bytes(*size, dtype) > 2**26
    }
    if not off:
        raise NotRecordedError("large products")
    return min(off.values()) >= 0.99


def share(recording: Recording, n: int) -> float:
    """Of the dense peak in bf16, by the square product of that size."""
    return 2 * n**3 / seconds_of(recording, "bf16", n, n, n) / recording.machine.peak("bf16")


AROUND = ("softmax", "LayerNorm, forward", "cross-entropy")
STATEMENTS = {
    "tf32 is half of bf16": Statement(
        "04_flops",
        "flops-037",
        "at half the speed of bf16",
        ratio_between(0.35, 0.65, "tf32", "bf16"),
        HOPPER,
    ),
    "tf32 is beyond the fp32 peak": Statement(
        "04_flops",
        "flops-037",
        "keep dividing by the fp32 peak, and you see more than 100 %",
        lambda r: best(r, "tf32") > r.machine.peak("fp32"),
        HOPPER,
    ),
    "bf16 is 15 times fp32": Statement(
        "04_flops",
        "flops-037",
        '"bf16 is 15 times as fast as fp32" is true of the H100\'s sheet',
        ratio_between(10, 20, "bf16", "fp32"),
        HOPPER,
    ),
    "the dense peak is the limit": Statement(
        "04_flops",
        "flops-119",
        "Divide by the dense peak of the dtype in use",
        lambda r: all(
            2 * math.prod(size) / s <= r.machine.peak(dtype)
            for dtype, table in r.seconds_by_size.items()
            for size, s in table.items()
        ),
    ),
    "time is the larger of the two": Statement(
        "04_flops",
        "flops-119",
        "Time is the larger of FLOPs / FLOP/s and bytes / bytes/s.",
        no_faster_than_the_rule,
    ),
    "one token at a time": Statement(
        "04_flops",
        "flops-059",
        "weights are fetched, used once, and forgotten",
        lambda r: seconds_of(r, "bf16", 1, 4096, 4096)
        >= predict.matmul_bytes(1, 4096, 4096, "bf16") / r.machine.bytes_per_sec,
    ),
    "large squares are bound by arithmetic": Statement(
        "04_flops",
        "flops-057",
        "Predict the size from which an H100 is limited by its arithmetic",
        lambda r: share(r, 4096) > 0.5 > share(r, 256),
        HOPPER,
    ),
    "a product has to be large": Statement(
        "04_flops",
        "flops-gpu-05",
        "At 1,024 the H100 gets a quarter of it, at 2,048 two thirds, at 4,096 79 %",
        lambda r: 0.2 < share(r, 1024) < 0.3 and 0.6 < share(r, 2048) < 0.72 and 0.75 < share(r, 4096) < 0.83,
        HOPPER,
    ),
    "the rule is a bound": Statement(
        "04_flops",
        "flops-gpu-11",
        "the rule is a bound, and no forecast",
        lambda r: no_faster_than_the_rule(r) and all(
            statistics.median(ratios.values()) > 1.1
            for dtype in r.seconds_by_size
            if not any(doubt.dtype == dtype for doubt in r.set_apart)
            for ratios in r.over_prediction(dtype).values()
            if ratios
        ),
    ),
    "two sources agree": Statement(
        "04_flops",
        "flops-gpu-15",
        "On the H100 both agree within 2 %",
        lambda r: abs(best(r, "bf16") / machines.MACHINES[r.machine.name].achieved_flop_per_sec["bf16"] - 1) < 0.02,
        ("H100 SXM",),
    ),
    "memory limits what is around the products": Statement(
        "04_flops",
        "flops-065",
        "so on a GPU memory limits them all",
        lambda r: all(0.25 <= of_the_bandwidth(r, name) <= 1 for name in AROUND),
    ),
    "half is good": Statement(
        "04_flops",
        "flops-050",
        "Half is good",
        lambda r: 0.1 < mfu(r, "a training step") < best(r, "bf16") / r.machine.peak("bf16"),
        HOPPER,
    ),
    "recomputing does not raise MFU": Statement(
        "04_flops",
        "flops-052",
        "The hardware works more, the model needs no more, and MFU must not rise",
        lambda r: mfu(r, "recomputed") < mfu(r, "a training step"),
    ),
    "recomputing saves memory": Statement(
        "04_flops",
        "flops-052",
        "computes the forward pass twice to save memory",
        lambda r: steps(r)[1].peak_bytes < steps(r)[0].peak_bytes,
    ),
    "a step's peak is predicted": Statement(
        "08_checkpointing",
        "16e5b3cb",
        "predict the bytes and the FLOPs of recomputed activations",
        lambda r: all(0.9 < one.peak_bytes / one.predicted_peak_bytes < 1.1 for one in steps(r)),
    ),
    "fp8 is up to twice bf16": Statement(
        "07_mixed_precision",
        "d49541e8",
        "On an H100 the sheet promises twice the rate of bf16",
        ratio_between(1.3, 2.05, "fp8", "bf16"),
        HOPPER,
    ),
}  # fmt: skip
GPUS = [recording for recording in machines.recordings().values() if recording.machine.has_data_sheet]


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_statement_stands_in_its_notebook(name):
    said = STATEMENTS[name]
    (path,) = (path for path in NOTEBOOKS if path.stem == said.notebook)
    (cell,) = (cell for cell in read(path).cells if cell.id == said.cell)
    assert said.words in unlinked(cell.source)


# What no recording of a GPU tells yet: `make gpu` would, on a Hopper card.
WAITING = {
    "bf16 is 15 times fp32",
    "one token at a time",
    "memory limits what is around the products",
    "half is good",
    "recomputing does not raise MFU",
    "recomputing saves memory",
    "a step's peak is predicted",
    "fp8 is up to twice bf16",
}


def borne_out(name: str, recording: Recording) -> bool | None:
    """None where the statement is about others, or about what was not recorded."""
    said = STATEMENTS[name]
    if said.only and recording.machine.name not in said.only:
        return None
    try:
        return said.holds(recording)
    except NotRecordedError:
        return None


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_recorded_gpu_contradicts_a_statement_and_most_are_borne_out(name):
    verdicts = {recording.name: borne_out(name, recording) for recording in GPUS}
    assert False not in verdicts.values(), verdicts
    assert (True not in verdicts.values()) == (name in WAITING), verdicts


def test_what_searches_found_is_as_the_statements_on_fp8_and_on_half_of_the_peak_say():
    searched = {name: machine for name, machine in machines.MACHINES.items() if machine.achieved_flop_per_sec}
    assert len(searched) >= 11
    for name, machine in searched.items():
        reached = machine.achieved_flop_per_sec
        assert 0.5 < reached["bf16"] / machine.peak("bf16") < 0.9, name
        assert "mamf-finder" in machine.achieved_source
        if "fp8" in reached:
            assert 1.7 < reached["fp8"] / reached["bf16"] < 2, name


# The checks themselves: a GPU as the data sheet would have it passes, and one that is otherwise fails.


def made_up() -> Recording:
    """An H100 that reaches four fifths of all it promises, and takes 2 µs for a launch."""
    h100 = machines.MACHINES["H100 SXM"]
    sizes = [(n, n, n) for n in (256, 1024, 2048, 4096)] + [(1, 4096, 4096), (16_384, 16_384, 64)]

    reached = {(1024, 1024, 1024): 0.26, (2048, 2048, 2048): 0.65}

    def seconds(size, dtype):
        return max(2e-6, predict.matmul_seconds(*size, h100, dtype) / reached.get(size, 0.8))

    def step(name, share, peak_bytes):
        flops = 10**13
        return Workload(
            f"GPT-2 small, a training step{name}",
            {"batch": 16},
            "bf16",
            flops / (share * h100.peak("bf16")),
            0.01,
            flops=flops,
            predicted_peak_bytes=peak_bytes,
            peak_bytes=round(1.02 * peak_bytes),
        )

    around = [
        Workload(name, {}, "bf16", 10**9 / (0.7 * h100.bytes_per_sec), 0.01, bytes=10**9) for name in AROUND
    ]
    return Recording(
        h100,
        "2026-01-31",
        "torch",
        {dtype: {size: seconds(size, dtype) for size in sizes} for dtype in h100.peak_flop_per_sec},
        0.01,
        workloads=(*around, step("", 0.4, 12 * 10**9), step(", each layer recomputed", 0.3, 10**10)),
    )


def with_times(dtype, factor, size=None):
    """The same with products of that dtype so many times as slow, all or one."""

    def spoil(recording):
        times = {
            one: seconds * (factor if size in (None, one) else 1)
            for one, seconds in recording.seconds_by_size[dtype].items()
        }
        return dataclasses.replace(recording, seconds_by_size={**recording.seconds_by_size, dtype: times})

    return spoil


def with_workloads(ending, **changes):
    """The same with other numbers for the workloads whose names end so; a number is a factor."""

    def changed(one):
        numbers = {name: getattr(one, name) for name in changes}
        return dataclasses.replace(one, **{name: type(n)(n * changes[name]) for name, n in numbers.items()})

    def spoil(recording):
        kept = (changed(one) if one.name.endswith(ending) else one for one in recording.workloads)
        return dataclasses.replace(recording, workloads=tuple(kept))

    return spoil


SPOILED = {
    "tf32 is half of bf16": [with_times("tf32", 2), with_times("tf32", 0.5)],
    "tf32 is beyond the fp32 peak": [with_times("tf32", 10)],
    "bf16 is 15 times fp32": [with_times("fp32", 0.5), with_times("bf16", 0.5)],
    "the dense peak is the limit": [with_times("fp8", 0.7), with_times("fp32", 0.7)],
    "time is the larger of the two": [with_times("bf16", 0.7, (16_384, 16_384, 64))],
    "one token at a time": [with_times("bf16", 0.7, (1, 4096, 4096))],
    "large squares are bound by arithmetic": [
        with_times("bf16", 2, (4096, 4096, 4096)),
        with_times("bf16", 0.01, (256, 256, 256)),
    ],
    "a product has to be large": [with_times("bf16", 0.3, (1024, 1024, 1024)), with_times("bf16", 2, (2048, 2048, 2048))],
    "the rule is a bound": [with_times("bf16", 0.7, (16_384, 16_384, 64)), with_times("fp32", 0.8)],
    "two sources agree": [with_times("bf16", 1.1, (4096, 4096, 4096)), with_times("bf16", 0.9)],
    "memory limits what is around the products": [
        with_workloads("softmax", seconds=4),
        with_workloads("cross-entropy", seconds=0.5),
    ],
    "half is good": [
        with_workloads("a training step", seconds=8),
        with_workloads("a training step", seconds=0.4),
    ],
    "recomputing does not raise MFU": [with_workloads("recomputed", seconds=0.5)],
    "recomputing saves memory": [with_workloads("recomputed", peak_bytes=2)],
    "a step's peak is predicted": [with_workloads("recomputed", peak_bytes=2), with_workloads("a training step", peak_bytes=0.5)],
    "fp8 is up to twice bf16": [with_times("fp8", 2), with_times("fp8", 0.5)],
}  # fmt: skip


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_holds_for_a_gpu_that_keeps_its_promises_and_not_for_one_that_does_not(name):
    said = STATEMENTS[name]
    assert said.holds(made_up())
    assert SPOILED[name]
    for spoil in SPOILED[name]:
        assert not said.holds(spoil(made_up()))
