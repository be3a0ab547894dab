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

# The sizes (B, D, K) of the products that are timed, the smallest first.
_CPU_SHAPES = ((1024, 256, 256), (512, 512, 512))
_GPU_SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192))
_DTYPES = ("fp32", "bf16", "fp16", "fp64", "tf32", "fp8")
_LARGEST = "the largest rate of a few products, and a copy's"  # what was measured, in words
# The units that a CPU multiplies with, by their flags in /proc/cpuinfo: the units for vectors, with
# the widest first, and the units for numbers of 16 bits.
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
    """Return torch's name of the accelerator, such as "cuda" or "mps"; "cpu" if there is none.

    `current_accelerator()` names the accelerator that torch was built for, even on a machine that
    has none, so `is_available()` is asked first.
    """
    if not torch.accelerator.is_available():
        return "cpu"
    accelerator = torch.accelerator.current_accelerator()
    return accelerator.type if accelerator else "cpu"


@functools.cache
def this_machine() -> Machine:
    """Return the GPU if there is one, else one core of this CPU, with the rates that it reaches.

    The first call measures for a few seconds; later calls return the same Machine. A known GPU has
    the peaks of its data sheet. A CPU and an unknown GPU have no data sheet, so their peaks are the
    measured rates.
    """
    where = device()
    reached = {}
    was_quiet = True
    for dtype in _DTYPES:
        rate_and_quiet = _largest_rate(dtype, where)
        if rate_and_quiet is not None:  # None: the machine has no products in this dtype
            rate, quiet = rate_and_quiet
            reached[dtype] = rate
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
    """Return the machine's name; a CPU's name is followed by its vector units.

    `where` is a torch device, such as "cuda" or "cpu".
    """
    if where == "cuda":
        return torch.cuda.get_device_name()
    if where != "cpu":
        return f"{platform.machine()} {where.upper()}"
    path = Path("/proc/cpuinfo")
    info = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return cpu_name(info)


def cpu_name(info: str) -> str:
    """Return the name of one core, from `info`, which is the text of /proc/cpuinfo.

    The names in `info` differ by processor: x86 has "flags", and Arm "Features".

    >>> cpu_name("model name : AMD EPYC" + chr(10) + "flags : fpu avx avx2 avx512f avx512_bf16")
    'one core of AMD EPYC with AVX-512, bf16'
    """

    def value_of(name: str) -> str:
        """Return what follows the name in its line of `info`; an empty text without such a line.

        The name is a regular expression: "flags|Features" finds "fpu avx" in "flags : fpu avx".
        """
        line = re.search(rf"^(?:{name})\s*:\s*(.+)", info, re.MULTILINE)
        return line[1].strip() if line else ""

    flags = value_of("flags|Features").split()
    vectors = [name for flag, name in _VECTORS.items() if flag in flags]
    halves = [name for flag, name in _HALVES.items() if flag in flags]
    widest_vectors = vectors[:1]  # a list of one name, or of none; _VECTORS begins with the widest
    units = widest_vectors + list(dict.fromkeys(halves))  # two flags may have one name
    name = value_of("model name") or _model_of_a_mac() or platform.machine()
    with_units = f" with {', '.join(units)}" if units else ""
    return f"one core of {name}{with_units}"


def _model_of_a_mac() -> str:
    """Return the name of a Mac's chip, such as Apple M2; an empty text on other machines.

    A Mac has no /proc/cpuinfo, and each chip has one kind of vector units.
    """
    command = ["sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip()


def _memory_bytes(where: str) -> int:
    """Return the size of the GPU's memory, or else how much memory this process may use."""
    if where == "cuda":
        return torch.cuda.get_device_properties(where).total_memory
    total, _ = measure.memory_bytes()
    return total


def _largest_rate(dtype: str, where: str) -> tuple[Number, bool] | None:
    """Return the most FLOP/s that a product reaches, and whether no other programs disturbed.

    None if the machine has no products in that dtype. `where` is a torch device.
    """
    shapes = _GPU_SHAPES
    at_most_s = 0.3  # for the measurement of one product
    longest_s = 0.3  # for a single call: no larger product is timed if it would take longer
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
        except (ValueError, RuntimeError):  # no products in this dtype, or too little memory
            break
        best = max(best, flops / timing.seconds)
        quiet = quiet and not timing.disturbance
    if not best:
        return None
    return best, quiet


def _copy_bytes_per_sec(where: str) -> Number:
    """Return the bytes read and written per second, in a copy that is too large for any cache."""
    most_numbers = 2**25 if where == "cpu" else 2**28
    # Another notebook may use the same GPU, and have nearly all of its memory. So source and
    # target, with 4 bytes a number, take at most half of what is free.
    fitting_numbers = int(measure.free_bytes(where)) // 2 // (2 * 4)
    source = torch.ones(min(most_numbers, fitting_numbers), device=where)
    # The target is written once before it is timed: the system only hands out memory at the first
    # touch, and slowly.
    target = source.clone()
    timing = measure.time_call(lambda: target.copy_(source), device=where, at_most_s=0.25)
    return 2 * source.nbytes / timing.seconds  # each byte is read once and written once
