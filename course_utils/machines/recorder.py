"""Measure this machine for those who have none like it, and write it down."""

import gc
import itertools
import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from course_utils import measure
from course_utils.datasheets import Machine
from course_utils.machines import at_hand, recorded, workloads
from course_utils.machines.gpu_state import gpu_state
from course_utils.machines.recorded import Recording, Repeat, Workload
from course_utils.machines.workloads import Job
from course_utils.quantities import Number, bytes_text, rate_text, seconds_text
from course_utils.workers import products

SIZES = {"cpu": (1, 16, 64, 256, 1024, 4096), "gpu": (1, 16, 64, 256, 1024, 4096, 16_384)}
SCALES = {"cpu": workloads.CPU, "gpu": workloads.GPU}
ALL_S = 420  # of the eight minutes, so that the last product has time to end
WORKLOADS_S = 150  # of these
_LONGEST_CALL_S = 2.0  # of a product
_WORTH_COLLECTING_BYTES = 2**27
_REPEATED = (1024, 1024, 1024)
Say = Callable[[str], object]


def record(say: Say = print) -> Path:
    """Measure workloads, and a grid of products by dtype, on this machine; returns the file."""
    begun, where = time.monotonic(), at_hand.device()
    state = {"at rest": gpu_state()}
    machine = at_hand.this_machine()
    say(
        f"{machine.name}: {', '.join(f'{d} {rate_text(r)}' for d, r in machine.achieved_flop_per_sec.items())}"
    )
    if state["at rest"]:
        state["in a long product"] = gpu_state(_longest_product(machine, where))
    done, left_out = _workloads(machine, where, begun + WORKLOADS_S, say)
    seconds_by_size, spreads = _products(machine, where, begun + ALL_S, say)
    found = Recording(
        machine,
        taken=time.strftime("%Y-%m-%d"),
        software=f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}",
        seconds_by_size=seconds_by_size,
        spread=_digits(statistics.median(spreads), 3),
        workloads=tuple(done),
        left_out=tuple(left_out),
        state={when: read for when, read in state.items() if read},
    )
    found = replace(found, repeats=repeats(found, where))
    path = recorded.FOLDER / found.file_name
    path.parent.mkdir(exist_ok=True)
    path.write_text(recorded.text_of(found), encoding="utf-8")
    say(
        f"Written: {path.name}, {len(done)} workloads and {len(spreads)} products in {time.monotonic() - begun:.0f} s."
    )
    return path


def _scale(where: str) -> str:
    return "cpu" if where == "cpu" else "gpu"


