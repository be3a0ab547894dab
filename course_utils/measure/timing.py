"""How long a call takes, on a machine that is never quite quiet.

Other work on a CPU only ever makes a call slower. So the best of many samples is the one to believe.
Sampling goes on until the three fastest agree, and until it has seen a while in which the machine had
little else to do: a whole burst of other work agrees with itself too. What the rest of the samples say
is the spread. A GPU's clock moves with its power and temperature instead, and there the median is what
one gets: "typical".
"""

import contextlib
import math
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import torch

from course_utils.quantities import Number, seconds_text

try:
    import fcntl
    import resource
except ImportError:  # not on Windows, where this course runs inside WSL2
    fcntl = resource = None

SAMPLE_S = 200e-6  # shorter calls are repeated until a sample takes this long
AGREEMENT = 0.01  # between the fastest samples
QUIET_S = 0.15  # in all, on a CPU; on a GPU the least time that is sampled
SLICE_S = 0.05  # the system counts its cores' work in hundredths of a second
OTHERS = 0.1  # share of the machine's cores from which on other work counts as a disturbance
L2_FALLBACK_BYTES = 128 * 2**20
SWEEP_BYTES = 256 * 2**20  # at least: while a GPU writes them, the calls that follow get into its queue


@dataclass(frozen=True)
class Step:
    """How far a measurement is, and what there is to say by now."""

    fraction: Number
    report: str
    numbers: Mapping[str, Number] = field(default_factory=dict)  # for whoever draws them


@dataclass(frozen=True)
class Timing:
    """What was measured: every sample in seconds a call, and what to make of them."""

    samples: tuple[Number, ...]
    statistic: str  # which of the samples `seconds` is: "best" or "typical"
    converged: bool  # whether sampling ended because the samples agreed, and not because time was up
    clock: str  # "thread time", "wall time" or "device events"
    spent_s: Number  # the whole measurement, waiting included
    disturbance: str = ""  # what was seen of other work; nothing on a quiet machine

    @property
    def best(self) -> Number:
        """The fastest sample."""
        return min(self.samples)

    @property
    def typical(self) -> Number:
        """The median."""
        return statistics.median(self.samples)

    @property
    def seconds(self) -> Number:
        """Of one call: the best sample on a CPU, the typical one on a GPU; `statistic` says which."""
        return self.best if self.statistic == "best" else self.typical

    @property
    def spread(self) -> Number:
        """(typical - best) / best."""
        return self.typical / self.best - 1

    @property
    def quiet(self) -> bool:
        """Whether nothing was seen that would make the time doubtful."""
        return self.converged and not self.disturbance

    @property
    def doubt(self) -> str:
        """What makes the time doubtful, if anything does."""
        if self.quiet:
            return ""
        few = "only one sample" if len(self.samples) == 1 else f"only {len(self.samples)} samples"
        return self.disturbance or (few if len(self.samples) < 3 else "the samples do not agree")

    def __repr__(self) -> str:
        doubt = "" if self.quiet else f"; {self.doubt}"
        return (
            f"{seconds_text(self.seconds)} ({self.statistic} of {len(self.samples)} samples, {self.clock}, "
            f"spread {self.spread:.1%}{doubt})"
        )


def time_call(
    fn: Callable[[], object], *, device: str = "cpu", threads: int = 1, at_most_s: Number = 2.0
) -> Timing:
    """Seconds of one call of fn.

    `at_most_s` is exceeded by one call at most. On a CPU torch runs on one thread, unless you ask for
    more. One measurement at a time on each device: a second one, in whatever process, waits its turn.
    """
    steps = timing_steps(fn, device=device, threads=threads, at_most_s=at_most_s)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def timing_steps(
    fn: Callable[[], object], *, device: str = "cpu", threads: int = 1, at_most_s: Number = 2.0
) -> Generator[Step, None, Timing]:
    """time_call, one sample after another: between two steps it can be told of, or dropped."""
    if not at_most_s > 0:
        raise ValueError(f"A measurement needs some time: at_most_s must be above 0, not {at_most_s!r}.")
    begun = time.perf_counter()
    deadline = begun + at_most_s
    with _lock_file(device) as lock:
        alone = yield from _wait_for(lock, begun, deadline)
        sample = _device_samples if torch.device(device).type == "cuda" else _samples
        on_it = torch.cuda.device(device) if torch.device(device).type == "cuda" else contextlib.nullcontext()
        with cpu_threads(threads), on_it:
            timing = yield from sample(fn, device, begun, deadline)
    if not alone:
        return _with(timing, disturbance="another measurement held this device all the time")
    return timing


