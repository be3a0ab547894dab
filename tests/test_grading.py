"""What a class hands in: sixty notebooks, right, blank, each tempting mistake and the hostile ones, graded in one run."""

import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from course_utils.desk import notebooks
from course_utils.grading import pages
from course_utils.grading.__main__ import main
from course_utils.grading.judging import said
from course_utils.grading.pages import Row
from course_utils.grading.reading import handed_in
from tests import NOTEBOOKS, ROOT
from tests.notebooks import exercises_of
from tests.test_checks import LISTING, first_case

HOSTILE = tomllib.loads((ROOT / "tests" / "handed_in" / "hostile.toml").read_text(encoding="utf-8"))
IN_FUNCTION = """
from itertools import islice
from course_utils.checks import {module} as theirs
def {name}(*case):
    came, _ = next(islice(theirs.{check}.__wrapped__(*case), {number}, None))
    if isinstance(came, BaseException):
        raise came
    return came
"""
AS_VALUE = """
from itertools import islice
from course_utils.checks import {module} as theirs
{name}, _ = next(islice(theirs.{check}.__wrapped__(), {number}, None))
"""
FLOPS = NOTEBOOKS[3]


def hand_in(path: Path, course: Path, answers: dict[str, str]) -> None:
    """Write the course's notebook there, with the answers in the place of these cells' text."""
    notebook = json.loads(course.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = answers.get("".join(cell["source"]), cell["source"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def solved(course: Path) -> dict[str, str]:
    return {one.stub: one.solution for one in exercises_of(course)}


def mistaken(exercise, number):
    """The cell of an answer that always makes the listed mistake of that number."""
    form = IN_FUNCTION if exercise.wants_function else AS_VALUE
    name = re.findall(r"^(?:def )?(\w+)", exercise.stub, re.MULTILINE)[-1 if form is AS_VALUE else 0]
    module, check = exercise.notebook.stem.partition("_")[2], exercise.judge.__name__
    return form.format(module=module, check=check, name=name, number=number)


def table_of(folder: Path) -> list[list[str]]:
    """The table that the command writes of that folder."""
    here = os.environ | {"OMP_NUM_THREADS": "1", "FOLDER": str(folder), "OUT": f"{folder}-graded"}
    run = subprocess.run(
        [sys.executable, "-m", "course_utils.grading"], cwd=ROOT, env=here, capture_output=True, text=True
    )
    print(run.stdout, run.stderr)
    with Path(f"{folder}-graded", "grades.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


def test_sixty_notebooks_get_the_verdicts_of_the_checks_and_nothing_that_they_do_reaches_the_others(tmp_path):
    folder, expected = tmp_path / "handed in", {}
    victim = tmp_path / "mine" / "book.txt"
    victim.parent.mkdir()
    victim.write_text("kept")

    def add(
        student: str, course: Path, answers: dict[str, str], others: str, **verdicts: tuple[str, str]
    ) -> None:
        hand_in(folder / student / course.name, course, answers)
        for one in exercises_of(course):
            place = student.replace("_", " "), course.stem, one.number
            expected[place] = verdicts.get(f"n{one.number}", (others, ""))

    for course in NOTEBOOKS:
        add("blank", course, {}, "not attempted yet")
        add("right", course, solved(course), "right")
        listing = [one for one in exercises_of(course) if one in LISTING]
        advice = {e: [said for _, said in e.judge.__wrapped__(*first_case(e.judge))] for e in listing}
        for number in range(1, max(map(len, advice.values()))):
            made = {e: told[number] for e, told in advice.items() if number < len(told)}
            answers = {e.stub: mistaken(e, number) for e in made}
            verdicts = {f"n{e.number}": ("not yet", told) for e, told in made.items()}
            add(f"mistake_{number}", course, answers, "not attempted yet", **verdicts)
    stub = exercises_of(FLOPS)[0].stub
    for student, one in HOSTILE.items():
        answers = solved(FLOPS) | {stub: one["answer"].replace("{victim}", str(victim))}
        add(student, FLOPS, answers, "right", n1=(one["verdict"], one["words"]))
    assert len([*folder.rglob("*.ipynb")]) >= 60
    head, *rows = table_of(folder)
    assert head == ["student", "notebook", "exercise", "verdict", "looks_like", "guesses_made"]
    came = {(s, n, e.partition(" ")[0]): (verdict, words) for s, n, e, verdict, words, _ in rows}
    assert len(rows) == len(came) == len(expected)
    for place, (verdict, words) in came.items():
        wanted, telling = expected[place]
        assert (verdict, bool(words)) == (wanted, bool(telling)), (place, words)
        assert telling in words, (place, words)
    assert victim.read_text() == "kept"


def test_a_file_is_known_by_its_cells_and_belongs_to_whom_its_course_system_says(tmp_path):
    places = {
        "Ada Love_123_assignsubmission_file_/final (3).ipynb": "Ada Love 123",
        "lovelaceada_LATE_1234_5678_04_flops-1.ipynb": "lovelaceada 1234",
        "submitted-by-ada/ps1/04_flops.ipynb": "submitted-by-ada",
        "ada_04_flops.ipynb": "ada",
    }
    for place in places:
        hand_in(tmp_path / place, FLOPS, {})
    course = {path.stem: notebooks.read(path) for path in NOTEBOOKS}
    found = {one.file: (one.student, one.notebook, one.problem) for one in handed_in(tmp_path, course)}
    assert found == {place: (student, "04_flops", "") for place, student in places.items()}


def test_a_file_that_is_not_judged_has_a_line_that_says_why(tmp_path):
    hand_in(tmp_path / "ada" / "old.ipynb", FLOPS, {})
    hand_in(tmp_path / "ada" / "new.ipynb", FLOPS, {})
    os.utime(tmp_path / "ada" / "old.ipynb", (1, 1))
    hand_in(tmp_path / ".ipynb_checkpoints" / "04.ipynb", FLOPS, {})
    (tmp_path / "answers.zip").write_bytes(b"PK")
    (tmp_path / "broken.ipynb").write_text('{"cells": [')
    (tmp_path / "nested.ipynb").write_text("[" * 100_000)
    (tmp_path / "other.ipynb").write_text('{"cells": []}')
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(30_000_000)
    course = {path.stem: notebooks.read(path) for path in NOTEBOOKS}
    assert {one.file: one.problem.partition(".")[0] for one in handed_in(tmp_path, course)} == {
        "ada/new.ipynb": "",
        "ada/old.ipynb": "ada/new",
        "answers.zip": "It is no notebook",
        "broken.ipynb": "It cannot be read as a notebook",
        "nested.ipynb": "It cannot be read as a notebook",
        "other.ipynb": "It is none of the course's notebooks: their cells are not in it",
        "huge.ipynb": "It is larger than 20 MB",
    }


SLICED = {
    "a": "import math\n%matplotlib inline\n!rm -r ~\nfactor = {}",
    "b": "1 / 0",
    "c": "factor['a'] = 86_400",
    "d": "def my_days(flops, gpus, peak, share):\n    return later(flops / (gpus * peak * share))",
    "e": "def later(s):\n    return s / factor['a']",
    "check": "days = check.days(my_days).kept",
    "f": "def my_days(*case): return 0",
}


def test_an_answer_gets_all_that_it_needs_of_the_cells_above_its_check_and_nothing_else():
    judge = exercises_of(FLOPS)[0].judge

    def status(**changed: str) -> str:
        return said(SLICED | changed, judge, "flops.days", "check", "check.days(my_days)")[0]

    assert status() == "right"
    assert status(c="factor.update(a=86_400)") == "right"
    assert status(c="") == status(e="") == status(a="factor = {") == "not yet"
    magic = "import math\nfiles = !ls\ntook = %timeit -o 1\nfactor = {}"
    assert status(a=magic) == "right"
    assert status(b="from math import *", e="def later(s): return s / floor(factor['a'])") == "right"
    assert status(check="check.days(my_days) if") == "not yet"  # then all cells are above the course's own
    assert status(d="", f="") == "not attempted yet"


def test_what_a_student_wrote_is_no_formula_and_no_markup(tmp_path):
    row = Row("=1+1", "04_flops", "1 · Days", "not yet", "-1 is <b>not</b> it.", "<script>", 3)
    pages.write_table(tmp_path / "grades.csv", [row])
    assert "'=1+1,04_flops,1 · Days,not yet,'-1 is" in (tmp_path / "grades.csv").read_text(encoding="utf-8")
    pages.write_feedback(tmp_path / "feedback", [row])
    (page,) = (tmp_path / "feedback").iterdir()
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


def test_gradescope_gets_the_keys_that_it_documents(tmp_path):
    right = Row("ada", "04_flops", "1 · Days", "right", "", "6PN.", 3)
    pages.write_gradescope(
        tmp_path / "results.json", [right, Row("ada", "a.zip", "", "not judged", "No.", "No.")]
    )
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["score"] == 1
    day, file = results["tests"]
    assert day | {"name": "04_flops · 1 · Days", "score": 1, "max_score": 1, "status": "passed"} == day
    assert (day["output"], day["visibility"]) == ("Right. 6PN.", "visible")
    assert (file["status"], file["score"], file["max_score"]) == ("failed", 0, 0)


@pytest.mark.parametrize("wrong", [("nowhere", "", ""), ("tests", "x", ""), ("tests", "", "xml")])
def test_what_cannot_be_graded_is_told_how_it_is_done(capsys, wrong):
    assert main(*wrong, "") == 2
    assert "make grade FOLDER=handed_in" in capsys.readouterr().out
