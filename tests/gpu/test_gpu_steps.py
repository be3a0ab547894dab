"""Steps that `make gpu` measures, tried without a GPU: a stand-in takes its allocator's place."""

import json
import sys
import types
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from course_utils.core import accountant
from course_utils.core.accountant import Mixture
from tests.tools import bench_gpu, gpu_results, gpu_steps

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
        assert set(found[f"{users} users: time"]) == {"seconds", "spread", "samples"}
        assert f"{users} users, without the cache: time" in found
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


def test_a_step_of_decoding_is_attention_over_the_cache_and_a_gated_feed_forward():
    """Each query head is computed by itself here, with the keys of the head that it shares."""
    draw = torch.Generator().manual_seed(0)

    def numbers(*shape):
        return torch.randn(shape, generator=draw, dtype=torch.float64)

    m = SMALL
    shapes = accountant.matrices(m)
    layers = []
    for _ in range(m.layers):
        layers.append({name: numbers(*shape) / shape[0] ** 0.5 for name, shape in shapes.items()})
    output = numbers(m.width, m.vocabulary)
    cache = numbers(2, m.layers, 3, m.kv_heads, 5, m.head_width)
    x = numbers(3, m.width)
    logits = gpu_steps.decoding_step(x, layers, output, cache, m)

    def normed(h):
        return h / (h.pow(2).mean(-1, keepdim=True) + torch.finfo(h.dtype).eps).sqrt()

    for number, w in enumerate(layers):
        queries = (normed(x) @ w["query"]).view(3, m.heads, m.head_width)
        heads = []
        for head in range(m.heads):
            keys = cache[0, number, :, head // (m.heads // m.kv_heads)]
            values = cache[1, number, :, head // (m.heads // m.kv_heads)]
            scores = torch.einsum("ud,utd->ut", queries[:, head], keys) / m.head_width**0.5
            heads.append(torch.einsum("ut,utd->ud", scores.softmax(-1), values))
        x = x + torch.cat(heads, -1) @ w["out"]
        h = normed(x)
        x = x + (functional.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]
    torch.testing.assert_close(logits, normed(x) @ output)


def test_what_could_not_be_measured_does_not_become_a_number_of_the_course(tmp_path):
    (tmp_path / "step.json").write_text(json.dumps({"idle watts": "none: no meter"}))
    with pytest.raises(ValueError, match=r"has no idle watts: measure this part again"):
        gpu_results.told_of(tmp_path)


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
