"""What a machine is called, what was recorded on others, and products that run apart from this process."""

import dataclasses
import json
import math
import time
import types

import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import machines, measure, predict
from course_utils.machines import at_hand, gpu_state, recorded, recorder, workloads
from course_utils.measure import Timing
from course_utils.workers import products

CORE = "one core of AMD EPYC with AVX-512, bf16"  # that was recorded
untimed = settings(deadline=None, max_examples=25)
size = st.integers(1, 20)
STUB = machines.Machine(
    name="A machine (made up)",
    peak_flop_per_sec={"fp32": 1e9, "bf16": 2e9},
    bytes=2**30,
    bytes_per_sec=1e9,
    source="made up",
    achieved_flop_per_sec={"fp32": 1e9, "bf16": 2e9},
    achieved_bytes_per_sec=1e9,
    has_data_sheet=False,
)


# One product.


@untimed
@given(size, size, size, st.sampled_from(["fp64", "fp32", "bf16", "fp16"]))
def test_a_call_is_one_product_of_the_sizes_and_the_dtype_asked_for(b, d, k, dtype):
    call = products.matmul_call(b, d, k, dtype)
    assert measure.flops(call) == {"mm": 2 * b * d * k}
    result = call()
    assert (result.shape, result.dtype) == ((b, k), measure.DTYPES[dtype])
    assert measure.allocated_bytes(call) == 0  # the result has its place already
    assert torch.equal(call(), result)


def test_a_calls_numbers_are_random():
    assert products.matmul_call(8, 8, 8, "fp32")().unique().numel() > 60


@pytest.mark.parametrize(
    ("dtype", "sentence"),
    [
        ("int8", "No product in 'int8' here. There are: fp64, fp32, tf32, bf16, fp16, fp8."),
        ("tf32", "tf32 is a way in which NVIDIA's tensor cores multiply; this device has none."),
        ("fp8", "This device has no units for fp8 products; an H100, an L4 or an RTX 4090 has."),
    ],
)
def test_a_product_that_a_cpu_does_not_have_is_refused_in_a_sentence(dtype, sentence):
    with pytest.raises(ValueError, match=dtype) as caught:
        products.matmul_call(16, 16, 16, dtype)
    assert str(caught.value) == sentence


def test_apples_gpus_are_said_to_have_no_fp64():
    with pytest.raises(ValueError, match=r"Apple's GPUs have no fp64\."):
        products.matmul_call(16, 16, 16, "fp64", "mps")


# A process of its own.


def timing_of(steps):
    said = []
    while True:
        try:
            said.append(next(steps))
        except StopIteration as end:
            return said, end.value


def test_a_product_timed_apart_is_a_timing_like_any_other_and_its_process_ends():
    before = set(psutil.Process().children())
    said, timing = timing_of(products.timing_steps_in_process(16, 16, 16, "fp32", at_most_s=0.5))
    assert isinstance(timing, Timing)
    assert isinstance(timing.samples, tuple)
    assert "process" in said[0].report
    assert all(0 <= step.fraction <= 1 for step in said)
    assert set(psutil.Process().children()) == before


def test_whoever_drops_a_product_timed_apart_kills_its_process():
    before = set(psutil.Process().children())
    steps = products.timing_steps_in_process(4096, 4096, 4096, "fp32", at_most_s=600)
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    assert "course_utils.workers.products.timed" in child.cmdline()
    steps.close()
    assert not child.is_running()


def test_a_child_that_dies_is_told_of_and_not_waited_for():
    before = set(psutil.Process().children())
    steps = products.timing_steps_in_process(16, 16, 16, "fp32", at_most_s=600)
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    child.kill()
    with pytest.raises(RuntimeError, match=r"The process ended early\. Its status is -9\."):
        timing_of(steps)


def test_the_childs_refusal_comes_out_as_it_would_here():
    with pytest.raises(
        ValueError, match="tf32 is a way in which NVIDIA's tensor cores multiply; this device"
    ):
        timing_of(products.timing_steps_in_process(16, 16, 16, "tf32"))


