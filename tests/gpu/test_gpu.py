"""What only an NVIDIA GPU can show: `make gpu` runs these tests, which need torch and pytest alone.

`make test` skips them, because it hides a GPU: stored outputs come from a CPU.
"""

import dataclasses
import statistics
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch.nn import functional

from course_utils.chapters.flops import new_recording, workloads
from course_utils.core import measure, predict
from course_utils.core.datasheets import sheet_of_card
from course_utils.subjects import checkpoints, machines
from course_utils.subjects.child_processes import products, transformers
from course_utils.subjects.machines import at_hand

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(),
        reason="There is no NVIDIA GPU to be seen here; make gpu shows it.",
    ),
]
MIB = 2**20
randn = partial(torch.randn, device="cuda")
empty = partial(torch.empty, device="cuda")
ones = partial(torch.ones, device="cuda")
allocated_bytes = partial(measure.allocated_bytes, device="cuda")
peak_bytes = partial(measure.peak_bytes, device="cuda")
time_call = partial(measure.time_call, device="cuda")


@pytest.fixture(autouse=True)
def warm():
    """Multiply once, because libraries allocate their workspaces with the first matrix product."""
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.bfloat16):
        x = randn(64, 64, dtype=dtype)
        x @ x
    torch.cuda.synchronize()


def has(capability):
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= capability


needs_tf32 = pytest.mark.skipif(not has((8, 0)), reason="No GPU with tf32 is to be seen here.")
needs_fp8 = pytest.mark.skipif(not has((8, 9)), reason="No GPU with fp8 units is to be seen here.")


# Time.


def test_what_is_timed_is_the_work_and_not_its_launch():
    """The GPU sleeps for 2^26 cycles; to launch that takes only microseconds."""
    cycles = 2**26
    seen = time_call(lambda: torch.cuda._sleep(cycles), at_most_s=2)
    assert seen.statistic == "typical"
    assert seen.clock == "device events"
    # No GPU's clock is faster than 3 GHz, or slower than 0.1 GHz.
    assert cycles / 3e9 < seen.seconds < cycles / 1e8


def test_nothing_is_faster_than_the_data_sheet():
    here = machines.this_machine()
    if not here.has_data_sheet:
        pytest.skip(f"No data sheet of {here.name} is known.")
    for dtype, peak in here.peak_flop_per_sec.items():
        assert here.achieved_flop_per_sec.get(dtype, 0) <= peak, dtype
    assert here.achieved_bytes_per_sec <= here.bytes_per_sec


# Memory.


