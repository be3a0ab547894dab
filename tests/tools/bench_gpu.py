"""Our timer and our ceiling beside the best there is, on one GPU. `make bench` and `make gpu` call it.

The first table: the same products, timed by `measure.time_call`, by Triton's `do_bench`, and by a plain loop with events,
several times each; the spread is that of the repetitions. The second: the ceiling that `this_machine()` finds
in seconds, beside the largest rate that a search over shapes finds in a minute, as ml-engineering's
"maximum achievable matmul FLOPS" does it.
"""

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from course_utils import measure
from course_utils.machines import at_hand
from course_utils.quantities import Table, rate_text, seconds_text
from course_utils.workers import products

DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp8")
SIZES = (1024, 2048, 4096, 8192, 16_384)
SIDES = (1024, 2048, 3072, 4096, 5120, 6144, 8192, 10_240, 12_288, 16_384, 20_480)
REPEATS = 5
LONGEST_CALL_S = 0.3  # of a product that is timed in every way, every time
SWEEP_BYTES = 256 * 2**20
Call = Callable[[], object]


def samples(call: Call, device: str, count: int) -> list[float]:
    """Seconds of so many calls, each with a cold cache. Not our timer's code, for it is what our timer is held against."""
    if torch.device(device).type != "cuda":
        found = []
        for _ in range(count):
            begun = time.perf_counter()
            call()
            found.append(time.perf_counter() - begun)
        return found
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


def ours(call: Call, device: str) -> float:
    """The seconds that `time_call` gives."""
    return measure.time_call(call, device=device, at_most_s=0.5).seconds


def a_loop(call: Call, device: str) -> float:
    """The median of 30 calls, after 5 that do not count."""
    samples(call, device, 5)
    return statistics.median(samples(call, device, 30))


def methods(device: str) -> dict[str, Callable[[Call], float]]:
    """Ways of timing by name; Triton's if it is there."""
    found = {"time_call": lambda call: ours(call, device)}
    if torch.device(device).type == "cuda":
        try:
            from triton.testing import do_bench
        except ImportError:
            pass
        else:
            found["do_bench"] = lambda call: do_bench(call, return_mode="median") / 1000
    return found | {"events": lambda call: a_loop(call, device)}


def timers(device: str, dtypes: Sequence[str], sizes: Sequence[int], repeats: int = REPEATS) -> Table:
    """Square products: the median rate of each method, its spread (max / min - 1), and ours beside the best of them."""
    ways = methods(device)
    rows = [["n × n × n", "dtype", *(word for way in ways for word in (way, "spread")), "ours / best"]]
    for dtype, n in itertools.product(dtypes, sizes):
        try:
            call = products.matmul_call(n, n, n, dtype, device)
            once = min(samples(call, device, 2))
            if once > LONGEST_CALL_S:
                raise ValueError(f"a call takes {seconds_text(once)}")
            seconds = {name: [] for name in ways}
            for _ in range(repeats):  # in turn, so that a clock that moves moves all of them
                for name, way in ways.items():
                    seconds[name].append(way(call))
        except (ValueError, RuntimeError) as error:
            rows.append([f"{n:,}", dtype, f"none: {str(error).splitlines()[0]}"])
            rows[-1] += [""] * (len(rows[0]) - len(rows[-1]))
            continue
        typical = {name: statistics.median(taken) for name, taken in seconds.items()}
        told = [
            words
            for name, taken in seconds.items()
            for words in (rate_text(2 * n**3 / typical[name]), f"{max(taken) / min(taken) - 1:.2%}")
        ]
        rows.append([f"{n:,}", dtype, *told, f"{min(typical.values()) / typical['time_call']:.4f}"])
    return Table(rows)


# Ceilings.


@dataclass(frozen=True)
class Found:
    """The shape with the largest rate, and its rates: of the fastest call, in the mean, in the median."""

    shape: tuple[int, int, int]
    largest: float
    mean: float
    median: float
    tried: int
    spent_s: float


def search(dtype: str, device: str, sides: Sequence[int], at_most_s: float) -> Found | None:
    """Every shape in a drawn order until time is up, 10 calls each, the best 5 once more with 50; None if none runs."""
    begun = time.monotonic()
    shapes = list(itertools.product(sides, repeat=3))
    random.Random(0).shuffle(shapes)
    rates: dict[tuple[int, int, int], float] = {}
    for shape in shapes:
        if time.monotonic() - begun > 0.8 * at_most_s:
            break
        if taken := _seconds(shape, dtype, device, 10):
            rates[shape] = _flops(shape) / statistics.median(taken)
    finals = {}
    for shape in sorted(rates, key=rates.get, reverse=True)[:5]:
        if taken := _seconds(shape, dtype, device, 50):
            finals[shape] = taken
    if not finals:
        return None
    best = min(finals, key=lambda shape: statistics.median(finals[shape]) / _flops(shape))
    flops, taken = _flops(best), finals[best]
    return Found(
        best,
        largest=flops / min(taken),
        mean=flops / statistics.mean(taken),
        median=flops / statistics.median(taken),
        tried=len(rates),
        spent_s=time.monotonic() - begun,
    )


def _flops(shape: tuple[int, int, int]) -> int:
    b, d, k = shape
    return 2 * b * d * k


def _seconds(shape: tuple[int, int, int], dtype: str, device: str, count: int) -> list[float]:
    """Nothing if it cannot be had: no such units, or too little memory."""
    try:
        call = products.matmul_call(*shape, dtype, device)
        samples(call, device, 3)
        return samples(call, device, count)
    except (ValueError, RuntimeError):
        return []


def ceilings(device: str, dtypes: Sequence[str], sides: Sequence[int], at_most_s: float) -> Table:
    """`this_machine()`'s ceiling beside the search's, and what each took; `at_most_s` is for each dtype."""
    begun = time.monotonic()
    machine = at_hand.this_machine.__wrapped__()  # measured now, and not remembered
    all_s = time.monotonic() - begun
    head = [
        machine.name,
        "this_machine()",
        "search: median",
        "mean",
        "max",
        "at",
        "ours / search",
        "shapes",
        "took",
    ]
    rows = [head]
    for dtype in dtypes:
        reached, found = machine.achieved_flop_per_sec.get(dtype), search(dtype, device, sides, at_most_s)
        if reached is None or found is None:
            rows.append([dtype, *["none here"] + [""] * (len(head) - 2)])
            continue
        rows.append(
            [
                dtype,
                rate_text(reached),
                *map(rate_text, (found.median, found.mean, found.largest)),
                " × ".join(map(str, found.shape)),
                f"{reached / found.median:.4f}",
                f"{found.tried:,}",
                seconds_text(found.spent_s),
            ]
        )
    rows.append(["all dtypes", f"took {seconds_text(all_s)}", *[""] * (len(head) - 2)])
    return Table(rows)


def report(seconds: float = 300) -> None:
    """Print both tables, or why there are none."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here, so our timer is not held against others on one.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n", flush=True)
    print(timers("cuda", DTYPES, SIZES), "\n", flush=True)
    print(ceilings("cuda", DTYPES, SIDES, at_most_s=seconds / 2 / len(DTYPES)), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Our timer and our ceiling beside others', on this GPU.")
    parser.add_argument("--seconds", type=float, default=300, help="about so long for all of it")
    report(parser.parse_args().seconds)
