"""Twenty kernels at once, as a class on one server: all notebooks in turn, each in a kernel of its own.

`make twenty`, or `python -m tests.tools.twenty 8`. Then a kernel is killed while it measures: its lock must be free at once.
"""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

from course_utils import measure
from tests import NOTEBOOKS, ROOT

WORKS = "all cells ran"
QUIET = {"extra_arguments": ["--IPKernelApp.log_level=40"]}  # twenty times the same warning of TCP
HOLDS_THE_LOCK = """
import time
from course_utils import measure
measure.time_call(lambda: (print("measuring", flush=True), time.sleep(0.3)), at_most_s=60)
"""


async def run(path: Path) -> str:
    """All cells, in a fresh kernel; a failing cell ends it. What came of it, in a line."""
    notebook, begun = nbformat.read(path, as_version=4), time.monotonic()
    folder = {"metadata": {"path": str(ROOT / "notebooks")}}
    client = NotebookClient(
        notebook, timeout=600, startup_timeout=300, kernel_name="python3", resources=folder, **QUIET
    )
    result = WORKS
    try:
        await client.async_execute()
    except Exception as error:  # a cell's, a kernel's that died, a time that is up: each is told
        result = f"{type(error).__name__}: {str(error).strip()[-600:]}"
    return f"{path.name:<28}{time.monotonic() - begun:>7.1f} s  {result}"


async def run_all(kernels: int) -> tuple[list[str], float]:
    """So many at once, and the most memory that they held together."""
    runs = asyncio.gather(*(run(NOTEBOOKS[number % len(NOTEBOOKS)]) for number in range(kernels)))
    most = 0
    while not runs.done():
        most = max(most, memory_bytes())
        await asyncio.sleep(1)
    return await runs, most


def memory_bytes() -> int:
    """Of all kernels and what they have started."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:  # gone meanwhile
            continue
    return total


def seconds_until_free() -> float:
    """Of the lock, after the process that holds it was killed in the middle of a measurement."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_LOCK], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    holder.stdout.readline()
    held = measure.time_call(lambda: None, at_most_s=0.1)
    assert "another measurement" in held.disturbance, "the lock was not held, so nothing is shown"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    begun = time.monotonic()
    while "another measurement" in measure.time_call(lambda: None, at_most_s=0.05).disturbance:
        if time.monotonic() > begun + 30:
            raise TimeoutError("The lock of a killed process is still taken after 30 s.")
    return time.monotonic() - begun


def main(kernels: int = 20) -> int:
    """Print the table."""
    begun = time.monotonic()
    lines, most = asyncio.run(run_all(kernels))
    took, failed = time.monotonic() - begun, sum(not line.endswith(WORKS) for line in lines)
    left = psutil.Process().children(recursive=True)
    print(*sorted(lines), sep="\n")
    print(
        f"\n{kernels} kernels at once: {took:.0f} s, {failed} failed, at most {most / 1e9:.1f} GB together."
    )
    print(
        f"{len(left)} processes are left. A killed process's lock was free after {seconds_until_free():.2f} s."
    )
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
