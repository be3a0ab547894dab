"""Code for GPUs, tried without one: a stand-in with a clock of its own takes the GPU's place."""

import re
import types
import weakref

import pytest
import torch

from course_utils.core import measure
from course_utils.core.measure import on_gpu
from course_utils.core.measure.results import result_of
from course_utils.engine.labs.lab import Progress
from course_utils.subjects.child_processes import process, products
from tests.helpers.small_lab import small_lab

MB = 10**6


class Gpu:
    """A GPU with a queue of work and two clocks.

    `host` is the time on the CPU, and `done` the time at which the GPU has done all that is queued.
    The object stands for the module torch, with all that sampling uses of it.

    The cache keeps what the last call touched until `l2_bytes` have been written, and a call whose
    numbers are in the cache takes half the time. An event knows its time only after someone has
    waited for the GPU.
    """

    uint8 = torch.uint8

    def __init__(self, seconds_of_call, l2_bytes=50 * MB):
        self.seconds_of_call = seconds_of_call  # a function of the call's number
        self.l2_bytes = l2_bytes
        self.host = 100.0
        self.done = 100.0
        self.waited_until = 0.0
        self.calls = 0
        self.waits = 0
        self.swept_bytes = 0
        self.cuda = types.SimpleNamespace(
            Event=lambda enable_timing: Event(self),
            synchronize=self.synchronize,
            get_device_properties=lambda _: types.SimpleNamespace(L2_cache_size=l2_bytes),
        )

    def queue(self, seconds):
        self.host += 5e-6  # to launch it
        self.done = max(self.done, self.host) + seconds

    def call(self):
        seconds = self.seconds_of_call(self.calls)
        is_cached = self.calls > 0 and self.swept_bytes < self.l2_bytes
        if is_cached:
            seconds /= 2
        self.queue(seconds)
        self.calls += 1
        self.swept_bytes = 0

    def synchronize(self):
        self.waits += 1
        self.host = max(self.host, self.done)
        self.waited_until = self.host

    def empty(self, nbytes, dtype, device):
        def zero():
            self.queue(nbytes / 3e12)
            self.swept_bytes += nbytes

        sweeper = torch.empty(0, dtype=dtype)
        sweeper.zero_ = zero
        return sweeper


class Event:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.gpu.queue(0)
        self.at = self.gpu.done

    def elapsed_time(self, other):
        if max(self.at, other.at) > self.gpu.waited_until:
            raise RuntimeError("device not ready")
        return 1000 * (other.at - self.at)


def timed(gpu, at_most_s=2.0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_gpu, "torch", gpu)
        patch.setattr(on_gpu, "time", types.SimpleNamespace(perf_counter=lambda: gpu.host))
        return result_of(on_gpu.samples(gpu.call, "cuda", gpu.host, gpu.host + at_most_s))


@pytest.mark.parametrize(
    "l2_bytes", [4 * MB, 50 * MB, 300 * MB]
)  # with a warm cache, half the time
@pytest.mark.parametrize(
    ("expected", "seconds_of_call"),
    [
        (1e-3, lambda n: 1e-3),
        # This call is shorter than its launch, but the host gets ahead while the cache is swept.
        (2e-6, lambda n: 2e-6),
        # One slow call in five does not change the median.
        (1e-3, lambda n: 5e-3 if n % 5 == 0 else 1e-3),
    ],
)
def test_a_gpus_call_takes_what_its_work_takes_by_the_gpus_own_events(
    seconds_of_call, l2_bytes, expected
):
    seen = timed(Gpu(seconds_of_call, l2_bytes))
    assert seen.seconds == pytest.approx(expected, rel=1e-3)
    assert seen.spread == pytest.approx(0, abs=1e-3)
    assert min(seen.samples) == pytest.approx(expected, rel=1e-3)
    assert seen.statistic == "typical"
    assert seen.clock == "device events"
    assert seen.converged


def test_the_first_calls_are_no_samples_and_the_gpu_is_waited_for_once_for_many():
    slow = {0: 3.0, 1: 0.2}
    gpu = Gpu(lambda n: slow.get(n, 1e-4))
    seen = timed(gpu, at_most_s=10)
    assert max(seen.samples) == pytest.approx(1e-4)
    assert gpu.waits < 3 + len(seen.samples) / 50


def test_sampling_goes_on_until_a_clock_that_rises_has_risen():
    """Calls are slow for the first 50 ms, as they are on a GPU that was idle.

    The first call, which takes 400 ms, is no sample.
    """

    def seconds_of_call(n):
        if n == 0:
            return 0.4
        return 3e-3 if gpu.done < 100.45 else 1e-3

    gpu = Gpu(seconds_of_call)
    seen = timed(gpu)
    assert seen.seconds == pytest.approx(1e-3)
    assert seen.converged
    assert seen.spent_s > 0.4 + on_gpu.QUIET_S


def test_a_clock_that_never_settles_is_sampled_to_the_end_and_said_to_disagree():
    seen = timed(Gpu(lambda n: 1e-3 * 1.002**n), at_most_s=1.0)
    assert not seen.converged
    assert seen.doubt == "the samples do not agree"
    assert 0.8 < seen.spent_s < 1.2


def test_no_call_is_begun_that_the_budget_does_not_pay_for():
    gpu = Gpu(lambda n: 0.3)
    seen = timed(gpu, at_most_s=1.0)
    assert seen.spent_s < 1.0
    assert gpu.calls == 3  # a fourth call would not fit into the second
    assert timed(Gpu(lambda n: 0.0)).spread >= 0  # as with events that tick too coarsely


# Memory that runs out.

TORCHS = (
    "CUDA out of memory. Tried to allocate 64.00 GiB. "
    "GPU 0 has a total capacity of 79.11 GiB of which 600.00 MiB is free."
)
OF_A_CPU = (
    "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 4096 bytes."
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError(TORCHS), "Memory ran out: another 64.00 GiB could not be had."),
        (MemoryError(), "Memory ran out."),
        (MemoryError("no room for its header."), "Memory ran out: no room for its header."),
        (RuntimeError(OF_A_CPU), "Memory ran out: another 4096 bytes could not be had."),
        (RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED"), ""),
    ],
)
def test_memory_that_ran_out_is_known_from_other_failures(error, sentence):
    assert measure.memory_ran_out(error) == sentence


def test_a_lab_survives_memory_that_runs_out_and_holds_none_of_it():
    held = weakref.WeakSet()

    def job(n):
        operand = torch.ones(1)
        held.add(operand)
        yield Progress(0.1, "The first operand is there.")
        if n == 2:
            raise torch.OutOfMemoryError(TORCHS)
        del operand
        yield Progress(1, "Done.")

    panel = small_lab(jobs={"Run": job}, presets={})
    panel.set(n=2)
    panel.start("Run")
    sentence = "Memory ran out: another 64.00 GiB could not be had. Make it smaller, and try again."
    with pytest.raises(ValueError, match=f"{re.escape(sentence)}$"):
        panel.wait()
    assert panel.screen.report == sentence
    assert not held
    panel.set(n=1)
    panel.start("Run")
    panel.wait()
    assert panel.screen.report == "Done."
    panel.close()


def test_a_process_of_its_own_says_in_a_sentence_that_memory_ran_out():
    """It is asked for an operand of 2^50 bytes, which no address space holds."""
    order = {"b": 2**24, "d": 2**24, "k": 1, "dtype": "fp32"}
    sentence = f"Memory ran out: another {2**50} bytes could not be had."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        process.result_of(products.timing_steps, order)
