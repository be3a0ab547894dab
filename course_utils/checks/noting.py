"""On a reader's desk, each verdict that a cell shows is noted in the reader's record."""

import re
import sys
from pathlib import Path

from course_utils.checks.judging.verdict import Verdict
from course_utils.desk import record
from course_utils.desk.copies import TAKEN

CALLED = re.compile(r"\bcheck\.(\w+)\(")
SAID = {"right": "right", "not yet": "tried"}


def note_verdicts() -> None:
    """From now on, after each cell of a notebook that lies on a desk. Anywhere else, nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    desk = Path.cwd()
    if shell is None or not (desk / TAKEN).is_dir():
        return

    def note_verdict(result: object) -> None:
        """The cell has run, and its verdict is shown already."""
        # Only JupyterLab and its like name the cell: a notebook that is tested or exported is nobody's attempt.
        if isinstance(result.result, Verdict) and result.result.status in SAID and result.info.cell_id:
            exercise = CALLED.findall(result.info.raw_cell)[-1:]
            module = getattr(shell.user_ns.get("check"), "__name__", "")
            if exercise and module.startswith("course_utils.checks."):
                check = f"{module.rpartition('.')[2]}.{exercise[0]}"
                record.note(desk, check, SAID[result.result.status])

    shell.events.register("post_run_cell", note_verdict)
