"""Runs the notebooks on this machine, without a kernel, and prints what differs from their outputs.

The stored outputs come from a CPU. With a GPU, a cell may fail, show something else, or take long,
which one wants to know before a class sees it. Nothing is written. It needs IPython. Labs need
Jupyter's widgets; where these are not installed, labs are left out.

    python -m tests.tools.shown_here            all notebooks, each in a process of its own
    python -m tests.tools.shown_here 04_flops   one
"""

import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import MagicMock

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from tests import NOTEBOOKS, ROOT

SLOW_S = 5.0  # a cell that takes longer is printed
LONGEST_S = 80  # the longest that a notebook may take
AT_ONCE = 8  # notebooks that run at a time
LEFT_OUT = "a lab, left out"


@dataclass(frozen=True)
class Outcome:
    """What a cell showed here and what is stored of it, or how it failed."""

    id: str
    seconds: float
    here: str
    stored: str
    may_differ: bool  # it shows a time or a device, and says so by its tag
    failure: str = ""

    @property
    def same(self) -> bool:
        """Whether both are equal, apart from white space."""
        if LEFT_OUT in self.here:
            return True
        return not self.failure and "".join(self.here.split()) == "".join(self.stored.split())


def executed(source: str, shell: InteractiveShell) -> tuple[str, str]:
    """Run a cell as a kernel does; return the text of all that it shows, and how it failed."""
    with capture_output() as captured:
        result = shell.run_cell(source, store_history=True)  # else no semicolon hides a value
    shown = re.sub(r"Out\[\d+\]: ", "", captured.stdout)  # a shell writes this before a value
    for output in captured.outputs:
        shown += output.data.get("text/plain", "")
    error = result.error_before_exec or result.error_in_exec
    if error:
        # What IPython prints of the error is no part of what the cell shows.
        return "", traceback.format_exception_only(error)[-1].strip()
    return shown, ""


def stored_text(cell: dict) -> str:
    """Return the stored outputs of a cell as text: streams and plain text, in order."""
    found = ""
    for output in cell["outputs"]:
        lines = output.get("text") or output.get("data", {}).get("text/plain", "")
        found += "".join(lines)
    return found


def outcomes(path: Path) -> Iterator[Outcome]:
    """Run all code cells in one shell, as a kernel does, but go on after a failure."""
    no_file = Config({"HistoryManager": {"hist_file": ":memory:"}})
    shell = InteractiveShell.instance(config=no_file)
    shell.reset()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        begun = time.perf_counter()
        here, failure = executed("".join(cell["source"]), shell)
        yield Outcome(
            id=cell["id"],
            seconds=time.perf_counter() - begun,
            here=here,
            stored=stored_text(cell),
            may_differ="nbval-ignore-output" in cell["metadata"].get("tags", []),
            failure=failure,
        )


def words_on(outcome: Outcome) -> str:
    """Return lines on a cell: "" if it is quick and shows what is stored."""
    is_slow = outcome.seconds > SLOW_S
    took = f" took {outcome.seconds:.1f} s" if is_slow else ""
    if outcome.failure:
        return f"{outcome.id} FAILED{took}: {outcome.failure}"
    if outcome.same:
        return f"{outcome.id}{took}" if is_slow else ""
    why = " (a time or a device)" if outcome.may_differ else " DIFFERS"
    lines = [
        f"{outcome.id}{why}{took}",
        f"  stored: {outcome.stored.strip()}",
        f"  here:   {outcome.here.strip()}",
    ]
    return "\n".join(lines)


def one(path: Path) -> int:
    """Print what differs in one notebook, and count the bad cells.

    These are the cells that failed, and those that differ though no tag allows it.
    """
    os.chdir(path.parent)
    if not (find_spec("ipywidgets") and find_spec("anywidget")):
        leave_labs_out()
        print("Labs are left out: Jupyter's widgets are not installed.")
    cells = 0
    bad = 0
    for outcome in outcomes(path):
        cells += 1
        if outcome.failure or not (outcome.same or outcome.may_differ):
            bad += 1
        words = words_on(outcome)
        if words:
            print(words, flush=True)
    print(f"{path.name}: {cells} cells, {bad} failed or differ.", flush=True)
    return bad


def leave_labs_out() -> None:
    """Replace the module of the labs by one in which every name is there and does nothing."""
    import course_utils.chapters

    stand_in = MagicMock(name=LEFT_OUT)
    sys.modules["course_utils.chapters.labs"] = stand_in
    course_utils.chapters.labs = stand_in


def main(names: list[str]) -> int:
    """Run all notebooks, or those that are named."""
    chosen = [path for path in NOTEBOOKS if not names or path.stem in names or path.name in names]
    if not chosen:
        known = ", ".join(path.stem for path in NOTEBOOKS)
        print(f"No notebook {', '.join(names)}. There are: {known}.")
        return 2
    if len(chosen) == 1:
        return bool(one(chosen[0]))
    bad = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for path, (holds, printed) in zip(chosen, pool.map(in_a_process, chosen), strict=True):
            print(f"\n== {path.stem}\n{printed}", end="", flush=True)
            if not holds:
                bad += 1
    print(f"\n{bad} of {len(chosen)} notebooks have cells that failed or differ.")
    return bool(bad)


def in_a_process(path: Path) -> tuple[bool, str]:
    """Run one notebook in a process of its own, which is ended if it takes too long.

    Return whether all cells hold, and what is to be printed.
    """
    command = [sys.executable, "-m", "tests.tools.shown_here", path.stem]
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        printed, _ = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, _ = process.communicate()
        return False, f"{printed}{path.name}: ended after {LONGEST_S} s.\n"
    return process.returncode == 0, printed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
