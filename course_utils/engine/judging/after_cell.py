"""What is done after a notebook has run a cell.

In a reader's copy, the record gets each verdict and each guess that the cell shows, and the place where the reader is.
In any notebook, a verdict is taken back when its answer changes, or when the answer's cell stops with an error.
"""

import re
from pathlib import Path

import IPython

from course_utils.core import record
from course_utils.core.say import Choice, Comparison
from course_utils.engine.judging.verdict import SHOWN, Verdict

SAID = {"right": "right", "not yet": "tried"}
CHECKED = re.compile(r"\bcheck\.(\w+)\((\w+)\)")
CHANGED = "The answer has changed: run this cell again."
STOPPED = "The cell of the answer stopped with an error. Mend it, and run both cells again."


def note_what_is_shown() -> None:
    """Ask IPython to call `note` after each cell, if this is a notebook's kernel."""
    shell = IPython.get_ipython()
    if shell is None:
        return
    shown_by_name: dict[str, Verdict] = {}  # the last on each of the reader's names

    def note(result: object) -> None:
        """Called by IPython after each cell, when its output is shown."""
        verdicts = [*SHOWN]
        SHOWN.clear()
        cell = result.info.raw_cell or ""
        for name in [
            name for name in shown_by_name if re.search(rf"\b{name}\b *=[^=]|\bdef {name}\b", cell)
        ]:
            shown_by_name.pop(name).take_back(CHANGED if result.success else STOPPED)
        names = dict(CHECKED.findall(cell))
        shown_by_name.update(
            {names[one.exercise]: one for one in verdicts if one.exercise in names}
        )
        # JupyterLab and its like name the cell, and Colab in a place of its own. A notebook that is tested or exported
        # is no reader's attempt.
        asked = getattr(shell, "parent_header", {}).get("metadata", {})
        named = result.info.cell_id or asked.get("colab", {}).get("cell_id")
        module = getattr(shell.user_ns.get("check"), "__name__", "")
        if (
            (workspace := record.workspace())
            and named
            and module.startswith("course_utils.chapters.")
            and module.endswith(".check")
        ):
            record.notebook = module.split(".")[2]
            _note(workspace, record.notebook, verdicts, result)
            record.note_place(workspace, record.notebook, named)

    SHOWN.clear()
    shell.events.register("post_run_cell", note)


def _note(workspace: Path, notebook: str, verdicts: list[Verdict], result: object) -> None:
    for one in verdicts:
        if one.status in SAID:
            record.note(workspace, f"{notebook}.{one.exercise}", SAID[one.status])
    if isinstance(result.result, Comparison | Choice):
        for guess in result.result.guesses:
            record.note_guess(workspace, notebook, guess)
