"""Make a recording of this machine, for those who have none like it."""

import gc
import itertools
import math
import platform
import statistics
import sys
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

# A recording takes eight minutes, or three in a notebook. After ALL_S seconds, in a notebook after
# GPU_S, no measurement begins, so that the last product has time to end.
ALL_S = 420
GPU_S = 150
WORKLOADS_SHARE = 0.35  # of these seconds, for the workloads; the products get the rest
LONGEST_PRODUCT_S = 2.0  # products that are predicted to take longer are left out
LONGEST_WORKLOAD_S = 10.0  # the longest that a workload is sampled
LEAST_RUNS = 4  # a workload runs to warm up, for two samples, and once to see its peak memory


def on_this_machine(folder: Path | None = None, at_most_s: Number | None = None) -> Path:
    """Measure workloads and a grid of products on this machine, and write them to a recording.

    The path of the recording is returned. Without a folder, the recording is written to the folder
    of all recordings. After `at_most_s` seconds, by default ALL_S, no measurement begins.
    """
    begun = time.monotonic()
    if at_most_s is None:
        at_most_s = ALL_S
    device = at_hand.device()
    machine = at_hand.this_machine()
    rates = (f"{dtype} {rate_text(rate)}" for dtype, rate in machine.achieved_flop_per_sec.items())
    print(f"{machine.name}: {', '.join(rates)}")
    timed_workloads = _workloads(machine, device, begun + at_most_s * WORKLOADS_SHARE)
    seconds_by_size, spreads = _products(machine, device, begun + at_most_s)
    python = f"Python {platform.python_version()}"
    new = Recording(
        machine=machine,
        taken=time.strftime("%Y-%m-%d"),
        software=f"torch {torch.__version__}, {python}, {platform.system()}",
        median_spread=_to_digits(statistics.median(spreads), 3),
        workloads=tuple(timed_workloads),
        seconds_by_size=seconds_by_size,
    )
    if folder is None:
        folder = recording.FOLDER
    path = folder / new.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(recording.text_of(new), encoding="utf-8")
    took = f"{time.monotonic() - begun:.0f} s"
    counts = f"{len(timed_workloads)} workloads and {len(spreads)} products"
    print(f"Written: {path.name}, {counts} in {took}.")
    return path


def on_this_gpu() -> Recording | None:
    """Record this GPU in three minutes, so that labs offer it, too; return the recording.

    Without a GPU, or without a reader's workspace, nothing is recorded, and the result is None.
    """
    folder = workspace()
    if folder is None or at_hand.device() != "cuda":
        return None
    path = on_this_machine(folder / recording.READERS_RECORDINGS, GPU_S)
    new = recording.read(path)
    recording.recordings()[new.name] = new  # where labs look up what was recorded
    return new


def _scale(device: str) -> Scale:
    return workloads.CPU if device == "cpu" else workloads.GPU


def _to_digits(number: Number, digits: int) -> float:
    """Return the number, rounded to `digits` significant digits."""
    return float(f"{number:.{digits}g}")


def _rounded(timing: Timing) -> dict[str, float]:
    """Return a timing as two fields of a Workload, with the digits that a recording keeps."""
    return {"seconds": _to_digits(timing.seconds, 4), "spread": _to_digits(timing.spread, 3)}


# Workloads.


def working_dtype(machine: Machine) -> str:
    """Return bf16 if its products are faster than fp32's, as on any recent GPU; otherwise fp32."""
    reached = machine.achieved_flop_per_sec
    if reached.get("bf16", 0) > reached.get("fp32", 0):
        return "bf16"
    return "fp32"


def _workloads(machine: Machine, device: str, deadline: Number) -> list[Workload]:
    """Time each workload that can run in the time that is left, and print why others are left out.

    Each gets an equal share of the time that is left.
    """
    timed_workloads = []
    jobs = workloads.jobs(device, working_dtype(machine), _scale(device))
    for number, job in enumerate(jobs):
        name = job.workload.name
        left_s = deadline - time.monotonic()
        jobs_left = len(jobs) - number
        try:
            _refuse_too_long(job.workload, machine, left_s)
            workload = timed(job, device, at_most_s=left_s / jobs_left)
        except ValueError as refusal:
            print(f"{name} is left out: {refusal}")
            continue
        timed_workloads.append(workload)
        print(f"{name}: {seconds_text(workload.seconds)}")
    return timed_workloads


def _refuse_too_long(workload: Workload, machine: Machine, left_s: Number) -> None:
    """Raise a ValueError if the workload would take longer than the time that is left.

    If no time is left at all, `timed` raises the ValueError.
    """
    # Where no rate is known, nothing is refused: by an infinite rate the workload takes no time.
    rate = machine.achieved_flop_per_sec.get(workload.dtype, math.inf)
    predicted_s = workload.flops / rate
    if 0 < left_s < LEAST_RUNS * predicted_s:
        run = seconds_text(predicted_s)
        raise ValueError(f"one run would take {run} or more, and {LEAST_RUNS} are needed.")


