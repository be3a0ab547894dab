"""Twenty kernels at once, as a class on one server: all notebooks in turn, each in a kernel of its own.

`make twenty`, or `python -m tests.tools.twenty 8`.
"""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

from tests import NOTEBOOKS, ROOT

WORKS = "all cells ran"
OPTIONS = {"timeout": 600, "startup_timeout": 300, "kernel_name": "python3"}
OPTIONS |= {"resources": {"metadata": {"path": str(ROOT / "notebooks")}}}
OPTIONS |= {"extra_arguments": ["--IPKernelApp.log_level=40"]}  # or twenty times the same warning of TCP


async def run(path: Path) -> str:
    """All cells, in a fresh kernel; a failing cell ends it. What came of it, in a line."""
    notebook, begun = nbformat.read(path, as_version=4), time.monotonic()
    result = WORKS
    try:
        await NotebookClient(notebook, **OPTIONS).async_execute()
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
        with suppress(psutil.NoSuchProcess):  # gone meanwhile
            total += process.memory_info().rss
    return total


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
    print(f"{len(left)} processes are left.")
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
