"""FLOPs by hand, bytes by hand and by torch's profiler, and timings by a clock that obeys."""

import math
import re
import threading
import time
import types
import unittest.mock
from collections import namedtuple
from dataclasses import replace
from itertools import accumulate

import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from course_utils.core import measure
from course_utils.core.measure import Timing, cgroups, counting, internals, on_cpu, timing
from tests import ROOT

untimed = settings(deadline=None, max_examples=25)
size = st.integers(1, 6)


# FLOPs.


def forward_and_backward(fn):
    """FLOPs of fn, and of the backward pass of the sum of its result."""
    sums = []

    def forward():
        sums.append(fn().sum())

    return measure.flops(forward).total, measure.flops(sums[0].backward).total


def drawn(*shape):
    return torch.randn(shape, requires_grad=True)


@untimed
@given(size, size, size)
def test_a_product_counts_2_for_each_multiply_add_and_twice_that_backward(b, d, k):
    x = drawn(b, d)
    w = drawn(d, k)
    out = torch.randn(b, k)
    product = 2 * b * d * k
    assert forward_and_backward(lambda: x @ w) == (product, 2 * product)
    assert measure.flops(lambda: inference(torch.matmul, x, w)).total == product
    with torch.no_grad():
        assert measure.flops(lambda: out.addmm_(x, w)) == {"addmm_": product}
        assert measure.flops(lambda: torch.mm(x, w, out=out)) == {"mm": product}


@untimed
@given(size, size, size, size)
def test_so_do_products_of_a_batch(batch, b, d, k):
    xs = drawn(batch, b, d)
    ws = drawn(batch, d, k)
    outs = torch.randn(batch, b, k)
    products = 2 * batch * b * d * k
    assert forward_and_backward(lambda: xs @ ws) == (products, 2 * products)
    assert measure.flops(lambda: inference(torch.matmul, xs, ws)).total == products
    with torch.no_grad():
        assert measure.flops(lambda: outs.baddbmm_(xs, ws)) == {"baddbmm_": products}


@untimed
@given(
    batch=st.integers(1, 3),
    inputs=st.integers(1, 3),
    outputs=st.integers(1, 3),
    groups=st.integers(1, 3),
    n=st.integers(3, 6),
)
def test_convolutions_count_every_place_of_the_kernel_with_groups_and_backward(
    batch, inputs, outputs, groups, n
):
    conv = nn.Conv2d(inputs * groups, outputs * groups, (3, 2), groups=groups)
    x = drawn(batch, inputs * groups, n, n)
    results = batch * outputs * groups * (n - 2) * (n - 1)
    counted = results * 2 * inputs * 3 * 2
    assert forward_and_backward(lambda: conv(x)) == (counted, 2 * counted)
    assert forward_and_backward(lambda: conv(x.detach())) == (counted, counted)


def test_transposed_convolutions_count_every_number_that_they_scatter():
    conv = nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)
    x = drawn(5, 4, 7, 7)
    scattered = x.numel() * 3 * 9  # to 3 channels, and to 9 places of each
    assert forward_and_backward(lambda: conv(x)) == (2 * scattered, 4 * scattered)


@untimed
@given(size, size, size, size, size)
def test_attention_counts_two_products_and_five_more_where_fused_or_four_where_not(
    batch, kv_heads, queries_a_key, s, e
):
    """Heads of the query that share a key count as much as those that have one each."""
    heads = kv_heads * queries_a_key
    q = drawn(batch, heads, s, e)
    k = drawn(batch, kv_heads, s, e)
    v = drawn(batch, kv_heads, s, e)
    product = 2 * batch * heads * s * s * e

    def fused():
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    def unfused():
        keys = k.repeat_interleave(queries_a_key, 1)
        values = v.repeat_interleave(queries_a_key, 1)
        return (q @ keys.mT).softmax(-1) @ values

    assert forward_and_backward(fused) == (2 * product, 5 * product)
    assert forward_and_backward(unfused) == (2 * product, 4 * product)


def test_element_wise_operations_and_reductions_count_0():
    x = drawn(2, 3, 4)

    def without_products():
        return functional.layer_norm(x.exp() * x, (4,)).softmax(-1)

    assert forward_and_backward(without_products) == (0, 0)


