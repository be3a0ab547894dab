"""What machine this is, and what it can really reach."""

import functools
import platform
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import torch

from course_utils.core import measure
from course_utils.core.datasheets import Machine, sheet_of_card
from course_utils.core.say import Number
from course_utils.subjects.child_processes import products

_CPU_SHAPES = ((1024, 256, 256), (512, 512, 512))
_GPU_SHAPES = tuple((n, n, n) for n in (2048, 4096, 8192))
_DTYPES = ("fp32", "bf16", "fp16", "fp64", "tf32", "fp8")
_LARGEST = "the largest rate of a few products, and a copy's"
# What a CPU multiplies with, as /proc/cpuinfo has it: of the vectors the widest, and what takes 16 bits.
_VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sve": "SVE", "asimd": "NEON"}
_HALVES = {
    "amx_bf16": "AMX bf16",
    "amx_fp16": "AMX fp16",
    "avx512_bf16": "bf16",
    "avx_ne_convert": "bf16",
    "bf16": "bf16",
    "avx512_fp16": "fp16",
    "asimdhp": "fp16",
}


def device() -> str:
    """The accelerator if there is one, else the CPU.

    `torch.accelerator.current_accelerator()` alone names what torch was built for, also where there is none;
    `is_available()` says whether it is there.
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
    found = {dtype: rate for dtype in _DTYPES if (rate := _largest_rate(dtype, where))}
    reached = {dtype: rate for dtype, (rate, _) in found.items()}
    achieved = {
        "achieved_flop_per_sec": reached,
        "achieved_bytes_per_sec": _copy_bytes_per_sec(where),
    }
    name, memory_bytes = device_name(where), _memory_bytes(where)
    sheet = sheet_of_card(name, memory_bytes) if where == "cuda" else None
    if sheet:
        return replace(sheet, **achieved, achieved_source=_LARGEST)
    quiet = all(was_quiet for _, was_quiet in found.values())
    doubt = "" if quiet else " (other programs ran)"
    return Machine(
        name,
        reached,
        bytes=memory_bytes,
        bytes_per_sec=achieved["achieved_bytes_per_sec"],
        source=f"Measured: {_LARGEST}{doubt}",
        **achieved,
        has_data_sheet=False,
    )


def device_name(where: str) -> str:
    """The machine's name. A CPU's also lists its vector units, which its own name does not tell."""
    if where == "cuda":
        return torch.cuda.get_device_name()
    if where != "cpu":
        return f"{platform.machine()} {where.upper()}"
    info = Path("/proc/cpuinfo")
    return cpu_name(info.read_text(encoding="utf-8", errors="replace") if info.exists() else "")


def cpu_name(info: str) -> str:
    """The name of one core, from what the system says of its CPU.

    >>> cpu_name("model name : AMD EPYC" + chr(10) + "flags : fpu avx avx2 avx512f avx512_bf16")
    'one core of AMD EPYC with AVX-512, bf16'
    """

    def said(name: str) -> str:
        line = re.search(rf"^(?:{name})\s*:\s*(.+)", info, re.MULTILINE)
        return line[1].strip() if line else ""

    flags = said("flags|Features").split()
    units = [name for flag, name in _VECTORS.items() if flag in flags][:1]
    units += dict.fromkeys(name for flag, name in _HALVES.items() if flag in flags)
    with_units = f" with {', '.join(units)}" if units else ""
    return (
        f"one core of {said('model name') or _model_of_a_mac() or platform.machine()}{with_units}"
    )


def _model_of_a_mac() -> str:
    """The chip of a Mac, such as Apple M2, which tells its vector units too; empty elsewhere."""
    asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.run(
            asked, capture_output=True, text=True, check=True, timeout=5
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _memory_bytes(where: str) -> int:
    if where == "cuda":
        return torch.cuda.get_device_properties(where).total_memory
    return measure.memory_bytes()[0]


def _largest_rate(dtype: str, where: str) -> tuple[Number, bool] | None:
    """The most FLOP/s that a product reaches, and whether the machine was quiet; None where there are no such products."""
    best, quiet = 0.0, True
    shapes, at_most_s, longest_s = (
        (_CPU_SHAPES, 0.12, 0.05) if where == "cpu" else (_GPU_SHAPES, 0.3, 0.3)
    )
    for b, d, k in shapes:
        flops = 2 * b * d * k
        if (
            best and flops / best > longest_s
        ):  # fp16 on a CPU without units for it, fp64 on a GPU with few
            break
        try:
            call = products.matmul_call(b, d, k, dtype, where)
            timing = measure.time_call(call, device=where, at_most_s=at_most_s)
        except (ValueError, RuntimeError):
            break
        best, quiet = max(best, flops / timing.seconds), quiet and not timing.disturbance
    return (best, quiet) if best else None


def _copy_bytes_per_sec(where: str) -> Number:
    """Bytes read and written per second, while something too large for any cache is copied."""
    # At most half of what is free: a GPU may be shared with another kernel that has nearly all of it.
    numbers = min(2**25 if where == "cpu" else 2**28, int(measure.free_bytes(where)) // 16)
    source = torch.ones(numbers, device=where)
    target = (
        source.clone()
    )  # touched once: the system hands out memory at the first touch, and slowly
    timing = measure.time_call(lambda: target.copy_(source), device=where, at_most_s=0.25)
    return 2 * source.nbytes / timing.seconds
