"""Power, clocks and temperature of an NVIDIA GPU, as nvidia-smi reads them. Nothing is set."""

import re
import subprocess
import time
from collections.abc import Callable

import torch

from course_utils.quantities import Number

# nvidia-smi's names, which every version knows, and ours.
_FIELDS = {
    "power.draw": "power_w",
    "power.limit": "power_limit_w",
    "clocks.sm": "sm_clock_mhz",
    "clocks.max.sm": "sm_clock_max_mhz",
    "clocks.mem": "memory_clock_mhz",
    "temperature.gpu": "temperature_c",
}
_LONGEST_S = 10.0


def gpu_state(meanwhile: Callable[[], object] | None = None) -> dict[str, Number]:
    """What can be read now; nothing where there is no NVIDIA GPU, or no nvidia-smi.

    `meanwhile` is called again and again while it is read, and for half a second before, to read a GPU under load.
    """
    if not torch.cuda.is_available() or torch.version.hip:
        return {}
    until = time.monotonic() + 0.5
    while meanwhile and time.monotonic() < until:
        meanwhile()
        torch.cuda.synchronize()
    command = ["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits", *_which()]
    try:
        reading = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return {}
    with reading:
        deadline = time.monotonic() + _LONGEST_S
        while reading.poll() is None:
            if time.monotonic() > deadline:
                reading.kill()
            elif meanwhile:
                meanwhile()
                torch.cuda.synchronize()
            else:
                time.sleep(0.01)
        return parsed(reading.stdout.read()) if reading.returncode == 0 else {}


def _which() -> list[str]:
    """torch's first GPU need not be nvidia-smi's: CUDA_VISIBLE_DEVICES may have chosen it."""
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return [f"--id=GPU-{uuid}"] if uuid else []


def parsed(text: str) -> dict[str, Number]:
    """The first line's numbers by our names; what a GPU does not tell, such as [N/A], is left out.

    >>> parsed("118.53, 700.00, 1980, 1980, 2619, [N/A]")
    {'power_w': 118.53, 'power_limit_w': 700.0, 'sm_clock_mhz': 1980.0, 'sm_clock_max_mhz': 1980.0, 'memory_clock_mhz': 2619.0}
    """
    lines = text.strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if lines else []
    if len(values) != len(_FIELDS):
        return {}
    told = zip(_FIELDS.values(), values, strict=True)
    return {name: float(value) for name, value in told if re.fullmatch(r"\d+(\.\d+)?", value)}