class Blind(torch.autograd.Function):
    """A matrix-vector product, but only on the way back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.mv(torch.ones(3, 3), grad)


def inference(fn, *inputs):
    with torch.inference_mode():
        return fn(*inputs)


def multi_head_attention():
    layer = nn.MultiheadAttention(4, 2, batch_first=True).eval()
    x = torch.ones(1, 3, 4)
    return inference(layer, x, x, x)


x3 = torch.ones(3)
m3 = torch.eye(3)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dot", lambda: x3 @ x3),
        ("mv", lambda: inference(torch.mv, m3, x3)),
        ("mv", lambda: Blind.apply(drawn(3)).sum().backward()),
        ("addmv_", lambda: torch.ones(3).addmv_(m3, x3)),
        ("_cdist_forward", lambda: torch.cdist(m3, m3)),
        ("_linalg_solve_ex", lambda: torch.linalg.solve(m3, x3)),
        ("_fft_r2c", lambda: torch.fft.fft(x3)),
        ("mm", lambda: m3.to_sparse() @ m3),
        ("_native_multi_head_attention", multi_head_attention),
    ],
)
def test_what_torch_would_count_as_0_raises_a_sentence(name, call):
    with pytest.raises(ValueError, match=rf"has no formula for '{name}' and would say 0\..*\.$"):
        measure.flops(call)
    assert measure.flops(lambda: m3 @ m3).total == 54  # and the next count is right again


def torchs_operations():
    """The names of torch's operations, but for those that it runs as several others."""
    for name in torch._C._dispatch_get_all_op_names():
        library, _, rest = name.partition("::")
        operation, _, overload = rest.partition(".")
        in_parts = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        if library == "aten" and "out" not in overload and not in_parts:
            yield operation


def is_refused(name):
    operation = getattr(torch.ops.aten, name)
    first_overload = getattr(operation, operation.overloads()[0])
    try:
        counting._refuse_what_would_be_0(first_overload, name, ())
    except ValueError:
        return True
    return False


def test_every_product_of_torch_without_a_formula_is_refused_and_nothing_else():
    known = ROOT / "tests" / "core" / "refused_by_flops.txt"
    refused = sorted(filter(is_refused, set(torchs_operations())))
    assert refused == known.read_text(encoding="utf-8").split()


# Bytes.


def mlp(activation, batch, d, h, k):
    network = nn.Sequential(nn.Linear(d, h), activation, nn.Linear(h, k))
    return network, torch.randn(batch, d)


@pytest.mark.parametrize(
    ("activation", "copies"),
    [
        (nn.ReLU(), 1),
        (nn.GELU(), 2),
    ],
)
@untimed
@given(batch=size, d=size, h=size, k=size)
def test_gelu_keeps_its_input_where_relu_shares_its_output_with_the_next_layer(
    activation, copies, batch, d, h, k
):
    network, x = mlp(activation, batch, d, h, k)

    def forward():
        return network(x)

    kept = 4 * (batch * d + copies * batch * h)
    assert measure.saved_bytes(forward, exclude=network.parameters()) == kept
    # The second matrix is kept for the first layer's gradient. The first matrix is not, because
    # only the input's gradient would need it.
    second_matrix = 4 * h * k
    assert measure.saved_bytes(forward) == kept + second_matrix
    with torch.no_grad():
        assert measure.saved_bytes(forward) == 0


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_shares_storage_is_kept_once_and_whole(device):
    x = torch.ones(8, 4, device=device, requires_grad=True)
    y = torch.ones(8, 4, device=device, requires_grad=True)
    assert measure.saved_bytes(lambda: x * y) == 256
    assert measure.saved_bytes(lambda: x * x) == 128
    assert measure.saved_bytes(lambda: x[:2] * x[2:4]) == 128
    assert measure.saved_bytes(lambda: x * y, exclude=[x.detach()[0]]) == 128