def _with(timing: Timing, **changes: object) -> Timing:
    return Timing(**{**vars(timing), **changes})


# On a CPU.


def _samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Generator[Step, None, Timing]:
    clock, others = _Clock(device), _OtherWork()
    latest = clock.sample(fn, 1)  # cold: counts only if there is no time for another
    if time.perf_counter() < deadline:
        latest = clock.sample(fn, 1)  # warm: counts if it is long enough to be a sample
    again = max(1, math.ceil(SAMPLE_S / max(latest.wall_s, 1e-7)))
    taken = [latest] if again == 1 else []
    fastest = [sample.wall_s if sample.waits else sample.cpu_s for sample in taken]
    converged = False
    while time.perf_counter() + (again > 1) * SAMPLE_S < deadline and not converged:
        sample = clock.sample(fn, again)
        taken.append(sample)
        fastest = sorted([*fastest, sample.wall_s if sample.waits else sample.cpu_s])[:3]
        agree = len(fastest) == 3 and fastest[2] <= fastest[0] * (1 + AGREEMENT)
        others.look()
        converged = agree and others.quiet_s >= QUIET_S
        yield Step(
            min(1.0, (time.perf_counter() - begun) / (deadline - begun)),
            f"{len(taken)} samples, the best {seconds_text(fastest[0])}",
        )
    kept = taken or [latest]
    # A call that waits of its own accord, for a file or for other threads, is not told by its own thread's clock.
    by_wall = clock.many_threads or all(sample.waits for sample in kept)
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
    """One call's share of a sample, by two clocks, and whether it gave the core away of its own accord."""

    wall_s: Number
    cpu_s: Number
    waits: bool


class _Clock:
    def __init__(self, device: str) -> None:
        self.synchronize = (
            torch.accelerator.synchronize if torch.device(device).type != "cpu" else lambda: None
        )
        self.many_threads = torch.get_num_threads() > 1 or torch.device(device).type != "cpu"

    def sample(self, fn: Callable[[], object], again: int) -> _Sample:
        self.synchronize()
        waits, wall, cpu = _waits(), time.perf_counter(), time.thread_time()
        for _ in range(again):
            fn()
        self.synchronize()
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
        busy = (
            sum(cores)
            - cores.idle
            - sum(getattr(cores, name, 0) for name in ("iowait", "guest", "guest_nice"))
        )
        return time.perf_counter(), busy - time.process_time()

    def look(self) -> None:
        """Add the time since the last look to the quiet time, if it was."""
        if time.perf_counter() - self._latest[0] >= SLICE_S:
            now = self._now()
            if _share(self._latest, now) < OTHERS:
                self.quiet_s += now[0] - self._latest[0]
            self._latest = now

    @property
    def in_words(self) -> str:
        """What to say of the whole time; nothing if enough of it was quiet."""
        if self.quiet_s >= QUIET_S:
            return ""
        now = self._now()
        if now[0] - self._begun[0] < SLICE_S:
            return ""  # too short to tell
        share = _share(self._begun, now)
        return f"other work took {share:.0%} of the machine's cores" if share >= OTHERS else ""


def _share(before: tuple[Number, Number], after: tuple[Number, Number]) -> Number:
    return (after[1] - before[1]) / (after[0] - before[0]) / (psutil.cpu_count() or 1)


def _waits() -> Number:
    """How often this thread has given its core away of its own accord; where nobody counts, always."""
    if not hasattr(resource, "RUSAGE_THREAD"):  # macOS
        return math.inf
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


