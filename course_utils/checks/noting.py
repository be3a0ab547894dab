"""On a reader's desk, each verdict and each guess that a cell shows is noted in the reader's record."""

import sys
from pathlib import Path

from course_utils.checks.judging.verdict import SHOWN, Verdict
from course_utils.desk import copies, record
from course_utils.quantities import Choice, Comparison

SAID = {"right": "right", "not yet": "tried"}


def note_what_is_shown() -> None:
    """From now on, after each cell of a notebook that lies on a desk. Anywhere else, nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    desk = Path.cwd()
    if shell is None or not (desk / copies.TAKEN).is_dir():
        return

    def note(result: object) -> None:
        """The cell has run, and what it says is shown already."""
        shown = [*SHOWN, result.result]
        SHOWN.clear()
        module = getattr(shell.user_ns.get("check"), "__name__", "")
        # Only JupyterLab and its like name the cell: a notebook that is tested or exported is nobody's attempt.
        if not result.info.cell_id or not module.startswith("course_utils.checks."):
            return
        notebook = module.rpartition(".")[2]
        for one in shown:
            if isinstance(one, Verdict) and one.status in SAID:
                record.note(desk, f"{notebook}.{one.exercise}", SAID[one.status])
            if isinstance(one, Comparison | Choice):
                for guess in one.guesses:
                    record.note_guess(desk, notebook, guess)

    SHOWN.clear()
    shell.events.register("post_run_cell", note)