def profiled(fn):
    """(allocated, peak) bytes by the profiler's record of every allocation."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as seen:
        fn()
    events = sorted(seen.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    allocated = sum(change for change in changes if change > 0)
    peak = max(accumulate(changes, initial=0))
    return allocated, peak


JOBS = st.sampled_from(["double", "exp", "drop", "view", "keep"])


@settings(deadline=None, max_examples=10)
@given(st.lists(JOBS, min_size=1, max_size=12), size)
def test_allocations_are_those_of_the_profiler(jobs, n):
    first = torch.ones(n, n)

    def call():
        now = first
        kept = []
        for job in jobs:
            if job == "double":
                now = now @ now
            elif job == "exp":
                now = now.exp()
            elif job == "drop":
                kept.clear()
            elif job == "view":
                now = now.t()
            else:
                kept.append(now)

    allocated, peak = profiled(call)
    assert measure.allocated_bytes(call) == allocated
    assert measure.peak_bytes(call) == peak


def test_a_freed_tensors_address_hides_no_new_tensor():
    """In a training step, new gradients often have the addresses of the old ones."""
    network, x = mlp(nn.ReLU(), 4, 16, 32, 8)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def forward_and_backward():
        network(x).sum().backward()

    def step():
        optimizer.step()
        optimizer.zero_grad()
        forward_and_backward()

    forward_and_backward()
    first = measure.allocated_bytes(step)
    second = measure.allocated_bytes(step)
    optimizer.zero_grad()
    without_old_gradients = measure.allocated_bytes(forward_and_backward)
    assert first == second == without_old_gradients


def test_free_bytes_are_some_and_no_more_than_there_are():
    whole, _ = measure.memory_bytes()
    assert 0 < measure.free_bytes() <= whole
    assert whole <= psutil.virtual_memory().total


def grant(monkeypatch, folder, own, groups, names=cgroups.V2):
    """Put this process in control groups: of each, its limit, what is used, and its statistics."""
    (folder / "own").write_text(own)
    for group, (limit, used, statistics) in groups.items():
        files = folder / group
        files.mkdir(parents=True, exist_ok=True)
        (files / names.limit).write_text(limit)
        (files / names.used).write_text(used)
        (files / "memory.stat").write_text(statistics)
    monkeypatch.setattr(cgroups, "OWN", folder / "own")
    monkeypatch.setattr(cgroups, "MOUNTED", folder)


CONTAINER = "0::/\n"
SERVICE = "0::/system.slice/a.service\n"
BELOW_ONE_WITH_A_LIMIT = "0::/a/b/c\n"
OLDER_CONTAINER = "4:memory:/docker/1\n1:cpu,cpuacct:/docker/1\n0::/\n"
WITH_A_COLON = "9:pids:/\n4:hugetlb,memory:/a:b\n"


@pytest.mark.parametrize(
    ("own", "group", "names"),
    [
        (CONTAINER, ".", cgroups.V2),
        (SERVICE, "system.slice/a.service", cgroups.V2),
        (BELOW_ONE_WITH_A_LIMIT, "a", cgroups.V2),
        (OLDER_CONTAINER, "memory", cgroups.V1),
        (WITH_A_COLON, "memory/a:b", cgroups.V1),
    ],
)
def test_free_bytes_are_those_of_the_containers_limit_not_of_the_machine(
    monkeypatch, tmp_path, own, group, names
):
    limit = 2**20
    used = 700 * 2**10
    cached = 200 * 2**10
    statistics = f"anon 5\n{names.cached_files} {cached}\nactive_file 7\n"
    grant(monkeypatch, tmp_path, own, {group: (f"{limit}\n", f"{used}\n", statistics)}, names)
    free = limit - (used - cached)
    assert measure.memory_bytes() == (limit, free)
    assert measure.free_bytes() == free


def test_the_narrowest_of_several_limits_counts_and_a_group_without_one_does_not(
    monkeypatch, tmp_path
):
    groups = {
        ".": ("max", "9", ""),
        "a": ("1000", "900", ""),
        "a/b": ("2000", "50", ""),
    }
    grant(monkeypatch, tmp_path, "0::/a/b\n", groups)
    assert measure.memory_bytes() == (1000, 100)
    # A moment before the system stops something for it, more is used than there is.
    (tmp_path / "a/memory.current").write_text("1001")
    assert measure.memory_bytes() == (1000, 0)


def test_without_a_limit_it_is_the_machines(monkeypatch, tmp_path):
    machine = types.SimpleNamespace(total=2000, available=700)
    monkeypatch.setattr(cgroups.psutil, "virtual_memory", lambda: machine)
    grant(monkeypatch, tmp_path, "0::/gone\n", {})
    assert measure.memory_bytes() == (2000, 700)
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "no such file")  # not Linux
    assert measure.memory_bytes() == (2000, 700)


# Timings.


def test_a_timing_believes_the_best_sample_on_a_cpu_and_the_typical_one_on_a_gpu():
    best = Timing((3.0, 1.0, 1.5), "best", True, "thread time", 9.0)
    typical = Timing((3.0, 1.0, 1.5), "typical", True, "device events", 9.0)
    assert best.seconds == best.best == 1.0
    assert best.typical == 1.5
    assert best.spread == 0.5
    assert typical.seconds == 1.5
    assert typical.spread == 0.5
    assert repr(best) == "1 s (best of 3 samples, thread time, spread 50.0%)"


def test_a_timing_is_in_doubt_unless_it_converged_and_nothing_else_was_seen():
    def timing(**doubt):
        return replace(Timing((1.0,), "best", True, "wall time", 1.0), **doubt)

    assert timing().doubt == ""
    assert timing().quiet
    assert not timing(converged=False).quiet
    assert timing(samples=(1.0, 2.0, 3.0), converged=False).doubt == "the samples do not agree"
    assert timing(samples=(1.0, 2.0), converged=False).doubt == "only 2 samples"
    assert timing(converged=False).doubt == "only one sample"
    assert timing(disturbance="someone worked").doubt == "someone worked"
    assert repr(timing(disturbance="someone worked")).endswith("; someone worked)")


class Clock:
    """A clock that moves when it is told to, on a machine with or without other work."""

    def __init__(self, quiet):
        self.now = 100.0
        self.quiet_s = math.inf if quiet else 0.0
        self.in_words = ""

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        return self.now

    thread_time = process_time = perf_counter

    def look(self):
        pass


def timed(durations, at_most_s, quiet=True):
    """The timing, by such a clock, of calls that take so long; and how many calls it took.

    When the durations are used up, the last one is repeated.
    """
    clock = Clock(quiet)
    calls = []

    def fn():
        number = min(len(calls), len(durations) - 1)
        clock.sleep(durations[number])
        calls.append(number)

    with pytest.MonkeyPatch.context() as patch:
        for module in (timing, on_cpu):
            patch.setattr(module, "time", clock)
        patch.setattr(on_cpu, "_OtherWork", lambda: clock)
        return measure.time_call(fn, at_most_s=at_most_s), len(calls)


def test_sampling_ends_once_the_three_fastest_agree_and_the_machine_was_quiet():
    durations = [5.0, 2.0, 3.0, 2.0, 1.0, 2.0, 1.009, 1.0]
    seen, calls = timed(durations, 1000)
    assert seen.samples == pytest.approx(durations[1:])  # the first call is no sample
    assert not seen.doubt
    assert calls == 8
    assert seen.spent_s == pytest.approx(sum(durations))
    with_other_work, _ = timed(durations, 1000, quiet=False)
    assert not with_other_work.converged


def test_short_calls_are_repeated_within_a_sample_and_a_sample_is_one_calls_share():
    seen, calls = timed([2e-5], 1)
    assert calls == 2 + 3 * 10  # three samples of 200 µs
    assert seen.samples == pytest.approx([2e-5] * 3)


@untimed
@given(st.floats(0.001, 10), st.floats(0.01, 50))
def test_the_budget_is_exceeded_by_one_call_at_most(call_s, calls_paid_for):
    at_most_s = call_s * calls_paid_for
    seen, calls = timed([call_s], at_most_s, quiet=False)
    assert seen.spent_s < (at_most_s + call_s) * (1 + 1e-9)
    assert calls == pytest.approx(calls_paid_for, abs=1.01)  # and it is used


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2  # afterwards all is as before
    torch.set_num_threads(before)


def test_a_call_runs_on_one_thread_until_it_is_done_or_fails_or_is_dropped(two_threads):
    seen = []
    measure.time_call(lambda: seen.append(torch.get_num_threads()), at_most_s=0.01)
    assert set(seen) == {1}
    with pytest.raises(ZeroDivisionError):
        measure.time_call(lambda: 1 / 0)
    assert torch.get_num_threads() == 2
    steps = measure.timing_steps(lambda: time.sleep(0.001), at_most_s=60)
    first = next(steps)
    second = next(steps)
    assert 0 < first.fraction < second.fraction < 1
    assert re.match(r"3 samples, the best .*s$", second.report.format(**second.gaps))
    steps.close()


COUNTS_WAITS = hasattr(on_cpu.resource, "RUSAGE_THREAD")


@pytest.mark.skipif(not COUNTS_WAITS, reason="macOS counts no waits by thread.")
def test_a_call_that_sleeps_is_told_by_wall_time_and_one_that_works_by_its_threads_time():
    asleep = measure.time_call(lambda: time.sleep(0.002), at_most_s=0.1)
    assert asleep.clock == "wall time"
    assert asleep.seconds >= 0.002  # what sleep promises
    assert measure.time_call(lambda: sum(range(10_000)), at_most_s=0.1).clock == "thread time"


def test_where_waits_are_not_counted_by_thread_the_wall_tells(monkeypatch):
    monkeypatch.setattr(on_cpu, "resource", types.SimpleNamespace())  # as on macOS
    assert measure.time_call(lambda: sum(range(10_000)), at_most_s=0.1).clock == "wall time"


@pytest.mark.parametrize(
    ("others_s", "words"),
    [
        (1.0, "other work took 50% of the machine's cores"),
        (0.1, ""),
    ],
)
def test_other_work_is_what_the_cores_did_beyond_this_process(monkeypatch, others_s, words):
    ours_s = 0.8  # of a second
    clock = Clock(quiet=True)
    clock.process_time = lambda: ours_s * (clock.now - 100)
    times = namedtuple("Times", ["user", "idle", "iowait"])
    cores = unittest.mock.Mock(cpu_count=lambda: 2)
    monkeypatch.setattr(on_cpu, "psutil", cores)
    monkeypatch.setattr(on_cpu, "time", clock)
    cores.cpu_times.return_value = times(user=5.0, idle=3.0, iowait=1.0)
    others = on_cpu._OtherWork()
    clock.sleep(1.0)
    user = 5.0 + ours_s + others_s
    iowait = 1.2
    idle = 9.0 + 2.0 - user - iowait  # two cores, for a second more
    cores.cpu_times.return_value = times(user, idle, iowait)
    others.look()
    assert others.quiet_s == (0 if words else 1)
    assert others.in_words == words


def test_two_callers_that_ask_for_one_thread_at_once_leave_as_many_threads_as_before(two_threads):
    first = measure.cpu_threads(1)
    second = measure.cpu_threads(1)
    first.__enter__()
    assert torch.get_num_threads() == 1
    second.__enter__()
    assert torch.get_num_threads() == 1
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def in_threads(*jobs):
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_one_watch_at_a_time_counts_what_hooks_inside_it_keep():
    x = torch.ones(100, requires_grad=True)
    found = []

    def pack(tensor):
        return tensor.half(), [tensor.dtype]

    def unpack(kept):
        halves, _ = kept
        return halves.float()

    def halved():
        with saved_tensors_hooks(pack, unpack):
            x.exp().sum().backward()

    def watch():
        found.append(measure.peak_saved_bytes(halved))

    in_threads(watch, watch, watch, watch)
    assert measure.peak_saved_bytes(watch) == 200
    assert found == [200] * 5


def test_a_watch_leaves_the_hooks_of_other_threads_alone():
    enter = saved_tensors_hooks.__enter__
    innermost = []

    def pack(tensor):
        return tensor

    def unpack(tensor):
        return tensor

    def use_hooks_of_its_own():
        with saved_tensors_hooks(pack, unpack):
            innermost.append(internals.innermost_hooks(True))

    measure.peak_saved_bytes(lambda: in_threads(use_hooks_of_its_own))
    assert innermost == [(pack, unpack)]
    assert saved_tensors_hooks.__enter__ is enter
