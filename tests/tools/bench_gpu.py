"""Our timer beside others, on one GPU: `make bench` prints `timers`, `make gpu` writes `errors`.

The same matrix products are timed by `measure.time_call`, by Triton's `do_bench`, by
`torch.utils.benchmark`, and by a plain loop with events, several times each. `timers` has the
spread of these repetitions, and `errors` how far each way is off when the CPU is busy, too.
"""

import itertools
import json
import multiprocessing
import os
import statistics
import sys
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from course_utils.core import measure
from course_utils.core.say import Table, rate_text, seconds_text
from course_utils.subjects.child_processes import products

DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp8")
SIZES = (1024, 2048, 4096, 8192, 16_384)
LONGEST_CALL_S = 0.3  # a product that takes longer is not timed in all these ways
SWEEP_BYTES = 256 * 2**20  # more than any GPU's cache, which writing so much empties
Call = Callable[[], object]


def samples(call: Call, device: str, count: int) -> list[float]:
    """Return seconds of so many calls, each with a cold cache.

    This shares no code with our timer, because our timer is checked against it.
    """
    if torch.device(device).type != "cuda":
        return timeit.repeat(call, number=1, repeat=count)
    sweeper = torch.empty(SWEEP_BYTES // 4, dtype=torch.int32, device=device)
    pairs = []
    for _ in range(count):
        begun = torch.cuda.Event(enable_timing=True)
        ended = torch.cuda.Event(enable_timing=True)
        pairs.append((begun, ended))
    for begun, ended in pairs:
        sweeper.zero_()
        begun.record()
        call()
        ended.record()
    torch.cuda.synchronize()
    return [begun.elapsed_time(ended) / 1000 for begun, ended in pairs]


def methods(device: str) -> dict[str, Callable[[Call], float]]:
    """Return the ways of timing by name: ours, Triton's if it is installed, and a plain loop."""

    def ours(call: Call) -> float:
        return measure.time_call(call, device=device, at_most_s=0.5).seconds

    def by_events(call: Call) -> float:
        # The first five of the samples are for warming up.
        warmed_up = samples(call, device, 35)[5:]
        return statistics.median(warmed_up)

    found = {"time_call": ours}
    if torch.device(device).type == "cuda":
        with suppress(ImportError):
            from triton.testing import do_bench

            # do_bench returns milliseconds.
            found["do_bench"] = lambda call: do_bench(call, return_mode="median") / 1000
    found["events"] = by_events
    return found


def timers(device: str, dtypes: Sequence[str], sizes: Sequence[int], repeats: int = 5) -> Table:
    """Return a table of square products, timed by each method `repeats` times.

    It has each method's median rate and spread (max / min - 1), and the rate of ours / the best.
    """
    ways = methods(device)
    head = ["n × n × n", "dtype"]
    for way in ways:
        head += [way, "spread"]
    head.append("ours / best")
    rows = [head]
    for dtype, n in itertools.product(dtypes, sizes):
        row = [f"{n:,}", dtype]
        try:
            call = matmul_to_time(n, dtype, device)
            # The methods take turns, so that a clock that changes changes for all of them.
            rounds = [[way(call) for way in ways.values()] for _ in range(repeats)]
        except (ValueError, RuntimeError) as error:
            row.append(f"none: {str(error).splitlines()[0]}")
            row += [""] * (len(head) - len(row))
        else:
            row += compared(rounds, flops=2 * n**3)
        rows.append(row)
    return Table(rows)


def matmul_to_time(n: int, dtype: str, device: str) -> Call:
    """Return the product of n × n matrices.

    Raise a ValueError if it takes too long to be timed so often.
    """
    call = products.matmul_call(n, n, n, dtype, device)
    once_s = min(samples(call, device, 2))
    if once_s > LONGEST_CALL_S:
        raise ValueError(f"a call takes {seconds_text(once_s)}")
    return call


def compared(rounds: Sequence[Sequence[float]], flops: int) -> list[str]:
    """Return the cells of a row: each method's rate and spread, and ours / the best.

    Each round has the seconds by each method; the first method is ours.
    """
    cells = []
    medians_s = []
    by_method = zip(*rounds, strict=True)
    for seconds in by_method:
        median_s = statistics.median(seconds)
        medians_s.append(median_s)
        cells.append(rate_text(flops / median_s))
        cells.append(f"{max(seconds) / min(seconds) - 1:.2%}")
    cells.append(f"{min(medians_s) / medians_s[0]:.4f}")
    return cells


# How far off each way is.

ERRORS_IN = ("bf16", "fp32")
ERRORS_AT = (256, 1024, 4096, 8192)


def errors(
    device: str, dtypes: Sequence[str], sizes: Sequence[int], repeats: int = 3
) -> dict[str, dict[str, list[float]]]:
    """Return all errors of each way of timing, in a quiet machine and in one whose CPU is busy.

    The error is the time over the reference, minus 1. The reference of a product is the median of
    200 calls between events in the quiet machine, with a cold cache.
    """
    ways = {**methods(device), "torch.utils.benchmark": by_benchmark}
    calls = []
    for dtype, n in itertools.product(dtypes, sizes):
        call = products.matmul_call(n, n, n, dtype, device)
        reference_s = statistics.median(samples(call, device, 205)[5:])
        calls.append((call, reference_s))
    found = {}
    for state, busy in (("quiet", 0), ("CPU busy", os.cpu_count() or 1)):
        found[state] = {way: [] for way in ways}
        with busy_cores(busy):
            for _, (call, reference_s) in itertools.product(range(repeats), calls):
                for way, timed in ways.items():
                    found[state][way].append(timed(call) / reference_s - 1)
    return found


def by_benchmark(call: Call) -> float:
    """Return the seconds by torch.utils.benchmark: many calls in a row, so the cache is warm."""
    from torch.utils.benchmark import Timer

    timer = Timer("call()", globals={"call": call})
    return timer.blocked_autorange(min_run_time=0.2).median


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """A context in which so many processes compute without a pause."""
    # "spawn", because a process with a GPU must not be forked.
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()


def _spin() -> None:
    while True:
        sum(range(10**6))


def errors_table(found: dict[str, dict[str, list[float]]]) -> Table:
    """Return the median and the worst |error| of each way, in each state of the machine."""
    head = ["", *(f"{state}: {what}" for state in found for what in ("median", "worst"))]
    rows = [head]
    for way in next(iter(found.values())):
        row = [way]
        for by_way in found.values():
            sizes = [abs(error) for error in by_way[way]]
            row += [f"{statistics.median(sizes):.2%}", f"{max(sizes):.1%}"]
        rows.append(row)
    return Table(rows)


def write_errors(folder: str) -> None:
    """Print the table of errors, and write all of them to a file in the folder."""
    found = errors("cuda", ERRORS_IN, ERRORS_AT)
    (Path(folder) / "timers.json").write_text(json.dumps(found), encoding="utf-8")
    print(errors_table(found), flush=True)


def report() -> None:
    """Print the table, or why there is none."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here, so our timer is not held against others on one.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n", flush=True)
    print(timers("cuda", DTYPES, SIZES), flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_errors(*sys.argv[1:])
    else:
        report()
