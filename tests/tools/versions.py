"""Compares every notebook with its stored outputs under other releases of torch.

`make versions` takes 2.11.0, the oldest release that the course supports, and the newest that pip
finds; `make versions ARGS="2.12.0 2.14.0"` takes these. Each release gets an environment of its
own, with all else installed as it is pinned. Printed are the cells that fail, the stored outputs
that no longer hold, and the texts that take a number from such a cell. torch brings CUDA along, so
each environment, kept in .versions, takes several GB.

`make seconds` does the same with the torch that is installed here, to see how long each notebook
and its slowest cells take.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests import NOTEBOOKS, ROOT
from tests.helpers.kernels import kernel_in
from tests.helpers.notebooks import read
from tests.tools.front_end import FrontEnd, outcomes
from tests.tools.shown_here import Outcome, words_on

OLDEST = "2.11.0"
SLOWEST = 3  # cells of each notebook whose seconds are printed
# One thread of a CPU, as the Makefile sets it for tests and stored outputs.
ALONE = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONPATH": str(ROOT),
}


def lines_on(outcome: Outcome) -> Iterator[str]:
    """Yield lines on a cell that fails or shows something else than is stored.

    They also name the texts that take a number from it.
    """
    if outcome.failure or not (outcome.same or outcome.may_differ):
        yield words_on(outcome)
        yield from (f"    {text} is taken from it" for text in taken_from(outcome.id))


def taken_from(cell_id: str) -> Iterator[str]:
    """Yield every number in the prose that this cell holds, by what `make claims` wrote down."""
    for path in sorted((ROOT / "tests" / "claims").glob("*.txt")):
        place = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                place = line
            if line.endswith(f" cell {cell_id}"):
                yield f"{path.stem} {place}: {line.partition(' cell ')[0].strip()}"


def newest() -> str:
    """Return the newest version of torch that pip finds."""
    asked = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    _, _, from_version_on = said.partition("(")  # its first line is like: torch (2.13.0)
    version, _, _ = from_version_on.partition(")")
    return version


def environment(name: str, *lists: list[str], made_by: str = sys.executable) -> Path:
    """Make the environment of that name, or bring it up to date, and return its Python.

    `lists` are the arguments of one `pip install` each.
    """
    folder = ROOT / ".versions" / name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([made_by, "-m", "venv", folder], check=True)
    for wanted in lists:
        quietly = ["--quiet", "--disable-pip-version-check"]
        command = [python, "-m", "pip", "install", *quietly, *wanted]
        subprocess.run(command, cwd=ROOT, check=True)
    return python


def install(version: str) -> Path:
    """Return the Python of an environment with this torch, and with all else as it is pinned."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    others = [name for name in project["dependencies"] if not name.startswith("torch==")]
    pinned = ["--constraint", "constraints.txt", *others]
    return environment(version, pinned, [f"torch=={version}"], ["--no-deps", "--editable", "."])


def holds(path: Path, python: Path | str) -> bool:
    """Run a notebook with that Python, and say whether all its stored outputs hold.

    It prints how long the notebook and its slowest cells took, and what does not hold.
    """
    with kernel_in(path.parent, python, "-m", "ipykernel_launcher", **ALONE) as (_, client):
        ran = list(outcomes(FrontEnd(client), read(path).cells, path))
    slowest = sorted(ran, key=lambda cell: cell.seconds, reverse=True)[:SLOWEST]
    wrong = [line for cell in ran for line in lines_on(cell)]
    lines = [f"{sum(cell.seconds for cell in ran):6.1f} s  {path.name}"]
    lines += [f"{cell.seconds:10.2f} s  cell {cell.id}" for cell in slowest]
    print(*lines, *wrong, sep="\n", flush=True)
    return not wrong


def main(versions: list[str]) -> int:
    """Print what does not hold with each of these releases; `here` is the torch of this Python."""
    bad = 0
    for version in versions or [OLDEST, newest()]:
        print(f"== torch {version}", flush=True)
        python = sys.executable if version == "here" else install(version)
        bad += sum(not holds(path, python) for path in NOTEBOOKS)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
