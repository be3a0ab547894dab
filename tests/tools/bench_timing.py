"""Ways of timing a call, side by side under bursts of other work. Called by `make bench`.

The truth is the best time ever seen of each call: in long quiet runs before and after, and by any of
the methods in between. Every method gets the time that `time_call` took for the same call just before.
"""

import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.utils.benchmark import Timer

from course_utils import measure

ROUNDS = 8
# Work in fits and starts: arithmetic and copying in turn, for and after a random while.
HOG = """
import random, sys, time
draw, block = random.Random(int(sys.argv[1])), bytearray(64 * 2**20)
while True:
    time.sleep(draw.uniform(0.02, 0.4))
    end = time.monotonic() + draw.uniform(0.02, 0.4)
    while time.monotonic() < end:
        bytes(block) if draw.random() < 0.5 else sum(range(100_000))
"""


@contextmanager
def bursts(hogs: int = 3) -> Iterator[None]:
    """Other processes that work now and then, on a machine with two cores more often than not."""
    running = [subprocess.Popen([sys.executable, "-c", HOG, str(seed)]) for seed in range(hogs)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def calls() -> dict[str, Callable[[], object]]:
    """What is timed: from launch cost to memory to arithmetic."""

    def product(n: int, dtype: torch.dtype) -> Callable[[], object]:
        x, out = torch.randn(n, n).to(dtype), torch.empty(n, n, dtype=dtype)
        return lambda: torch.mm(x, x, out=out)

    y, z = torch.randn(2**20), torch.empty(2**20)
    return {
        "product 64 fp32": product(64, torch.float32),
        "product 256 fp32": product(256, torch.float32),
        "product 512 bf16": product(512, torch.bfloat16),
        "product 1024 fp32": product(1024, torch.float32),
        "1M exponentials": lambda: torch.exp(y, out=z),
        "1M additions": lambda: torch.add(y, y, out=z),
    }


def lecture(fn: Callable[[], object], seconds: float) -> float:
    """The original lecture's way: the mean of trials, without warm-up; here as many as there is time for."""
    trials, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(trials) < 5:
        begun = time.perf_counter()
        fn()
        trials.append(time.perf_counter() - begun)
    return statistics.mean(trials)


def timeit_best_of_5(fn: Callable[[], object], seconds: float) -> float:
    """`python -m timeit`'s way: five equal stretches, the best of them."""
    once = min(timeit.repeat(fn, number=1, repeat=2))
    number = max(1, round(seconds / 5 / once))
    return min(timeit.repeat(fn, number=number, repeat=5)) / number


def blocked_autorange(fn: Callable[[], object], seconds: float) -> float:
    """torch.utils.benchmark's way: the median of its blocks."""
    return Timer("fn()", globals={"fn": fn}).blocked_autorange(min_run_time=seconds).median


def timing_methods() -> None:
    torch.set_num_threads(1)
    methods = {
        "lecture (mean of trials)": lecture,
        "timeit (best of 5)": timeit_best_of_5,
        "torch.utils.benchmark": blocked_autorange,
    }
    rows: list[tuple[str, str, float, float]] = []  # a method, a call, its seconds, and those that were spent

    def quiet_run() -> None:
        for name, fn in calls().items():
            timing = measure.time_call(fn, at_most_s=4)
            rows.append(("", name, timing.best, timing.spent_s))

    quiet_run()
    with bursts():
        for _ in range(ROUNDS):
            for name, fn in calls().items():
                timing = measure.time_call(fn)
                rows.append(("time_call", name, timing.seconds, timing.spent_s))
                for method, run in methods.items():
                    begun = time.perf_counter()
                    seconds = run(fn, timing.spent_s)
                    rows.append((method, name, seconds, time.perf_counter() - begun))
    quiet_run()

    truth = {name: min(seconds for _, call, seconds, _ in rows if call == name) for name in calls()}
    print(f"timing under bursts      median error   worst error   seconds spent   ({ROUNDS} × {len(truth)})")
    for method in ("time_call", *methods):
        errors = [seconds / truth[name] - 1 for by, name, seconds, _ in rows if by == method]
        spent = statistics.mean(spent for by, *_, spent in rows if by == method)
        print(f"{method:<24} {statistics.median(errors):>12.1%} {max(errors):>13.1%} {spent:>15.2f}")


if __name__ == "__main__":
    timing_methods()
