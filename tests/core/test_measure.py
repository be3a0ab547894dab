"""What is measured: FLOPs by hand, bytes by hand and by torch's profiler, and everything of a timing but the time."""

import math
import re
import threading
import time
import types
import unittest.mock
from collections import namedtuple
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
    out = []
    return measure.flops(lambda: out.append(fn())).total, measure.flops(
        lambda: out[0].sum().backward()
    ).total


@untimed
@given(size, size, size, size)
def test_products_count_2_for_each_multiply_add_and_twice_that_backward(batch, b, d, k):
    x, w = torch.randn(b, d, requires_grad=True), torch.randn(d, k, requires_grad=True)
    xs, ws = (
        torch.randn(batch, b, d, requires_grad=True),
        torch.randn(batch, d, k, requires_grad=True),
    )
    for n, left, right in ((1, x, w), (batch, xs, ws)):
        product = 2 * n * b * d * k
        assert forward_and_backward(lambda left=left, right=right: left @ right) == (
            product,
            2 * product,
        )
        assert (
            measure.flops(lambda left=left, right=right: inference(left.matmul, right)).total
            == product
        )
    out, outs = torch.randn(b, k), torch.randn(batch, b, k)
    assert measure.flops(lambda: out.addmm_(x.detach(), w.detach())) == {"addmm_": 2 * b * d * k}
    assert measure.flops(lambda: outs.baddbmm_(xs.detach(), ws.detach())) == {
        "baddbmm_": 2 * batch * b * d * k
    }
    assert measure.flops(lambda: torch.mm(x.detach(), w.detach(), out=out)) == {"mm": 2 * b * d * k}


@untimed
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(3, 6)
)
def test_convolutions_count_every_place_of_the_kernel_with_groups_and_backward(
    batch, inputs, outputs, groups, n
):
    conv = nn.Conv2d(inputs * groups, outputs * groups, (3, 2), groups=groups)
    x = torch.randn(batch, inputs * groups, n, n, requires_grad=True)
    numbers = batch * outputs * groups * (n - 2) * (n - 1)  # of the result
    counted = numbers * 2 * inputs * 3 * 2
    assert forward_and_backward(lambda: conv(x)) == (counted, 2 * counted)
    assert forward_and_backward(lambda: conv(x.detach())) == (counted, counted)


def test_transposed_convolutions_count_every_number_that_they_scatter():
    conv = nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)
    x = torch.randn(5, 4, 7, 7, requires_grad=True)
    scattered = 5 * 4 * 7 * 7 * 3 * 9  # each number of the input, to 3 channels, to 9 places
    assert forward_and_backward(lambda: conv(x)) == (2 * scattered, 4 * scattered)


@untimed
@given(size, size, size, size, size)
def test_attention_counts_two_products_and_five_more_where_fused_or_four_where_not(
    batch, heads, share, s, e
):
    """As many for the query's heads that share one of the key as for those that have one each."""
    q, k, v = (torch.randn(batch, heads * n, s, e, requires_grad=True) for n in (share, 1, 1))
    product = 2 * batch * heads * share * s * s * e
    fused = forward_and_backward(
        lambda: functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    )
    k, v = (t.repeat_interleave(share, 1) for t in (k, v))
    assert fused == (2 * product, 5 * product)
    assert forward_and_backward(lambda: (q @ k.mT).softmax(-1) @ v) == (2 * product, 4 * product)
    rest = forward_and_backward(lambda: functional.layer_norm(q.exp() * q, (e,)).softmax(-1))
    assert rest == (0, 0)  # element-wise work and reductions


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


x3, m3 = torch.ones(3), torch.eye(3)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dot", lambda: x3 @ x3),
        ("mv", lambda: inference(torch.mv, m3, x3)),
        ("mv", lambda: Blind.apply(torch.ones(3, requires_grad=True)).sum().backward()),
        ("addmv_", lambda: torch.ones(3).addmv_(m3, x3)),
        ("_cdist_forward", lambda: torch.cdist(m3, m3)),
        ("_linalg_solve_ex", lambda: torch.linalg.solve(m3, x3)),
        ("_fft_r2c", lambda: torch.fft.fft(x3)),
        ("mm", lambda: m3.to_sparse() @ m3),
        (
            "_native_multi_head_attention",
            lambda: inference(
                nn.MultiheadAttention(4, 2, batch_first=True).eval(), *[torch.ones(1, 3, 4)] * 3
            ),
        ),
    ],
)
def test_what_torch_would_count_as_0_raises_a_sentence(name, call):
    with pytest.raises(ValueError, match=rf"has no formula for '{name}' and would say 0\..*\.$"):
        measure.flops(call)
    assert measure.flops(lambda: m3 @ m3).total == 54  # and the next count is right again


