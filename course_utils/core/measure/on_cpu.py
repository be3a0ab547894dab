"""Samples of a call on a CPU: the best one counts.

Other work on a CPU only ever makes a call slower. So the best of many samples is the one to
believe. Sampling goes on until the three fastest agree, and until there was a while in which the
machine had little else to do, because samples agree during a long burst of other work, too. The
other samples only tell the spread.
"""

import math
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import psutil
import torch

from course_utils.core.measure.results import MeasurementProgress, Steps, Timing
from course_utils.core.say import Number, seconds_text
from course_utils.core.say.language import template, translated

BEST_SO_FAR = template("{count} samples, the best {time}")
SAMPLE_S = 200e-6  # shorter calls are repeated until a sample takes this long
AGREEMENT = 0.01  # how far the three fastest samples may be apart, as a share
QUIET_S = 0.15  # how long the machine has to have little else to do, in all
# The least time between two looks at other work, because the system counts its cores' work in
# hundredths of a second.
SLICE_S = 0.05
DISTURBING = 0.1  # share of the machine's cores from which on other work counts as a disturbance
# Times in psutil's list that are no work of a core, or are counted twice: a virtual machine's time
# ("guest") is part of "user" already.
NOT_BUSY = ("idle", "iowait", "guest", "guest_nice")


def samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Steps[Timing]:
    """Sample until the samples agree, or until the deadline. Progress is counted from `begun`."""
    on_a_cpu = torch.device(device).type == "cpu"  # where a call has ended when it returns
    synchronize = (lambda: None) if on_a_cpu else torch.accelerator.synchronize
    others = _OtherWork()  # of other processes, watched from now on
    latest = _one_call(fn, synchronize, deadline)
    calls = max(1, math.ceil(SAMPLE_S / max(latest.wall_s, 1e-7)))  # 1e-7: never divide by 0
    if calls == 1:
        taken = [latest]  # one call is long enough to be a sample
        sample_s = 0.0  # a long call is begun at any time before the deadline
    else:
        taken = []
        sample_s = SAMPLE_S
    fastest = [sample.compared_s for sample in taken]
    converged = False
    while time.perf_counter() + sample_s < deadline and not converged:
        latest = _sample(fn, calls, synchronize)
        taken.append(latest)
        fastest = sorted([*fastest, latest.compared_s])[:3]
        agree = len(fastest) == 3 and fastest[2] <= fastest[0] * (1 + AGREEMENT)
        others.look()
        converged = agree and others.quiet_s >= QUIET_S
        fraction = min(1.0, (time.perf_counter() - begun) / (deadline - begun))
        gaps = {"count": f"{len(taken)}", "time": seconds_text(fastest[0])}
        yield MeasurementProgress(fraction, BEST_SO_FAR, gaps=gaps)
    if not taken:
        taken.append(latest)
    # The thread's clock stands still while the thread waits, for a GPU, a file or other threads. So
    # the wall clock tells the time of a call that waits.
    by_wall = not on_a_cpu or all(sample.waits for sample in taken)
    return Timing(
        samples=tuple(sample.wall_s if by_wall else sample.cpu_s for sample in taken),
        statistic="best",
        converged=converged,
        clock="wall time" if by_wall else "thread time",
        spent_s=time.perf_counter() - begun,
        disturbance=others.in_words,
    )


@dataclass(frozen=True)
class _Sample:
    """The seconds of one call by two clocks, and whether the call waits for something.

    `wall_s` is by the clock on the wall, and `cpu_s` the time in which the call's thread ran.
    """

    wall_s: Number
    cpu_s: Number
    waits: bool

    @property
    def compared_s(self) -> Number:
        """The seconds by which samples are compared while they are taken.

        That is wall time if the call waits, for a file or other threads. Otherwise it is the time
        in which its thread ran.
        """
        return self.wall_s if self.waits else self.cpu_s