def timed(job: Job, device: str, *, at_most_s: Number) -> Workload:
    """Return the job's workload with its time and, of a training step, its peak memory.

    If the workload cannot run, raise a ValueError with the reason, once its memory is free again.
    """
    free = measure.free_bytes(device)
    if job.needs_bytes > free:
        raise ValueError(
            f"it needs {bytes_text(job.needs_bytes)}, and {bytes_text(free)} are free."
        )
    if at_most_s <= 0:
        raise ValueError("no time was left for it.")
    try:
        return _timed(job, device, min(at_most_s, LONGEST_WORKLOAD_S))
    except RuntimeError as error:  # in a torch that lacks a kernel, or short of memory after all
        reason = measure.memory_ran_out(error)
        if not reason:
            reason = str(error).splitlines()[0]
    finally:
        # torch's allocator gives the memory back, because the next workload needs other sizes.
        gc.collect()
        torch.cuda.empty_cache()
    # The ValueError is raised here, because in the `except` block `error` still holds all tensors
    # of the call.
    raise ValueError(reason)


def _timed(job: Job, device: str, at_most_s: Number) -> Workload:
    """Make the job's tensors, and return its workload with its time and perhaps its peak memory.

    The peak is measured if the workload has a predicted one; otherwise it is 0. Only `call` refers
    to the large tensors, so `timed` can free them as soon as this function ends.
    """
    call = job.make()
    timing = measure.time_call(call, device=device, at_most_s=at_most_s)
    peak_bytes = 0
    if job.workload.predicted_peak_bytes:
        peak_bytes = measure.peak_bytes(call, device=device)
    return replace(job.workload, **_rounded(timing), peak_bytes=peak_bytes)


# Products.


def _products(
    machine: Machine, device: str, deadline: Number
) -> tuple[dict[str, dict[MatmulSize, Number]], list[Number]]:
    """Time the products; return their seconds, by dtype and size, and the spread of each.

    Small products come first, so that a slow machine leaves out the large ones. A product that
    cannot run on this machine is left out, too.
    """
    seconds_by_size: dict[str, dict[MatmulSize, Number]] = {}
    spreads = []
    wanted = list(itertools.product(_grid(_scale(device)), _dtypes_with_a_peak(machine)))
    for number, (size, dtype) in enumerate(wanted):
        predicted_s = 2 * math.prod(size) / machine.achieved_flop_per_sec[dtype]
        least_s = 3 * predicted_s  # warm-up, and two samples
        left_s = deadline - time.monotonic()
        if predicted_s > LONGEST_PRODUCT_S or least_s > left_s:
            continue
        share_s = left_s / (len(wanted) - number)  # an equal share for each that is left
        timing = _time_product(size, dtype, device, max(least_s, share_s))
        if timing:  # None if this machine cannot multiply in this dtype or size
            of_dtype = seconds_by_size.setdefault(dtype, {})
            of_dtype[size] = _rounded(timing)["seconds"]
            spreads.append(timing.spread)
        if number % 100 == 0:
            print(f"{number} of {len(wanted)} products")
    return seconds_by_size, spreads


def _grid(scale: Scale) -> list[MatmulSize]:
    """Return the sizes (B, D, K) of all products, those with the fewest FLOPs first."""
    # Two grids, and not one of all sides, which would have too many sizes to time.
    sizes = set(itertools.product(scale.sides, repeat=3))
    sizes.update(itertools.product(scale.more_sides, repeat=3))
    return sorted(sizes, key=lambda size: (math.prod(size), size))  # the FLOPs are 2BDK


def _dtypes_with_a_peak(machine: Machine) -> list[str]:
    """Return the dtypes of which the machine's data sheet has a peak, the roof of its products.

    Without a data sheet, they are all dtypes in which the machine multiplies.
    """
    reached = machine.achieved_flop_per_sec
    if not machine.has_data_sheet:
        return list(reached)
    return [dtype for dtype in reached if dtype in machine.peak_flop_per_sec]


def _time_product(size: MatmulSize, dtype: str, device: str, at_most_s: Number) -> Timing | None:
    """Return the product's timing; None if it cannot run in this dtype, size or free memory."""
    b, d, k = size
    try:
        call = products.matmul_call(b, d, k, dtype, device)
        return measure.time_call(call, device=device, at_most_s=at_most_s)
    except (ValueError, RuntimeError):
        return None


def main(folder: str = "", at_most_s: str = "") -> None:
    """Record this machine; both may be left out, see `on_this_machine`."""
    on_this_machine(Path(folder) if folder else None, float(at_most_s) if at_most_s else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
