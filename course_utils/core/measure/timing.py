"""How long a call takes, on a machine that is never quite quiet."""

import time
from collections.abc import Callable
from contextlib import nullcontext

import torch

from course_utils.core.measure import on_cpu, on_gpu
from course_utils.core.measure.on_cpu import cpu_threads
from course_utils.core.measure.results import Steps, Timing, result_of
from course_utils.core.say import Number


def time_call(fn: Callable[[], object], *, device: str = "cpu", at_most_s: Number = 2.0) -> Timing:
    """Seconds of one call of fn.

    `at_most_s` is exceeded by one call at most. On a CPU torch runs on one thread. What else runs
    on a GPU meanwhile is not seen: time one thing at a time.
    """
    return result_of(timing_steps(fn, device=device, at_most_s=at_most_s))


def timing_steps(
    fn: Callable[[], object], *, device: str = "cpu", at_most_s: Number = 2.0
) -> Steps[Timing]:
    """time_call as a generator of steps, which can be shown; closing it stops the measurement."""
    if not at_most_s > 0:
        raise ValueError(
            f"A measurement needs some time: at_most_s must be above 0, not {at_most_s!r}."
        )
    begun = time.perf_counter()
    deadline = begun + at_most_s
    on_a_gpu = torch.device(device).type == "cuda"
    with cpu_threads(1), torch.cuda.device(device) if on_a_gpu else nullcontext():
        return (yield from (on_gpu if on_a_gpu else on_cpu).samples(fn, device, begun, deadline))
