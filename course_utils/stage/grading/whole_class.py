"""All notebooks that were handed in: each exercise's check is prepared once, and several judges share the notebooks."""

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
from course_utils.stage.grading.judging import Answers, Asked, Told
from course_utils.stage.grading.reading import HandedIn, code_of
from course_utils.stage.grading.slicing import statements
from course_utils.stage.notebook.files import Notebook
from course_utils.stage.notebook.outline import Turn, turns

FAILED = Told("stopped", *["The judge of this notebook did not come to an end."] * 3)
Course = Mapping[str, Notebook]
Place = tuple[int, int]  # of an answer: the number of its file, and of its exercise


def judged(files: Sequence[HandedIn], course: Course, seed: str) -> Mapping[Place, Told]:
    """What is said of each answer, by the place of its file and the exercise's number."""
    names = sorted({one.notebook for one in files if not one.problem})
    works = [
        at
        for at, one in enumerate(files)
        if not one.problem and attempted(one, course[one.notebook])
    ]
    if not works:
        return {}
    checks = partial(_checks, [course[name] for name in names], seed)
    # A torch with CUDA refuses a backward pass in a process whose parent has done one. There, each judge prepares its own.
    if not torch.backends.cuda.is_built():
        ready = checks()
        checks = partial(dict, ready)
    prepared = _prepared([course[name] for name in names])
    gc.freeze()  # what the judges share stays shared
    make_judge = partial(_judge, files, course, checks, prepared)
    told = {}
    for at, said in crew.done(make_judge, works):
        for exercise in attempted(files[at], course[files[at].notebook]):
            one = (said or {}).get(str(exercise.number))
            told[at, exercise.number] = Told(**one) if one else FAILED
    return told


def attempted(one: HandedIn, notebook: Notebook) -> list[Turn]:
    """The exercises whose stub is no longer the course's."""
    asked = code_of(notebook)
    found = turns(notebook)
    return [
        each
        for each in found
        if one.code.get(each.cells[1], "").strip() != asked[each.cells[1]].strip()
    ]


@contextmanager
def _judge(
    files: Sequence[HandedIn],
    course: Course,
    prepare: Callable[[], dict[str, Check]],
    prepared: Mapping[str, object],
) -> Iterator[crew.Judge]:
    """What one judge does: it has a process for answers, and judges one notebook after the other."""
    checks = prepare()
    asking.judge_from_afar()
    answers = Answers(prepared)

    def judge(at: int) -> dict[str, dict[str, str]]:
        one, said = files[at], {}
        notebook = course[one.notebook]
        asked, right = code_of(notebook), []
        for exercise in attempted(one, notebook):
            cell = exercise.cells[2]
            own, allowed = _courses_own(notebook), _names_of_our_answer(exercise)
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


def _courses_own(notebook: Notebook) -> list[str]:
    """The statements of the course's cells, as they stand in a slice."""
    cells = code_of(notebook)
    return [one.text for name, text in cells.items() for one in statements(name, text)]


def _checks(handed: Sequence[Notebook], seed: str) -> dict[str, Check]:
    """Each exercise's check, on the open cases or on drawn ones; used once, so that what it counts by torch is counted."""
    import_module("torch._dynamo")  # with which torch trains, and takes seconds
    checks = {}
    for name in (exercise.check for notebook in handed for exercise in turns(notebook)):
        part, _, own = name.partition(".")
        check = getattr(import_module(f"course_utils.chapters.{part}.check"), own)
        if seed:
            check = drawn_anew(check, int(seed))
        check(getattr(course_terms, own, ...))
        checks[name] = check
    return checks


def _prepared(handed: Sequence[Notebook]) -> dict[str, object]:
    """What the process of the answers is told before the first: nothing that is not in the notebooks as they are handed out."""
    cells = [code_of(notebook) for notebook in handed]
    checks = [exercise.check for notebook in handed for exercise in turns(notebook)]
    trains = any(check.partition(".")[2].startswith("mended_") for check in checks)
    modules = ["torch._dynamo", "course_utils.chapters.mixed_precision.loops"] if trains else []
    imports = [next(iter(code.values())) for code in cells]
    return {"modules": modules, "imports": imports, "cells": cells}


def _names_of_our_answer(exercise: Turn) -> list[str]:
    """The names that the folded solution uses, and with them its answer may use the accountant's."""
    nodes = ast.walk(ast.parse(exercise.solution))
    return sorted({node.id for node in nodes if isinstance(node, ast.Name)} | {"Model"})
