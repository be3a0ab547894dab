"""What a machine is called, what was recorded on others, and products that run apart from this process."""

import dataclasses
import json
import math

import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import machines, measure, products
from course_utils.measure import Timing

untimed = settings(deadline=None, max_examples=25)
size = st.integers(1, 20)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no NVIDIA GPU here.")
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


@needs_cuda
def test_tf32_is_switched_on_for_the_product_alone():
    before = torch.backends.cuda.matmul.allow_tf32
    assert products.matmul_call(64, 64, 64, "tf32", "cuda")().dtype == torch.float32
    assert torch.backends.cuda.matmul.allow_tf32 == before


@needs_cuda
def test_fp8_runs_in_multiples_of_16_or_is_refused_in_a_sentence():
    if torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("This GPU has no fp8 units.")
    assert products.matmul_call(16, 32, 48, "fp8", "cuda")().shape == (16, 48)
    with pytest.raises(ValueError, match="multiples of 16; got 16, 8 and 16"):
        products.matmul_call(16, 8, 16, "fp8", "cuda")


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
    said, timing = timing_of(products.timing_steps_apart(16, 16, 16, "fp32", at_most_s=0.5))
    assert isinstance(timing, Timing)
    assert isinstance(timing.samples, tuple)
    assert "process" in said[0].report
    assert all(0 <= step.fraction <= 1 for step in said)
    assert set(psutil.Process().children()) == before


def test_whoever_drops_a_product_timed_apart_kills_its_process():
    before = set(psutil.Process().children())
    steps = products.timing_steps_apart(4096, 4096, 4096, "fp32", at_most_s=600)
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    assert "course_utils.products.timed" in child.cmdline()
    steps.close()
    assert not child.is_running()


def test_a_child_that_dies_is_told_of_and_not_waited_for():
    before = set(psutil.Process().children())
    steps = products.timing_steps_apart(16, 16, 16, "fp32", at_most_s=600)
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    child.kill()
    with pytest.raises(RuntimeError, match=r"The process ended early\. Its status is -9\."):
        timing_of(steps)


def test_the_childs_refusal_comes_out_as_it_would_here():
    with pytest.raises(
        ValueError, match="tf32 is a way in which NVIDIA's tensor cores multiply; this device"
    ):
        timing_of(products.timing_steps_apart(16, 16, 16, "tf32"))


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
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", None),
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
        ("NVIDIA T400 4GB", None),
        ("NVIDIA T4G", None),
    ],
)
def test_a_card_gets_its_own_data_sheet_or_none(torchs, ours):
    memory_bytes = machines.MACHINES[ours].bytes if ours else 80 * 10**9
    sheet = machines._data_sheet(torchs, memory_bytes)
    assert (sheet and sheet.name) == ours


def test_a_card_with_another_memory_than_its_sheets_gets_none():
    assert machines._data_sheet("NVIDIA GeForce RTX 3080", 12 * 2**30) is None  # the sheet's has 10 GB
    assert (
        machines._data_sheet("NVIDIA H100 80GB HBM3", 85_029_158_912).name == "H100 SXM"
    )  # as torch counts it


def test_what_a_library_prints_does_not_come_between_a_child_and_its_listener(monkeypatch):
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    _, timing = timing_of(products.timing_steps_apart(64, 64, 64, "bf16", at_most_s=0.2))
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
    assert set(machines._DEVICE_NAMES.values()) == set(machines.MACHINES)


def test_a_machine_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"There is no machine 'H1000' here\. There are: T4, .*MI300X\.$"):
        machines.machine_named("H1000")
    assert machines.machine_named("L4").name == "L4"


def test_the_device_is_one_that_torch_can_use():
    assert torch.ones(1, device=machines.device()).sum() == 1
    assert machines.device_name("cpu").startswith("one core of ")


# Recordings.


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """An empty folder of recordings."""
    monkeypatch.setattr(machines, "_RECORDED", tmp_path)
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


def test_recordings_are_all_files_of_the_folder_by_the_machines_name(recorded):
    assert machines.recordings() == {}
    machines.recordings.cache_clear()
    written(recorded, "one")
    written(recorded, "two")
    assert list(machines.recordings()) == ["one", "two"]
    one = machines.recordings()["one"]
    assert one.machine == dataclasses.replace(STUB, name="one")
    assert one.seconds_by_size == {"fp32": {(1, 2, 3): 1e-6, (16, 16, 16): 2e-6}}
    assert (one.taken, one.software, one.spread) == ("2026-01-31", "torch", 0.02)


