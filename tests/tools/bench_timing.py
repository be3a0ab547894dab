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
    """Print the table."""
    torch.set_num_threads(1)
    methods = {
        "lecture (mean of trials)": lecture,
        "timeit (best of 5)": timeit_best_of_5,
        "torch.utils.benchmark": blocked_autorange,
    }
    truth: dict[str, float] = {}
    results: dict[str, list[tuple[str, float, float]]] = {"time_call": [], **{name: [] for name in methods}}

    def look(name: str, seconds: float) -> None:
        truth[name] = min(truth.get(name, seconds), seconds)

    def quiet_run() -> None:
        for name, fn in calls().items():
            look(name, measure.time_call(fn, at_most_s=4).best)

    quiet_run()
    with bursts():
        for _ in range(ROUNDS):
            for name, fn in calls().items():
                timing = measure.time_call(fn)
                results["time_call"].append((name, timing.seconds, timing.spent_s))
                look(name, timing.seconds)
                for method, run in methods.items():
                    begun = time.perf_counter()
                    seconds = run(fn, timing.spent_s)
                    results[method].append((name, seconds, time.perf_counter() - begun))
                    look(name, seconds)
    quiet_run()

    print(f"timing under bursts      median error   worst error   seconds spent   ({ROUNDS} × {len(truth)})")
    for method, rows in results.items():
        errors = [seconds / truth[name] - 1 for name, seconds, _ in rows]
        spent = statistics.mean(spent for *_, spent in rows)
        print(f"{method:<24} {statistics.median(errors):>12.1%} {max(errors):>13.1%} {spent:>15.2f}")


if __name__ == "__main__":
    timing_methods()