def torchs_operations():
    """Names of all that torch runs as one, rather than as several others of its operations."""
    for name in torch._C._dispatch_get_all_op_names():
        library, _, rest = name.partition("::")
        operation, _, overload = rest.partition(".")
        in_parts = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        if library == "aten" and "out" not in overload and not in_parts:
            yield operation


def is_refused(name):
    operation = getattr(torch.ops.aten, name)
    try:
        counting._refuse_what_would_be_0(getattr(operation, operation.overloads()[0]), name, ())
    except ValueError:
        return True
    return False


def test_every_product_of_torch_without_a_formula_is_refused_and_nothing_else():
    known = (ROOT / "tests" / "core" / "refused_by_flops.txt").read_text(encoding="utf-8").split()
    assert sorted(filter(is_refused, set(torchs_operations()))) == known


# Bytes.


def mlp(activation, batch, d, h, k):
    network = nn.Sequential(nn.Linear(d, h), activation, nn.Linear(h, k))
    return network, torch.randn(batch, d)


@untimed
@given(st.sampled_from([(nn.ReLU(), 1), (nn.GELU(), 2)]), size, size, size, size)
def test_gelu_keeps_its_input_where_relu_shares_its_output_with_the_next_layer(
    kind, batch, d, h, k
):
    activation, copies = kind
    network, x = mlp(activation, batch, d, h, k)
    kept = 4 * (batch * d + copies * batch * h)
    assert measure.saved_bytes(lambda: network(x), exclude=network.parameters()) == kept
    # the second matrix is kept for the first layer's gradient; the first would only be for the input's
    assert measure.saved_bytes(lambda: network(x)) == kept + 4 * h * k
    with torch.no_grad():
        assert measure.saved_bytes(lambda: network(x)) == 0


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_shares_storage_is_kept_once_and_whole(device):
    x, y = (torch.ones(8, 4, device=device, requires_grad=True) for _ in range(2))
    assert measure.saved_bytes(lambda: x * y) == 256
    assert measure.saved_bytes(lambda: x * x) == 128
    assert measure.saved_bytes(lambda: x[:2] * x[2:4]) == 128
    assert measure.saved_bytes(lambda: x * y, exclude=[x.detach()[0]]) == 128


