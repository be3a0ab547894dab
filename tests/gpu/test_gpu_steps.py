"""Steps that `make gpu` measures, tried without a GPU: a stand-in takes its allocator's place."""

import json
import sys
import types
from dataclasses import replace

import pytest
import torch

from course_utils.core.accountant import Mixture
from tests.tools import bench_gpu, gpu_steps

SMALL = replace(
    gpu_steps.BILLION,
    layers=2,
    width=32,
    heads=4,
    kv_heads=2,
    head_width=8,
    inner=64,
    vocabulary=100,
    context=64,
)
SMALL_MIXTURE = replace(SMALL, tied=False, mixture=Mixture(experts=4, used=2, inner=16))


@pytest.fixture
def gpu(monkeypatch):
    """What `gpu_steps` asks of torch and of the GPU's meter, with numbers of our own."""
    energy = iter(range(0, 10**9, 700_000))  # thousandths of a joule, one more at each look
    stats = {"requested_bytes.all.current": 100, "requested_bytes.all.peak": 300}
    frames = [{"name": "mm"}, {"name": "forward"}]
    events = [{"action": "alloc", "size": 64, "frames": frames}]
    nvml = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetTotalEnergyConsumption=lambda _: next(energy),
        nvmlDeviceGetMemoryInfo=lambda _: types.SimpleNamespace(used=900),
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: None)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda _: stats)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 600)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: 800)
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", lambda **_: None)
    snapshot = {"device_traces": [[], events]}
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda _: snapshot)
    monkeypatch.setattr(gpu_steps.time, "sleep", lambda _: None)
    monkeypatch.setattr(gpu_steps, "ENERGY_S", 0.01)
    monkeypatch.setattr(gpu_steps, "STEP_S", 0.05)


def found_by(part, tmp_path, *sizes):
    results = gpu_steps.Results(tmp_path / "found.json")
    part("cpu", results, *sizes)
    found = json.loads((tmp_path / "found.json").read_text())
    missing = [text for text in found.values() if isinstance(text, str)]
    assert missing == []
    return found


@pytest.mark.usefixtures("gpu")
def test_of_a_step_all_is_measured(tmp_path):
    found = found_by(gpu_steps.step, tmp_path, SMALL, 2, 16)
    assert found["idle watts"] == 700
    for way in ("plain", "recomputed"):
        # On a CPU, torch writes RMSNorm as several operations, which keep more than one kernel.
        assert found[f"{way}: peak bytes"] >= found[f"{way}: predicted peak bytes"]
        assert found[f"{way}: energy"]["joules"] * found[f"{way}: energy"]["calls"] == 700
        names = [name for name, *held in found[f"{way}: operations"] if held == [100, 300, 100]]
        assert "aten.mm" in names
        assert found[f"{way}: history"] == [["alloc", 64, "mm < forward"]]
        assert found[f"{way}: reserved bytes"] == {"reserved": 800, "used": 900, "held": 600}


@pytest.mark.usefixtures("gpu")
def test_of_a_mixture_all_is_measured(tmp_path):
    found = found_by(gpu_steps.mixture, tmp_path, SMALL_MIXTURE, 2, 16)
    assert found["parameters"] == found["predicted parameters"]
    assert found["forward FLOPs"] == found["predicted forward FLOPs"]
    assert 0 < found["kept bytes"] < found["peak bytes"]


def test_decoding_is_timed_with_and_without_its_cache(tmp_path):
    found = found_by(gpu_steps.decode, tmp_path, SMALL, (1, 3), 16)
    for users in (1, 3):
        assert found[f"{users} users: time"]["samples"] >= 1
        assert found[f"{users} users, without the cache: time"]["samples"] >= 1
        assert 0 < found[f"{users} users: roof on an H100's data sheet"] < 1e-6


@pytest.mark.usefixtures("gpu")
def test_the_largest_batch_is_the_last_that_is_predicted_to_fit_and_one_more_is_tried(
    tmp_path, monkeypatch
):
    state = 1000
    room = state + gpu_steps._peak(gpu_steps.shape_of(SMALL), 9, 16)
    monkeypatch.setattr(gpu_steps, "held_bytes", lambda _: state)
    monkeypatch.setattr(gpu_steps.measure, "free_bytes", lambda _: room)
    monkeypatch.setattr(torch.cuda.memory, "_set_allocator_settings", lambda _: None)

    def training_step(shape, dtype, batch, sequence, *, device):
        if batch > 9:
            raise torch.OutOfMemoryError("no room")
        return lambda: None

    monkeypatch.setattr(gpu_steps.workloads, "training_step", training_step)
    results = gpu_steps.Results(tmp_path / "found.json")
    gpu_steps.largest("cpu", results, SMALL, 16)
    found = results.found
    assert found["predicted largest batch"] == 9
    for way in ("as it is", "expandable"):
        fits = [found[f"{way}: a batch of {batch}"]["fits"] for batch in (8, 9, 10)]
        assert fits == [True, True, False]
    assert found["as it is: a batch of 10"]["error"] == "no room"


def test_what_cannot_be_measured_is_said_and_the_next_is_measured(tmp_path):
    results = gpu_steps.Results(tmp_path / "found.json")
    results.add("broken", lambda: 1 / 0)
    results.add("whole", lambda: 3)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found == {"broken": "none: ZeroDivisionError: division by zero", "whole": 3}


def test_each_ways_errors_are_those_of_its_times(monkeypatch):
    monkeypatch.setattr(bench_gpu, "samples", lambda call, device, count: [2.0] * count)
    monkeypatch.setattr(bench_gpu, "methods", lambda _: {"ours": lambda _: 2.5})
    monkeypatch.setattr(bench_gpu, "by_benchmark", lambda _: 1.0)
    monkeypatch.setattr(bench_gpu.os, "cpu_count", lambda: 1)
    found = bench_gpu.errors("cpu", ("fp32",), (16, 32), repeats=2)
    of_each = {"ours": [0.25] * 4, "torch.utils.benchmark": [-0.5] * 4}
    assert found == {"quiet": of_each, "CPU busy": of_each}
    head, ours, _ = bench_gpu.errors_table(found).rows
    assert head == ["", "quiet: median", "quiet: worst", "CPU busy: median", "CPU busy: worst"]
    assert ours == ["ours", "25.00%", "25.0%", "25.00%", "25.0%"]
