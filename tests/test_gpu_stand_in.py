"""The code for GPUs as far as it can be held to its word without one: by a stand-in with a clock of its own."""

import re
import types

import pytest
import torch

from course_utils import measure
from course_utils.labs.lab import Progress
from course_utils.measure import on_gpu
from course_utils.measure.results import result_of
from course_utils.workers import process, products
from tests.small_lab import small_lab

MB = 10**6


class Gpu:
    """A queue of work, and two clocks: the host's, and the time at which the GPU has done all that is queued.

    Its cache keeps what the last call touched until so many bytes have been written. A call whose numbers are
    in the cache takes half the time. Events know their time only after someone waited for the GPU.
    """

    launch_s = 5e-6

    def __init__(self, seconds_of_call, l2_bytes=50 * MB, bytes_per_sec=3e12):
        self.seconds_of_call = seconds_of_call  # of the n-th call
        self.l2_bytes, self.bytes_per_sec = l2_bytes, bytes_per_sec
        self.host = self.done = 100.0
        self.calls = self.waits = self.waited_until = 0
        self.swept_bytes = 0

    def _queue(self, seconds):
        self.host += self.launch_s
        self.done = max(self.done, self.host) + seconds

    def call(self):
        cached = self.calls and self.swept_bytes < self.l2_bytes
        self._queue(self.seconds_of_call(self.calls) / (2 if cached else 1))
        self.calls += 1
        self.swept_bytes = 0

    def sweep(self, nbytes):
        self._queue(nbytes / self.bytes_per_sec)
        self.swept_bytes += nbytes

    def synchronize(self):
        self.waits += 1
        self.host = self.waited_until = max(self.host, self.done)

    def torch(self):
        """What sampling asks of torch."""
        gpu = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing

            def record(self):
                gpu._queue(0)
                self.at = gpu.done

            def elapsed_time(self, other):
                if max(self.at, other.at) > gpu.waited_until:
                    raise RuntimeError("device not ready")
                return 1000 * (other.at - self.at)

        class Sweeper(torch.Tensor):
            def zero_(self):
                gpu.sweep(self.nbytes_there)

        def empty(size, dtype, device):
            assert device == "cuda"
            here = torch.empty(1, dtype=dtype).as_subclass(Sweeper)
            here.nbytes_there = size * dtype.itemsize
            return here

        cuda = types.SimpleNamespace(
            Event=Event,
            synchronize=self.synchronize,
            get_device_properties=lambda _: types.SimpleNamespace(L2_cache_size=self.l2_bytes),
        )
        return types.SimpleNamespace(cuda=cuda, empty=empty, uint8=torch.uint8)


def timed(gpu, at_most_s=2.0):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_gpu, "torch", gpu.torch())
        patch.setattr(on_gpu, "time", types.SimpleNamespace(perf_counter=lambda: gpu.host))
        return result_of(on_gpu.samples(gpu.call, "cuda", gpu.host, gpu.host + at_most_s))


@pytest.mark.parametrize(
    ("seconds_of_call", "l2_bytes", "expected"),
    [
        (lambda n: 1e-3, 50 * MB, 1e-3),
        (lambda n: 1e-3, 4 * MB, 1e-3),  # from the cache it would be half of that
        (lambda n: 1e-3, 300 * MB, 1e-3),
        (
            lambda n: 2e-6,
            50 * MB,
            2e-6,
        ),  # shorter than its launch: while the cache is swept, the host gets ahead
        (
            lambda n: 5e-3 if n % 5 == 0 else 1e-3,
            50 * MB,
            1e-3,
        ),  # the median, which one slow call in five leaves
    ],
)
def test_a_gpus_call_takes_what_its_work_takes_by_the_gpus_own_events(seconds_of_call, l2_bytes, expected):
    seen = timed(Gpu(seconds_of_call, l2_bytes))
    assert (seen.seconds, seen.spread) == (pytest.approx(expected, rel=1e-3), pytest.approx(0, abs=1e-3))
    assert min(seen.samples) == pytest.approx(expected, rel=1e-3)
    assert (seen.statistic, seen.clock, seen.converged) == ("typical", "device events", True)


def test_the_first_calls_are_no_samples():
    seen = timed(Gpu(lambda n: 3.0 if n == 0 else 0.2 if n == 1 else 1e-3), at_most_s=10)
    assert max(seen.samples) == pytest.approx(1e-3)


def test_the_gpu_is_waited_for_once_for_many_short_calls():
    gpu = Gpu(lambda n: 1e-4)
    seen = timed(gpu)
    assert gpu.waits < 3 + len(seen.samples) / 50


