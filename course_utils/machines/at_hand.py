"""What machine this is, and what it can really reach."""

import functools
import platform
import re
from dataclasses import replace
from pathlib import Path

import psutil
import torch

from course_utils import measure, products
from course_utils.datasheets import MACHINES, Machine
from course_utils.quantities import Number

_CPU_SHAPES = ((1024, 256, 256), (512, 512, 512))
_GPU_SHAPES = tuple((n, n, n) for n in (2048, 4096, 8192))
_MEASURED = "Measured, for want of a data sheet: the largest rate of a product, and of a copy"
# How torch names the cards, from the most particular on.
_DEVICE_NAMES = {
    r"H100 80GB HBM3$": "H100 SXM",
    r"H100 PCIe$": "H100 PCIe",
    r"H100 NVL$": "H100 NVL",
    r"\bH200$": "H200 SXM",
    r"\bB200$": "B200",
    r"A100-SXM4-80GB$": "A100 SXM",
    r"A100-SXM4-40GB$": "A100 SXM 40GB",
    r"A100 80GB PCIe$": "A100 PCIe",
    r"A100-PCIE-40GB$": "A100 PCIe 40GB",
    r"V100-SXM2-32GB$": "V100 SXM2",
    r"V100-SXM2-16GB$": "V100 SXM2 16GB",
    r"V100-PCIE-32GB$": "V100 PCIe",
    r"V100-PCIE-16GB$": "V100 PCIe 16GB",
    r"\bT4$": "T4",
    r"\bL4$": "L4",
    r"\bL40S$": "L40S",
    r"RTX 3080$": "RTX 3080",
    r"RTX 3090$": "RTX 3090",
    r"RTX 4090$": "RTX 4090",
    r"RTX 5090$": "RTX 5090",
    r"MI300X\b": "MI300X",
}


def device() -> str:
    """The accelerator if there is one, else the CPU.

    `torch.accelerator.current_accelerator()` is None where there is none: whoever asks only inside an
    `if` has no device on such a machine.
    """
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return found.type if found else "cpu"


@functools.cache
def this_machine() -> Machine:
    """The GPU if there is one, else one core of this CPU, with what it was just measured to reach.

    Takes a few seconds the first time, and nothing after that. A GPU is matched to its data sheet; a CPU
    or an unknown GPU has none, and its peaks are the measured ones.
    """
    where = device()
    dtypes = ("fp32", "bf16", "fp16", "fp64", "tf32", "fp8")
    found = {dtype: rate for dtype in dtypes if (rate := _largest_rate(dtype, where))}
    reached = {dtype: rate for dtype, (rate, _) in found.items()}
    quiet = all(was_quiet for _, was_quiet in found.values())
    copied = copy_bytes_per_sec(where)
    sheet = _data_sheet(device_name(where), _memory_bytes(where)) if where == "cuda" else None
    if sheet:
        return replace(sheet, achieved_flop_per_sec=reached, achieved_bytes_per_sec=copied)
    return Machine(
        device_name(where),
        reached,
        bytes=_memory_bytes(where),
        bytes_per_sec=copied,
        source=_MEASURED
        + ("" if quiet else " (while other programs ran; restart the kernel to measure again)"),
        achieved_flop_per_sec=reached,
        achieved_bytes_per_sec=copied,
        has_data_sheet=False,
    )


def _data_sheet(name: str, memory_bytes: int) -> Machine | None:
    """The sheet for a card of that name, if it has that memory too; cards of one name come in several sizes."""
    sheets = (MACHINES[ours] for theirs, ours in _DEVICE_NAMES.items() if re.search(theirs, name))
    return next((sheet for sheet in sheets if abs(memory_bytes / sheet.bytes - 1) < 0.15), None)


def device_name(where: str) -> str:
    """What the machine calls itself."""
    if where == "cuda":
        return torch.cuda.get_device_name()
    if where != "cpu":
        return f"{platform.machine()} {where.upper()}"
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return f"one core of {named[1] if named else platform.processor() or platform.machine()}"


def _memory_bytes(where: str) -> int:
    return (
        torch.cuda.get_device_properties(where).total_memory
        if where == "cuda"
        else psutil.virtual_memory().total
    )


def _largest_rate(dtype: str, where: str) -> tuple[Number, bool] | None:
    """The most FLOP/s that a product reaches, and whether the machine was quiet; None where there are no such products."""
    best, quiet = 0.0, True
    shapes, at_most_s, longest_s = (_CPU_SHAPES, 0.12, 0.05) if where == "cpu" else (_GPU_SHAPES, 0.3, 0.3)
    for b, d, k in shapes:
        flops = 2 * b * d * k
        if best and flops / best > longest_s:  # fp16 on a CPU without units for it, fp64 on a GPU with few
            break
        try:
            call = products.matmul_call(b, d, k, dtype, where)
            timing = measure.time_call(call, device=where, at_most_s=at_most_s)
        except (ValueError, RuntimeError):
            break
        best, quiet = max(best, flops / timing.seconds), quiet and not timing.disturbance
    return (best, quiet) if best else None


def copy_bytes_per_sec(where: str, *, at_most_s: Number = 0.25) -> Number:
    """Bytes read and written per second, while something too large for any cache is copied."""
    # At most half of what is free: a GPU may be shared with another kernel that has nearly all of it.
    numbers = min(2**25 if where == "cpu" else 2**28, int(measure.free_bytes(where)) // 16)
    source = torch.ones(numbers, device=where)
    target = source.clone()  # touched once: the system hands out memory at the first touch, and slowly
    timing = measure.time_call(lambda: target.copy_(source), device=where, at_most_s=at_most_s)
    return 2 * source.nbytes / timing.seconds
