"""What happens after a notebook has run a cell.

In a reader's copy, the record gets each verdict and each guess that the cell shows, and the cell at
which the reader is. In any notebook, a verdict is taken back when its answer changes, or when the
answer's cell stops with an error. Until that cell has run again without one, the check judges the
answer from before, so its verdict is taken back at once.
"""

import re
from pathlib import Path

import IPython

from course_utils.core import record
from course_utils.core.say import Choice, Comparison
from course_utils.core.say.language import template, translated
from course_utils.engine.judging.verdict import SHOWN, Verdict

RECORDED_AS = {"right": "right", "not yet": "tried"}  # the record's word, by a verdict's status
# Finds the exercise and the name of the answer, such as days and my_days in check.days(my_days).
CHECKED = re.compile(r"\bcheck\.(\w+)\((\w+)\)")
CHANGED = template("The answer has changed: run this cell again.")
STOPPED = template(
    "The cell of the answer stopped with an error. Mend it, and run both cells again."
)
# Finds the names in front of = and after def: my_days = 3 and def my_days, but not my_days == 3.
ASSIGNED = re.compile(r"\b(?:def +|(?=\w+ *=[^=]))(\w+)")
stopped: set[str] = set()  # the names that a cell assigns that has stopped with an error


def note_what_is_shown() -> None:
    """Ask IPython to call `note` after each cell, and `note_cell` before it.

    Nothing happens where no IPython runs.
    """
    shell = IPython.get_ipython()
    if shell is None:
        return
    latest_by_answer: dict[str, Verdict] = {}  # by the name that the reader gave to the answer

    def note_cell(info: object) -> None:
        """Take note of the cell that is about to run; `info` is IPython's ExecutionInfo."""
        record.cell = _cell_id(shell, info) or ""

    def note(result: object) -> None:
        """Take note of what a cell has shown; `result` is IPython's ExecutionResult."""
        verdicts = list(SHOWN)
        SHOWN.clear()
        _take_back_outdated(latest_by_answer, result)
        _remember(latest_by_answer, verdicts, result)
        _record(shell, verdicts, result)

    SHOWN.clear()  # what was shown before belongs to no cell
    shell.events.register("pre_run_cell", note_cell)
    shell.events.register("post_run_cell", note)


def _take_back_outdated(latest_by_answer: dict[str, Verdict], result: object) -> None:
    """Take back each verdict whose answer the cell has assigned or defined anew."""
    names = set(ASSIGNED.findall(_source(result)))
    stopped.difference_update(names)
    if not result.success:
        stopped.update(names)
    for name in names & set(latest_by_answer):
        why = STOPPED if name in stopped else CHANGED
        latest_by_answer.pop(name).take_back(translated(why))


def _remember(
    latest_by_answer: dict[str, Verdict], verdicts: list[Verdict], result: object
) -> None:
    """Store each verdict of this cell under the name of the answer that it judges.

    A verdict on an answer whose cell has stopped is taken back: nobody sees that answer any more.
    """
    answer_of = dict(CHECKED.findall(_source(result)))  # such as {"days": "my_days"}
    for verdict in verdicts:
        name = answer_of.get(verdict.exercise)
        if name in stopped:
            verdict.take_back(translated(STOPPED))
        elif name:
            latest_by_answer[name] = verdict


def _source(result: object) -> str:
    """Return the text of the cell that has run; empty if IPython has none."""
    return result.info.raw_cell or ""


def _record(shell: object, verdicts: list[Verdict], result: object) -> None:
    """Write what the cell has shown into the record, if this is a reader's copy.

    The guess that the cell has answered is closed in any notebook.
    """
    workspace = record.workspace()
    cell_id = _cell_id(shell, result.info)
    notebook = _notebook(shell)
    # A notebook that is tested or exported is no reader's attempt: its cells come without an id.
    if not workspace or not cell_id or not notebook:
        _settle_guess(None, notebook, result.result)
        return
    record.notebook = notebook  # so that fields for guesses and labs know it, too
    for verdict in verdicts:
        if verdict.status in RECORDED_AS:
            exercise = f"{notebook}.{verdict.exercise}"
            record.note(workspace, exercise, RECORDED_AS[verdict.status])
    _settle_guess(workspace, notebook, result.result)
    record.note_place(workspace, notebook, cell_id)


def _cell_id(shell: object, info: object) -> str | None:
    """Return the id of a cell that IPython runs; None if the front end sends none.

    JupyterLab sends the id with the cell, and Colab in the metadata of its request.
    """
    if info.cell_id:
        return info.cell_id
    request = getattr(shell, "parent_header", {})
    metadata = request.get("metadata", {})
    return metadata.get("colab", {}).get("cell_id")


def _notebook(shell: object) -> str:
    """Return the notebook's name, by the `check` that it imports; empty if that is none of ours."""
    check = shell.user_ns.get("check")
    module = getattr(check, "__name__", "")  # such as course_utils.chapters.floats.check
    if module.startswith("course_utils.chapters.") and module.endswith(".check"):
        return module.split(".")[2]
    return ""


def _settle_guess(workspace: Path | None, notebook: str, shown: object) -> None:
    """Record the guesses in `shown`, a comparison or a choice, and close their question.

    `shown` is the last value of the cell; a value of any other type has no guesses. As long as the
    question keeps the value out of the reader's view, recording and closing wait until the reader
    presses *Show*. Without a workspace nothing is recorded.
    """
    if not isinstance(shown, Comparison | Choice):
        return

    def record_guesses() -> None:
        if workspace:
            for guess in shown.guesses:
                record.note_guess(workspace, notebook, guess)

    open_guess = shown.open_guess
    if open_guess is None:  # no question of `ask` belongs to it, so none has to be closed
        record_guesses()
        return

    compared = dict(open_guess.said)  # a copy of the guesses that `shown` has

    def settle() -> None:
        """Record the guesses, and close their question, once the reader sees the result."""
        # The reader may have guessed anew while the result was out of view. The result then waits
        # for its cell to run again, and the guess is recorded then.
        if open_guess.said == compared:
            record_guesses()
        open_guess.close()

    open_guess.when_seen(settle)
