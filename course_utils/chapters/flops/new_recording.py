"""Make a recording of this machine, for those who have none like it."""

import gc
import itertools
import math
import platform
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from course_utils.chapters.flops import workloads
from course_utils.chapters.flops.workloads import Job, Scale
from course_utils.core import measure
from course_utils.core.datasheets import Machine
from course_utils.core.measure import Timing
from course_utils.core.record import workspace
from course_utils.core.say import Number, bytes_text, rate_text, seconds_text
from course_utils.subjects.child_processes import products
from course_utils.subjects.machines import at_hand, recording
from course_utils.subjects.machines.recording import Recording, Workload
from course_utils.subjects.machines.schema import MatmulSize

ALL_S = 420  # of the eight minutes, so that the last product has time to end
WORKLOADS_SHARE = 0.35  # of it
GPU_S = 150  # of the three minutes that a notebook takes
LONGEST_PRODUCT_S = 2.0
LONGEST_WORKLOAD_S = 10.0
LEAST_RUNS = 4  # of a workload: warm-up, two samples, and once to see its peak memory


def on_this_machine(folder: Path | None = None, at_most_s: Number | None = None) -> Path:
    """Measure workloads, and a grid of products by dtype, on this machine; return the file."""
    begun = time.monotonic()
    if at_most_s is None:
        at_most_s = ALL_S
    where = at_hand.device()
    machine = at_hand.this_machine()
    rates = (f"{dtype} {rate_text(rate)}" for dtype, rate in machine.achieved_flop_per_sec.items())
    print(f"{machine.name}: {', '.join(rates)}")
    done = _workloads(machine, where, begun + at_most_s * WORKLOADS_SHARE)
    seconds_by_size, spreads = _products(machine, where, begun + at_most_s)
    python = f"Python {platform.python_version()}"
    found = Recording(
        machine=machine,
        taken=time.strftime("%Y-%m-%d"),
        software=f"torch {torch.__version__}, {python}, {platform.system()}",
        median_spread=_digits(statistics.median(spreads), 3),
        workloads=tuple(done),
        seconds_by_size=seconds_by_size,
    )
    if folder is None:
        folder = recording.FOLDER
    path = folder / found.file_name
    path.parent.mkdir(exist_ok=True)
    path.write_text(recording.text_of(found), encoding="utf-8")
    took = f"{time.monotonic() - begun:.0f} s"
    print(f"Written: {path.name}, {len(done)} workloads and {len(spreads)} products in {took}.")
    return path


def on_this_gpu() -> Recording | None:
    """Record this GPU in three minutes, so that labs offer it, too.

    Return None without a GPU, and where no reader's workspace is.
    """
    folder = workspace()
    if folder is None or at_hand.device() != "cuda":
        return None
    path = on_this_machine(folder / recording.READERS_RECORDINGS, GPU_S)
    found = recording.read(path)
    recording.recordings()[found.name] = found
    return found


def _scale(where: str) -> Scale:
    return workloads.CPU if where == "cpu" else workloads.GPU


