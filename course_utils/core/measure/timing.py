"""How long a call takes, on a machine that is never quite quiet."""

import time
from collections.abc import Callable

import torch

from course_utils.core.measure import on_cpu, on_gpu
from course_utils.core.measure.on_cpu import cpu_threads
from course_utils.core.measure.results import Steps, Timing, result_of
from course_utils.core.say import Number


def time_call(fn: Callable[[], object], *, device: str = "cpu", at_most_s: Number = 2.0) -> Timing:
    """Time one call of fn, by many calls.

    The measurement ends when the times agree. Otherwise it ends after `at_most_s` seconds, or once
    the call that is running then has ended. On a CPU torch uses one thread. Other work on a GPU is
    not noticed: time one thing at a time.
    """
    return result_of(timing_steps(fn, device=device, at_most_s=at_most_s))


def timing_steps(
    fn: Callable[[], object], *, device: str = "cpu", at_most_s: Number = 2.0
) -> Steps[Timing]:
    """`time_call` as a generator of its progress; closing the generator stops the measurement."""
    if not at_most_s > 0:
        raise ValueError(
            f"A measurement needs some time: at_most_s must be above 0, not {at_most_s!r}."
        )
    begun = time.perf_counter()
    deadline = begun + at_most_s
    with cpu_threads(1):
        # `yield from` hands on the progress, and its value is what `samples` returns: the Timing.
        if torch.device(device).type != "cuda":
            return (yield from on_cpu.samples(fn, device, begun, deadline))
        with torch.cuda.device(device):
            return (yield from on_gpu.samples(fn, device, begun, deadline))
