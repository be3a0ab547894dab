"""This machine: its name, and the rates that it was measured to reach."""

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

# (B, D, K) of the products that are timed, the smallest first.
_CPU_SHAPES = ((1024, 256, 256), (512, 512, 512))
_GPU_SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192))
_DTYPES = ("fp32", "bf16", "fp16", "fp64", "tf32", "fp8")
_LARGEST = "the largest rate of a few products, and a copy's"  # what was measured, in words
# The units that a CPU multiplies with, by their flags in /proc/cpuinfo: those for vectors, the
# widest first, and those that multiply numbers of 16 bits.
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

    `current_accelerator()` names the accelerator that torch was built for, even on a machine that
    has none, so `is_available()` is asked first.
    """
    if not torch.accelerator.is_available():
        return "cpu"
    found = torch.accelerator.current_accelerator()
    return found.type if found else "cpu"


@functools.cache
def this_machine() -> Machine:
    """The GPU if there is one, else one core of this CPU, with the rates that it reaches.

    The first call measures for a few seconds; later calls return the same. A known GPU has the
    peaks of its data sheet. A CPU and an unknown GPU have no data sheet, so their peaks are the
    measured rates.
    """
    where = device()
    reached = {}
    was_quiet = True
    for dtype in _DTYPES:
        found = _largest_rate(dtype, where)
        if found is not None:
            reached[dtype], quiet = found
            was_quiet = was_quiet and quiet
    bytes_per_sec = _copy_bytes_per_sec(where)
    name = device_name(where)
    memory_bytes = _memory_bytes(where)
    sheet = sheet_of_card(name, memory_bytes) if where == "cuda" else None
    if sheet:
        return replace(
            sheet,
            achieved_flop_per_sec=reached,
            achieved_bytes_per_sec=bytes_per_sec,
            achieved_source=_LARGEST,
        )
    doubt = "" if was_quiet else " (other programs ran)"
    return Machine(
        name,
        reached,
        bytes=memory_bytes,
        bytes_per_sec=bytes_per_sec,
        source=f"Measured: {_LARGEST}{doubt}",
        achieved_flop_per_sec=reached,
        achieved_bytes_per_sec=bytes_per_sec,
        has_data_sheet=False,
    )


def device_name(where: str) -> str:
    """The machine's name. A CPU's name is followed by its vector units."""
    if where == "cuda":
        return torch.cuda.get_device_name()
    if where != "cpu":
        return f"{platform.machine()} {where.upper()}"
    path = Path("/proc/cpuinfo")
    info = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return cpu_name(info)


def cpu_name(info: str) -> str:
    """The name of one core, from `info`, the text of /proc/cpuinfo.

    >>> cpu_name("model name : AMD EPYC" + chr(10) + "flags : fpu avx avx2 avx512f avx512_bf16")
    'one core of AMD EPYC with AVX-512, bf16'
    """

    def value_of(name: str) -> str:
        line = re.search(rf"^(?:{name})\s*:\s*(.+)", info, re.MULTILINE)
        return line[1].strip() if line else ""

    flags = value_of("flags|Features").split()
    vectors = [name for flag, name in _VECTORS.items() if flag in flags]
    halves = [name for flag, name in _HALVES.items() if flag in flags]
    units = vectors[:1] + list(dict.fromkeys(halves))
    name = value_of("model name") or _model_of_a_mac() or platform.machine()
    with_units = f" with {', '.join(units)}" if units else ""
    return f"one core of {name}{with_units}"


def _model_of_a_mac() -> str:
    """The name of a Mac's chip, such as Apple M2, which tells the vector units, too.

    It is empty on other machines.
    """
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()


def _memory_bytes(where: str) -> int:
    if where == "cuda":
        return torch.cuda.get_device_properties(where).total_memory
    return measure.memory_bytes()[0]


def _largest_rate(dtype: str, where: str) -> tuple[Number, bool] | None:
    """The most FLOP/s that a product reaches, and whether the machine was quiet meanwhile.

    None if the machine has no products in that dtype.
    """
    shapes = _GPU_SHAPES
    at_most_s = 0.3
    longest_s = 0.3
    if where == "cpu":
        shapes = _CPU_SHAPES
        at_most_s = 0.12
        longest_s = 0.05
    best = 0.0
    quiet = True
    for b, d, k in shapes:
        flops = 2 * b * d * k
        # Without units for a format, the larger product takes too long: fp16 on some CPUs, or fp64
        # on most GPUs.
        if best and flops / best > longest_s:
            break
        try:
            call = products.matmul_call(b, d, k, dtype, where)
            timing = measure.time_call(call, device=where, at_most_s=at_most_s)
        except (ValueError, RuntimeError):
            break
        best = max(best, flops / timing.seconds)
        quiet = quiet and not timing.disturbance
    if not best:
        return None
    return best, quiet


def _copy_bytes_per_sec(where: str) -> Number:
    """Bytes read and written per second, while something too large for any cache is copied."""
    most = 2**25 if where == "cpu" else 2**28
    # A GPU may be shared with another kernel that has nearly all of it. So source and target, with
    # 4 bytes a number, take at most half of what is free.
    fitting = int(measure.free_bytes(where)) // 16
    source = torch.ones(min(most, fitting), device=where)
    # The target is written once before it is timed: the system only hands out memory at the first
    # touch, and slowly.
    target = source.clone()
    timing = measure.time_call(lambda: target.copy_(source), device=where, at_most_s=0.25)
    return 2 * source.nbytes / timing.seconds
