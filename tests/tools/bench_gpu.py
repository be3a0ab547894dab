"""Our timer and our ceiling beside the best there is, on one GPU. `make bench` and `make gpu` call it.

The first table: the same products, timed by `measure.time_call`, by Triton's `do_bench`, and by a plain loop with events,
several times each; the spread is that of the repetitions. The second: the ceiling that `this_machine()` finds
in seconds, beside the largest rate that a search over shapes finds in a minute, as ml-engineering's
"maximum achievable matmul FLOPS" does it.
"""

import itertools
import math
import random
import statistics
import time
import timeit
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch

from course_utils import measure
from course_utils.machines import at_hand
from course_utils.quantities import Table, rate_text, seconds_text
from course_utils.workers import products

DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp8")
SIZES = (1024, 2048, 4096, 8192, 16_384)
SIDES = (1024, 2048, 3072, 4096, 5120, 6144, 8192, 10_240, 12_288, 16_384, 20_480)
LONGEST_CALL_S = 0.3  # of a product that is timed in every way, every time
SEARCH_S = 30  # for each dtype
SWEEP_BYTES = 256 * 2**20
Call = Callable[[], object]
Shape = tuple[int, int, int]


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


# Timers.


def methods(device: str) -> dict[str, Callable[[Call], float]]:
    """Ways of timing by name: ours, Triton's if it is there, and the median of 30 calls after 5 that do not count."""
    found = {"time_call": lambda call: measure.time_call(call, device=device, at_most_s=0.5).seconds}
    if torch.device(device).type == "cuda":
        with suppress(ImportError):
            from triton.testing import do_bench

            found["do_bench"] = lambda call: do_bench(call, return_mode="median") / 1000
    return found | {"events": lambda call: statistics.median(samples(call, device, 35)[5:])}


def timers(device: str, dtypes: Sequence[str], sizes: Sequence[int], repeats: int = 5) -> Table:
    """Square products: the median rate of each method, its spread (max / min - 1), and ours beside the best of them."""
    ways = methods(device)
    rows = [["n × n × n", "dtype", *(word for way in ways for word in (way, "spread")), "ours / best"]]
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


# Ceilings.


def search(
    dtype: str, device: str, sides: Sequence[int], at_most_s: float
) -> tuple[Shape, float, int] | None:
    """The best shape, its median rate, and how many were tried; None if none runs.

    Every shape in a drawn order until time is up, 10 calls each, and the best 5 once more with 50.
    """
    deadline, rates = time.monotonic() + 0.8 * at_most_s, {}
    shapes = list(itertools.product(sides, repeat=3))
    random.Random(0).shuffle(shapes)
    for shape in shapes:
        if time.monotonic() > deadline:
            break
        with suppress(ValueError, RuntimeError):  # no such units, or too little memory
            rates[shape] = _rate(shape, dtype, device, 10)
    finals = {shape: _rate(shape, dtype, device, 50) for shape in sorted(rates, key=rates.get)[-5:]}
    best = max(finals, key=finals.get, default=None)
    return best and (best, finals[best], len(rates))


def _rate(shape: Shape, dtype: str, device: str, count: int) -> float:
    call = products.matmul_call(*shape, dtype, device)
    return 2 * math.prod(shape) / statistics.median(samples(call, device, 3 + count)[3:])


def ceilings(device: str, dtypes: Sequence[str], sides: Sequence[int], at_most_s: float) -> Table:
    """`this_machine()`'s ceiling beside the search's; `at_most_s` is for each dtype."""
    machine = at_hand.this_machine.__wrapped__()  # measured now, and not remembered
    rows = [[machine.name, "this_machine()", "search", "at", "ours / search", "shapes"]]
    for dtype in dtypes:
        ours, found = machine.achieved_flop_per_sec.get(dtype), search(dtype, device, sides, at_most_s)
        row = [dtype, "none here", "", "", "", ""]
        if ours and found:
            shape, rate, tried = found
            at = " × ".join(map(str, shape))
            row = [dtype, rate_text(ours), rate_text(rate), at, f"{ours / rate:.4f}", f"{tried:,}"]
        rows.append(row)
    return Table(rows)


def report() -> None:
    """Print both tables, or why there are none."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here, so our timer is not held against others on one.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n", flush=True)
    print(timers("cuda", DTYPES, SIZES), "\n", flush=True)
    print(ceilings("cuda", DTYPES, SIDES, at_most_s=SEARCH_S), flush=True)


if __name__ == "__main__":
    report()
