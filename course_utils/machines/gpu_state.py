"""Power, clocks and temperature of an NVIDIA GPU, as nvidia-smi reads them. Nothing is set."""

import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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


def gpu_state(meanwhile: Callable[[], object] = lambda: time.sleep(0.01)) -> dict[str, Number]:
    """What can be read now; nothing where there is no NVIDIA GPU, or no nvidia-smi.

    `meanwhile` is called again and again while it is read, and for half a second before, to read a GPU under load.
    """
    if not torch.cuda.is_available() or torch.version.hip:
        return {}
    fields = f"--query-gpu={','.join(_FIELDS)}"
    command = ["nvidia-smi", fields, "--format=csv,noheader,nounits", *_which()]
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(_printed, command)
        while not reading.done():
            meanwhile()
            torch.cuda.synchronize()
    return parsed(reading.result())


def _printed(command: list[str]) -> str:
    time.sleep(0.5)
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LONGEST_S).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _which() -> list[str]:
    """torch's first GPU need not be nvidia-smi's: CUDA_VISIBLE_DEVICES may have chosen it."""
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return [f"--id=GPU-{uuid}"] if uuid else []


def parsed(text: str) -> dict[str, Number]:
    """The first line's numbers by our names; what a GPU does not tell, such as [N/A], is left out.

    >>> parsed("118.53, 700.00, 1980, 1980, 2619, [N/A]")
    {'power_w': 118.53, 'power_limit_w': 700.0, 'sm_clock_mhz': 1980.0, 'sm_clock_max_mhz': 1980.0, 'memory_clock_mhz': 2619.0}
    """
    values = text.strip().partition("\n")[0].split(",")
    if len(values) != len(_FIELDS):
        return {}
    read = zip(_FIELDS.values(), map(str.strip, values), strict=True)
    return {name: float(value) for name, value in read if re.fullmatch(r"\d+(\.\d+)?", value)}
