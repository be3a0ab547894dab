"""What the notebooks say about GPUs, held against recordings of GPUs: each statement stands word for word in its cell."""

import math
import statistics
from contextlib import suppress
from functools import partial

import pytest

from course_utils.core import predict
from course_utils.subjects import machines
from course_utils.subjects.machines import MACHINES
from tests import NOTEBOOKS
from tests.helpers.notebooks import read
from tests.tools.glossary import unlinked

HOPPER = ("H100 SXM", "H200 SXM")
GPUS = [
    recording for recording in machines.recordings().values() if recording.machine.has_data_sheet
]


def best(recording, dtype):
    """The largest FLOP/s of any recorded product."""
    return max(2 * math.prod(size) / s for size, s in recording.seconds_by_size[dtype].items())


def of_peak(recording, n):
    """The share of the dense peak in bf16 that a product of n × n matrices has."""
    return 2 * n**3 / recording.seconds_by_size["bf16"][n, n, n] / recording.machine.peak("bf16")


def over_prediction(recording, of):
    """By how many times products take longer than their roof: least, or typical, by dtype."""
    roof = partial(predict.matmul_seconds, machine=recording.machine)
    times = ((dtype, times.items()) for dtype, times in recording.seconds_by_size.items() if times)
    return [
        of([seconds / roof(*size, dtype=dtype) for size, seconds in some]) for dtype, some in times
    ]


def recorded_step(recording, ending="a training step"):
    """Its MFU, and its peak memory by what was predicted."""
    (step,) = [one for one in recording.workloads if one.name.endswith(ending)] or [None]
    if not step:
        raise LookupError(ending)
    return step.flop_per_sec / recording.machine.peak(
        step.dtype
    ), step.peak_bytes / step.predicted_peak_bytes


# A cell and its words; a quantity that a recording has, or a LookupError where it was not recorded; between what it
# lies if the words are true (1 is the bound of those without an interval); the machines that it is about.
STATEMENTS = [
    ("flops-037", "at half the speed of bf16", lambda r: best(r, "tf32") / best(r, "bf16"), 0.35, 0.65, HOPPER),
    ("flops-037", "keep dividing by the fp32 peak, and you see more than 100 %",
     lambda r: best(r, "tf32") / r.machine.peak("fp32"), 1, math.inf, HOPPER),
    ("flops-037", '"bf16 is 15 times as fast as fp32" is true of the H100\'s sheet',
     lambda r: best(r, "bf16") / best(r, "fp32"), 10, 20, HOPPER),
    ("flops-119", "Divide by the dense peak of the dtype in use",
     lambda r: [2 * math.prod(size) / s / r.machine.peak(dtype) for dtype, timed in r.seconds_by_size.items() for size, s in timed.items()], 0, 1, MACHINES),
    ("flops-119", "Time is at least the larger of FLOPs / FLOP/s and bytes / bytes/s**, if the numbers come from memory",
     lambda r: over_prediction(r, min), 0.99, math.inf, MACHINES),
    ("flops-gpu-11", "the rule is a bound, and no forecast",
     lambda r: over_prediction(r, statistics.median), 1.1, math.inf, MACHINES),
    ("flops-057", "from which size on is an H100 limited by its arithmetic?",
     lambda r: [of_peak(r, 4096), 1 - of_peak(r, 256)], 0.5, 1, HOPPER),
    ("flops-half-note", "At 1,024 the H100 gets a quarter of the peak", lambda r: of_peak(r, 1024), 0.2, 0.3, HOPPER),
    ("flops-half-note", "at 2,048 two thirds", lambda r: of_peak(r, 2048), 0.6, 0.72, HOPPER),
    ("flops-half-note", "at 4,096 79 %", lambda r: of_peak(r, 4096), 0.75, 0.83, HOPPER),
    ("flops-fit-note", "AMD's GPUs pay about the same c, but their e is only about 1/3",
     lambda r: predict.fitted_forecast(r.seconds_by_size["bf16"], r.machine, "bf16")[1], 0.3, 0.37, ("MI300X", "MI355X")),
    ("flops-fit-note", "4,096 × 4,096 × 4,096 reaches nearly half of the MI300X's peak",
     lambda r: of_peak(r, 4096), 0.42, 0.5, ("MI300X",)),
    ("flops-fit-note", "and more than half of the MI355X's", lambda r: of_peak(r, 4096), 0.5, 0.6, ("MI355X",)),
    ("flops-gpu-15", "On the H100 both agree within 2 %",
     lambda r: best(r, "bf16") / MACHINES[r.machine.name].achieved_flop_per_sec["bf16"], 0.98, 1.02, ("H100 SXM",)),
    ("flops-048", 'A half "is quite good"', lambda r: recorded_step(r)[0], 0.1, 0.8, HOPPER),
    ("flops-052", "The hardware works more, the model needs no more, and MFU must not rise",
     lambda r: recorded_step(r, "recomputed")[0] / recorded_step(r)[0], 0, 1, MACHINES),
    ("16e5b3cb", "predict the bytes and the FLOPs of recomputed activations",
     lambda r: [recorded_step(r)[1], recorded_step(r, "recomputed")[1]], 0.9, 1.1, MACHINES),
    ("d49541e8", "On an H100 the sheet promises twice the rate of bf16",
     lambda r: best(r, "fp8") / best(r, "bf16"), 1.3, 2.05, HOPPER),
]  # fmt: skip
# What no recording of a GPU tells yet: `make gpu` would, on a Hopper card.
WAITING = (
    '"bf16 is 15',
    'A half "is quite good"',
    "The hardware works",
    "predict the bytes",
    "On an H100 the sheet",
)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: f"{one[0]}, {one[1][:40]}")
def test_each_statement_stands_in_its_notebook_and_no_recorded_gpu_contradicts_it(cells, statement):
    cell, words, quantity, low, high, only = statement
    assert words in cells[cell]
    found = {}
    for recording in GPUS:
        if recording.machine.name in only:
            with suppress(LookupError):  # not recorded there
                found[recording.name] = quantity(recording)
    for one in found.values():
        every = one if isinstance(one, list) else [one]
        assert low <= min(every) <= max(every) <= high, found
    assert bool(found) != words.startswith(WAITING), found


@pytest.fixture(scope="module")
def cells():
    return {cell.id: unlinked(cell.source) for path in NOTEBOOKS for cell in read(path).cells}


def test_what_searches_found_is_as_the_statements_on_fp8_and_on_half_of_the_peak_say():
    searched = {
        name: machine for name, machine in MACHINES.items() if machine.achieved_flop_per_sec
    }
    assert len(searched) >= 11
    for name, machine in searched.items():
        reached = machine.achieved_flop_per_sec
        assert 0.5 < reached["bf16"] / machine.peak("bf16") < 0.9, name
        assert "mamf-finder" in machine.achieved_source
        if "fp8" in reached:
            assert 1.7 < reached["fp8"] / reached["bf16"] < 2, name
