"""Runs the notebooks on this machine, without Jupyter, and prints what differs from stored outputs.

The stored outputs come from a CPU. With a GPU, a cell may fail, show something else, or take long,
which one wants to know before a class sees it. Nothing is written. Labs need Jupyter's widgets;
where these are not installed, labs are left out.

    python -m tests.tools.shown_here            all notebooks, each in a process of its own
    python -m tests.tools.shown_here 04_flops   one
"""

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import MagicMock

from tests import NOTEBOOKS, ROOT

SLOW_S = 5.0  # a cell that takes longer is printed
LONGEST_S = 180  # the longest that a notebook may take
LEFT_OUT = "(a lab, left out)"


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
        """Whether both are equal, apart from white space, which differs without Jupyter."""
        if self.here == LEFT_OUT:
            return True
        return not self.failure and "".join(self.here.split()) == "".join(self.stored.split())


def executed(source: str, names: dict[str, object]) -> str:
    """Run a cell; return what it prints and the value of its last expression, as a text.

    `names` are the variables. As in a notebook, a semicolon at the end hides the value.
    """
    cell = ast.parse(source)
    last = None
    if cell.body and isinstance(cell.body[-1], ast.Expr):
        last = ast.Expression(cell.body.pop().value)
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(cell, "<cell>", "exec"), names)
        if last:
            value = eval(compile(last, "<cell>", "eval"), names)
    is_silent = source.rstrip().endswith(";")
    if value is None or is_silent:
        return printed.getvalue()
    return printed.getvalue() + _text(value)


def _text(value: object) -> str:
    """Return the value's text as IPython would show it, or its repr where IPython is missing."""
    if isinstance(value, MagicMock):
        return LEFT_OUT
    try:
        from IPython.lib.pretty import pretty
    except ImportError:
        return repr(value)
    data = getattr(value, "_repr_mimebundle_", dict)()
    if isinstance(data, tuple):
        data, _ = data  # the second is metadata
    return data.get("text/plain") or pretty(value)


def stored_text(cell: dict) -> str:
    """Return the stored outputs of a cell as text: streams and plain text, in order."""
    found = ""
    for output in cell["outputs"]:
        lines = output.get("text") or output.get("data", {}).get("text/plain", "")
        found += "".join(lines)
    return found


def outcomes(path: Path) -> Iterator[Outcome]:
    """Run all code cells in one module, as a kernel does, but go on after a failure."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # pickle, for example, looks there for what cells define
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        here = ""
        failure = ""
        begun = time.perf_counter()
        try:
            here = executed("".join(cell["source"]), main.__dict__)
        except Exception as error:
            failure = traceback.format_exception_only(error)[-1].strip()
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

    stand_in = MagicMock(name="labs")
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
    for path in chosen:
        print(f"\n== {path.stem}", flush=True)
        if not holds_in_a_process(path):
            bad += 1
    print(f"\n{bad} of {len(chosen)} notebooks have cells that failed or differ.")
    return bool(bad)


def holds_in_a_process(path: Path) -> bool:
    """Run one notebook in a process of its own, which is ended if it takes too long."""
    command = [sys.executable, "-m", "tests.tools.shown_here", path.stem]
    try:
        run = subprocess.run(command, cwd=ROOT, check=False, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        print(f"{path.name}: ended after {LONGEST_S} s.", flush=True)
        return False
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
