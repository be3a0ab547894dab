"""Writes the tables, a page of feedback for each student, and Gradescope's results."""

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from course_utils.core.colours import COLOURS
from course_utils.core.record import write_whole
from course_utils.engine.judging.verdict import COLOUR, NOT_ATTEMPTED

COLUMNS = (
    "student",
    "id",
    "notebook",
    "exercise",
    "part",
    "verdict",
    "points",
    "of",
    "looks_like",
    "observed",
    "guesses_made",
    "file",
)
STUDENT_COLUMNS = (
    "student",
    "id",
    "points",
    "of",
    "right",
    "not_yet",
    "not_attempted",
    "to_look_at",
    "beyond_right",
    "guesses_made",
)
# Verdicts that a person has to look at.
TO_LOOK_AT = ("flagged", "stopped", "not judged")
# Unicode's characters that change the direction of the text behind them.
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
UNKNOWN = "\ufffd"  # Unicode's character for one that cannot be shown
# A spreadsheet takes a cell that begins with one of these for a formula.
BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
# The colour of each verdict in the feedback.
COLOUR_OF = COLOUR | dict.fromkeys(("flagged", "stopped", "not handed in"), COLOURS["alarm"])


@dataclass(frozen=True)
class Row:
    """An exercise of a student; or a file that was not judged, which has no exercise."""

    student: str
    id: str  # the course system's number of the student
    notebook: str  # such as "04_flops"
    exercise: str  # such as "1 · Days of training"
    part: str  # main, or beyond
    verdict: str  # such as "right", "not yet" or "flagged"
    looks_like: str  # what the teacher reads of a wrong answer
    words: str  # all that the student gets to read
    file: str
    points: float = 0.0
    of: float = 0.0  # the points that a right answer brings; 0 if the exercise does not count
    observed: str = ""  # a remark if the verdict rests on what the answer's own process reports
    guesses_made: int | str = ""  # in the whole notebook; empty if none was judged


def clean(text: str) -> str:
    """Return the text without characters that a terminal or a page takes for a command."""
    # Half of a surrogate pair, such as "\ud83d", becomes "?": UTF-8 cannot encode it.
    text = text.encode("utf-8", "replace").decode()
    return "".join(character if _is_harmless(character) else UNKNOWN for character in text)


def _is_harmless(character: str) -> bool:
    """Whether a character neither controls a terminal nor changes the direction of a text."""
    if character in "\n\t":
        return True
    is_control = unicodedata.category(character) == "Cc"
    return not is_control and character not in TURNING


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write a row for each exercise of each student."""
    _write_csv(path, COLUMNS, [asdict(row) for row in rows])


def write_students(path: Path, rows: Sequence[Row], most: float) -> None:
    """Write a row for each student: the points, out of `most`, and how many answers are right."""
    summaries = []
    # The rows of one student are next to each other, as `groupby` needs it.
    for student, students_rows in groupby(rows, key=_student):
        summaries.append(_summary(student, list(students_rows), most))
    _write_csv(path, STUDENT_COLUMNS, summaries)


def _student(row: Row) -> str:
    return row.student


def _summary(student: str, rows: Sequence[Row], most: float) -> Mapping[str, object]:
    """Return a student's row: the value of each of STUDENT_COLUMNS."""
    # How often each verdict is among the exercises that count.
    verdicts = Counter(row.verdict for row in rows if row.of)
    to_look_at = [row for row in rows if row.verdict in TO_LOOK_AT]
    beyond_right = [row for row in rows if row.part == "beyond" and row.verdict == "right"]
    # Each row of a notebook has the number for the whole notebook, or "" if none was judged.
    guesses = {row.notebook: int(row.guesses_made or 0) for row in rows}
    return {
        "student": student,
        "id": next((row.id for row in rows if row.id), ""),  # not each file has one
        "points": sum(row.points for row in rows),
        "of": most,
        "right": verdicts["right"],
        "not_yet": verdicts["not yet"],
        "not_attempted": verdicts[NOT_ATTEMPTED.status],
        "to_look_at": len(to_look_at),
        "beyond_right": len(beyond_right),
        "guesses_made": sum(guesses.values()),
    }


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write a table in UTF-8, with a mark at its beginning by which Excel knows the encoding."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(columns)
    for row in rows:
        table.writerow([_cell(row[column]) for column in columns])
    write_whole(path, text.getvalue().encode("utf-8-sig"))


def _cell(value: object) -> str:
    """Return the value as a text that no spreadsheet takes for a formula."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    cell = clean(text)
    return f"'{cell}" if cell.startswith(BEGINS_A_FORMULA) else cell


def write_feedback(folder: Path, rows: Sequence[Row]) -> None:
    """Write a page for each student to where the course system looks for it: see `_place`."""
    here = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    template = here.get_template("feedback.html")
    for student, group in groupby(rows, key=_student):
        students_rows = list(group)  # a list, because the rows are needed twice
        page = template.render(student=student, rows=students_rows, colour=COLOUR_OF)
        # If the student's files lie in several places, each place gets the page.
        for place in sorted({_place(row.file) for row in students_rows}):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, clean(page).encode())


def _place(file: str) -> str:
    """Return the path of the feedback on a file that was handed in.

    For Ada_123/04.ipynb it is Ada_123/feedback.html, and for ada_04.ipynb it is ada_04.html.
    """
    first, _, rest = file.partition("/")
    # A name whose bytes are not UTF-8 comes with halves of surrogate pairs, which become "?".
    encodable = first.encode("utf-8", "replace").decode()
    name = re.sub(r"[\x00-\x1f\x7f]", "_", encodable)  # control characters, such as a line's end
    if rest:
        return f"{name}/feedback.html"
    return f"{name.removesuffix('.ipynb')}.html"


def write_gradescope(path: Path, rows: Sequence[Row], promise: str) -> None:
    """Write the results of one submission in Gradescope's format, with a test for each exercise.

    `promise` is the sentence on what kept the answers from the machine's files and network.
    """
    tests = [_test(row) for row in rows]
    score = sum(test["score"] for test in tests)
    output = promise if tests else "No file was handed in."
    results = {"score": score, "output": output, "tests": tests}
    write_whole(path, json.dumps(results, indent=1).encode())


def _test(row: Row) -> dict[str, object]:
    """Return the exercise as Gradescope shows it: it calls each line of its results a test."""
    # A file that was not judged has no notebook, and no exercise: then no dot stays at the end.
    place = row.file if row.verdict == "not judged" else row.notebook
    name = f"{place} · {row.exercise}".rstrip(" ·")
    output = f"{row.verdict.capitalize()}. {row.words}"
    return {
        "name": clean(name),
        "output": clean(output).strip(),
        "visibility": "visible",
        "score": row.points,
        "max_score": row.of,
        "status": "passed" if row.verdict == "right" else "failed",
    }
