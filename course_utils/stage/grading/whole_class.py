"""Judges all notebooks that were handed in, by several judges at once.

Each exercise's check is prepared once, before the judges are forked.
"""

import ast
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from importlib import import_module

import torch

import course_utils.core.accountant as course_terms
from course_utils.engine.judging.drawing import drawn_anew
from course_utils.engine.judging.exercises import Check
from course_utils.stage.grading import asking, crew
from course_utils.stage.grading.judging import STOPPED, AnswerProcess, Question, Result
from course_utils.stage.grading.reading import HandedIn, code_of
from course_utils.stage.grading.slicing import statements
from course_utils.stage.notebook.files import Notebook
from course_utils.stage.notebook.outline import Turn, turns

NO_END = "The judge of this notebook did not come to an end."
FAILED = Result(STOPPED, looks_like=NO_END, words=NO_END, without_case=NO_END)
Course = Mapping[str, Notebook]
Place = tuple[int, int]  # of an answer: the number of its file, and of its exercise


def judged(files: Sequence[HandedIn], course: Course, seed: str) -> Mapping[Place, Result]:
    """Return the result of each answer that was attempted, by its place."""
    names = sorted({file.notebook for file in files if not file.problem})
    notebooks = [course[name] for name in names]
    jobs = []  # the places in `files` of those to judge
    for at, file in enumerate(files):
        if not file.problem and attempted(file, course[file.notebook]):
            jobs.append(at)
    if not jobs:  # the checks need not be prepared, which takes seconds
        return {}

    get_checks = partial(_checks, notebooks, seed)
    # The checks are prepared here, once, and the judges are forked with them. But a torch with CUDA
    # refuses a backward pass in a process whose parent has done one: there, each judge calls
    # `_checks` itself.
    if not torch.backends.cuda.is_built():
        ready = get_checks()
        get_checks = partial(dict, ready)  # a function that returns what is ready
    prepared = _prepared(notebooks)
    gc.freeze()  # so that the judges share these pages instead of copying them
    make_judge = partial(_judge, files, course, get_checks, prepared)
    results = {}
    for at, of_file in crew.results(make_judge, jobs):
        for exercise in attempted(files[at], course[files[at].notebook]):
            results[at, exercise.number] = _result_on(exercise, of_file)
    return results


def _result_on(exercise: Turn, of_file: Mapping[str, Mapping[str, str]] | None) -> Result:
    """Return an exercise's result among those of its file; FAILED if the judge did not reach it."""
    # As in {"1": {"verdict": "right", ...}}: the numbers are texts, since the results came as JSON.
    if of_file is None or str(exercise.number) not in of_file:
        return FAILED
    return Result(**of_file[str(exercise.number)])


def attempted(file: HandedIn, notebook: Notebook) -> list[Turn]:
    """Return the exercises whose stub the student has changed."""
    handed_out = code_of(notebook)
    changed = []
    for exercise in turns(notebook):
        stub = exercise.cells[1]  # behind the heading
        # A stub that is no longer in the notebook counts as changed.
        if file.code.get(stub, "").strip() != handed_out[stub].strip():
            changed.append(exercise)
    return changed


@contextmanager
def _judge(
    files: Sequence[HandedIn],
    course: Course,
    get_checks: Callable[[], dict[str, Check]],
    for_answers: Mapping[str, object],
) -> Iterator[crew.Judge]:
    """A context with one judge: a function that judges the file whose number it is given."""
    checks = get_checks()  # by name; they may have to be prepared
    asking.observe_remotely()  # a student's loop runs in the other process, and is watched there
    answers = AnswerProcess(for_answers)  # runs the files' code, see `_prepared`

    def judge(at: int) -> dict[str, dict[str, str]]:
        """Return the results of the attempted exercises as dicts, by their numbers as texts."""
        file = files[at]
        notebook = course[file.notebook]
        handed_out = code_of(notebook)
        right: list[str] = []
        results = {}
        for exercise in attempted(file, notebook):
            cell = exercise.cells[2]  # which calls the check
            question = Question(
                code=file.code,
                check=exercise.check,
                cell=cell,
                cell_text=handed_out[cell],
                courses_statements=_courses_own(notebook),
                allowed=_names_in_solution(exercise),
                right_so_far=list(right),
            )
            result = answers.judge(question, checks[exercise.check])
            if result.verdict == "right":
                right.append(exercise.exercise)
            results[str(exercise.number)] = asdict(result)
        return results

    try:
        yield judge
    finally:
        answers.close()


def _courses_own(notebook: Notebook) -> list[str]:
    """Return the texts of the statements in the course's cells, as `slicing` writes them."""
    own = []
    for cell, text in code_of(notebook).items():
        for statement in statements(cell, text):
            own.append(statement.text)
    return own


def _checks(handed: Sequence[Notebook], seed: str) -> dict[str, Check]:
    """Return each exercise's check, by its name such as "flops.days".

    A seed gives each check other cases than the open ones, which all readers have.

    Each check is called once, so that what it measures with torch is cached before the judges are
    forked, and no judge has to measure it again.
    """
    import_module("torch._dynamo")  # training needs it, and to import it takes seconds
    checks = {}
    for notebook in handed:
        for exercise in turns(notebook):
            chapter, _, name = exercise.check.partition(".")
            check = getattr(import_module(f"course_utils.chapters.{chapter}.check"), name)
            if seed:
                check = drawn_anew(check, int(seed))
            # The right answer if the accountant has one, or else the dots of a stub.
            check(getattr(course_terms, name, ...))
            checks[exercise.check] = check
    return checks


def _prepared(handed: Sequence[Notebook]) -> dict[str, object]:
    """Return what the process that runs the answers gets in advance, so that no answer waits.

    It is nothing secret: the cells are those of the notebooks as they are handed out.
    """
    cells = [code_of(notebook) for notebook in handed]
    modules = []
    if any(_trains(notebook) for notebook in handed):
        # Training would import these in each answer, which takes seconds.
        modules = ["torch._dynamo", "course_utils.chapters.mixed_precision.loops"]
    imports = [next(iter(code.values())) for code in cells]  # a notebook's first cell
    return {"modules": modules, "imports": imports, "cells": cells}


def _trains(notebook: Notebook) -> bool:
    """Whether an exercise of that notebook trains a model.

    In those exercises, such as "mended_a", the student mends a training loop.
    """
    return any(exercise.exercise.startswith("mended_") for exercise in turns(notebook))


def _names_in_solution(exercise: Turn) -> list[str]:
    """Return the names that the solution uses: an answer may use the accountant's among them."""
    names = {"Model"}  # every answer may use it, since cases of many exercises are Models
    for node in ast.walk(ast.parse(exercise.solution)):
        if isinstance(node, ast.Name):
            names.add(node.id)
    return sorted(names)
