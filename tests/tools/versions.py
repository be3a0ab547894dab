"""Other releases of torch: for each, every notebook is compared with what is stored, in an environment of its own.

`make versions`, or `make versions ARGS="2.12.0 2.14.0"`; without a word 2.11.0, which is the oldest that the course knows,
and the newest that pip finds. All else is installed as it is pinned. It says which cells fail, which stored outputs no
longer hold, and which texts take a number from these. torch brings CUDA along: several GB for each, kept in .versions.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.notebooks import code

OLDEST = "2.11.0"
COLOURS = re.compile(r"\x1b\[[\d;]*m")
COMPARE = "import sys; from tests.tools.versions import compare; sys.exit(compare())"
# As everywhere: one thread of a CPU.
ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}


class Differing:
    """A plugin of pytest that keeps the reports of cells that fail, or show what is not stored."""

    def __init__(self) -> None:
        self.reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports += [report] if report.failed else []


def lines_on(report: pytest.TestReport) -> Iterator[str]:
    """The notebook, the cell's id and first line; what came instead; and the texts that take a number from it."""
    path, _, number = report.nodeid.partition("::Cell ")
    cell = code(ROOT / path)[int(number)]
    said = COLOURS.sub("", report.longreprtext).rpartition("Traceback:")[2].strip().splitlines()
    failed = "caused an exception" in report.longreprtext
    first_line = cell.source.partition("\n")[0]
    yield f"{Path(path).name} {cell.id} {'FAILS' if failed else 'DIFFERS'}: {first_line[:80]}"
    yield from (f"    {line}" for line in (said[-1:] if failed else said))
    yield from (f"    {text} is taken from it" for text in taken_from(cell.id))


def taken_from(cell_id: str) -> Iterator[str]:
    """Every number of a text that this cell holds, as `make claims` wrote it down."""
    for path in sorted((ROOT / "tests" / "claims").glob("*.txt")):
        place = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            place = place if line.startswith(" ") else line
            if line.endswith(f" cell {cell_id}"):
                yield f"{path.stem} {place}: {line.partition(' cell ')[0].strip()}"


def compare() -> int:
    """Run every notebook with the torch that is installed, and print what no longer holds; what pytest ended with."""
    found, said = Differing(), io.StringIO()
    with contextlib.redirect_stdout(said):
        ended = pytest.main(["-q", "--color=no", "notebooks"], plugins=[found])
    for report in found.reports:
        print(*lines_on(report), sep="\n")
    if ended not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        print(said.getvalue())
    return int(ended)


def newest() -> str:
    """The newest version that pip finds."""
    asked = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return said.partition("(")[2].partition(")")[0]


def install(version: str) -> Path:
    """The Python of an environment with this torch, and with all else as it is pinned."""
    folder = ROOT / ".versions" / version
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    others = [name for name in project["dependencies"] if not name.startswith("torch==")]
    pinned = ["--constraint", "constraints.txt"]
    for wanted in ([*pinned, *others], [f"torch=={version}"], ["--no-deps", "--editable", "."]):
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        subprocess.run(command, cwd=ROOT, check=True)
    return python


def main(versions: list[str]) -> int:
    """What no longer holds with each of these releases."""
    bad = 0
    for version in versions or [OLDEST, newest()]:
        print(f"== torch {version}", flush=True)
        command = [install(version), "-c", COMPARE]
        run = {"env": os.environ | ALONE, "capture_output": True, "text": True, "check": False}
        said = subprocess.run(command, cwd=ROOT, **run)
        print(said.stdout or (said.stderr if said.returncode else "All that is stored holds."), flush=True)
        bad += bool(said.returncode)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
