"""What is written: the tables, a page of feedback for each student, and Gradescope's results."""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course_utils.core.record import write_whole
from course_utils.engine.figures.colours import COLOURS
from course_utils.engine.judging.verdict import COLOUR, NOT_ATTEMPTED

COLUMNS = ("student", "id", "notebook", "exercise", "part", "verdict", "points", "of", "looks_like")
COLUMNS += ("observed", "guesses_made", "file")
STUDENT_COLUMNS = (
    "student",
    "id",
    "points",
    "of",
    "right",
    "not_yet",
    "not_attempted",
    "to_look_at",
)
STUDENT_COLUMNS += ("beyond_right", "guesses_made")
TO_LOOK_AT = ("flagged", "stopped", "not judged")
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # these turn the direction of what follows
COLOUR_OF = COLOUR | dict.fromkeys(("flagged", "stopped", "not handed in"), COLOURS["alarm"])


@dataclass(frozen=True)
class Row:
    """An exercise of a student; or a file that was not judged, which stands in the place of the notebook."""

    student: str
    id: str
    notebook: str
    exercise: str
    part: str  # main, or beyond
    verdict: str
    looks_like: str
    words: str  # all that the student is told
    file: str
    points: float = 0.0
    of: float = 0.0
    observed: str = ""
    guesses_made: int | str = ""


def clean(text: str) -> str:
    """The text without what a terminal, a spreadsheet or a page takes for a command."""

    def kept(character: str) -> bool:
        return character in "\n\t" or (
            unicodedata.category(character) != "Cc" and character not in TURNING
        )

    text = text.encode("utf-8", "replace").decode()
    return "".join(character if kept(character) else "\ufffd" for character in text)


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """A row for each exercise of each student."""
    _write_csv(path, COLUMNS, [[_number(getattr(row, name)) for name in COLUMNS] for row in rows])


def write_students(path: Path, rows: Sequence[Row], most: float) -> None:
    """A row for each student: points, of the same number for all, and what stands behind them."""
    lines = [
        _summary(student, [*theirs], most)
        for student, theirs in groupby(rows, lambda row: row.student)
    ]
    _write_csv(
        path, STUDENT_COLUMNS, [[_number(line[name]) for name in STUDENT_COLUMNS] for line in lines]
    )


def _summary(student: str, theirs: Sequence[Row], most: float) -> Mapping[str, object]:
    counted = [row for row in theirs if row.of]
    guesses = {row.notebook: int(row.guesses_made or 0) for row in theirs}

    def many(verdict: str) -> int:
        return sum(row.verdict == verdict for row in counted)

    return {
        "student": student,
        "id": next((row.id for row in theirs if row.id), ""),
        "points": sum(row.points for row in theirs),
        "of": most,
        "right": many("right"),
        "not_yet": many("not yet"),
        "not_attempted": many(NOT_ATTEMPTED.status),
        "to_look_at": sum(row.verdict in TO_LOOK_AT for row in theirs),
        "beyond_right": sum(row.verdict == "right" and row.part == "beyond" for row in theirs),
        "guesses_made": sum(guesses.values()),
    }


def _write_csv(path: Path, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """For Excel with a mark of its encoding. A cell that begins like a formula is taken as text."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(columns)
    for line in lines:
        cells = [clean(cell) for cell in line]
        table.writerow(
            [f"'{cell}" if cell.startswith(tuple("=+-@\t\r\n")) else cell for cell in cells]
        )
    write_whole(path, text.getvalue().encode("utf-8-sig"))


def _number(x: object) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)


def write_feedback(folder: Path, rows: Sequence[Row]) -> None:
    """A page for each student, in a folder or under a name as the course system gave the submission."""
    here = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page = here.get_template("feedback.html")
    for student, of_student in groupby(rows, key=lambda row: row.student):
        theirs = [*of_student]
        text = page.render(student=student, rows=theirs, colour=COLOUR_OF)
        for place in sorted({_place(row.file) for row in theirs}):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, clean(text).encode())


def _place(file: str) -> str:
    """Where the feedback on that file lies."""
    first, _, rest = file.partition("/")
    name = re.sub(r"[\x00-\x1f\x7f]", "_", first.encode("utf-8", "replace").decode())
    return f"{name}/feedback.html" if rest else f"{name.removesuffix('.ipynb')}.html"


def write_gradescope(path: Path, rows: Sequence[Row], promise: str) -> None:
    """One submission as Gradescope documents it, with a test for each exercise."""
    tests = [_test(row) for row in rows]
    output = promise if tests else "No file was handed in."
    results = {"score": sum(one["score"] for one in tests), "output": output, "tests": tests}
    write_whole(path, json.dumps(results, indent=1).encode())


def _test(row: Row) -> dict[str, object]:
    place = row.file if row.verdict == "not judged" else row.notebook
    name, output = (
        f"{place} · {row.exercise}".rstrip(" ·"),
        f"{row.verdict.capitalize()}. {row.words}",
    )
    status = "passed" if row.verdict == "right" else "failed"
    told = {"name": clean(name), "output": clean(output).strip(), "visibility": "visible"}
    return told | {"score": row.points, "max_score": row.of, "status": status}
