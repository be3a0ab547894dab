"""What is written: the table, a page of feedback for each student, and Gradescope's results."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course_utils.checks.judging.verdict import COLOUR
from course_utils.record import write_whole

COLUMNS = ("student", "notebook", "exercise", "verdict", "looks_like", "guesses_made")


@dataclass(frozen=True)
class Row:
    """An exercise of a student; or a file that was not judged, which stands in the place of the notebook."""

    student: str
    notebook: str
    exercise: str
    verdict: str
    looks_like: str
    words: str  # all that the student is told
    guesses_made: int | str = ""


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """A spreadsheet takes a cell that begins like a formula as text."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for row in rows:
        cells = [str(getattr(row, name)) for name in COLUMNS]
        table.writerow([f"'{cell}" if cell.startswith(tuple("=+-@\t\r")) else cell for cell in cells])
    _write(path, text.getvalue())


def write_feedback(folder: Path, rows: Sequence[Row]) -> None:
    """A page for each student."""
    here = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page = here.get_template("feedback.html")
    folder.mkdir(exist_ok=True)
    for number, (student, theirs) in enumerate(groupby(rows, key=lambda row: row.student), 1):
        name = re.sub(r"[^\w.-]+", "_", f"{number:03d}_{student}")[:60]
        _write(folder / f"{name}.html", page.render(student=student, rows=[*theirs], colour=COLOUR))


def write_gradescope(path: Path, rows: Sequence[Row]) -> None:
    """One submission as Gradescope documents it, with a test for each exercise."""
    tests = [_test(row) for row in rows]
    output = "" if tests else "No file was handed in."
    results = {"score": sum(one["score"] for one in tests), "output": output, "tests": tests}
    _write(path, json.dumps(results, indent=1))


def _test(row: Row) -> dict[str, object]:
    name, output = f"{row.notebook} · {row.exercise}".rstrip(" ·"), f"{row.verdict.capitalize()}. {row.words}"
    score, status = (1.0, "passed") if row.verdict == "right" else (0.0, "failed")
    told = {"name": name, "output": output.strip(), "visibility": "visible"}
    return told | {"score": score, "max_score": float(bool(row.exercise)), "status": status}


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "replace"))
