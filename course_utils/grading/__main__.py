"""`make grade FOLDER=handed_in`: the checks judge what a class handed in. SEED=7 draws other cases than the open ones."""

import ast
import gc
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

from course_utils.accountant import keeping
from course_utils.checks.judging.drawing import drawn_anew
from course_utils.checks.judging.exercises import Check
from course_utils.checks.judging.verdict import NOT_ATTEMPTED
from course_utils.desk import copies, notebooks
from course_utils.desk.notebooks import Exercise, Notebook
from course_utils.grading import asking, bounds, crew, pages, sandbox
from course_utils.grading.counting import Counting, counting
from course_utils.grading.judging import Answers, Asked, Told
from course_utils.grading.pages import Row
from course_utils.grading.reading import HandedIn, code_of, handed_in
from course_utils.grading.slicing import statements

SETTINGS = ("FOLDER", "SEED", "FORMAT", "OUT", "NB", "TURNS", "POINTS", "DETAILS")
WRONG = """{}
make grade FOLDER=handed_in judges a folder of notebooks. SEED=7 draws other cases. NB=04 says which notebook counts,
TURNS=all or TURNS="1-3 5" which of its turns, and POINTS=2 what each is worth. DETAILS=1 tells students the cases of a
SEED, too. FORMAT=gradescope writes results.json, and OUT=graded is where all is written."""
FAILED = Told("stopped", *["The judge of this notebook did not come to an end."] * 3)
NOT_HANDED_IN = "not handed in"
AS_IT_SAYS = "as its own process says"
Course = Mapping[str, Notebook]


def main(settings: Mapping[str, str]) -> int:
    begun, target = time.monotonic(), Path(settings["OUT"] or "graded")
    bounds.keep_memory_to_itself()  # and the environment, which has the seed
    folder, seed, form = settings["FOLDER"], settings["SEED"], settings["FORMAT"]
    course = {path.stem: notebooks.read(path) for path in copies.notebooks()}
    try:
        if not (
            folder and Path(folder).is_dir() and (seed or "0").isdecimal() and form in ("", "gradescope")
        ):
            raise ValueError(f"FOLDER={folder} SEED={seed} FORMAT={form} cannot be graded.")
        count = counting(settings["NB"], settings["TURNS"], settings["POINTS"], [*course])
    except ValueError as error:
        print(WRONG.format(error))
        return 2
    files = handed_in(Path(folder), course, by_one=bool(form), only=count.notebooks)
    told = _judged(files, course, seed)
    shows_cases = not seed or bool(settings["DETAILS"])
    rows = [*_rows(files, course, told, count, shows_cases=shows_cases)]
    most = _most(files, course, count)
    promise = sandbox.sentence()
    try:
        target.mkdir(parents=True, exist_ok=True)
        if form:
            rows += _missing(files, course, count)
            pages.write_gradescope(target / "results.json", rows, promise)
        else:
            pages.write_table(target / "grades.csv", rows)
            pages.write_students(target / "students.csv", rows, most)
            pages.write_feedback(target / "feedback", rows)
            (target / "how_it_was_judged.txt").write_text(
                f"{_how(seed, count)}\n{promise}\n", encoding="utf-8"
            )
    except OSError as error:
        print(f"{target} cannot be written: {error.strerror}. OUT=another_folder names another.")
        return 1
    print(f"{target}: {len(rows)} lines, in {time.monotonic() - begun:.0f} s.")
    print(promise)
    if not seed:
        print("The open cases were used, which an answer may know. SEED=7 draws others.")
    return 0


def _how(seed: str, count: Counting) -> str:
    """What was asked for, without the seed: this file may be handed on."""
    cases = "Cases drawn from a seed." if seed else "The open cases, which an answer may know."
    which = ", ".join(count.notebooks) or "each notebook that was handed in"
    turns = " ".join(f"{name or 'any'}.{number}" for name, number in sorted(count.chosen)) or count.turns
    return f"{cases} Counted: {which}; turns: {turns}."


def _judged(files: Sequence[HandedIn], course: Course, seed: str) -> Mapping[tuple[int, int], Told]:
    """What is said of each answer, by the place of its file and the exercise's number."""
    names = sorted({one.notebook for one in files if not one.problem})
    works = [at for at, one in enumerate(files) if not one.problem and _attempted(one, course[one.notebook])]
    if not works:
        return {}
    checks = _checks([course[name] for name in names], seed)
    prepared = _prepared([course[name] for name in names])
    gc.freeze()  # what the judges share stays shared
    make_judge = partial(_judge, files, course, checks, prepared)
    told = {}
    for at, said in crew.done(make_judge, works):
        for exercise in _attempted(files[at], course[files[at].notebook]):
            one = (said or {}).get(str(exercise.number))
            told[at, exercise.number] = Told(**one) if one else FAILED
    return told


def _attempted(one: HandedIn, notebook: Notebook) -> list[Exercise]:
    """The exercises whose stub is no longer the course's."""
    asked = code_of(notebook)
    found = notebooks.exercises(notebook)
    return [each for each in found if one.code.get(each.cells[1], "").strip() != asked[each.cells[1]].strip()]


