"""What a machine is called, what it is found to reach, and products in a process of their own."""

import types

import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.core import datasheets, measure
from course_utils.core.datasheets import MACHINES, sheet_of_card
from course_utils.core.measure import Timing
from course_utils.core.measure.results import result_of
from course_utils.subjects import machines
from course_utils.subjects.child_processes import process, products
from course_utils.subjects.machines import at_hand
from tests.helpers.waiting import wait_until

CORE = "one core of AMD EPYC with AVX-512, bf16"  # that was recorded
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
size = st.integers(1, 20)


# One product.


@settings(max_examples=25)
@given(size, size, size, st.sampled_from(["fp64", "fp32", "bf16", "fp16"]))
def test_a_call_is_one_product_of_the_sizes_and_the_dtype_asked_for(b, d, k, dtype):
    call = products.matmul_call(b, d, k, dtype)
    assert measure.flops(call) == {"mm": 2 * b * d * k}
    result = call()
    assert result.shape == (b, k)
    assert result.dtype == measure.DTYPES[dtype]
    assert measure.allocated_bytes(call) == 0  # the result's memory is there before the call
    assert torch.equal(call(), result)


def test_operands_are_random_and_a_large_one_is_a_block_again_and_again(monkeypatch):
    assert products.matmul_call(8, 8, 8, "fp32")().unique().numel() > 60
    monkeypatch.setattr(products, "BLOCK", 8)
    numbers = products._random((5, 4), torch.float32, "cpu")
    assert numbers.shape == (5, 4)
    first, again, rest = numbers.flatten().split(8)
    assert len(set(first.tolist())) == 8
    assert torch.equal(again, first)
    assert torch.equal(rest, first[:4])


@pytest.mark.parametrize(
    ("capability", "hip", "has"),
    [
        ((7, 5), None, []),  # T4
        ((8, 0), None, ["tf32", "bf16"]),  # A100
        ((8, 9), None, ["tf32", "bf16", "fp8"]),  # L4
        ((9, 4), "6.2", ["bf16"]),  # MI300X, whose numbers mean something else
    ],
)
def test_tf32_bf16_and_fp8_are_for_the_gpus_that_have_them(monkeypatch, capability, hip, has):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    assert products._is_nvidia("cuda", (8, 0)) == ("tf32" in has)
    assert products._is_nvidia("cuda", (8, 9)) == ("fp8" in has)
    refusal = r"this device has none|no units for (NVIDIA's fp8|bf16)"
    for dtype in {"tf32", "bf16", "fp8"} - set(has):
        with pytest.raises(ValueError, match=refusal):
            products.matmul_call(16, 16, 16, dtype, "cuda")


# A process of its own.


def timing_of(steps):
    said = []
    timing = result_of(steps, said.append)
    return said, timing


def steps_in_process(n, dtype, at_most_s=2.0):
    order = {"b": n, "d": n, "k": n, "dtype": dtype, "at_most_s": at_most_s}
    return process.steps_of(products.timing_steps, order)


def test_a_product_in_its_own_process_is_timed_like_any_other_whatever_its_library_prints(
    monkeypatch,
):
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    before = set(psutil.Process().children())
    said, timing = timing_of(steps_in_process(64, "bf16", at_most_s=0.2))
    assert isinstance(timing, Timing)
    assert timing.seconds > 0
    assert "process" in said[0].report
    assert all(0 <= step.fraction <= 1 for step in said)
    assert set(psutil.Process().children()) == before


def test_whoever_drops_a_products_steps_kills_its_process():
    before = set(psutil.Process().children())
    steps = steps_in_process(4096, "fp32", at_most_s=600)
    next(steps)
    (child,) = set(psutil.Process().children()) - before
    # While a process starts, the system says nothing of it for a moment.
    command = wait_until(child.cmdline, "it says what it runs")
    assert "course_utils.subjects.child_processes.products.timing_steps" in command
    steps.close()
    assert not child.is_running()


# What a machine is called.


@pytest.mark.parametrize("name", MACHINES)
def test_each_data_sheet_is_found_by_what_torch_calls_its_card_and_by_its_memory(name):
    pattern = datasheets._TABLE[name]["torch_name"]
    memory_bytes = MACHINES[name].bytes
    called = pattern.replace("\\b", "").replace("$", "")
    for maker in ("NVIDIA ", "Tesla ", "AMD Instinct ", "NVIDIA GeForce ", ""):
        card = maker + called
        assert sheet_of_card(card, memory_bytes).name == name
        as_torch_counts = int(1.06 * memory_bytes)
        assert sheet_of_card(card, as_torch_counts).name == name
        of_another_size = int(1.2 * memory_bytes)  # the RTX 3080 comes in two sizes
        assert sheet_of_card(card, of_another_size) is None
    found = [sheet_of_card(called, sheet.bytes) for sheet in MACHINES.values()]
    assert {sheet.name for sheet in found if sheet} == {name}


