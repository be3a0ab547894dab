"""Samples of a call on a CPU: the best one counts.

Other work on a CPU only ever makes a call slower. So the best of many samples is the one to believe.
Sampling goes on until the three fastest agree, and until it has seen a while in which the machine had
little else to do: a whole burst of other work agrees with itself too. What the rest of the samples say
is the spread.
"""

import math
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
import torch

from course_utils.core.measure.results import MeasurementProgress, Steps, Timing
from course_utils.core.say import Number, seconds_text

SAMPLE_S = 200e-6  # shorter calls are repeated until a sample takes this long
AGREEMENT = 0.01  # between the fastest samples
QUIET_S = 0.15  # in all
SLICE_S = 0.05  # the system counts its cores' work in hundredths of a second
OTHERS = 0.1  # share of the machine's cores from which on other work counts as a disturbance


def samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Steps[Timing]:
    """Sample from `begun` until the samples agree, or until the deadline."""
    on_a_cpu = torch.device(device).type == "cpu"
    synchronize = (lambda: None) if on_a_cpu else torch.accelerator.synchronize
    others = _OtherWork()
    latest = _sample(fn, 1, synchronize)  # cold: counts only if there is no time for another
    if time.perf_counter() < deadline:
        latest = _sample(fn, 1, synchronize)  # warm: counts if it is long enough to be a sample
    again = max(1, math.ceil(SAMPLE_S / max(latest.wall_s, 1e-7)))
    taken = [latest] if again == 1 else []
    fastest = [sample.own_s for sample in taken]
    converged = False
    while time.perf_counter() + (again > 1) * SAMPLE_S < deadline and not converged:
        taken.append(_sample(fn, again, synchronize))
        fastest = sorted([*fastest, taken[-1].own_s])[:3]
        agree = len(fastest) == 3 and fastest[2] <= fastest[0] * (1 + AGREEMENT)
        others.look()
        converged = agree and others.quiet_s >= QUIET_S
        yield MeasurementProgress(
            min(1.0, (time.perf_counter() - begun) / (deadline - begun)),
            f"{len(taken)} samples, the best {seconds_text(fastest[0])}",
        )
    kept = taken or [latest]
    by_wall = not on_a_cpu or all(sample.waits for sample in kept)
    return Timing(
        samples=tuple(sample.wall_s if by_wall else sample.cpu_s for sample in kept),
        statistic="best",
        converged=converged,
        clock="wall time" if by_wall else "thread time",
        spent_s=time.perf_counter() - begun,
        disturbance=others.in_words,
    )


@dataclass(frozen=True)
class _Sample:
    """Seconds per call in one sample, by two clocks, and whether the call waited."""

    wall_s: Number
    cpu_s: Number
    waits: bool

    @property
    def own_s(self) -> Number:
        """Wall time if the call waits, for a file or for other threads; else its own thread's time."""
        return self.wall_s if self.waits else self.cpu_s


def _sample(fn: Callable[[], object], again: int, synchronize: Callable[[], None]) -> _Sample:
    synchronize()
    waits, wall, cpu = _waits(), time.perf_counter(), time.thread_time()
    for _ in range(again):
        fn()
    synchronize()
    cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
    return _Sample(wall / again, max(cpu, 1e-9) / again, _waits() >= waits + again)


class _OtherWork:
    """What the machine's cores did meanwhile, other than this process's work."""

    def __init__(self) -> None:
        self.quiet_s = 0.0
        self._begun = self._latest = self._now()

    @staticmethod
    def _now() -> tuple[Number, Number]:
        """(wall seconds, seconds that cores have spent on others), by the system's own account."""
        cores = psutil.cpu_times()
        not_busy = (
            "idle",
            "iowait",
            "guest",
            "guest_nice",
        )  # guests are counted with the users too
        busy = sum(cores) - sum(getattr(cores, name, 0) for name in not_busy)
        return time.perf_counter(), busy - time.process_time()

    def look(self) -> None:
        """Add the time since the last look to the quiet time, if it was quiet."""
        if time.perf_counter() - self._latest[0] >= SLICE_S:
            now = self._now()
            if _share(self._latest, now) < OTHERS:
                self.quiet_s += now[0] - self._latest[0]
            self._latest = now

    @property
    def in_words(self) -> str:
        """A sentence on other work; empty if there was little, or if the time was too short to tell."""
        now = self._now()
        if self.quiet_s >= QUIET_S or now[0] - self._begun[0] < SLICE_S:
            return ""
        share = _share(self._begun, now)
        return f"other work took {share:.0%} of the machine's cores" if share >= OTHERS else ""


def _share(before: tuple[Number, Number], after: tuple[Number, Number]) -> Number:
    return (after[1] - before[1]) / (after[0] - before[0]) / (psutil.cpu_count() or 1)


def _waits() -> Number:
    """How often this thread has waited and so given its core away; infinite if the system does not count it."""
    if not hasattr(resource, "RUSAGE_THREAD"):  # macOS
        return math.inf
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


_before: list[int] = []  # how many threads there were, by who asks
_asking = threading.Lock()


@contextmanager
def cpu_threads(number: int) -> Iterator[None]:
    """A context in which torch uses `number` threads. After the last one ends, it uses as many as before."""
    with _asking:
        _before.append(torch.get_num_threads())
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with _asking:
            torch.set_num_threads(_before.pop())