def test_sampling_goes_on_until_a_clock_that_rises_has_risen():
    """Slow for the first 50 ms, as a GPU that was idle is; a first call that takes long is no sampling."""
    gpu = Gpu(lambda n: 0)
    gpu.seconds_of_call = lambda n: 0.4 if n == 0 else 3e-3 if gpu.done < 100.45 else 1e-3
    seen = timed(gpu)
    assert seen.seconds == pytest.approx(1e-3)
    assert seen.converged
    assert seen.spent_s > 0.4 + on_gpu.QUIET_S


def test_a_clock_that_never_settles_is_sampled_to_the_end_and_said_to_disagree():
    seen = timed(Gpu(lambda n: 1e-3 * 1.002**n), at_most_s=1.0)
    assert (seen.converged, seen.doubt) == (False, "the samples do not agree")
    assert 0.8 < seen.spent_s < 1.2


def test_no_call_is_begun_that_the_budget_does_not_pay_for():
    gpu = Gpu(lambda n: 0.3)
    assert timed(gpu, at_most_s=1.0).spent_s < 1.0  # a fourth call would be too much, and that is known
    assert gpu.calls == 3


def test_events_that_tick_too_coarsely_give_no_time_of_nothing():
    assert timed(Gpu(lambda n: 0.0)).spread >= 0


# Which GPU has which units.


@pytest.mark.parametrize(
    ("capability", "hip", "tf32", "fp8"),
    [
        ((7, 5), None, False, False),  # T4
        ((8, 0), None, True, False),  # A100
        ((8, 9), None, True, True),  # L4
        ((9, 0), None, True, True),  # H100
        ((9, 4), "6.2", False, False),  # MI300X, whose numbers mean something else
    ],
)
def test_tf32_and_fp8_are_for_the_gpus_that_have_them(monkeypatch, capability, hip, tf32, fp8):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    assert products._is_nvidia("cuda", (8, 0)) == tf32
    assert products._is_nvidia("cuda", (8, 9)) == fp8
    refusals = r"this device has none|no units for fp8|formats of their own"
    for dtype in [name for name, has in (("tf32", tf32), ("fp8", fp8)) if not has]:
        with pytest.raises(ValueError, match=refusals):
            products.matmul_call(16, 16, 16, dtype, "cuda")


# Memory that runs out.

TORCHS = (
    "CUDA out of memory. Tried to allocate 64.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 78.50 GiB is free. "
    "Including non-PyTorch memory, this process has 600.00 MiB memory in use."
)
OF_A_CPU = "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes."


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError(TORCHS), "Memory ran out: another 64.00 GiB could not be had."),
        (MemoryError(), "Memory ran out."),
        (MemoryError("no room for its header."), "Memory ran out: no room for its header."),
        (RuntimeError(OF_A_CPU), "Memory ran out: another 4096 bytes could not be had."),
        (RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED"), ""),
        (ValueError("sizes"), ""),
    ],
)
def test_memory_that_ran_out_is_known_from_other_failures(error, sentence):
    assert measure.memory_ran_out(error) == sentence


class Tensor:
    """Stands for memory: how much is held."""

    held = 0

    def __init__(self):
        Tensor.held += 1

    def __del__(self):
        Tensor.held -= 1


def test_a_lab_survives_memory_that_runs_out_and_holds_none_of_it():
    def job(n):
        first = Tensor()
        yield Progress(0.1, "The first operand is there.")
        if n == 2:
            raise torch.OutOfMemoryError(TORCHS)
        del first
        yield Progress(1, "Done.")

    panel = small_lab(jobs={"Run": job}, presets={})
    panel.set(n=2)
    panel.start("Run")
    sentence = "Memory ran out: another 64.00 GiB could not be had. Make it smaller, and try again."
    with pytest.raises(ValueError, match=f"{re.escape(sentence)}$"):
        panel.wait()
    assert panel.screen.report == sentence
    assert Tensor.held == 0
    panel.set(n=1)
    panel.start("Run")
    panel.wait()
    assert panel.screen.report == "Done."
    panel.close()


def test_a_process_of_its_own_says_in_a_sentence_that_memory_ran_out():
    """As it does here, for an operand of 2^50 bytes: no address space holds that."""
    order = {"b": 2**24, "d": 2**24, "k": 1, "dtype": "fp32"}
    sentence = f"Memory ran out: another {2**50} bytes could not be had."
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        process.result_of(products.timing_steps, order)