@pytest.mark.parametrize("numbers", [1, 100, 127, 128, 129, 1000, 32 * 32])
def test_small_tensors_take_whole_blocks_of_512_bytes(numbers):
    blocks = -(-numbers * 4 // 512)
    assert allocated_bytes(lambda: empty(numbers)) == 512 * blocks
    assert allocated_bytes(lambda: (empty(numbers), ones(numbers))) == 2 * 512 * blocks


@pytest.mark.parametrize("nbytes", [MIB + 1, 3 * MIB + 512, 10 * MIB, 33 * MIB + 7])
def test_large_tensors_take_at_most_a_mebibyte_more(nbytes):
    torch.cuda.empty_cache()
    assert nbytes <= allocated_bytes(lambda: empty(nbytes, dtype=torch.uint8)) <= nbytes + MIB


def test_the_peak_is_what_is_held_at_one_time():
    x = ones(100)
    assert peak_bytes(lambda: (x + x).exp()) == 1024
    assert peak_bytes(lambda: [ones(128) for _ in range(7)]) == 7 * 512
    assert 0 < measure.free_bytes("cuda") <= torch.cuda.get_device_properties("cuda").total_memory


def test_statistics_are_there_before_anything_else_has_used_the_gpu():
    lines = [
        "from course_utils import measure",
        "import torch",
        "f = lambda: torch.ones(4, device='cuda')",
        "print(measure.allocated_bytes(f, device='cuda'), measure.peak_bytes(f, device='cuda'))",
    ]
    command = [sys.executable, "-c", "\n".join(lines)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["512", "512"]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_training_steps_peak_is_predicted(dtype, recompute):
    """The formula is exact on a CPU. Here blocks are rounded, and kernels have scratch space."""
    shape = dataclasses.replace(predict.MODELS["GPT-2 small"], layers=4)
    step = workloads.training_step(shape, dtype, 4, 512, recompute=recompute, device="cuda")
    step()
    step()
    predicted = workloads.predicted_peak_bytes(shape, dtype, 4, 512, recompute=recompute)
    assert peak_bytes(step) == pytest.approx(predicted, rel=0.05)


def test_what_training_holds_between_two_steps_is_the_recipes_bytes():
    shape = dataclasses.replace(predict.MODELS["GPT-2 small"], layers=2)
    before = torch.cuda.memory_allocated()
    step = workloads.training_step(shape, "bf16", 1, 64, device="cuda")
    step()
    held = torch.cuda.memory_allocated() - before
    ledger = predict.training_bytes(shape.parameters, "bf16+master adamw", tensors=shape.tensors)
    expected = ledger.total - ledger["gradients"]  # they are freed after each step
    assert held == pytest.approx(expected, rel=0.05)  # large blocks may be 1 MiB larger


def test_a_model_that_is_counted_without_memory_takes_none_of_the_gpus():
    before = torch.cuda.memory_allocated()
    shape = predict.Transformer(1, 8, 2, 11, 4)
    moments = transformers.step_moments(shape, "bf16 adamw", 2, 4)
    predicted = predict.timeline(shape, 2, 4, recipe="bf16 adamw", fused=False)
    assert max(moment.during for moment in moments) == predicted.peak
    assert torch.cuda.memory_allocated() == before


# Out of memory.


def too_large():
    """Ask for twice the GPU's memory."""
    gpu = torch.cuda.get_device_properties("cuda")
    return empty(gpu.total_memory * 2, dtype=torch.uint8)


def test_a_workload_that_runs_out_of_memory_is_left_out_and_gives_its_memory_back():
    copy_job, *_ = workloads.jobs("cuda", "fp32", workloads.CPU)
    before = torch.cuda.memory_allocated()

    def make():
        held = empty(64 * MIB)
        return lambda: (held, too_large())

    with pytest.raises(ValueError, match="Memory ran out"):
        new_recording.timed(dataclasses.replace(copy_job, make=make), "cuda", at_most_s=1)
    assert torch.cuda.memory_allocated() == before


def test_the_lab_survives_memory_that_runs_out(monkeypatch):
    for package in ("ipywidgets", "anywidget"):
        pytest.importorskip(package, reason="The labs need Jupyter, which is not installed here.")
    from course_utils.chapters import labs

    lab = labs.matmul_lab()
    with monkeypatch.context() as patch:  # the lab believes that there is enough memory
        patch.setattr(measure, "free_bytes", lambda device="cpu": 2**50)
        patch.setattr("course_utils.chapters.flops.matmul_lab.jobs.IN_PROCESS_FROM_BYTES", 2**50)
        patch.setattr("course_utils.chapters.flops.matmul_lab.jobs.IN_PROCESS_FROM_S", 1e9)
        lab.set(b=2**20, d=2**20, k=1, dtype="fp32")
        before = torch.cuda.memory_allocated()
        lab.start("Time it")
        with pytest.raises(ValueError, match="Memory ran out"):
            lab.wait(120)
    assert "Make it smaller" in lab.screen.report
    assert torch.cuda.memory_allocated() == before
    lab.set(b=64, d=64, k=64)
    lab.start("Time it")
    lab.wait(120)
    assert lab.screen.report.startswith("Measured: ")


# Formats.


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_casts_on_a_gpu_what_notebook_7_says_by_the_documentation(dtype):
    x = randn(8, 8)
    w = randn(8, 8)
    h = x.to(dtype)
    target = torch.zeros(8, dtype=torch.int64, device="cuda")
    with torch.autocast("cuda", dtype):
        in_16_bits = {
            "product": x @ w,
            "linear": functional.linear(x, w),
            "gelu of 16 bits": functional.gelu(h),
        }
        in_fp32 = {
            "softmax": torch.softmax(h, -1),
            "exp": torch.exp(h),
            "sum": h.sum(),
            "layer norm": functional.layer_norm(h, (8,)),
            "mean squared error": functional.mse_loss(h, torch.zeros_like(h)),
            "cross-entropy": functional.cross_entropy(h, target),
            "16 bits + fp32": h + x,
        }
    for name, result in in_16_bits.items():
        assert result.dtype == dtype, name
    for name, result in in_fp32.items():
        assert result.dtype == torch.float32, name


@needs_tf32
def test_tf32_is_switched_on_for_the_product_alone():
    before = torch.backends.cuda.matmul.allow_tf32
    for dtype in ("tf32", "fp32"):
        multiply = products.matmul_call(256, 256, 256, dtype, "cuda")
        assert multiply().dtype == torch.float32
        assert torch.backends.cuda.matmul.allow_tf32 == before


@needs_fp8
def test_fp8_runs_in_multiples_of_16_or_is_refused_in_a_sentence():
    multiply = products.matmul_call(16, 32, 48, "fp8", "cuda")
    assert multiply().shape == (16, 48)
    with pytest.raises(ValueError, match="multiples of 16; got 16, 8 and 16"):
        products.matmul_call(16, 8, 16, "fp8", "cuda")


# What runs beside what.


def test_a_copy_from_pinned_memory_runs_beside_the_products():
    """Together they take less time than one after the other.

    From memory that is not pinned, the copy would hold up the queue.
    """
    host = torch.empty(64 * MIB, dtype=torch.uint8).pin_memory()
    there = torch.empty_like(host, device="cuda")
    x = randn(4096, 4096, dtype=torch.bfloat16)
    side = torch.cuda.Stream()

    def copy_over():
        there.copy_(host, non_blocking=True)

    def multiply():
        for _ in range(20):
            x @ x

    def together():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            copy_over()
        multiply()
        torch.cuda.current_stream().wait_stream(side)

    copy_s = median_seconds(copy_over)
    multiply_s = median_seconds(multiply)
    assert host.is_pinned()
    saved_s = 0.5 * min(copy_s, multiply_s)
    assert median_seconds(together) < copy_s + multiply_s - saved_s


def median_seconds(work):
    begun = torch.cuda.Event(enable_timing=True)
    ended = torch.cuda.Event(enable_timing=True)
    found = []
    for _ in range(7):
        torch.cuda.synchronize()
        begun.record()
        work()
        ended.record()
        torch.cuda.synchronize()
        found.append(begun.elapsed_time(ended) / 1000)
    return statistics.median(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_counts_like_a_cpus(dtype):
    q = randn(2, 4, 64, 32, dtype=dtype, requires_grad=True)
    product = 2 * 2 * 4 * 64 * 64 * 32
    results = []

    def attend():
        results.append(functional.scaled_dot_product_attention(q, q, q))

    assert measure.flops(attend).total == 2 * product
    assert measure.flops(lambda: results[0].sum().backward()).total == 5 * product


def test_fused_attention_is_attention_and_keeps_no_scores():
    q, k, v = (randn(2, 4, 512, 64, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))

    def attend():
        return functional.scaled_dot_product_attention(q, k, v)

    scores = q.double() @ k.double().mT / 64**0.5
    exact = torch.softmax(scores, -1) @ v.double()
    assert (attend().double() - exact).abs().max() < 0.02
    scores_bytes = 2 * 4 * 512 * 512 * 2
    kept = measure.saved_bytes(attend, exclude=[q, k, v])
    assert kept < scores_bytes / 4  # the result, and one number for each row of scores


def test_tensors_of_a_gpu_come_back_on_the_cpu(tmp_path):
    state = {"w": randn(300, 5).mT, "h": randn(4).bfloat16()}
    checkpoints.save(tmp_path / "state", state)
    back = checkpoints.load(tmp_path / "state")
    for name, saved in state.items():
        assert back[name].device.type == "cpu", name
        assert torch.equal(back[name], saved.cpu()), name


# The machine.


def test_this_machine_is_the_gpu_with_its_data_sheet_if_there_is_one():
    here = machines.this_machine()
    name = torch.cuda.get_device_name()
    assert machines.device() == "cuda"
    sheet = sheet_of_card(name, at_hand._memory_bytes("cuda"))
    assert here.name == (sheet.name if sheet else name)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_workload_runs_on_the_gpu(dtype):
    shape = predict.Transformer(1, 64, 2, 211, 64)
    tiny = workloads.Scale(
        (16,), 2**12, 16, 64, heads=2, attended=64, batch=2, sequence=64, shape=shape, model="tiny"
    )
    for job in workloads.jobs("cuda", dtype, tiny):
        timed = new_recording.timed(job, "cuda", at_most_s=0.3)
        assert timed.seconds > 0, job.workload.name
