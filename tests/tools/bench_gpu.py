"""Our timer beside others, on one GPU. `make bench` and `make gpu` call it.

The same products, timed by `measure.time_call`, by Triton's `do_bench`, and by a plain loop with events,
several times each; the spread is that of the repetitions.
"""

import itertools
import statistics
import timeit
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch

from course_utils.core import measure
from course_utils.core.say import Table, rate_text, seconds_text
from course_utils.subjects.child_processes import products

DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp8")
SIZES = (1024, 2048, 4096, 8192, 16_384)
LONGEST_CALL_S = 0.3  # of a product that is timed in every way, every time
SWEEP_BYTES = 256 * 2**20
Call = Callable[[], object]


def samples(call: Call, device: str, count: int) -> list[float]:
    """Seconds of so many calls, each with a cold cache. Not our timer's code, for it is what our timer is held against."""
    if torch.device(device).type != "cuda":
        return timeit.repeat(call, number=1, repeat=count)
    sweeper = torch.empty(SWEEP_BYTES // 4, dtype=torch.int32, device=device)
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    for begun, ended in pairs:
        sweeper.zero_()
        begun.record()
        call()
        ended.record()
    torch.cuda.synchronize()
    return [begun.elapsed_time(ended) / 1000 for begun, ended in pairs]


def methods(device: str) -> dict[str, Callable[[Call], float]]:
    """Ways of timing by name: ours, Triton's if it is there, and the median of 30 calls after 5 that do not count."""
    found = {
        "time_call": lambda call: measure.time_call(call, device=device, at_most_s=0.5).seconds
    }
    if torch.device(device).type == "cuda":
        with suppress(ImportError):
            from triton.testing import do_bench

            found["do_bench"] = lambda call: do_bench(call, return_mode="median") / 1000
    return found | {"events": lambda call: statistics.median(samples(call, device, 35)[5:])}


def timers(device: str, dtypes: Sequence[str], sizes: Sequence[int], repeats: int = 5) -> Table:
    """Square products: the median rate of each method, its spread (max / min - 1), and ours beside the best of them."""
    ways = methods(device)
    rows = [
        ["n × n × n", "dtype", *(word for way in ways for word in (way, "spread")), "ours / best"]
    ]
    for dtype, n in itertools.product(dtypes, sizes):
        try:
            call = products.matmul_call(n, n, n, dtype, device)
            once = min(samples(call, device, 2))
            if once > LONGEST_CALL_S:
                raise ValueError(f"a call takes {seconds_text(once)}")
            # In turn, so that a clock that moves moves all of them.
            rounds = [[way(call) for way in ways.values()] for _ in range(repeats)]
        except (ValueError, RuntimeError) as error:
            none = [f"{n:,}", dtype, f"none: {str(error).splitlines()[0]}"]
            rows.append(none + [""] * (len(rows[0]) - len(none)))
            continue
        row, typical = [f"{n:,}", dtype], []
        for taken in zip(*rounds, strict=True):
            typical.append(statistics.median(taken))
            row += [rate_text(2 * n**3 / typical[-1]), f"{max(taken) / min(taken) - 1:.2%}"]
        rows.append([*row, f"{min(typical) / typical[0]:.4f}"])
    return Table(rows)


def report() -> None:
    """Print the table, or why there is none."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here, so our timer is not held against others on one.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n", flush=True)
    print(timers("cuda", DTYPES, SIZES), flush=True)


if __name__ == "__main__":
    report()
