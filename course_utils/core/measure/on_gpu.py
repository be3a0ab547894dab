"""Samples of a call on a GPU: the typical one counts.

Its clock moves with its power and temperature, up and down, so that the median is what one gets.
"""

import statistics
import time
from collections.abc import Callable

import torch

from course_utils.core.measure.results import MeasurementProgress, Steps, Timing
from course_utils.core.say import Number, seconds_text

AGREEMENT = 0.01  # between the medians of the first and the second half
QUIET_S = 0.15  # at least: a clock takes a while to rise
SWEEP_BYTES = (
    256 * 2**20
)  # at least: while a GPU writes them, the calls that follow get into its queue


def samples(
    fn: Callable[[], object], device: str, begun: Number, deadline: Number
) -> Steps[Timing]:
    """Time each call between two events, with the second-level cache emptied before it; the median counts."""
    cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    sweeper = torch.empty(max(2 * cache_bytes, SWEEP_BYTES), dtype=torch.uint8, device=device)
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
        yield MeasurementProgress(
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
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(calls)
    ]
    for before, after in events:
        sweeper.zero_()
        before.record()
        fn()
        after.record()
    torch.cuda.synchronize()
    return [
        max(before.elapsed_time(after) / 1000, 1e-9) for before, after in events
    ]  # ticks are coarse
