"""What the notebooks say about GPUs, held against recordings of GPUs: each statement stands word for word in its cell."""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from course_utils import machines, predict
from course_utils.machines import MACHINES, Recording
from tests import NOTEBOOKS
from tests.notebooks import read
from tests.tools.glossary import unlinked

HOPPER = ("H100 SXM", "H200 SXM")
GPUS = [recording for recording in machines.recordings().values() if recording.machine.has_data_sheet]


@dataclass(frozen=True)
class Statement:
    """Words of a notebook's cell, a quantity that a recording has, and between what it lies if they are true."""

    notebook: str
    cell: str
    words: str
    quantity: Callable[
        [Recording], float | list[float]
    ]  # a LookupError where it was not recorded, or is in doubt
    low: float
    high: float
    only: tuple[str, ...] = tuple(MACHINES)  # the machines that it is about


def seconds_in(recording, dtype):
    if any(doubt.dtype == dtype for doubt in recording.set_apart):
        raise LookupError(f"{dtype} is in doubt")
    return recording.seconds_by_size[dtype]


def best(recording, dtype):
    """The largest FLOP/s of any recorded product."""
    return max(2 * math.prod(size) / s for size, s in seconds_in(recording, dtype).items())


def of_peak(recording, n):
    """The share of the dense peak in bf16 that the square product of that size has."""
    return 2 * n**3 / seconds_in(recording, "bf16")[n, n, n] / recording.machine.peak("bf16")


def over_prediction(recording, beyond_bytes=0):
    """By how many times each product takes longer than predicted, by dtype and limit."""
    found = [
        [ratio for size, ratio in ratios.items() if predict.matmul_bytes(*size, dtype) > beyond_bytes]
        for dtype in recording.seconds_by_size
        if not any(doubt.dtype == dtype for doubt in recording.set_apart)
        for ratios in recording.over_prediction(dtype).values()
    ]
    if not any(found):
        raise LookupError("large products")
    return [ratios for ratios in found if ratios]


def least_over_prediction(recording):
    """Of the products that no cache holds; of those by others, which the notebook shows, all."""
    return min(map(min, over_prediction(recording, 0 if recording.source else 2**26)))


def workloads(recording, *endings):
    found = [one for ending in endings for one in recording.workloads if one.name.endswith(ending)]
    if len(found) != len(endings):
        raise LookupError(endings)
    return found


def mfu(recording, ending):
    (step,) = workloads(recording, ending)
    return step.flop_per_sec / recording.machine.peak(step.dtype)


def token_over_prediction(recording):
    fetched_s = predict.matmul_bytes(1, 4096, 4096, "bf16") / recording.machine.bytes_per_sec
    return seconds_in(recording, "bf16")[1, 4096, 4096] / fetched_s


def of_the_bandwidth(recording):
    around = workloads(recording, "softmax", "LayerNorm, forward", "cross-entropy")
    return [one.bytes_per_sec / recording.machine.bytes_per_sec for one in around]


def steps(recording):
    return workloads(recording, "a training step", "recomputed")


def saved_by_recomputing(recording):
    plain, recomputed = steps(recording)
    return recomputed.peak_bytes / plain.peak_bytes


def of_the_search(recording):
    return best(recording, "bf16") / MACHINES[recording.machine.name].achieved_flop_per_sec["bf16"]