@contextmanager
def _judge(
    files: Sequence[HandedIn], course: Course, checks: Mapping[str, Check], prepared: Mapping[str, object]
) -> Iterator[crew.Judge]:
    """What one judge does: it has a process for answers, and judges one notebook after the other."""
    asking.judge_loops_from_afar()
    answers = Answers(prepared)

    def judge(at: int) -> dict[str, dict[str, str]]:
        one, said = files[at], {}
        notebook = course[one.notebook]
        asked, right = code_of(notebook), []
        for exercise in _attempted(one, notebook):
            cell = exercise.cells[2]
            own = _courses_own(notebook, exercise)
            allowed = prepared["allowed"][exercise.check]
            question = Asked(one.code, exercise.check, cell, asked[cell], own, allowed, [*right])
            told = answers.told(question, checks[exercise.check])
            if told.verdict == "right":
                right.append(exercise.check.partition(".")[2])
            said[str(exercise.number)] = asdict(told)
        return said

    try:
        yield judge
    finally:
        answers.close()


def _courses_own(notebook: Notebook, exercise: Exercise) -> list[str]:
    """The statements of the course's cells, as they stand in a slice."""
    cells = code_of(notebook)
    return [one.text for name, text in cells.items() for one in statements(name, text)]


def _checks(handed: Sequence[Notebook], seed: str) -> dict[str, Check]:
    """Each exercise's check, on the open cases or on drawn ones; used once, so that what it counts by torch is counted."""
    import_module("torch._dynamo")  # with which torch trains, and takes seconds
    checks = {}
    for name in (exercise.check for notebook in handed for exercise in notebooks.exercises(notebook)):
        part, _, own = name.partition(".")
        check = getattr(import_module(f"course_utils.checks.{part}"), own)
        if seed:
            check = drawn_anew(check, int(seed))
        check(getattr(keeping.course, own, ...))
        checks[name] = check
    return checks


def _prepared(handed: Sequence[Notebook]) -> dict[str, object]:
    """What the process of the answers is told before the first: nothing that is not in the notebooks as they are handed out."""
    cells = [code_of(notebook) for notebook in handed]
    allowed = {
        exercise.check: _names_of_our_answer(notebook, exercise)
        for notebook in handed
        for exercise in notebooks.exercises(notebook)
    }
    trains = any(check.partition(".")[2].startswith("mended_") for check in allowed)
    modules = ["torch._dynamo", "course_utils.training.repair"] if trains else []
    imports = [next(iter(code.values())) for code in cells]
    return {"modules": modules, "imports": imports, "cells": cells, "allowed": allowed}


def _names_of_our_answer(notebook: Notebook, exercise: Exercise) -> list[str]:
    """The names that the folded solution uses, and with them its answer may use the accountant's."""
    by_id = {cell["id"]: notebooks.source(cell) for cell in notebook["cells"]}
    text = by_id[exercise.cells[3]].partition("```python\n")[2].partition("\n```")[0]
    nodes = ast.walk(ast.parse(text))
    return sorted({node.id for node in nodes if isinstance(node, ast.Name)} | {"Model"})


def _rows(
    files: Sequence[HandedIn],
    course: Course,
    told: Mapping[tuple[int, int], Told],
    count: Counting,
    *,
    shows_cases: bool,
) -> Iterator[Row]:
    """A row for each exercise of each notebook, and for each file that is not judged."""
    blank = Told(NOT_ATTEMPTED.status, "", NOT_ATTEMPTED.words, NOT_ATTEMPTED.words)
    for at, one in enumerate(files):
        if one.problem:
            yield Row(one.student, one.number, "", "", "", "not judged", one.problem, one.problem, one.file)
            continue
        for exercise in notebooks.exercises(course[one.notebook]):
            said = told.get((at, exercise.number), blank)
            worth = _worth(count, one.notebook, exercise)
            yield Row(
                student=one.student,
                id=one.number,
                notebook=one.notebook,
                exercise=f"{exercise.number} · {exercise.title}",
                part="beyond" if exercise.is_beyond else "main",
                verdict=said.verdict,
                looks_like=said.looks_like,
                words=said.words if shows_cases else said.without_case,
                file=one.file,
                points=worth if said.verdict == "right" else 0.0,
                of=worth,
                observed=AS_IT_SAYS if _is_observed(exercise) else "",
                guesses_made=one.guesses,
            )


def _worth(count: Counting, notebook: str, exercise: Exercise) -> float:
    if not count.counts(notebook, exercise.number, is_beyond=exercise.is_beyond):
        return 0.0
    return count.worth(notebook, exercise.number)


def _is_observed(exercise: Exercise) -> bool:
    return exercise.check.partition(".")[2].startswith(asking.AS_ITS_PROCESS_SAYS)


def _counted(files: Sequence[HandedIn], course: Course, count: Counting) -> list[str]:
    """The notebooks that count: those that were named, or else those that somebody handed in."""
    return [*count.notebooks] or [name for name in course if any(one.notebook == name for one in files)]


def _most(files: Sequence[HandedIn], course: Course, count: Counting) -> float:
    """The points of somebody who has all right."""
    names = _counted(files, course, count)
    return sum(_worth(count, name, each) for name in names for each in notebooks.exercises(course[name]))


def _missing(files: Sequence[HandedIn], course: Course, count: Counting) -> Iterator[Row]:
    """A row for each turn that counts of a notebook that is not there."""
    there = {one.notebook for one in files if not one.problem}
    for name in count.notebooks:
        for exercise in notebooks.exercises(course[name]) if name not in there else ():
            worth = _worth(count, name, exercise)
            if worth:
                title = f"{exercise.number} · {exercise.title}"
                part = "beyond" if exercise.is_beyond else "main"
                words = f"There is no notebook {name} among the files."
                yield Row("", "", name, title, part, NOT_HANDED_IN, "", words, "", 0.0, worth)


if __name__ == "__main__":
    sys.exit(main({name: os.environ.get(name, "") for name in SETTINGS}))
