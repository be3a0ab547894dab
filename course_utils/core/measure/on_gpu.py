"""Samples of a call on a GPU: the typical one counts.

A GPU's clock goes up and down with its power and temperature. So the median is the time to expect,
and the best sample is not.
"""

import statistics
import time
from collections.abc import Callable

import torch

from course_utils.core.measure.results import MeasurementProgress, Steps, Timing
from course_utils.core.say import Number, seconds_text
from course_utils.core.say.language import template

AGREEMENT = 0.01  # how far the medians of the first and the second half may be apart, as a share
QUIET_S = 0.15  # the least time of sampling, because the GPU's clock takes a while to rise
LEAST_SAMPLES = 10  # in each half
BATCH_S = 0.05  # how long the calls between two looks at the clock take
MOST_CALLS = 100  # between two looks at the clock
# The least that is overwritten before a call. While the GPU writes so much, the call is queued, so
# that it begins without a pause.
SWEEP_BYTES = 256 * 2**20


def samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Steps[Timing]:
    """Sample until the samples agree, or until the deadline. Progress is counted from `begun`.

    Each call is timed between two events, after the second-level cache was overwritten.
    """
    cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    # Twice the cache, so that nothing of a call before stays in it.
    sweeper = torch.empty(max(2 * cache_bytes, SWEEP_BYTES), dtype=torch.uint8, device=device)
    (latest,) = _event_times(fn, sweeper, 1)  # cold: kernels are loaded, algorithms picked
    if time.perf_counter() < deadline:
        (latest,) = _event_times(fn, sweeper, 1)  # warm: tells how long a batch takes
    sampling_begun = time.perf_counter()
    taken: list[Number] = []
    converged = False
    batch = 1
    while time.perf_counter() + batch * latest < deadline and not converged:
        taken += _event_times(fn, sweeper, batch)
        latest = taken[-1]
        # The GPU's clock takes a while to rise, so samples that agree at once are not enough.
        long_enough = time.perf_counter() - sampling_begun >= QUIET_S
        converged = long_enough and _halves_agree(taken)
        calls = int(BATCH_S / max(latest, 1e-6))  # 1e-6: never divide by 0
        batch = max(1, min(MOST_CALLS, calls))
        yield MeasurementProgress(
            min(1.0, (time.perf_counter() - begun) / (deadline - begun)),
            template("{count} samples, the typical {time}"),
            gaps={"count": f"{len(taken)}", "time": seconds_text(statistics.median(taken))},
        )
    return Timing(
        samples=tuple(taken or [latest]),  # there may have been no time for a batch
        statistic="typical",
        converged=converged,
        clock="device events",
        spent_s=time.perf_counter() - begun,
    )


def _halves_agree(samples: list[Number]) -> bool:
    """Whether the medians of the samples' earlier and later half agree. Few samples never do."""
    half = len(samples) // 2
    if half < LEAST_SAMPLES:
        return False
    earlier = statistics.median(samples[:half])
    later = statistics.median(samples[half:])
    return abs(earlier / later - 1) <= AGREEMENT


def _event_times(fn: Callable[[], object], sweeper: torch.Tensor, calls: int) -> list[Number]:
    """Return the seconds of each call; a nanosecond for a call that was too short for the clock."""
    befores = [torch.cuda.Event(enable_timing=True) for _ in range(calls)]
    afters = [torch.cuda.Event(enable_timing=True) for _ in range(calls)]
    for before, after in zip(befores, afters, strict=True):
        sweeper.zero_()  # so that the second-level cache has nothing of the call before
        before.record()
        fn()
        after.record()
    torch.cuda.synchronize()
    times = []
    for before, after in zip(befores, afters, strict=True):
        elapsed_s = before.elapsed_time(after) / 1000  # torch returns milliseconds
        times.append(max(elapsed_s, 1e-9))
    return times
