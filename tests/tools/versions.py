"""Other releases of torch: for each, every notebook is compared with what is stored, in an environment of its own.

`make versions`, or `make versions ARGS="2.12.0 2.14.0"`; without a word 2.11.0, which is the oldest that the course knows,
and the newest that pip finds. All else is installed as it is pinned. It says which cells fail, which stored outputs no
longer hold, and which texts take a number from these. torch brings CUDA along: several GB for each, kept in .versions.
`make seconds` asks the same of the torch that is here, to see what each notebook and its slowest cells take.
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
SLOWEST = 3  # cells of each notebook, whose seconds are said
# As everywhere: one thread of a CPU.
ALONE = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONPATH": str(ROOT),
}


def lines_on(outcome: Outcome) -> Iterator[str]:
    """What came of a cell that fails or shows what is not stored, and the texts that take a number from it."""
    if outcome.failure or not (outcome.same or outcome.may_differ):
        yield words_on(outcome)
        yield from (f"    {text} is taken from it" for text in taken_from(outcome.id))


def taken_from(cell_id: str) -> Iterator[str]:
    """Every number of a text that this cell holds, as `make claims` wrote it down."""
    for path in sorted((ROOT / "tests" / "claims").glob("*.txt")):
        place = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            place = place if line.startswith(" ") else line
            if line.endswith(f" cell {cell_id}"):
                yield f"{path.stem} {place}: {line.partition(' cell ')[0].strip()}"


def newest() -> str:
    """The newest version that pip finds."""
    asked = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return said.partition("(")[2].partition(")")[0]


def environment(name: str, *lists: list[str], made_by: str = sys.executable) -> Path:
    """The Python of an environment of that name, with what pip installs by each of these lists of arguments."""
    folder = ROOT / ".versions" / name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([made_by, "-m", "venv", folder], check=True)
    for wanted in lists:
        command = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *wanted,
        ]
        subprocess.run(command, cwd=ROOT, check=True)
    return python


def install(version: str) -> Path:
    """The Python of an environment with this torch, and with all else as it is pinned."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    others = [name for name in project["dependencies"] if not name.startswith("torch==")]
    pinned = ["--constraint", "constraints.txt", *others]
    return environment(version, pinned, [f"torch=={version}"], ["--no-deps", "--editable", "."])


def holds(path: Path, python: Path | str) -> bool:
    """Whether all that is stored of a notebook holds there. Prints how long it and its slowest cells took, and what does not."""
    with kernel_in(path.parent, python, "-m", "ipykernel_launcher", **ALONE) as (_, client):
        ran = list(outcomes(FrontEnd(client), read(path).cells, path))
    slowest = sorted(ran, key=lambda one: one.seconds, reverse=True)[:SLOWEST]
    wrong = [line for one in ran for line in lines_on(one)]
    print(f"{sum(one.seconds for one in ran):6.1f} s  {path.name}", flush=True)
    print(
        *(f"{one.seconds:10.2f} s  cell {one.id}" for one in slowest), *wrong, sep="\n", flush=True
    )
    return not wrong


def main(versions: list[str]) -> int:
    """What no longer holds with each of these releases, or `here`."""
    bad = 0
    for version in versions or [OLDEST, newest()]:
        print(f"== torch {version}", flush=True)
        python = sys.executable if version == "here" else install(version)
        bad += sum(not holds(path, python) for path in NOTEBOOKS)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