def test_the_courses_own_recordings_can_be_read():
    machines.recordings.cache_clear()
    for recording in machines.recordings().values():
        for dtype, seconds_by_size in recording.seconds_by_size.items():
            assert dtype in products.DTYPES
            assert all(seconds > 0 for seconds in seconds_by_size.values())


def recording(*sizes):
    return machines.Recording(STUB, "", "", {"fp32": dict.fromkeys(sizes, 1.0)}, 0.0)


def test_the_nearest_recording_is_nearest_by_ratio():
    assert recording((100, 100, 100), (1000, 100, 100)).nearest(300, 100, 100, "fp32") == (100, 100, 100)
    assert recording((100, 100, 100), (1000, 100, 100)).nearest(320, 100, 100, "fp32") == (1000, 100, 100)
    assert recording((1, 64, 64), (64, 1, 64)).nearest(60, 2, 64, "fp32") == (64, 1, 64)


@given(st.lists(st.tuples(size, size, size), min_size=1, max_size=6), size, size, size)
def test_no_recorded_size_is_fewer_doublings_away_than_the_nearest(sizes, b, d, k):
    def factor(recorded):
        """By how much the sides differ, multiplied: 2 for one side that is twice or half as long."""
        return math.prod(max(m, n) / min(m, n) for m, n in zip((b, d, k), recorded, strict=True))

    nearest = recording(*sizes).nearest(b, d, k, "fp32")
    assert factor(nearest) == pytest.approx(min(map(factor, sizes)))


def test_a_dtype_that_was_not_recorded_gets_a_sentence():
    with pytest.raises(
        ValueError, match=r"'fp8' was not recorded on A machine \(made up\)\. There are: fp32\."
    ):
        recording((1, 1, 1)).nearest(1, 1, 1, "fp8")


def test_what_is_recorded_can_be_read_back(recorded, monkeypatch):
    monkeypatch.setattr(machines, "_SIZES", (1, 16))
    monkeypatch.setattr(machines, "_RECORDING_S", 1)
    monkeypatch.setattr(machines, "this_machine", lambda: STUB)
    monkeypatch.setattr(machines, "device", lambda: "cpu")
    # what it measures is measured elsewhere; here as many seconds as there are FLOPs
    monkeypatch.setattr(
        measure,
        "time_call",
        lambda call, **_: Timing((measure.flops(call).total,) * 2, "best", True, "wall time", 1.0),
    )
    said = []
    path = machines.record(said.append)
    assert path == recorded / "a_machine_made_up.json"
    assert said[-1].startswith("Written: a_machine_made_up.json, 16 products in ")
    ((name, read),) = machines.recordings().items()
    assert name == STUB.name
    assert read.machine == STUB
    sizes = {(b, d, k): 2 * b * d * k for b in (1, 16) for d in (1, 16) for k in (1, 16)}
    assert read.seconds_by_size["fp32"] == pytest.approx(sizes, rel=1e-3)
    assert read.seconds_by_size["bf16"] == pytest.approx(sizes, rel=1e-3)
    assert read.spread == 0
    assert path.read_text().count("\n  [") == 16  # one product a line


def test_recording_leaves_out_what_would_take_too_long(recorded, monkeypatch):
    slow = dataclasses.replace(STUB, achieved_flop_per_sec={"fp32": 2 * 16**2 / 0.3, "fp64": 1e9})
    monkeypatch.setattr(machines, "_SIZES", (1, 16))
    monkeypatch.setattr(machines, "_RECORDING_S", 1)
    monkeypatch.setattr(machines, "this_machine", lambda: slow)
    monkeypatch.setattr(measure, "time_call", lambda *_, **__: Timing((1.0,), "best", True, "wall time", 1.0))
    machines.record(lambda _: None)
    seconds_by_size = machines.recordings()[slow.name].seconds_by_size
    assert (16, 16, 16) not in seconds_by_size["fp32"]
    assert (16, 16, 16) in seconds_by_size["fp64"]
    assert (16, 16, 1) in seconds_by_size["fp32"]
