"""`make grade FOLDER=handed_in`: the checks judge what a class handed in. SEED=7 draws other cases than the open ones."""

import gc
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from course_utils.accountant import keeping
from course_utils.checks.judging.drawing import drawn_anew
from course_utils.checks.judging.verdict import NOT_ATTEMPTED
from course_utils.desk import copies, notebooks
from course_utils.desk.notebooks import Notebook
from course_utils.grading import pages
from course_utils.grading.bounds import done
from course_utils.grading.judging import Judge, said
from course_utils.grading.pages import Row
from course_utils.grading.reading import HandedIn, code_of, guesses_made, handed_in
from course_utils.grading.slicing import statements

WRONG = """{}
make grade FOLDER=handed_in judges a folder of notebooks. SEED=7 draws other cases, FORMAT=gradescope writes
results.json, and OUT=graded is where it is written."""


def main(folder: str, seed: str, form: str, out: str) -> int:
    begun, target = time.monotonic(), Path(out or "graded")
    if not (folder and Path(folder).is_dir() and (seed or "0").isdecimal() and form in ("", "gradescope")):
        print(WRONG.format(f"FOLDER={folder} SEED={seed} FORMAT={form} cannot be graded."))
        return 2
    course = {path.stem: notebooks.read(path) for path in copies.notebooks()}
    rows = _graded(handed_in(Path(folder), course), course, seed)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if form:
            pages.write_gradescope(target / "results.json", rows)
        else:
            pages.write_table(target / "grades.csv", rows)
            pages.write_feedback(target / "feedback", rows)
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}. OUT=another_folder names another.")
        return 1
    print(f"{target}: {len(rows)} lines, in {time.monotonic() - begun:.0f} s.")
    print("" if seed else "The open cases were used, which an answer may know. SEED=7 draws others.")
    return 0


def _graded(files: Sequence[HandedIn], course: Mapping[str, Notebook], seed: str) -> list[Row]:
    """A row for each exercise of each notebook, and for each file that is not judged."""
    judges = _prepared([course[name] for name in {one.notebook for one in files} - {""}], seed)
    rows, works = [], {}
    for one in files:
        if one.problem:
            rows.append(Row(one.student, one.file, "", "not judged", one.problem, one.problem))
            continue
        asked, made = code_of(course[one.notebook]), guesses_made(one, course[one.notebook])
        for exercise in notebooks.exercises(course[one.notebook]):
            check, cell = exercise.check, exercise.cells[2]
            if any(one.code.get(stub) != asked.get(stub) for stub in exercise.cells[1:2]):
                works[len(rows)] = partial(said, one.code, judges[check], check, cell, asked[cell])
            title = f"{exercise.number} · {exercise.title}{' (Beyond)' * exercise.is_beyond}"
            rows.append(
                Row(one.student, one.notebook, title, NOT_ATTEMPTED.status, "", NOT_ATTEMPTED.words, made)
            )
    for at, told in done(works):
        rows[at] = replace(rows[at], **dict(zip(("verdict", "looks_like", "words"), told, strict=True)))
    return rows


def _prepared(handed_in: Sequence[Notebook], seed: str) -> dict[str, Judge]:
    """Each exercise's check. And do once what each answer's process would do: import, read cells, count by torch."""
    import_module("torch._dynamo")  # with which torch trains, and takes seconds
    judges = {}
    for notebook in handed_in:
        code = code_of(notebook)
        exec(next(iter(code.values())), {})
        for cell, text in code.items():
            statements(cell, text)
        for check in (exercise.check for exercise in notebooks.exercises(notebook)):
            part, _, name = check.partition(".")
            judge = getattr(import_module(f"course_utils.checks.{part}"), name)
            if seed:
                judge = drawn_anew(judge, int(seed))
            judge(getattr(keeping.course, name, ...))
            judges[check] = judge
    gc.freeze()  # what the answers' processes share stays shared
    return judges


if __name__ == "__main__":
    sys.exit(main(*(os.environ.get(name, "") for name in ("FOLDER", "SEED", "FORMAT", "OUT"))))