def _one_call(
    fn: Callable[[], object], synchronize: Callable[[], None], deadline: Number
) -> _Sample:
    """Time one call: a second, warm one if the deadline leaves time for it, or else the first.

    The first call is slower, because it also loads what later calls find in memory.
    """
    first = _sample(fn, 1, synchronize)
    return _sample(fn, 1, synchronize) if time.perf_counter() < deadline else first


def _sample(fn: Callable[[], object], calls: int, synchronize: Callable[[], None]) -> _Sample:
    """Time `calls` calls as one sample, whose seconds are those of one call.

    A call waits for something if the thread has waited at least as often as `fn` was called.
    """
    synchronize()
    waits_before = _waits()
    wall_begun = time.perf_counter()
    cpu_begun = time.thread_time()
    for _ in range(calls):
        fn()
    synchronize()
    cpu_s = time.thread_time() - cpu_begun
    wall_s = time.perf_counter() - wall_begun
    waits = _waits() >= waits_before + calls
    cpu_s = max(cpu_s, 1e-9)  # never 0, because times are divided by each other
    return _Sample(wall_s / calls, cpu_s / calls, waits)


class _Clocks(NamedTuple):
    """The wall clock, and the seconds that the machine's cores have spent on other processes."""

    wall_s: Number
    others_s: Number

    def share_since(self, earlier: "_Clocks") -> Number:
        """The share of the machine's cores that other work took since `earlier`."""
        used_cores = (self.others_s - earlier.others_s) / (self.wall_s - earlier.wall_s)
        cores = psutil.cpu_count() or 1  # psutil returns None where it cannot count them
        return used_cores / cores


class _OtherWork:
    """Watches how much the machine's cores work for other processes, since this object was made.

    `quiet_s` is for how many seconds, in all, they had little of such work.
    """

    def __init__(self) -> None:
        self.quiet_s = 0.0
        self._begun = self._now()
        self._latest = self._begun

    @staticmethod
    def _now() -> _Clocks:
        """The clocks as they are now. `others_s` is the cores' busy time without this process's."""
        cores = psutil.cpu_times()  # seconds of all cores together, by kind
        # NOT_BUSY has "idle" and others, of which a system may lack some.
        not_busy_s = sum(getattr(cores, name, 0) for name in NOT_BUSY)
        busy_s = sum(cores) - not_busy_s
        return _Clocks(time.perf_counter(), busy_s - time.process_time())

    def look(self) -> None:
        """Add the time since the last look to the quiet time, if it was quiet."""
        # The system counts its cores' work in hundredths of a second: too coarse for a short time.
        if time.perf_counter() - self._latest.wall_s < SLICE_S:
            return
        now = self._now()
        if now.share_since(self._latest) < DISTURBING:
            self.quiet_s += now.wall_s - self._latest.wall_s
        self._latest = now

    @property
    def in_words(self) -> str:
        """A clause on other work, for Timing's `disturbance`; empty if there was little of it.

        It is also empty if the time was too short to tell.
        """
        now = self._now()
        too_short = now.wall_s - self._begun.wall_s < SLICE_S
        if too_short or self.quiet_s >= QUIET_S:
            return ""
        share = now.share_since(self._begun)
        if share < DISTURBING:
            return ""
        return translated("other work took {share} of the machine's cores", share=f"{share:.0%}")


def _waits() -> Number:
    """How often this thread has waited for something, and so given up its core.

    The number is infinite if the system does not count it; then every call seems to wait.
    """
    if not hasattr(resource, "RUSAGE_THREAD"):  # macOS
        return math.inf
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw  # voluntary context switches


_before: list[int] = []  # for each open context, torch's number of threads before the context
_changing = threading.Lock()


@contextmanager
def cpu_threads(number: int) -> Iterator[None]:
    """A context in which torch uses `number` threads.

    When the last such context ends, torch uses as many as before the first.
    """
    with _changing:
        _before.append(torch.get_num_threads())
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with _changing:
            # Contexts of two threads may overlap. In whatever order they end, the last one to end
            # pops the first number, which is torch's from before all of them.
            torch.set_num_threads(_before.pop())
