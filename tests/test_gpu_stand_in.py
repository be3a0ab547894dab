"""The code for GPUs as far as it can be held to its word without one: by a stand-in with a clock of its own."""

import re
import types

import pytest
import torch

from course_utils import measure
from course_utils.labs.lab import Progress
from course_utils.measure import alone, on_gpu, timing
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
        self.events = []

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

    def synchronize(self, *_):
        self.waits += 1
        self.host = self.waited_until = max(self.host, self.done)

    # What timing asks of torch and of time.

    def torch(self):
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

        class Device:
            def __init__(self, _):
                pass

            def __enter__(self):
                pass

            def __exit__(self, *_):
                pass

        cuda = types.SimpleNamespace(
            Event=Event,
            device=Device,
            synchronize=self.synchronize,
            get_device_properties=lambda _: types.SimpleNamespace(L2_cache_size=self.l2_bytes),
        )
        same = {
            name: getattr(torch, name) for name in ("device", "uint8", "get_num_threads", "set_num_threads")
        }
        return types.SimpleNamespace(cuda=cuda, empty=empty, **same)

    def time(self):
        return types.SimpleNamespace(
            perf_counter=lambda: self.host, sleep=lambda seconds: setattr(self, "host", self.host + seconds)
        )


def timed(gpu, at_most_s=2.0):
    with pytest.MonkeyPatch.context() as patch:
        for module in (timing, on_gpu):
            patch.setattr(module, "torch", gpu.torch())
            patch.setattr(module, "time", gpu.time())
        patch.setattr(alone, "fcntl", None)
        return measure.time_call(gpu.call, device="cuda", at_most_s=at_most_s)


def test_a_gpus_call_is_told_by_its_events_and_not_by_its_launch():
    seen = timed(Gpu(lambda n: 1e-3))
    assert seen.seconds == pytest.approx(1e-3)
    assert (seen.statistic, seen.clock, seen.converged) == ("typical", "device events", True)


def test_the_first_calls_are_no_samples():
    seen = timed(Gpu(lambda n: 3.0 if n == 0 else 0.2 if n == 1 else 1e-3), at_most_s=10)
    assert max(seen.samples) == pytest.approx(1e-3)


@pytest.mark.parametrize("l2_bytes", [4 * MB, 50 * MB, 300 * MB])
def test_the_cache_is_emptied_before_each_call(l2_bytes):
    seen = timed(Gpu(lambda n: 1e-3, l2_bytes))
    assert min(seen.samples) == pytest.approx(1e-3)  # half of that from the cache


def test_a_call_that_is_shorter_than_its_launch_is_still_told_by_its_work():
    """While the cache is swept, the host gets ahead: between two events stands the call and no launch."""
    seen = timed(Gpu(lambda n: 2e-6))
    assert seen.seconds == pytest.approx(2e-6, rel=1e-3)


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
    assert not seen.converged
    assert 0.8 < seen.spent_s < 1.2
    assert seen.doubt == "the samples do not agree"


def test_what_a_gpu_has_is_the_median_and_one_slow_call_in_five_does_not_move_it():
    seen = timed(Gpu(lambda n: 5e-3 if n % 5 == 0 else 1e-3))
    assert seen.seconds == pytest.approx(1e-3)
    assert seen.spread == pytest.approx(0)


def test_no_call_is_begun_that_the_budget_does_not_pay_for():
    gpu = Gpu(lambda n: 0.3)
    assert timed(gpu, at_most_s=1.0).spent_s < 1.0  # a fourth call would be too much, and that is known
    assert gpu.calls == 3


def test_events_that_tick_too_coarsely_give_no_time_of_nothing():
    assert timed(Gpu(lambda n: 0.0)).spread >= 0


# Which GPU has which units.


@pytest.fixture
def a_gpu(monkeypatch):
    def make(capability, hip=None):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
        monkeypatch.setattr(torch.version, "hip", hip)

    return make


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
def test_tf32_and_fp8_are_for_the_gpus_that_have_them(a_gpu, capability, hip, tf32, fp8):
    a_gpu(capability, hip)
    assert products._is_nvidia("cuda", (8, 0)) == tf32
    assert products._is_nvidia("cuda", (8, 9)) == fp8
    for dtype, has in (("tf32", tf32), ("fp8", fp8)):
        if not has:
            with pytest.raises(
                ValueError, match=r"this device has none|no units for fp8|formats of their own"
            ):
                products.matmul_call(16, 16, 16, dtype, "cuda")


# Memory that runs out.

TORCHS = (
    "CUDA out of memory. Tried to allocate 64.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 78.50 GiB is free. "
    "Including non-PyTorch memory, this process has 600.00 MiB memory in use."
)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError(TORCHS), "Memory ran out: another 64.00 GiB could not be had."),
        (MemoryError(), "Memory ran out."),
        (MemoryError("no room for its header."), "Memory ran out: no room for its header."),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you "
            "tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)"),
            "Memory ran out: another 4398046511104 bytes could not be had.",
        ),
        (RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED"), ""),
        (ValueError("sizes"), ""),
    ],
)  # fmt: skip
def test_memory_that_ran_out_is_told_from_other_failures(error, sentence):
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
    with pytest.raises(
        ValueError, match=r"another 64\.00 GiB could not be had\. Make it smaller, and try again\.$"
    ):
        panel.wait()
    assert (
        panel.screen.report
        == "Memory ran out: another 64.00 GiB could not be had. Make it smaller, and try again."
    )
    assert Tensor.held == 0
    panel.set(n=1)
    panel.start("Run")
    panel.wait()
    assert panel.screen.report == "Done."
    panel.close()


def run_out(say, torchs):
    """Work for a process of its own."""
    raise torch.OutOfMemoryError(torchs) if torchs else MemoryError


@pytest.mark.parametrize(
    ("torchs", "sentence"),
    [(TORCHS, "Memory ran out: another 64.00 GiB could not be had."), ("", "Memory ran out.")],
)
def test_a_process_of_its_own_says_in_a_sentence_that_memory_ran_out(torchs, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        process.result_of(run_out, {"torchs": torchs})
