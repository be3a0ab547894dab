"""All notebooks that were handed in: several judges share them.

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
from course_utils.stage.grading.judging import STOPPED, Answers, Asked, Told
from course_utils.stage.grading.reading import HandedIn, code_of
from course_utils.stage.grading.slicing import statements
from course_utils.stage.notebook.files import Notebook
from course_utils.stage.notebook.outline import Turn, turns

NO_END = "The judge of this notebook did not come to an end."
FAILED = Told(STOPPED, looks_like=NO_END, words=NO_END, without_case=NO_END)
Course = Mapping[str, Notebook]
Place = tuple[int, int]  # of an answer: the number of its file, and of its exercise


def judged(files: Sequence[HandedIn], course: Course, seed: str) -> Mapping[Place, Told]:
    """What is said of each answer, by the place of its file and the exercise's number."""
    names = sorted({file.notebook for file in files if not file.problem})
    notebooks = [course[name] for name in names]
    works = []
    for at, file in enumerate(files):
        if not file.problem and attempted(file, course[file.notebook]):
            works.append(at)
    if not works:
        return {}

    checks = partial(_checks, notebooks, seed)
    # A torch with CUDA refuses a backward pass in a process whose parent has done one. There, each
    # judge prepares its own checks.
    if not torch.backends.cuda.is_built():
        ready = checks()
        checks = partial(dict, ready)
    prepared = _prepared(notebooks)
    gc.freeze()  # so that the judges share these pages instead of copying them
    make_judge = partial(_judge, files, course, checks, prepared)
    told = {}
    for at, said in crew.done(make_judge, works):
        for exercise in attempted(files[at], course[files[at].notebook]):
            told[at, exercise.number] = _told_of(said, exercise)
    return told


def _told_of(said: Mapping[str, Mapping[str, str]] | None, exercise: Turn) -> Told:
    """What a judge said of one exercise; FAILED if it did not get to it."""
    if said is None or str(exercise.number) not in said:
        return FAILED
    return Told(**said[str(exercise.number)])


def attempted(file: HandedIn, notebook: Notebook) -> list[Turn]:
    """The exercises whose stub is no longer the course's."""
    asked = code_of(notebook)
    found = []
    for exercise in turns(notebook):
        stub = exercise.cells[1]
        if file.code.get(stub, "").strip() != asked[stub].strip():
            found.append(exercise)
    return found


@contextmanager
def _judge(
    files: Sequence[HandedIn],
    course: Course,
    prepare: Callable[[], dict[str, Check]],
    prepared: Mapping[str, object],
) -> Iterator[crew.Judge]:
    """One judge: it has a process for answers, and judges one notebook after the other."""
    checks = prepare()
    asking.judge_from_afar()
    answers = Answers(prepared)

    def judge(at: int) -> dict[str, dict[str, str]]:
        file = files[at]
        notebook = course[file.notebook]
        asked = code_of(notebook)
        right: list[str] = []
        said = {}
        for exercise in attempted(file, notebook):
            cell = exercise.cells[2]
            question = Asked(
                code=file.code,
                check=exercise.check,
                cell=cell,
                asked=asked[cell],
                course=_courses_own(notebook),
                allowed=_names_of_our_answer(exercise),
                right=list(right),
            )
            told = answers.told(question, checks[exercise.check])
            if told.verdict == "right":
                right.append(exercise.exercise)
            said[str(exercise.number)] = asdict(told)
        return said

    try:
        yield judge
    finally:
        answers.close()


def _courses_own(notebook: Notebook) -> list[str]:
    """The texts of the statements in the course's cells, as `slicing` writes them."""
    own = []
    for cell, text in code_of(notebook).items():
        for statement in statements(cell, text):
            own.append(statement.text)
    return own


def _checks(handed: Sequence[Notebook], seed: str) -> dict[str, Check]:
    """Each exercise's check, on the open cases or on drawn ones.

    Each is used once, so that what it counts by torch is counted before the judges are forked.
    """
    import_module("torch._dynamo")  # training needs it, and to import it takes seconds
    checks = {}
    for notebook in handed:
        for exercise in turns(notebook):
            chapter, _, name = exercise.check.partition(".")
            check = getattr(import_module(f"course_utils.chapters.{chapter}.check"), name)
            if seed:
                check = drawn_anew(check, int(seed))
            check(getattr(course_terms, name, ...))
            checks[exercise.check] = check
    return checks


def _prepared(handed: Sequence[Notebook]) -> dict[str, object]:
    """What the process of the answers is told before the first answer.

    All of it is in the notebooks as they are handed out.
    """
    cells = [code_of(notebook) for notebook in handed]
    modules = []
    if any(_trains(notebook) for notebook in handed):
        modules = ["torch._dynamo", "course_utils.chapters.mixed_precision.loops"]
    imports = [next(iter(code.values())) for code in cells]  # a notebook's first cell
    return {"modules": modules, "imports": imports, "cells": cells}


def _trains(notebook: Notebook) -> bool:
    """Whether an exercise of that notebook trains a model."""
    return any(exercise.exercise.startswith("mended_") for exercise in turns(notebook))


def _names_of_our_answer(exercise: Turn) -> list[str]:
    """The names that the folded solution uses. An answer may use these of the accountant's, too."""
    names = {"Model"}
    for node in ast.walk(ast.parse(exercise.solution)):
        if isinstance(node, ast.Name):
            names.add(node.id)
    return sorted(names)