def _digits(number: Number, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def _seconds(timing: Timing) -> dict[str, float]:
    """A timing, rounded as a recording has it."""
    return {"seconds": _digits(timing.seconds, 4), "spread": _digits(timing.spread, 3)}


# Workloads.


def working_dtype(machine: Machine) -> str:
    """bf16 if its products are faster than those in fp32, as on any recent GPU; else fp32."""
    reached = machine.achieved_flop_per_sec
    if reached.get("bf16", 0) > reached.get("fp32", 0):
        return "bf16"
    return "fp32"


def _workloads(machine: Machine, where: str, deadline: Number) -> list[Workload]:
    done = []
    jobs = workloads.jobs(where, working_dtype(machine), _scale(where))
    for number, job in enumerate(jobs):
        name = job.workload.name
        left_s = deadline - time.monotonic()
        waiting = len(jobs) - number
        try:
            _refuse_too_long(job.workload, machine, left_s)
            workload = timed(job, where, at_most_s=left_s / waiting)
        except ValueError as refusal:
            print(f"{name} is left out: {refusal}")
            continue
        done.append(workload)
        print(f"{name}: {seconds_text(workload.seconds)}")
    return done


def _refuse_too_long(workload: Workload, machine: Machine, left_s: Number) -> None:
    """Raise a sentence if the workload would take all the time that is left."""
    rate = machine.achieved_flop_per_sec.get(workload.dtype, math.inf)
    predicted_s = workload.flops / rate
    if 0 < left_s < LEAST_RUNS * predicted_s:
        raise ValueError(f"it would take {seconds_text(predicted_s)} and more, again and again.")


def timed(job: Job, where: str, *, at_most_s: Number) -> Workload:
    """The workload with its time, and a step's peak memory.

    If it cannot run, its memory is free again when the ValueError is raised.
    """
    free = measure.free_bytes(where)
    if job.needs_bytes > free:
        raise ValueError(
            f"it needs {bytes_text(job.needs_bytes)}, and {bytes_text(free)} are free."
        )
    if at_most_s <= 0:
        raise ValueError("no time was left for it.")
    try:
        return _timed(job, where, min(at_most_s, LONGEST_WORKLOAD_S))
    except RuntimeError as error:  # in a torch that lacks a kernel, or short of memory after all
        reason = measure.memory_ran_out(error)
        if not reason:
            reason = str(error).splitlines()[0]
    finally:
        # The memory that it held is given back, because the next workload asks for other sizes.
        gc.collect()
        torch.cuda.empty_cache()
    # It is raised here and not above, where the error still holds all tensors of the call.
    raise ValueError(reason)


def _timed(job: Job, where: str, at_most_s: Number) -> Workload:
    call = job.make()
    timing = measure.time_call(call, device=where, at_most_s=at_most_s)
    peak_bytes = 0
    if job.workload.predicted_peak_bytes:
        peak_bytes = measure.peak_bytes(call, device=where)
    return replace(job.workload, **_seconds(timing), peak_bytes=peak_bytes)


# Products.


def _products(
    machine: Machine, where: str, deadline: Number
) -> tuple[dict[str, dict[MatmulSize, Number]], list[Number]]:
    """Time the products of each dtype, and return their seconds and all spreads.

    Small products come first, so that a slow machine leaves out the large ones.
    """
    seconds_by_size: dict[str, dict[MatmulSize, Number]] = {}
    spreads = []
    grid = sorted(itertools.product(_scale(where).sides, repeat=3), key=math.prod)
    wanted = list(itertools.product(grid, _judged_dtypes(machine)))
    for number, (size, dtype) in enumerate(wanted):
        predicted_s = 2 * math.prod(size) / machine.achieved_flop_per_sec[dtype]
        least_s = 3 * predicted_s  # warm-up, and two samples
        left_s = deadline - time.monotonic()
        if predicted_s > LONGEST_PRODUCT_S or least_s > left_s:
            continue
        share_s = left_s / (len(wanted) - number)
        timing = _product(size, dtype, where, max(least_s, share_s))
        if timing:
            seconds_by_size.setdefault(dtype, {})[size] = _seconds(timing)["seconds"]
            spreads.append(timing.spread)
        if number % 100 == 0:
            print(f"{number} of {len(wanted)} products")
    return seconds_by_size, spreads


def _judged_dtypes(machine: Machine) -> list[str]:
    """The dtypes that are on its data sheet, because nobody could judge the rate of another."""
    reached = machine.achieved_flop_per_sec
    if not machine.has_data_sheet:
        return list(reached)
    return [dtype for dtype in reached if dtype in machine.peak_flop_per_sec]


def _product(size: MatmulSize, dtype: str, where: str, at_most_s: Number) -> Timing | None:
    """The product's timing; None if it cannot run, because of its dtype, its size or its memory."""
    b, d, k = size
    try:
        call = products.matmul_call(b, d, k, dtype, where)
        return measure.time_call(call, device=where, at_most_s=at_most_s)
    except (ValueError, RuntimeError):
        return None


if __name__ == "__main__":
    on_this_machine()