_thread_counts: list[int] = []  # what it was before, and then what each that is within asked for
_counting = threading.Lock()


@contextmanager
def cpu_threads(number: int) -> Iterator[None]:
    """torch runs on so many threads within, and on as many as before when the last that asked is done."""
    with _counting:
        _thread_counts.extend([number] if _thread_counts else [torch.get_num_threads(), number])
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with _counting:
            _thread_counts.pop(len(_thread_counts) - 1 - _thread_counts[::-1].index(number))
            torch.set_num_threads(_thread_counts[-1])
            if len(_thread_counts) == 1:
                _thread_counts.clear()


# On a GPU.


def _device_samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Generator[Step, None, Timing]:
    """An event before and after each call, the second-level cache emptied in between, the median of all."""
    cache = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", L2_FALLBACK_BYTES)
    sweeper = torch.empty(max(2 * cache, SWEEP_BYTES), dtype=torch.uint8, device=device)
    (latest,) = _event_times(fn, sweeper, 1)  # cold: kernels are loaded, algorithms picked
    if time.perf_counter() < deadline:
        (latest,) = _event_times(fn, sweeper, 1)
    warm = time.perf_counter()
    samples: list[Number] = []
    converged = False
    batch = 1
    while time.perf_counter() + batch * latest < deadline and not converged:
        samples += _event_times(fn, sweeper, batch)
        latest = samples[-1]
        half = len(samples) // 2
        if half >= 10:
            earlier, later = statistics.median(samples[:half]), statistics.median(samples[half:])
            long_enough = time.perf_counter() - warm >= QUIET_S  # a clock takes a while to rise
            converged = long_enough and abs(earlier / later - 1) <= AGREEMENT
        batch = max(1, min(100, int(0.05 / max(latest, 1e-6))))
        yield Step(
            min(1.0, (time.perf_counter() - begun) / (deadline - begun)),
            f"{len(samples)} samples, the typical {seconds_text(statistics.median(samples))}",
        )
    return Timing(
        samples=tuple(samples or [latest]),
        statistic="typical",
        converged=converged,
        clock="device events",
        spent_s=time.perf_counter() - begun,
    )


def _event_times(fn: Callable[[], object], sweeper: torch.Tensor, calls: int) -> list[Number]:
    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)
    ]
    for before, after in events:
        sweeper.zero_()
        before.record()
        fn()
        after.record()
    torch.cuda.synchronize()
    return [max(before.elapsed_time(after) / 1000, 1e-9) for before, after in events]  # ticks are coarse


# One at a time.


@contextmanager
def _lock_file(device: str) -> Iterator[int | None]:
    """An open file that stands for the device, for all processes of this user; None where there can be none."""
    if fcntl is None:
        yield None
        return
    which, descriptor = torch.device(device), None
    name = f"course-utils-timing-{os.getuid()}-{which.type}-{which.index or 0}.lock"
    # Better timed beside another than not at all: there may be no room, or a file or link of someone else's.
    with contextlib.suppress(OSError):
        path = Path(tempfile.gettempdir()) / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough if a child has inherited it
            os.close(descriptor)


def _wait_for(lock: int | None, begun: Number, deadline: Number) -> Generator[Step, None, bool]:
    """Until the lock is ours, or time is up; whether it is ours."""
    while lock is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.perf_counter()
            if now >= deadline:
                return False
            holder = os.pread(lock, 20, 0).decode(errors="replace")
            holder = holder if holder.isdecimal() else "unknown"
            yield Step(
                (now - begun) / (deadline - begun),
                f"Waiting: process {holder} is measuring on this device, and two would time each other.",
            )
            time.sleep(min(0.05, max(0.0, deadline - now)))
        else:
            with contextlib.suppress(
                OSError
            ):  # on a full disk the others wait for a number they do not learn
                os.ftruncate(lock, 0)
                os.pwrite(lock, str(os.getpid()).encode(), 0)
            return True
    return True
