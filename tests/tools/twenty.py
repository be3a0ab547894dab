"""Twenty kernels at once, as a class on one server: all notebooks in turn, each in a kernel of its own.

`make twenty`, or `python -m tests.tools.twenty 8`. Then a kernel is killed while it measures: its lock must be free at once.
"""

import asyncio
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

from course_utils import measure
from tests import NOTEBOOKS, ROOT
from tests.notebooks import read

DOUBTS = re.compile(
    r"other work took|another measurement held|upper bound|samples do not agree|only (?:one|\d+) sample"
)
QUIET = {"extra_arguments": ["--IPKernelApp.log_level=40"]}  # twenty times the same warning of TCP
HOLDS_THE_LOCK = """
import time
from course_utils import measure
measure.time_call(lambda: (print("measuring", flush=True), time.sleep(0.3)), at_most_s=60)
"""


@dataclass(frozen=True)
class Run:
    """One kernel's notebook: how long it took, what failed, and how many cells say that the machine was not quiet."""

    notebook: Path
    seconds: float
    failure: str
    doubtful: int


async def run(path: Path) -> Run:
    """All cells, in a fresh kernel; a failing cell ends it."""
    notebook, begun = read(path), time.monotonic()
    folder = {"metadata": {"path": str(ROOT / "notebooks")}}
    client = NotebookClient(
        notebook, timeout=600, startup_timeout=300, kernel_name="python3", resources=folder, **QUIET
    )
    failure = ""
    try:
        await client.async_execute()
    except Exception as error:  # a cell's, a kernel's that died, a time that is up: each is told
        failure = f"{type(error).__name__}: {str(error).strip()[-600:]}"
    return Run(path, time.monotonic() - begun, failure, doubtful_cells(notebook))


def doubtful_cells(notebook: nbformat.NotebookNode) -> int:
    """That say of a time of theirs that it may be too long."""
    shown = ["\n".join(map(str, cell.get("outputs", []))) for cell in notebook.cells]
    return sum(bool(DOUBTS.search(words)) for words in shown)


async def run_all(kernels: int) -> tuple[list[Run], float]:
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


def seconds_until_the_lock_is_free() -> float:
    """After the process that holds it was killed in the middle of a measurement."""
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
    runs, most = asyncio.run(run_all(kernels))
    took = time.monotonic() - begun
    for each in sorted(runs, key=lambda each: each.notebook.name):
        doubtful = f"{each.doubtful} cells say that the machine was not quiet" if each.doubtful else ""
        print(
            f"{each.notebook.name:<28}{each.seconds:>7.1f} s  {each.failure or 'all cells ran'}  {doubtful}".rstrip()
        )
    failed = sum(bool(each.failure) for each in runs)
    left = psutil.Process().children(recursive=True)
    print(
        f"\n{kernels} kernels at once: {took:.0f} s, {failed} failed, at most {most / 1e9:.1f} GB together, {len(left)} processes left."
    )
    print(f"A killed process's lock was free after {seconds_until_the_lock_is_free():.2f} s.")
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