# Where a statement has no interval of its own, 1 is its bound.
STATEMENTS = {
    "tf32 is half of bf16": Statement(
        "04_flops", "flops-037", "at half the speed of bf16",
        lambda r: best(r, "tf32") / best(r, "bf16"), 0.35, 0.65, HOPPER,
    ),
    "tf32 is beyond the fp32 peak": Statement(
        "04_flops", "flops-037", "keep dividing by the fp32 peak, and you see more than 100 %",
        lambda r: best(r, "tf32") / r.machine.peak("fp32"), 1, math.inf, HOPPER,
    ),
    "bf16 is 15 times fp32": Statement(
        "04_flops", "flops-037", '"bf16 is 15 times as fast as fp32" is true of the H100\'s sheet',
        lambda r: best(r, "bf16") / best(r, "fp32"), 10, 20, HOPPER,
    ),
    "the dense peak is the limit": Statement(
        "04_flops", "flops-119", "Divide by the dense peak of the dtype in use",
        lambda r: [rate / r.machine.peak(dtype) for dtype in r.seconds_by_size for _, rate in r.points(dtype)], 0, 1,
    ),
    "time is the larger of the two": Statement(
        "04_flops", "flops-119", "Time is the larger of FLOPs / FLOP/s and bytes / bytes/s.",
        least_over_prediction, 0.99, math.inf,
    ),
    "the rule is a bound": Statement(
        "04_flops", "flops-gpu-11", "the rule is a bound, and no forecast",
        lambda r: [statistics.median(ratios) for ratios in over_prediction(r)], 1.1, math.inf,
    ),
    "one token at a time": Statement(
        "04_flops", "flops-059", "weights are fetched, used once, and forgotten", token_over_prediction, 1, math.inf,
    ),
    "large squares are bound by arithmetic": Statement(
        "04_flops", "flops-057", "Predict the size from which an H100 is limited by its arithmetic",
        lambda r: of_peak(r, 4096), 0.5, 1, HOPPER,
    ),
    "and small ones are not": Statement(
        "04_flops", "flops-057", "Predict the size from which an H100 is limited by its arithmetic",
        lambda r: of_peak(r, 256), 0, 0.5, HOPPER,
    ),
    "at 1,024": Statement(
        "04_flops", "flops-gpu-05", "At 1,024 the H100 gets a quarter of it", lambda r: of_peak(r, 1024), 0.2, 0.3, HOPPER,
    ),
    "at 2,048": Statement(
        "04_flops", "flops-gpu-05", "at 2,048 two thirds", lambda r: of_peak(r, 2048), 0.6, 0.72, HOPPER,
    ),
    "at 4,096": Statement(
        "04_flops", "flops-gpu-05", "at 4,096 79 %", lambda r: of_peak(r, 4096), 0.75, 0.83, HOPPER,
    ),
    "two sources agree": Statement(
        "04_flops", "flops-gpu-15", "On the H100 both agree within 2 %", of_the_search, 0.98, 1.02, ("H100 SXM",),
    ),
    "memory limits what is around the products": Statement(
        "04_flops", "flops-065", "so on a GPU memory limits them all", of_the_bandwidth, 0.25, 1,
    ),
    "half is good": Statement(
        "04_flops", "flops-050", "Half is good", lambda r: mfu(r, "a training step"), 0.1, 0.8, HOPPER,
    ),
    "recomputing does not raise MFU": Statement(
        "04_flops", "flops-052", "The hardware works more, the model needs no more, and MFU must not rise",
        lambda r: mfu(r, "recomputed") / mfu(r, "a training step"), 0, 1,
    ),
    "recomputing saves memory": Statement(
        "04_flops", "flops-052", "computes the forward pass twice to save memory", saved_by_recomputing, 0, 1,
    ),
    "a step's peak is predicted": Statement(
        "08_checkpointing", "16e5b3cb", "predict the bytes and the FLOPs of recomputed activations",
        lambda r: [one.peak_bytes / one.predicted_peak_bytes for one in steps(r)], 0.9, 1.1,
    ),
    "fp8 is up to twice bf16": Statement(
        "07_mixed_precision", "d49541e8", "On an H100 the sheet promises twice the rate of bf16",
        lambda r: best(r, "fp8") / best(r, "bf16"), 1.3, 2.05, HOPPER,
    ),
}  # fmt: skip
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


def test_each_statement_stands_in_its_notebook():
    cells = {(path.stem, cell.id): unlinked(cell.source) for path in NOTEBOOKS for cell in read(path).cells}
    for said in STATEMENTS.values():
        assert said.words in cells[said.notebook, said.cell]


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_recorded_gpu_contradicts_a_statement_and_most_are_borne_out(name):
    said, found = STATEMENTS[name], {}
    for recording in GPUS:
        if recording.machine.name in said.only:
            try:
                found[recording.name] = said.quantity(recording)
            except LookupError:
                continue  # not recorded there
    for quantity in found.values():
        every = quantity if isinstance(quantity, list) else [quantity]
        assert said.low <= min(every) <= max(every) <= said.high, found
    assert bool(found) == (name not in WAITING), found


def test_what_searches_found_is_as_the_statements_on_fp8_and_on_half_of_the_peak_say():
    searched = {name: machine for name, machine in MACHINES.items() if machine.achieved_flop_per_sec}
    assert len(searched) >= 11
    for name, machine in searched.items():
        reached = machine.achieved_flop_per_sec
        assert 0.5 < reached["bf16"] / machine.peak("bf16") < 0.9, name
        assert "mamf-finder" in machine.achieved_source
        if "fp8" in reached:
            assert 1.7 < reached["fp8"] / reached["bf16"] < 2, name
