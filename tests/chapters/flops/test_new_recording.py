"""What `make record` measures in the time that there is, and what it leaves out."""

import dataclasses
import itertools
import types

import pytest
import torch

from course_utils.chapters import labs
from course_utils.chapters.flops import new_recording, workloads
from course_utils.core import measure, predict
from course_utils.core.measure import Timing
from course_utils.subjects import machines, models
from course_utils.subjects.child_processes import products
from course_utils.subjects.machines import MACHINES, at_hand
from course_utils.subjects.machines import recording as recording_files
from tests.subjects.test_machines import CORE, STUB
from tests.tools import review

TINY = workloads.Scale(
    sides=(1, 16),
    numbers=2**12,
    rows=8,
    columns=16,
    heads=2,
    attended=8,
    batch=2,
    sequence=8,
    shape=predict.Transformer(1, 16, 2, 211, 8),
    model="tiny",
)


def jobs(dtype="bf16", scale=TINY):
    """The jobs of a recording by their names."""
    return {job.workload.name: job for job in workloads.jobs("cpu", dtype, scale)}


# Workloads.


def test_the_recorded_core_was_asked_for_these_very_workloads():
    """Names, sizes, FLOPs, bytes, predicted peaks: all that is said before something is timed."""
    asked = jobs("bf16", workloads.CPU)
    recorded = machines.recordings()[CORE].workloads
    assert list(asked) == [workload.name for workload in recorded]
    for workload in recorded:
        timed = dataclasses.replace(
            asked[workload.name].workload,
            seconds=workload.seconds,
            spread=workload.spread,
            peak_bytes=workload.peak_bytes,
        )
        assert timed == workload


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_workloads_flops_are_those_that_torch_counts(dtype):
    scores_again = TINY.shape.forward_flops(2, 8)["attention"] // 2  # the fused kernel's own
    for name, job in jobs(dtype).items():
        extra = measure.flops(job.make()).total - job.workload.flops
        if "recomputed" in name:
            assert extra > scores_again  # what is computed again is not what the model needs
        else:
            assert extra == (scores_again if "training step" in name else 0), name


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_workload_moves_at_least_the_bytes_of_its_operands_and_results(dtype):
    """No kernel is known that moves fewer bytes. Gradients of parameters are left out."""
    moved = [job.workload.bytes for job in jobs(dtype).values()]
    copied = 4 * 2**12
    matrix = 8 * 16 * predict.dtype_bytes(dtype)
    logits = 4 * 16 * 211
    queries = 2 * 2 * 8 * 64 * predict.dtype_bytes(dtype)
    parameters = 4 * sum(p.numel() for p in models.Transformer(TINY.shape).parameters())
    assert moved == [
        2 * copied,
        2 * copied,  # in place
        2 * matrix,  # LayerNorm
        (2 + 3) * matrix,
        2 * matrix,  # softmax
        logits,
        4 * queries,  # attention
        (4 + 5 + 3) * queries,
        7 * parameters,  # AdamW
        7 * parameters,
        0,  # training steps
        0,
    ]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("batch", "sequence"), [(4, 32), (1, 8)])  # the loss decides, and the end
def test_a_steps_peak_memory_is_predicted_but_for_the_losss_scalars(
    dtype, recompute, batch, sequence
):
    shape = predict.Transformer(2, 64, 4, 5003, 32)
    step = workloads.training_step(shape, dtype, batch, sequence, recompute=recompute)
    step()  # the optimizer has its averages from here on
    predicted = workloads.predicted_peak_bytes(shape, dtype, batch, sequence, recompute=recompute)
    assert 0 <= measure.peak_bytes(step) - predicted <= 8


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_training_step_trains(dtype, monkeypatch):
    made = []
    build = models.Transformer

    def building(shape, **ways):
        model = build(shape, **ways)
        made.append(model)
        return model

    monkeypatch.setattr(models, "Transformer", building)
    step = workloads.training_step(TINY.shape, dtype, 2, 8)
    parameters = list(made[0].parameters())
    before = [p.clone() for p in parameters]
    step()
    moved = [not torch.equal(p, old) for p, old in zip(parameters, before, strict=True)]
    if dtype == "bf16":
        assert any(moved)  # but not all: around 1, bf16 is too coarse for a step
    else:
        assert all(moved)
    assert all(p.grad is None for p in parameters)