def profiled(fn):
    """(allocated, peak) bytes by the profiler's record of every allocation."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as seen:
        fn()
    events = [
        event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return sum(change for change in changes if change > 0), max(accumulate(changes, initial=0))


@settings(deadline=None, max_examples=10)
@given(
    st.lists(st.sampled_from(["double", "exp", "drop", "view", "keep"]), min_size=1, max_size=12),
    size,
)
def test_allocations_are_those_of_the_profiler(jobs, n):
    first = torch.ones(n, n)

    def call():
        now, kept = first, []
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

    assert (measure.allocated_bytes(call), measure.peak_bytes(call)) == profiled(call)


def test_a_freed_tensors_address_hides_no_new_tensor():
    """In a training step the new gradients often lie where the old ones were."""
    network, x = mlp(nn.ReLU(), 4, 16, 32, 8)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network(x).sum().backward()

    def step():
        optimizer.step()
        optimizer.zero_grad()
        network(x).sum().backward()

    first, again = measure.allocated_bytes(step), measure.allocated_bytes(step)
    optimizer.zero_grad()
    assert first == again == measure.allocated_bytes(lambda: network(x).sum().backward())


def test_free_bytes_are_some_and_no_more_than_there_are():
    assert 0 < measure.free_bytes() <= measure.memory_bytes()[0] <= psutil.virtual_memory().total


def grant(
    monkeypatch, folder, own: str, groups: dict[str, tuple[str, str, str]], names=cgroups.V2
) -> None:
    """This process is in these control groups; of each its limit, what is used of it, and its statistics."""
    (folder / "own").write_text(own)
    for group, texts in groups.items():
        (folder / group).mkdir(parents=True, exist_ok=True)
        for name, text in zip((*names[:2], "memory.stat"), texts, strict=True):
            (folder / group / name).write_text(text)
    monkeypatch.setattr(cgroups, "OWN", folder / "own")
    monkeypatch.setattr(cgroups, "MOUNTED", folder)


@pytest.mark.parametrize(
    ("own", "group", "names"),
    [
        ("0::/\n", ".", cgroups.V2),  # a container
        (
            "0::/system.slice/a.service\n",
            "system.slice/a.service",
            cgroups.V2,
        ),  # a service with a limit
        ("0::/a/b/c\n", "a", cgroups.V2),  # a limit further up
        (
            "4:memory:/docker/1\n1:cpu,cpuacct:/docker/1\n0::/\n",
            "memory",
            cgroups.V1,
        ),  # an older container
        ("9:pids:/\n4:hugetlb,memory:/a:b\n", "memory/a:b", cgroups.V1),
    ],
)
def test_free_bytes_are_those_of_the_containers_limit_not_of_the_machine(
    monkeypatch, tmp_path, own, group, names
):
    stat = f"anon 5\n{names[2]} {200 * 2**10}\nactive_file 7\n"
    grant(monkeypatch, tmp_path, own, {group: (f"{2**20}\n", f"{700 * 2**10}\n", stat)}, names)
    assert measure.memory_bytes() == (2**20, 2**20 - 500 * 2**10)
    assert measure.free_bytes() == 2**20 - 500 * 2**10


def test_the_narrowest_of_several_limits_counts_and_a_group_without_one_does_not(
    monkeypatch, tmp_path
):
    groups = {".": ("max", "9", ""), "a": ("1000", "900", ""), "a/b": ("2000", "50", "")}
    grant(monkeypatch, tmp_path, "0::/a/b\n", groups)
    assert measure.memory_bytes() == (1000, 100)
    (tmp_path / "a/memory.current").write_text(
        "1001"
    )  # for a moment, until something is stopped for it
    assert measure.memory_bytes() == (1000, 0)


def test_without_a_limit_it_is_the_machines(monkeypatch, tmp_path):
    machine = unittest.mock.Mock(return_value=unittest.mock.Mock(total=2000, available=700))
    monkeypatch.setattr(cgroups.psutil, "virtual_memory", machine)
    grant(monkeypatch, tmp_path, "0::/gone\n", {})
    assert measure.memory_bytes() == (2000, 700)
    monkeypatch.setattr(cgroups, "OWN", tmp_path / "no such file")  # not Linux
    assert measure.memory_bytes() == (2000, 700)


# Timings: everything but the time.


def test_a_timing_believes_the_best_sample_on_a_cpu_and_the_typical_one_on_a_gpu():
    best = Timing((3.0, 1.0, 1.5), "best", True, "thread time", 9.0)
    typical = Timing((3.0, 1.0, 1.5), "typical", True, "device events", 9.0)
    assert (best.seconds, best.best, best.typical, best.spread) == (1.0, 1.0, 1.5, 0.5)
    assert (typical.seconds, typical.spread) == (1.5, 0.5)
    assert repr(best) == "1 s (best of 3 samples, thread time, spread 50.0%)"


def test_a_timing_is_in_doubt_unless_it_converged_and_nothing_else_was_seen():
    def timing(**doubt):
        return Timing(**{**vars(Timing((1.0,), "best", True, "wall time", 1.0)), **doubt})

    assert (timing().doubt, timing().quiet) == ("", True)
    assert not timing(converged=False).quiet
    assert timing(samples=(1.0, 2.0, 3.0), converged=False).doubt == "the samples do not agree"
    assert timing(samples=(1.0, 2.0), converged=False).doubt == "only 2 samples"
    assert timing(converged=False).doubt == "only one sample"
    assert timing(disturbance="someone worked").doubt == "someone worked"
    assert repr(timing(disturbance="someone worked")).endswith("; someone worked)")


class Clock:
    """Stands still until it is told to move, on a machine where other work can be seen or not."""

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
    """The timing, by such a clock, of calls that take so long, the last duration for ever; and their number."""
    clock, calls = Clock(quiet), []

    def fn():
        clock.sleep(durations[min(len(calls), len(durations) - 1)])
        calls.append(clock.now)

    with pytest.MonkeyPatch.context() as patch:
        for module in (timing, on_cpu):
            patch.setattr(module, "time", clock)
        patch.setattr(on_cpu, "_OtherWork", lambda: clock)
        return measure.time_call(fn, at_most_s=at_most_s), len(calls)


def test_sampling_ends_once_the_three_fastest_agree_and_the_machine_was_quiet():
    durations = [5.0, 2.0, 3.0, 2.0, 1.0, 2.0, 1.009, 1.0]
    seen, calls = timed(durations, 1000)
    assert seen.samples == pytest.approx(
        (2.0, 3.0, 2.0, 1.0, 2.0, 1.009, 1.0)
    )  # the first call is none
    assert not seen.doubt
    assert calls == 8
    assert seen.spent_s == pytest.approx(sum(durations))
    assert not timed(durations, 1000, quiet=False)[0].converged


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
    first, second = next(steps), next(steps)
    assert 0 < first.fraction < second.fraction < 1
    assert re.match(r"3 samples, the best .*s$", second.report)
    steps.close()


@pytest.mark.skipif(
    not hasattr(on_cpu.resource, "RUSAGE_THREAD"), reason="macOS counts no waits by thread."
)
def test_a_call_that_sleeps_is_told_by_wall_time_and_one_that_works_by_its_threads_time():
    asleep = measure.time_call(lambda: time.sleep(0.002), at_most_s=0.1)
    assert asleep.clock == "wall time"
    assert asleep.seconds >= 0.002  # what sleep promises
    assert measure.time_call(lambda: sum(range(10_000)), at_most_s=0.1).clock == "thread time"


def test_where_waits_are_not_counted_by_thread_the_wall_tells(monkeypatch):
    monkeypatch.setattr(on_cpu, "resource", types.SimpleNamespace())  # as on macOS
    assert measure.time_call(lambda: sum(range(10_000)), at_most_s=0.1).clock == "wall time"


@pytest.mark.parametrize(
    ("others_s", "words"), [(1.0, "other work took 50% of the machine's cores"), (0.1, "")]
)
def test_other_work_is_what_the_cores_did_beyond_this_process(monkeypatch, others_s, words):
    clock, ours_s = Clock(quiet=True), 0.8
    kinds = namedtuple("Times", ["user", "idle", "iowait"])
    cores = unittest.mock.Mock(cpu_count=lambda: 2)
    cores.cpu_times.return_value = kinds(5.0, 3.0, 1.0)
    monkeypatch.setattr(on_cpu, "psutil", cores)
    clock.process_time = lambda: ours_s * (clock.now - 100)
    monkeypatch.setattr(on_cpu, "time", clock)
    others = on_cpu._OtherWork()
    clock.sleep(1.0)
    cores.cpu_times.return_value = kinds(5 + ours_s + others_s, 5 - 0.2 - ours_s - others_s, 1.2)
    others.look()
    assert others.quiet_s == (0 if words else 1)
    assert others.in_words == words


def test_two_callers_that_ask_for_one_thread_at_once_leave_as_many_threads_as_before(two_threads):
    first, second = measure.cpu_threads(1), measure.cpu_threads(1)
    for enter_or_exit in (
        first.__enter__,
        second.__enter__,
        lambda: first.__exit__(None, None, None),
    ):
        enter_or_exit()
        assert torch.get_num_threads() == 1
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 2


def test_one_watch_at_a_time_counts_what_hooks_inside_it_keep_and_leaves_other_hooks_alone():
    original, found, x = saved_tensors_hooks.__enter__, [], torch.ones(100, requires_grad=True)

    def halved():
        with saved_tensors_hooks(
            lambda tensor: (tensor.half(), [tensor.dtype]), lambda kept: kept[0].float()
        ):
            x.exp().sum().backward()

    def watch():
        found.append(measure.peak_saved_bytes(halved))

    def use_hooks_of_its_own():
        with saved_tensors_hooks(original, watch):
            found.append(internals.innermost_hooks(True) == (original, watch))

    def in_threads(*work):
        threads = [threading.Thread(target=one) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    in_threads(*[watch] * 4)
    assert measure.peak_saved_bytes(watch) == 200
    assert found == [200] * 5
    measure.peak_saved_bytes(lambda: in_threads(use_hooks_of_its_own))
    assert found.pop() is True
    assert saved_tensors_hooks.__enter__ is original