# What a machine is called.


@pytest.mark.parametrize(
    ("torchs", "ours"),
    [
        ("Tesla T4", "T4"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA L40", None),
        ("NVIDIA A10", None),
        ("NVIDIA A10G", None),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"),
        ("A100-SXM4-40GB", "A100 SXM 40GB"),  # older drivers
        ("NVIDIA A100 80GB PCIe", "A100 PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40GB"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", None),  # a slice of one
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H100 NVL", "H100 NVL"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA GH200 144G HBM3e", "GH200 144GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA GB300", None),
        ("Tesla V100-SXM2-16GB", "V100 SXM2 16GB"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2"),
        ("Tesla V100-PCIE-16GB", "V100 PCIe 16GB"),
        ("Tesla V100-PCIE-32GB", "V100 PCIe"),
        ("NVIDIA GeForce RTX 3080", "RTX 3080"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 3090 Ti", None),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 3080 Laptop GPU", None),
        ("NVIDIA GeForce RTX 5090", "RTX 5090"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI300A", None),
        ("AMD Instinct MI325X", "MI325X"),
        ("AMD Instinct MI355X", "MI355X"),
        ("NVIDIA T400 4GB", None),
        ("NVIDIA T4G", None),
    ],
)
def test_a_card_gets_its_own_data_sheet_or_none(torchs, ours):
    memory_bytes = machines.MACHINES[ours].bytes if ours else 80 * 10**9
    sheet = at_hand._data_sheet(torchs, memory_bytes)
    assert (sheet and sheet.name) == ours


def test_a_card_with_another_memory_than_its_sheets_gets_none():
    assert at_hand._data_sheet("NVIDIA GeForce RTX 3080", 12 * 2**30) is None  # the sheet's has 10 GB
    assert (
        at_hand._data_sheet("NVIDIA H100 80GB HBM3", 85_029_158_912).name == "H100 SXM"
    )  # as torch counts it


def test_what_a_library_prints_does_not_come_between_a_child_and_its_listener(monkeypatch):
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    _, timing = timing_of(products.timing_steps_in_process(64, 64, 64, "bf16", at_most_s=0.2))
    assert timing.seconds > 0


def test_a_large_operand_is_one_random_block_again_and_again(monkeypatch):
    monkeypatch.setattr(products, "BLOCK", 8)
    numbers = products._random((5, 4), torch.float32, "cpu")
    assert numbers.shape == (5, 4)
    flat = numbers.flatten()
    assert len(set(flat[:8].tolist())) == 8
    assert torch.equal(flat[8:16], flat[:8])
    assert torch.equal(flat[16:], flat[:4])


def test_every_data_sheet_belongs_to_some_card():
    assert set(at_hand._DEVICE_NAMES.values()) == set(machines.MACHINES)


def test_a_machine_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"There is no machine 'H1000' here\. There are: T4, .*MI355X\.$"):
        machines.machine_named("H1000")
    assert machines.machine_named("L4").name == "L4"


def test_the_device_is_one_that_torch_can_use():
    assert torch.ones(1, device=machines.device()).sum() == 1
    assert at_hand.device_name("cpu").startswith("one core of ")


def cpu(flags, model="model name\t: AMD EPYC\n", word="flags"):
    """What /proc/cpuinfo says of such a CPU, twice, as of two cores."""
    return 2 * f"processor\t: 0\n{model}{word}\t\t: fpu {flags}\n\n"


def test_two_cpus_that_differ_by_their_units_do_not_share_a_name():
    names = {
        flags: at_hand.cpu_name(cpu(flags))
        for flags in (
            *("avx", "avx avx2", "avx avx2 avx512f", "avx avx2 avx512f avx512_bf16"),
            *("avx avx2 avx512f avx512_bf16 amx_bf16", "avx avx2 avx512f avx512_bf16 avx512_fp16 amx_bf16"),
        )
    }
    assert len(set(names.values())) == len(names)
    assert names["avx avx2 avx512f avx512_bf16"] == CORE
    assert names["avx avx2"] == "one core of AMD EPYC with AVX2"
    assert at_hand.cpu_name(cpu("asimd bf16", model="", word="Features")).endswith(" with NEON, bf16")


def test_a_cpu_that_says_nothing_of_its_units_still_has_a_name(monkeypatch):
    monkeypatch.setattr(at_hand, "_model_of_a_mac", lambda: "Apple M2 Pro")
    assert at_hand.cpu_name("") == "one core of Apple M2 Pro"
    monkeypatch.setattr(at_hand, "_model_of_a_mac", lambda: "")
    assert at_hand.cpu_name("").startswith("one core of ")


# Recordings.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of recordings."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    machines.recordings.cache_clear()
    yield tmp_path
    machines.recordings.cache_clear()


def written(folder, name, **changes):
    data = {
        "machine": {**dataclasses.asdict(STUB), "name": name},
        "taken": "2026-01-31",
        "software": "torch",
        "products": {"fp32": [[1, 2, 3, 1e-6], [16, 16, 16, 2e-6]]},
        "median_spread": 0.02,
    }
    (folder / f"{name}.json").write_text(json.dumps({**data, **changes}))


def test_recordings_are_all_files_of_the_folder_by_the_machines_name(folder):
    assert machines.recordings() == {}
    machines.recordings.cache_clear()
    written(folder, "one")
    written(folder, "two")
    assert list(machines.recordings()) == ["one", "two"]
    one = machines.recordings()["one"]
    assert one.machine == dataclasses.replace(STUB, name="one")
    assert one.seconds_by_size == {"fp32": {(1, 2, 3): 1e-6, (16, 16, 16): 2e-6}}
    assert (one.taken, one.software, one.spread) == ("2026-01-31", "torch", 0.02)


def test_the_courses_own_recordings_can_be_read():
    machines.recordings.cache_clear()
    for recording in machines.recordings().values():
        for dtype, seconds_by_size in recording.seconds_by_size.items():
            assert dtype in (*products.DTYPES, "xf32")
            assert all(seconds > 0 for seconds in seconds_by_size.values())
        assert len(recording.workload_table().rows) == 1 + len(recording.workloads)
        for one in recording.workloads:
            assert one.flop_per_sec <= recording.machine.peak_flop_per_sec.get(one.dtype, math.inf), one.name
    assert all(path.stat().st_size < 200_000 for path in recorded.FOLDER.glob("*.json"))


def test_the_recorded_core_held_what_its_training_steps_were_predicted_to_hold():
    peaks = machines.recordings()[CORE].memory_peaks()
    assert peaks.largest_difference <= 8
    plain, recomputed = peaks.measured.values()
    assert recomputed < plain


def recording(*sizes):
    return machines.Recording(STUB, "", "", {"fp32": dict.fromkeys(sizes, 1.0)}, 0.0)


def test_the_nearest_recording_is_nearest_by_ratio():
    assert recording((100, 100, 100), (1000, 100, 100)).nearest(300, 100, 100, "fp32") == (100, 100, 100)
    assert recording((100, 100, 100), (1000, 100, 100)).nearest(320, 100, 100, "fp32") == (1000, 100, 100)
    assert recording((1, 64, 64), (64, 1, 64)).nearest(60, 2, 64, "fp32") == (64, 1, 64)


@given(st.lists(st.tuples(size, size, size), min_size=1, max_size=6), size, size, size)
def test_no_recorded_size_is_fewer_doublings_away_than_the_nearest(sizes, b, d, k):
    def factor(there):
        """By how much the sides differ, multiplied: 2 for one side that is twice or half as long."""
        return math.prod(max(m, n) / min(m, n) for m, n in zip((b, d, k), there, strict=True))

    nearest = recording(*sizes).nearest(b, d, k, "fp32")
    assert factor(nearest) == pytest.approx(min(map(factor, sizes)))


def test_a_dtype_that_was_not_recorded_gets_a_sentence():
    with pytest.raises(
        ValueError, match=r"'fp8' was not recorded on A machine \(made up\)\. There are: fp32\."
    ):
        recording((1, 1, 1)).nearest(1, 1, 1, "fp8")


TINY = workloads.Scale(
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
WORKLOADS = [
    "copy",
    "scale in place",
    "LayerNorm, forward",
    "LayerNorm, forward + backward",
    "softmax",
    "cross-entropy",
    "fused attention, forward",
    "fused attention, forward + backward",
    "AdamW, foreach",
    "AdamW, fused",
    "tiny, a training step",
    "tiny, a training step, each layer recomputed",
]


def as_many_seconds_as_flops(call, **_):
    """In place of a measurement, which is tested elsewhere."""
    flops = measure.flops(call).total
    return Timing((flops + 1, flops + 1), "best", True, "wall time", 1.0)


@pytest.fixture
def small(folder, monkeypatch):
    """Recording, of the made-up machine and of few small things, where nothing takes time."""
    monkeypatch.setattr(recorder, "SIZES", {"cpu": (1, 16), "gpu": ()})
    monkeypatch.setattr(recorder, "SCALES", {"cpu": TINY, "gpu": None})
    monkeypatch.setattr(at_hand, "this_machine", lambda: STUB)
    monkeypatch.setattr(at_hand, "device", lambda: "cpu")
    monkeypatch.setattr(measure, "time_call", as_many_seconds_as_flops)
    return folder


def test_what_is_recorded_can_be_read_back(small):
    said = []
    path = recorder.record(said.append)
    assert path == small / "a_machine_made_up.json"
    assert said[-1].startswith("Written: a_machine_made_up.json, 12 workloads and 16 products in ")
    ((name, read),) = machines.recordings().items()
    assert name == STUB.name
    assert read.machine == STUB
    sizes = {(b, d, k): 2 * b * d * k + 1 for b in (1, 16) for d in (1, 16) for k in (1, 16)}
    assert read.seconds_by_size["fp32"] == pytest.approx(sizes, rel=1e-3)
    assert read.seconds_by_size["bf16"] == pytest.approx(sizes, rel=1e-3)
    assert read.spread == 0
    assert path.read_text().count("\n  [") == 16  # one product a line
    assert [one.name for one in read.workloads] == WORKLOADS
    assert (read.left_out, read.state) == ((), {})  # without a GPU there is no state to read
    again = recorded.text_of(read)
    assert again == path.read_text()


def test_a_workloads_flops_are_those_that_torch_counts(small):
    for job in workloads.jobs("cpu", "bf16", TINY):
        counted = measure.flops(job.make()).total
        if "recomputed" in job.name:
            assert counted > job.flops  # what is computed again is not what the model needs
        elif "training step" in job.name:
            scores_again = TINY.shape.forward_flops(2, 8)["attention"] // 2
            assert counted == job.flops + scores_again  # the fused kernel's own
        else:
            assert counted == job.flops, job.name


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_workload_moves_at_least_the_bytes_of_its_operands_and_results(dtype):
    """By what operations read and hand out, gradients of parameters aside; a kernel that does less work is not known."""
    by_name = {job.name: job for job in workloads.jobs("cpu", dtype, TINY)}
    n = {"fp32": 4, "bf16": 2}[dtype]
    assert by_name["copy"].bytes == 2 * 4 * 2**12
    assert by_name["softmax"].bytes == by_name["LayerNorm, forward"].bytes == 2 * n * 8 * 16
    assert by_name["LayerNorm, forward + backward"].bytes == (2 + 3) * n * 8 * 16
    assert by_name["cross-entropy"].bytes == 4 * 16 * 211
    one = n * 2 * 2 * 8 * 64
    assert by_name["fused attention, forward"].bytes == 4 * one
    assert by_name["fused attention, forward + backward"].bytes == 12 * one
    parameters = sum(p.numel() for p in workloads.models.Transformer(**vars(TINY.shape)).parameters())
    assert by_name["AdamW, fused"].bytes == 7 * 4 * parameters


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(("batch", "sequence"), [(4, 32), (1, 8)])  # the loss decides, and the end
def test_a_steps_peak_memory_is_predicted_but_for_the_losss_scalars(dtype, recompute, batch, sequence):
    shape = predict.Transformer(2, 64, 4, 5003, 32)
    step = workloads.training_step(shape, dtype, batch, sequence, recompute=recompute)
    step()  # the optimizer has its averages from here on
    predicted = workloads.step_peak_bytes(shape, dtype, batch, sequence, recompute=recompute)
    assert 0 <= measure.peak_bytes(step) - predicted <= 8


@pytest.mark.parametrize(
    ("dtype", "moved"), [("fp32", all), ("bf16", any)]
)  # a bf16 1 is too coarse for a step
def test_a_training_step_trains(dtype, moved, monkeypatch):
    made = []
    build = workloads.models.Transformer
    monkeypatch.setattr(
        workloads.models, "Transformer", lambda **sizes: made.append(build(**sizes)) or made[-1]
    )
    step = workloads.training_step(TINY.shape, dtype, 2, 8)
    parameters = list(made[0].parameters())
    before = [p.clone() for p in parameters]
    step()
    assert moved(not torch.equal(p, old) for p, old in zip(parameters, before, strict=True))
    assert all(p.grad is None for p in parameters)


def test_the_batch_is_the_largest_that_fits(monkeypatch):
    def batch(free_bytes):
        monkeypatch.setattr(measure, "free_bytes", lambda device: free_bytes)
        large = dataclasses.replace(TINY, batch=16)
        return {job.sizes["batch"] for job in workloads.jobs("cpu", "fp32", large) if "step" in job.name}

    def needs(batch):
        return 12 * TINY.shape.parameters + workloads.step_peak_bytes(TINY.shape, "fp32", batch, 8)

    assert batch(10**12) == {16}
    assert batch(needs(4) / 0.6 + 1) == {4}
    assert batch(needs(4) / 0.6 - 1) == {2}
    assert batch(1) == {1}


def test_a_workload_that_does_not_fit_is_left_out_with_a_sentence(small, monkeypatch):
    monkeypatch.setattr(measure, "free_bytes", lambda device: 20_000)
    recorder.record(lambda _: None)
    (read,) = machines.recordings().values()
    assert (
        read.left_out[0]
        == "copy: it needs 32,768 bytes = 32 KiB = 32.8 kB, and 20,000 bytes = 19.5 KiB = 20 kB are free."
    )
    assert "softmax" in [one.name for one in read.workloads]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"), "another 20.00 GiB"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "Memory ran out."),
        (NotImplementedError('"norm" not implemented for \'Half\'\nat kernel.cpp'), "not implemented for 'Half'"),
    ],
)  # fmt: skip
def test_a_workload_that_fails_is_left_out_and_the_rest_is_recorded(small, monkeypatch, error, sentence):
    def failing(*_):
        raise error

    monkeypatch.setattr(torch, "softmax", failing)
    recorder.record(lambda _: None)
    (read,) = machines.recordings().values()
    assert [one.name for one in read.workloads] == [name for name in WORKLOADS if name != "softmax"]
    (said,) = read.left_out
    assert said.startswith("softmax: ")
    assert sentence in said
    assert "kernel.cpp" not in said


def test_a_workload_that_would_take_all_the_time_is_not_begun(small, monkeypatch):
    flops = {job.name: job.flops for job in workloads.jobs("cpu", "fp32", TINY)}
    rate = max(flops.values()) / 40  # 40 s for the longest, where there are 150 s for all
    slow = dataclasses.replace(STUB, achieved_flop_per_sec={"fp32": rate})
    monkeypatch.setattr(at_hand, "this_machine", lambda: slow)
    recorder.record(lambda _: None)
    (read,) = machines.recordings().values()
    left_out = [words.split(":")[0] for words in read.left_out]
    assert left_out == [name for name in WORKLOADS if flops[name] / rate == 40]
    assert "it would take 40 s and more, again and again." in read.left_out[0]


@pytest.mark.parametrize(
    ("all_s", "longest_s"), [(600, 2.0), (60, 100)]
)  # one product alone; what time is left
def test_recording_leaves_out_products_that_would_take_too_long(small, monkeypatch, all_s, longest_s):
    slow = dataclasses.replace(STUB, achieved_flop_per_sec={"fp32": 2 * 16**3 / 21, "fp64": 1e9})
    monkeypatch.setattr(recorder, "ALL_S", all_s)
    monkeypatch.setattr(recorder, "_LONGEST_CALL_S", longest_s)
    monkeypatch.setattr(at_hand, "this_machine", lambda: slow)
    monkeypatch.setattr(workloads, "jobs", lambda *_: [])
    recorder.record(lambda _: None)
    seconds_by_size = machines.recordings()[slow.name].seconds_by_size
    assert (16, 16, 16) not in seconds_by_size["fp32"]
    assert (16, 16, 16) in seconds_by_size["fp64"]
    assert (1, 1, 1) in seconds_by_size["fp32"]


def test_the_working_dtype_is_bf16_only_where_it_is_faster():
    assert recorder.working_dtype(STUB) == "bf16"
    for reached in ({"fp32": 2e9, "bf16": 1e9}, {"fp32": 1e9}):
        assert recorder.working_dtype(dataclasses.replace(STUB, achieved_flop_per_sec=reached)) == "fp32"


# Workloads, as they are told.


def with_workloads(**changes):
    step = machines.Workload(
        "a step", {"batch": 4, "sequence": 1024}, "bf16", 2.0, 0.01, flops=10**9, tokens=4096, **changes
    )
    softmax = machines.Workload("softmax", {"rows": 2}, "fp8", 0.5, 0.01, bytes=10**8)
    return dataclasses.replace(recording((1, 1, 1)), workloads=(step, softmax))


def test_a_workloads_shares_are_of_the_dtypes_peak_and_of_the_bandwidth():
    head, step, softmax = with_workloads().workload_table().rows
    assert head[0] == STUB.name
    assert (head[0], head[-1]) == (STUB.name, "of largest")
    assert step == ["a step", "4 × 1,024", "bf16", "2 s", "500 MFLOP/s", "25.0%"]
    assert softmax == ["softmax", "2", "fp8", "500 ms", "200 MB/s", "20.0%"]


def test_what_notebook_4_says_of_the_recorded_core_is_what_was_recorded():
    core = machines.recordings()[CORE]
    share = {
        one.name: one.flop_per_sec / core.machine.peak(one.dtype)
        if one.flops
        else one.bytes_per_sec / core.machine.bytes_per_sec
        for one in core.workloads
    }
    assert f"{share['GPT-2 small, a training step']:.0%}" == "59%"
    around = ("LayerNorm, forward", "LayerNorm, forward + backward", "softmax", "cross-entropy")
    assert max(share[name] for name in around) < 0.34  # "a third of the bandwidth, or less"
    in_place = ("AdamW, fused", "scale in place")
    assert [share[name] for name in in_place] == pytest.approx([1.7, 1.7], abs=0.05)  # "by some 70 %"


def test_peaks_of_memory_are_told_beside_their_prediction():
    peaks = with_workloads(predicted_peak_bytes=1000, peak_bytes=1100).memory_peaks()
    assert (dict(peaks.predicted), dict(peaks.measured)) == ({"a step": 1000}, {"a step": 1100})
    with pytest.raises(ValueError, match=r"No training step was recorded on A machine \(made up\)\."):
        recording((1, 1, 1)).memory_peaks()


def test_a_workload_that_was_not_recorded_is_named_with_those_that_were():
    assert with_workloads().workload("softmax").bytes == 10**8
    with pytest.raises(ValueError, match=r"'copy' was not recorded on .*\. There are: a step, softmax\."):
        with_workloads().workload("copy")
    with pytest.raises(ValueError, match=r"There are: none\."):
        recording((1, 1, 1)).workload("copy")


# The state of a GPU.


@pytest.mark.parametrize(
    ("printed", "read"),
    [
        (
            "683.71, 700.00, 1755, 1980, 2619, 61\n",
            {
                "power_w": 683.71,
                "power_limit_w": 700,
                "sm_clock_mhz": 1755,
                "sm_clock_max_mhz": 1980,
                "memory_clock_mhz": 2619,
                "temperature_c": 61,
            },
        ),
        (
            "[N/A], [Not Supported], 300, [Unknown Error], 405, 43",
            {"sm_clock_mhz": 300, "memory_clock_mhz": 405, "temperature_c": 43},
        ),
        ("70, 700, 345, 1980, 2619, 30\n75, 700, 345, 1980, 2619, 33", {"power_w": 70, "temperature_c": 30}),
        ("No devices were found\n", {}),
        ("", {}),
    ],
)
def test_what_nvidia_smi_prints_becomes_numbers_and_what_it_does_not_know_is_left_out(printed, read):
    found = gpu_state.parsed(printed)
    assert found.items() >= read.items()
    assert set(found) == set(read) or len(read) == 2


NVIDIA_SMI = """#!/bin/sh
echo "$@" > {folder}/asked
{behaviour}
"""


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """A program of that name, and a torch.cuda that has a GPU and counts who waits for it."""

    def put(behaviour, **cuda):
        path = tmp_path / "nvidia-smi"
        path.write_text(NVIDIA_SMI.format(folder=tmp_path, behaviour=behaviour))
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        known = {
            "is_available": lambda: True,
            "current_device": lambda: 0,
            "get_device_properties": lambda _: types.SimpleNamespace(uuid="1234"),
            "synchronize": lambda: None,
        }
        for name, value in {**known, **cuda}.items():
            monkeypatch.setattr(torch.cuda, name, value)

    return put


def test_a_gpus_state_is_asked_of_the_very_gpu_that_torch_uses(nvidia_smi, tmp_path):
    nvidia_smi("echo 70, 700, 345, 1980, 2619, 30")
    assert gpu_state.gpu_state()["power_w"] == 70
    asked = (tmp_path / "asked").read_text().split()
    assert "--id=GPU-1234" in asked
    assert "--format=csv,noheader,nounits" in asked
    assert not any(
        word.startswith(("-pl", "-lgc", "-ac", "-r", "--reset", "-pm")) for word in asked
    )  # reads, sets nothing


def test_under_load_the_state_is_read_while_the_work_goes_on(nvidia_smi, tmp_path):
    asked, worked_on = tmp_path / "asked", tmp_path / "worked_on"
    nvidia_smi(f"until [ -e {worked_on} ]; do sleep 0.01; done; echo 70, 700, 345, 1980, 2619, 30")
    seen = []

    def work():
        seen.append(asked.exists())
        if seen[-1]:
            worked_on.touch()
        time.sleep(0.01)

    assert gpu_state.gpu_state(work)["power_w"] == 70  # it answers only if there is work meanwhile
    assert not seen[0], "first it works, so that clocks have risen"


@pytest.mark.parametrize(
    "behaviour",
    [
        "echo 70, 700, 345, 1980, 2619, 30; exit 15",
        "echo Failed to initialize NVML; exit 9",
        "echo Not a field",
    ],
)
def test_where_the_state_cannot_be_read_there_is_none(nvidia_smi, behaviour):
    nvidia_smi(behaviour)
    assert gpu_state.gpu_state() == {}


def test_without_nvidia_smi_or_without_a_gpu_there_is_no_state(nvidia_smi, tmp_path, monkeypatch):
    nvidia_smi("echo 70, 700, 345, 1980, 2619, 30", is_available=lambda: False)
    assert gpu_state.gpu_state() == {}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert gpu_state.gpu_state() == {}


def test_an_nvidia_smi_that_hangs_is_ended(nvidia_smi, monkeypatch):
    monkeypatch.setattr(gpu_state, "_LONGEST_S", 0.2)
    nvidia_smi("exec sleep 60")
    assert gpu_state.gpu_state() == {}
