"""What machine this is, what it can really reach, and what others were measured to reach.

`python -m course_utils.machines` records this machine, in under eight minutes, for those who have none like it.
"""

import functools
import itertools
import json
import math
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import torch

from course_utils import measure, products
from course_utils.datasheets import MACHINES, Machine, machine_named
from course_utils.quantities import Number, rate_text

__all__ = ["MACHINES", "Machine", "Recording", "device", "machine_named", "recordings", "this_machine"]

_RECORDED = Path(__file__).parent / "recorded"
_SIZES = (1, 16, 64, 256, 1024, 4096)
_CPU_SHAPES = ((1024, 256, 256), (512, 512, 512))
_GPU_SHAPES = tuple((n, n, n) for n in (2048, 4096, 8192))
_MEASURED = "Measured, for want of a data sheet: the largest rate of a product, and of a copy"
_RECORDING_S = 420  # of the eight minutes, so that the last product has time to end
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
    for b, d, k in _CPU_SHAPES if where == "cpu" else _GPU_SHAPES:
        flops = 2 * b * d * k
        if where == "cpu" and best and flops / best > 0.05:  # fp16 on a CPU without units for it
            break
        try:
            call = products.matmul_call(b, d, k, dtype, where)
            timing = measure.time_call(call, device=where, at_most_s=0.12 if where == "cpu" else 0.3)
        except (ValueError, RuntimeError):
            break
        best, quiet = max(best, flops / timing.seconds), quiet and not timing.disturbance
    return (best, quiet) if best else None


def copy_bytes_per_sec(where: str, *, at_most_s: Number = 0.25) -> Number:
    """Bytes read and written per second, while something too large for any cache is copied."""
    numbers = 2**25 if where == "cpu" else 2**28
    source = torch.ones(numbers, device=where)
    target = source.clone()  # touched once: the system hands out memory at the first touch, and slowly
    timing = measure.time_call(lambda: target.copy_(source), device=where, at_most_s=at_most_s)
    return 2 * source.nbytes / timing.seconds


# Recordings.


@dataclass(frozen=True)
class Recording:
    """What was measured on a machine that the reader may not have."""

    machine: Machine
    taken: str
    software: str
    seconds_by_size: Mapping[str, Mapping[tuple[int, int, int], Number]]  # by dtype, then (B, D, K)
    spread: Number  # the median over all products

    def nearest(self, b: int, d: int, k: int, dtype: str) -> tuple[int, int, int]:
        """The recorded product that is nearest in size, by the ratio of each side."""
        if dtype not in self.seconds_by_size:
            known = ", ".join(self.seconds_by_size)
            raise ValueError(f"{dtype!r} was not recorded on {self.machine.name}. There are: {known}.")

        def distance(recorded: tuple[int, int, int]) -> Number:
            return sum(abs(math.log(mine / theirs)) for mine, theirs in zip((b, d, k), recorded, strict=True))

        return min(self.seconds_by_size[dtype], key=distance)


@functools.cache
def recordings() -> dict[str, Recording]:
    """Every recording there is, by the machine's name."""
    read = (
        _recording(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(_RECORDED.glob("*.json"))
    )
    return {recording.machine.name: recording for recording in read}


def _recording(data: dict) -> Recording:
    return Recording(
        machine=Machine(**data["machine"]),
        taken=data["taken"],
        software=data["software"],
        seconds_by_size={
            dtype: {(b, d, k): seconds for b, d, k, seconds in rows}
            for dtype, rows in data["products"].items()
        },
        spread=data["median_spread"],
    )


def record(say: Callable[[str], object] = print) -> Path:
    """Measure a grid of products by dtype on this machine, and write it down; returns the file."""
    begun, where = time.monotonic(), device()
    machine = this_machine()
    say(
        f"{machine.name}: {', '.join(f'{d} {rate_text(r)}' for d, r in machine.achieved_flop_per_sec.items())}"
    )
    rows: dict[str, list[list[Number]]] = {}
    spreads = []
    # Small products first, dtype by dtype, so that a slow machine leaves out the large ones.
    grid = sorted(itertools.product(_SIZES, repeat=3), key=math.prod)
    jobs = [(size, dtype) for size in grid for dtype in machine.achieved_flop_per_sec]
    for number, ((b, d, k), dtype) in enumerate(jobs):
        predicted_s = 2 * b * d * k / machine.achieved_flop_per_sec[dtype]
        left_s = _RECORDING_S - (time.monotonic() - begun)
        if predicted_s > 2 or 3 * predicted_s > left_s:
            continue
        try:
            call = products.matmul_call(b, d, k, dtype, where)
        except ValueError:  # a size that this dtype does not come in
            continue
        timing = measure.time_call(
            call, device=where, at_most_s=max(3 * predicted_s, left_s / (len(jobs) - number))
        )
        rows.setdefault(dtype, []).append([b, d, k, float(f"{timing.seconds:.4g}")])
        spreads.append(timing.spread)
        if number % 100 == 0:
            say(f"{number} of {len(jobs)} products")
    data = {
        "machine": {**vars(machine)},
        "taken": time.strftime("%Y-%m-%d"),
        "software": f"torch {torch.__version__}, Python {platform.python_version()}, {platform.system()}",
        "products": rows,
        "median_spread": float(f"{statistics.median(spreads):.3g}"),
    }
    path = _RECORDED / f"{re.sub(r'[^a-z0-9]+', '_', machine.name.lower()).strip('_')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_json(data) + "\n", encoding="utf-8")
    say(f"Written: {path.name}, {len(spreads)} products in {time.monotonic() - begun:.0f} s.")
    return path


def _json(data: dict) -> str:
    """JSON with one product a line."""
    rows_by_dtype = data.pop("products")
    text = json.dumps(data, indent=1)
    lines = ",\n".join(
        f' "{dtype}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]"
        for dtype, rows in rows_by_dtype.items()
    )
    return text.removesuffix("\n}") + ',\n "products": {\n' + lines + "\n }\n}"


if __name__ == "__main__":
    sys.exit(record() is None)
