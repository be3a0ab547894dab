"""Run the notebooks on the machine at hand, without Jupyter, and print what differs from what is stored.

The stored outputs come from a CPU. Where there is a GPU, a cell may fail, show something else, or take long: that is
what one wants to see before a class does. Nothing is written. Labs need Jupyter; without it they are left out.

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

SLOW_S = 5.0
LONGEST_S = 180  # of a notebook
LEFT_OUT = "(a lab, left out)"


@dataclass(frozen=True)
class Outcome:
    """One cell: what it showed here and what is stored, or how it failed."""

    id: str
    seconds: float
    here: str
    stored: str
    may_differ: bool  # it shows a time or a device, and says so by its tag
    failure: str = ""

    @property
    def same(self) -> bool:
        """But for white space, which depends on who prints."""
        if self.here == LEFT_OUT:
            return True
        return not self.failure and "".join(self.here.split()) == "".join(self.stored.split())


def executed(source: str, names: dict[str, object]) -> str:
    """What the cell prints, and the value of its last expression, as a notebook would show both."""
    body = ast.parse(source)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    silent = source.rstrip().endswith(";")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    return printed.getvalue() + ("" if value is None or silent else _text(value))


def _text(value: object) -> str:
    if isinstance(value, MagicMock):
        return LEFT_OUT
    try:
        from IPython.lib.pretty import pretty
    except ImportError:
        return repr(value)
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    data = (
        bundle[0] if isinstance(bundle, tuple) else bundle
    )  # some say something of their data, too
    return data.get("text/plain") or pretty(value)


def stored_text(cell: dict) -> str:
    """What the notebook has of it: streams and plain text, in order."""
    texts = (
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for output in cell["outputs"]
    )
    return "".join("".join(text) for text in texts)


def outcomes(path: Path) -> Iterator[Outcome]:
    """Each code cell in turn, in one module, as a kernel would run them; after a failure the next one is tried."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # where what is defined in cells is looked for
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        here = failure = ""
        begun = time.perf_counter()
        try:
            here = executed("".join(cell["source"]), main.__dict__)
        except Exception as error:
            failure = traceback.format_exception_only(error)[-1].strip()
        tags = cell["metadata"].get("tags", [])
        took, may_differ = time.perf_counter() - begun, "nbval-ignore-output" in tags
        yield Outcome(cell["id"], took, here, stored_text(cell), may_differ, failure)


def words_on(outcome: Outcome) -> str:
    """What there is to say of a cell; nothing if it shows what is stored, and soon."""
    words = f" took {outcome.seconds:.1f} s" if outcome.seconds > SLOW_S else ""
    if outcome.failure:
        return f"{outcome.id} FAILED{words}: {outcome.failure}"
    if outcome.same:
        return words and f"{outcome.id}{words}"
    why = " (a time or a device)" if outcome.may_differ else " DIFFERS"
    return f"{outcome.id}{why}{words}\n  stored: {outcome.stored.strip()}\n  here:   {outcome.here.strip()}"


def one(path: Path) -> int:
    """Print what one notebook shows here; how many cells failed or differ without leave."""
    os.chdir(path.parent)
    if not (find_spec("ipywidgets") and find_spec("anywidget")):
        import course_utils.chapters

        sys.modules["course_utils.chapters.labs"] = course_utils.chapters.labs = MagicMock(
            name="labs"
        )
        print("Labs are left out: Jupyter's widgets are not installed.")
    bad = cells = 0
    for outcome in outcomes(path):
        cells += 1
        bad += bool(outcome.failure) or not (outcome.same or outcome.may_differ)
        if words := words_on(outcome):
            print(words, flush=True)
    print(f"{path.name}: {cells} cells, {bad} failed or differ.", flush=True)
    return bad


def main(names: list[str]) -> int:
    """All notebooks, or those that are named."""
    chosen = [path for path in NOTEBOOKS if not names or path.stem in names or path.name in names]
    if not chosen:
        print(
            f"No notebook {', '.join(names)}. There are: {', '.join(path.stem for path in NOTEBOOKS)}."
        )
        return 2
    if len(chosen) == 1:
        return bool(one(chosen[0]))
    bad = len(chosen)
    for path in chosen:
        print(f"\n== {path.stem}", flush=True)
        command = [sys.executable, "-m", "tests.tools.shown_here", path.stem]
        try:
            bad -= subprocess.run(command, cwd=ROOT, check=False, timeout=LONGEST_S).returncode == 0
        except subprocess.TimeoutExpired:
            print(f"{path.name}: ended after {LONGEST_S} s.", flush=True)
    print(f"\n{bad} of {len(chosen)} notebooks have cells that failed or differ.")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