def _digits(number: Number, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def _longest_product(machine: Machine, where: str) -> Callable[[], object]:
    dtype = max(machine.achieved_flop_per_sec, key=machine.achieved_flop_per_sec.get)
    return products.matmul_call(8192, 8192, 8192, dtype, where)


# Workloads.


def working_dtype(machine: Machine) -> str:
    """bf16 where its products are faster than those in fp32, as on any GPU of the last years; else fp32."""
    reached = machine.achieved_flop_per_sec
    return "bf16" if reached.get("bf16", 0) > reached.get("fp32", 0) else "fp32"


def _workloads(machine: Machine, where: str, deadline: Number, say: Say) -> tuple[list[Workload], list[str]]:
    done, left_out = [], []
    jobs = workloads.jobs(where, working_dtype(machine), SCALES[_scale(where)])
    for number, job in enumerate(jobs):
        share_s = (deadline - time.monotonic()) / (len(jobs) - number)
        try:
            predicted_s = job.flops / machine.achieved_flop_per_sec.get(job.dtype, math.inf)
            if (
                4 * predicted_s > deadline - time.monotonic()
            ):  # warm-up, two samples, and once to see its peak
                raise ValueError(f"it would take {seconds_text(predicted_s)} and more, again and again.")
            done.append(timed(job, where, at_most_s=share_s))
            say(f"{job.name}: {seconds_text(done[-1].seconds)}")
        except ValueError as refusal:
            left_out.append(f"{job.name}: {refusal}")
            say(left_out[-1])
    return done, left_out


def timed(job: Job, where: str, *, at_most_s: Number) -> Workload:
    """The workload's time, and a step's peak memory; a ValueError if it cannot be had, with the machine as before."""
    free = measure.free_bytes(where)
    if job.needs_bytes > free:
        raise ValueError(f"it needs {bytes_text(job.needs_bytes)}, and {bytes_text(free)} are free.")
    if at_most_s <= 0:
        raise ValueError("no time was left for it.")
    try:
        return _timed(job, where, min(at_most_s, 10.0))
    except RuntimeError as error:  # in a torch that lacks a kernel, or short of memory after all
        why = measure.memory_ran_out(error) or str(error).splitlines()[0]
    finally:
        _let_go(job, where)
    raise ValueError(why)


def _timed(job: Job, where: str, at_most_s: Number) -> Workload:
    call = job.make()
    timing = measure.time_call(call, device=where, at_most_s=at_most_s)
    peak = measure.peak_bytes(call, device=where) if job.predicted_peak_bytes else 0
    return Workload(
        job.name,
        dict(job.sizes),
        job.dtype,
        seconds=_digits(timing.seconds, 4),
        spread=_digits(timing.spread, 3),
        flops=job.flops,
        bytes=job.bytes,
        tokens=job.tokens,
        predicted_peak_bytes=job.predicted_peak_bytes,
        peak_bytes=peak,
    )


def _let_go(job: Job, where: str) -> None:
    """What the workload held is for the next one, in whatever sizes it asks for."""
    if job.needs_bytes > _WORTH_COLLECTING_BYTES:
        gc.collect()
    if torch.device(where).type == "cuda":
        torch.cuda.empty_cache()


# Products.


def _products(
    machine: Machine, where: str, deadline: Number, say: Say
) -> tuple[dict[str, dict[tuple[int, int, int], Number]], list[Number]]:
    """Small products first, dtype by dtype, so that a slow machine leaves out the large ones."""
    seconds_by_size: dict[str, dict[tuple[int, int, int], Number]] = {}
    spreads = []
    grid = sorted(itertools.product(SIZES[_scale(where)], repeat=3), key=math.prod)
    wanted = [(size, dtype) for size in grid for dtype in machine.achieved_flop_per_sec]
    for number, (size, dtype) in enumerate(wanted):
        predicted_s = 2 * math.prod(size) / machine.achieved_flop_per_sec[dtype]
        left_s = deadline - time.monotonic()
        if predicted_s > _LONGEST_CALL_S or 3 * predicted_s > left_s:
            continue
        try:
            call = products.matmul_call(*size, dtype, where)
            share_s = max(3 * predicted_s, left_s / (len(wanted) - number))
            timing = measure.time_call(call, device=where, at_most_s=share_s)
        except ValueError:  # a size that this dtype does not come in
            continue
        except RuntimeError as error:
            if not measure.memory_ran_out(error):
                raise
            continue
        seconds_by_size.setdefault(dtype, {})[size] = _digits(timing.seconds, 4)
        spreads.append(timing.spread)
        if number % 100 == 0:
            say(f"{number} of {len(wanted)} products")
    return seconds_by_size, spreads


def repeats(recording: Recording, where: str) -> tuple[Repeat, ...]:
    """Of each dtype one product of a middling size once more: had the machine slowed down, it would show."""
    again = []
    for dtype in recording.seconds_by_size:
        size = recording.nearest(*_REPEATED, dtype)
        try:
            timing = measure.time_call(products.matmul_call(*size, dtype, where), device=where, at_most_s=3.0)
        except (
            ValueError,
            RuntimeError,
        ):  # short of memory now; the review will miss it, and the rest is kept
            continue
        again.append(Repeat(dtype, size, _digits(timing.seconds, 4), _digits(timing.spread, 3)))
    return tuple(again)