@pytest.mark.parametrize(("dtype", "state_bytes"), [("fp32", 12), ("bf16", 14)])
def test_the_batch_is_the_largest_that_fits(monkeypatch, dtype, state_bytes):
    def batches(free_bytes):
        monkeypatch.setattr(measure, "free_bytes", lambda device: free_bytes)
        found = jobs(dtype, dataclasses.replace(TINY, batch=16))
        return {job.workload.sizes["batch"] for name, job in found.items() if "step" in name}

    def needs(batch):
        peak = workloads.predicted_peak_bytes(TINY.shape, dtype, batch, 8)
        return state_bytes * TINY.shape.parameters + peak

    assert batches(10**12) == {16}
    assert batches(needs(4) / 0.6 + 1) == {4}
    assert batches(needs(4) / 0.6 - 1) == {2}
    assert batches(1) == {1}


def test_the_working_dtype_is_bf16_only_where_it_is_faster():
    assert new_recording.working_dtype(STUB) == "bf16"
    for reached in ({"fp32": 2e9, "bf16": 1e9}, {"fp32": 1e9}):
        slower = dataclasses.replace(STUB, achieved_flop_per_sec=reached)
        assert new_recording.working_dtype(slower) == "fp32"


# A new recording.


def as_many_seconds_as_flops(call, **_):
    """In place of a measurement, which is tested elsewhere."""
    seconds = measure.flops(call).total + 1
    return Timing((seconds, 1.5 * seconds), "best", True, "wall time", 1.0)


@pytest.fixture
def record(tmp_path, monkeypatch, capsys):
    """A function that records a few small things on a machine, the made-up one by default.

    It returns what can be read back, and the lines that were printed.
    """

    def run(machine=STUB):
        monkeypatch.setattr(at_hand, "this_machine", lambda: machine)
        path = new_recording.on_this_machine()
        printed = capsys.readouterr().out
        return recording_files.read(path), printed.splitlines()

    monkeypatch.setattr(recording_files, "FOLDER", tmp_path)
    monkeypatch.setattr(workloads, "CPU", TINY)
    monkeypatch.setattr(at_hand, "device", lambda: "cpu")
    monkeypatch.setattr(measure, "time_call", as_many_seconds_as_flops)
    # To look for garbage among so many modules is slow.
    monkeypatch.setattr(new_recording, "gc", types.SimpleNamespace(collect=lambda: None))
    return run


def test_what_is_recorded_can_be_read_back(record, tmp_path):
    read, said = record()
    path = tmp_path / "a_machine_made_up.json"
    assert said[0] == "A machine (made up): fp32 1 GFLOP/s, bf16 2 GFLOP/s"
    assert said[-1].startswith(f"Written: {path.name}, 12 workloads and 16 products in ")
    assert read.machine == STUB
    assert read.median_spread == 0.25
    sizes = itertools.product((1, 16), repeat=3)
    seconds_by_size = pytest.approx({(b, d, k): 2 * b * d * k + 1 for b, d, k in sizes}, rel=1e-3)
    assert read.seconds_by_size == {"fp32": seconds_by_size, "bf16": seconds_by_size}
    for workload, job in zip(read.workloads, jobs().values(), strict=True):
        seconds = workload.seconds
        peak_bytes = workload.peak_bytes
        timed = {"seconds": seconds, "spread": 0.25, "peak_bytes": peak_bytes}
        assert workload == dataclasses.replace(job.workload, **timed)
        assert abs(peak_bytes - workload.predicted_peak_bytes) <= 8
        assert seconds == pytest.approx(measure.flops(job.make()).total + 1, rel=1e-3)
    assert recording_files.text_of(read) == path.read_text()
    assert path.read_text().count("\n   [") == 16  # one product a line