@pytest.mark.parametrize(
    "called",
    [
        "NVIDIA L40",
        "NVIDIA A10",
        "NVIDIA A10G",
        "NVIDIA A100-SXM4-80GB MIG 3g.40gb",  # a slice of one
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA H200 NVL",
        "NVIDIA GB300",
        "NVIDIA GeForce RTX 3080 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D",
        "AMD Instinct MI300A",
        "NVIDIA T400 4GB",
        "NVIDIA T4G",
    ],
)
def test_a_card_that_only_sounds_like_another_has_none_of_its_sheets(called):
    assert not any(sheet_of_card(called, sheet.bytes) for sheet in MACHINES.values())


def test_a_machine_that_is_not_known_is_named_with_those_that_are():
    no_machine = r"There is no machine 'H1000' here\. There are: T4, .*MI355X\.$"
    with pytest.raises(ValueError, match=no_machine):
        machines.machine_named("H1000")
    assert machines.machine_named("L4").name == "L4"
    no_name = r"There is no 'that_machine' in machines\. There are: MACHINES, "
    with pytest.raises(AttributeError, match=no_name):
        _ = machines.that_machine


def test_the_device_is_one_that_torch_can_use():
    assert torch.ones(1, device=machines.device()).sum() == 1
    assert at_hand.device_name("cpu").startswith("one core of ")


@pytest.mark.parametrize(
    ("flags", "units"),
    [
        ("avx avx2", " with AVX2"),
        ("avx2 avx512f avx512_bf16 avx512_fp16 amx_bf16", " with AVX-512, AMX bf16, bf16, fp16"),
        ("avx_ne_convert avx2 avx512_bf16", " with AVX2, bf16"),
        ("asimd asimdhp", " with NEON, fp16"),
        ("sse", ""),
    ],
)
def test_a_cpu_is_called_by_its_model_and_the_units_that_it_multiplies_with(
    flags, units, monkeypatch
):
    core = f"processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu {flags}\n\n"
    assert at_hand.cpu_name(2 * core) == f"one core of AMD EPYC{units}"
    for model, name in (("Apple M2 Pro", "Apple M2 Pro"), ("", at_hand.platform.machine())):
        monkeypatch.setattr(at_hand, "_model_of_a_mac", lambda model=model: model)
        assert at_hand.cpu_name(f"Features : fp {flags}") == f"one core of {name}{units}"


@pytest.fixture
def planted(monkeypatch):
    """A machine that multiplies the second shape twice as fast as the first.

    In bf16 it takes so long that the second shape is not tried. What is returned may be filled, and
    then other programs disturb the machine.
    """
    noisy = []

    def call(b, d, k, dtype, where):
        """In place of a call, the seconds that it takes."""
        if dtype not in ("fp32", "bf16"):
            raise ValueError("no units")
        rate = 2e12 if (b, d, k) == at_hand._CPU_SHAPES[1] else 1e12
        if dtype == "bf16":
            rate /= 1000
        return 2 * b * d * k / rate

    def timed(call, **_):
        seconds = call if isinstance(call, float) else 2 * call().nbytes / 1e9
        return types.SimpleNamespace(seconds=seconds, disturbance="others" if noisy else "")

    monkeypatch.setattr(at_hand, "device", lambda: "cpu")
    monkeypatch.setattr(products, "matmul_call", call)
    monkeypatch.setattr(measure, "time_call", timed)
    monkeypatch.setattr(measure, "free_bytes", lambda _: 2**20)
    return noisy


def test_a_machine_without_a_sheet_is_what_was_measured_of_it(planted):
    here = at_hand.this_machine.__wrapped__()
    assert here.peak_flop_per_sec == pytest.approx({"fp32": 2e12, "bf16": 1e9})
    assert here.achieved_flop_per_sec == here.peak_flop_per_sec
    assert here.bytes_per_sec == pytest.approx(1e9)
    assert here.achieved_bytes_per_sec == here.bytes_per_sec
    assert here.name == at_hand.device_name("cpu")
    assert not here.has_data_sheet
    assert here.bytes == measure.memory_bytes()[0]
    planted.append("noise")
    assert "other programs ran" in at_hand.this_machine.__wrapped__().source
    assert "other programs ran" not in here.source


def test_a_gpu_with_a_sheet_has_its_peaks_and_what_was_measured(planted, monkeypatch):
    monkeypatch.setattr(at_hand, "device", lambda: "cuda")
    monkeypatch.setattr(at_hand, "device_name", lambda _: "NVIDIA H100 80GB HBM3")
    monkeypatch.setattr(at_hand, "_memory_bytes", lambda _: 85_029_158_912)
    monkeypatch.setattr(at_hand, "_copy_bytes_per_sec", lambda _: 3e12)
    here = at_hand.this_machine.__wrapped__()
    sheet = MACHINES["H100 SXM"]
    assert here.name == sheet.name
    assert here.peak_flop_per_sec == sheet.peak_flop_per_sec
    assert here.bytes == sheet.bytes
    assert here.achieved_flop_per_sec == pytest.approx({"fp32": 1e12, "bf16": 1e9})
    assert here.achieved_bytes_per_sec == 3e12
    assert here.has_data_sheet