def test_a_notebook_records_a_gpu_beside_the_readers_copy_so_that_it_may_be_added(
    record, tmp_path, monkeypatch
):
    """On a T4: what it cannot do, and what its sheet has no peak for, is left out."""
    reached = {"fp32": 2.0, "fp16": 3.0, "fp64": 1.0}
    t4 = dataclasses.replace(
        MACHINES["T4"], achieved_flop_per_sec=reached, achieved_bytes_per_sec=1e9
    )
    monkeypatch.setattr(at_hand, "this_machine", lambda: t4)
    monkeypatch.setitem(machines.recordings(), "T4", None)  # and gone again at the end
    monkeypatch.chdir(tmp_path)
    devices = iter(["cpu", "cuda"])  # when the notebook asks; what is measured is measured on a CPU
    monkeypatch.setattr(at_hand, "device", lambda: next(devices, "cpu"))
    assert new_recording.on_this_gpu() is None
    (tmp_path / ".course").mkdir()
    assert new_recording.on_this_gpu() is None
    found = new_recording.on_this_gpu()
    assert found.machine == t4
    assert list(found.seconds_by_size) == ["fp32", "fp16"]
    assert review.problems_of(found, tmp_path / "recorded" / "t4.json") == []
    lab = labs.matmul_lab()
    lab.set(where="T4 (recorded)", dtype="fp16")
    assert lab.screen.mistake == ""
    assert lab.session.lab.read(lab.values).recording == found


def test_a_workload_that_does_not_fit_is_left_out_with_a_sentence(record, monkeypatch):
    monkeypatch.setattr(measure, "free_bytes", lambda device: 20_000)
    read, said = record()
    needed = "32,768 bytes = 32 KiB = 32.8 kB"
    free = "20,000 bytes = 19.5 KiB = 20 kB"
    assert f"copy is left out: it needs {needed}, and {free} are free." in said
    assert "softmax" in [workload.name for workload in read.workloads]


OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"
NO_KERNEL = "\"norm\" not implemented for 'Half'\nat kernel.cpp"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError(OUT_OF_MEMORY), "another 20.00 GiB"),
        (NotImplementedError(NO_KERNEL), "not implemented for 'Half'"),
    ],
)
def test_what_fails_is_left_out_and_the_rest_is_recorded(record, monkeypatch, error, sentence):
    multiply = products.matmul_call

    def failing(*operands, **_):
        raise error

    def multiplying(b, d, k, dtype, device):
        if (b, d, k) == (16, 16, 16):
            raise error
        return multiply(b, d, k, dtype, device)

    monkeypatch.setattr(torch, "softmax", failing)
    monkeypatch.setattr(products, "matmul_call", multiplying)
    read, said = record()
    others = [name for name in jobs() if name != "softmax"]
    assert [workload.name for workload in read.workloads] == others
    (why,) = (line for line in said if "left out" in line)
    assert why.startswith("softmax is left out: ")
    assert sentence in why
    assert [len(table) for table in read.seconds_by_size.values()] == [7, 7]


def test_a_workload_that_would_take_all_the_time_is_not_begun(record):
    flops = {name: job.workload.flops for name, job in jobs("fp32").items()}
    most = max(flops.values())
    rate = most / 40  # 40 s for the longest, where there are 150 s for all
    _, said = record(dataclasses.replace(STUB, achieved_flop_per_sec={"fp32": rate}))
    left_out = [line for line in said if "left out" in line]
    longest = [name for name in flops if flops[name] == most]
    sentence = "is left out: one run would take 40 s or more, and 4 are needed."
    assert left_out == [f"{name} {sentence}" for name in longest]


TOO_LONG_ALONE = (600, 2.0)
TOO_LONG_FOR_WHAT_IS_LEFT = (60, 100)


@pytest.mark.parametrize(("all_s", "longest_s"), [TOO_LONG_ALONE, TOO_LONG_FOR_WHAT_IS_LEFT])
def test_products_that_would_take_too_long_are_left_out(record, monkeypatch, all_s, longest_s):
    monkeypatch.setattr(new_recording, "ALL_S", all_s)
    monkeypatch.setattr(new_recording, "LONGEST_PRODUCT_S", longest_s)
    monkeypatch.setattr(workloads, "jobs", lambda *_: [])
    rates = {"fp32": 2 * 16**3 / 21, "fp64": 1e9}
    read, _ = record(dataclasses.replace(STUB, achieved_flop_per_sec=rates))
    assert (16, 16, 16) not in read.seconds_by_size["fp32"]
    assert (16, 16, 16) in read.seconds_by_size["fp64"]
    assert (1, 1, 1) in read.seconds_by_size["fp32"]
