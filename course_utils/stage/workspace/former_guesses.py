"""Guesses from earlier versions of the course, which the fields of the present one have.

Before guesses had fields, they were typed in place of dots. Later some questions got other names.
"""

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from course_utils.core import record
from course_utils.core.say import OpenGuess
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import Ask, asks_in, statements
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.outline import outline


def with_fields(own: Notebook, course: Notebook, folder: Path) -> Notebook:
    """Return the reader's copy, with the course's cells in place of those from before the fields.

    What was typed in place of the dots is written into the record of that folder, so that the new
    field has it. A cell that has a field already stays.
    """
    new_cells = {cell["id"]: cell for cell in course["cells"]}
    guesses = {part.id for part in outline(course).guesses}
    chapter = about(course, "").chapter  # from the metadata, so the file's name is not needed
    cells = []
    for cell in own["cells"]:
        if cell["id"] in guesses and not asks_in(source(cell)):
            new = new_cells[cell["id"]]
            for ask in asks_in(source(new)):
                _keep(folder, chapter, ask, cell)
            cell = {**cell, "source": new["source"]}
        cells.append(cell)
    return {**own, "cells": cells}


def carry_renamed(former_course: Notebook, course: Notebook, folder: Path) -> None:
    """Where a cell asks a question under a new name, copy what the record has to the new name.

    `former_course` is the version of the course's notebook that the reader's copy was made from.
    """
    chapter = about(course, "").chapter  # from the metadata, so the file's name is not needed
    so_far = record.said_so_far(folder, chapter)
    asks_by_cell = {cell["id"]: asks_in(source(cell)) for cell in former_course["cells"]}
    for cell in course["cells"]:
        former_asks = asks_by_cell.get(cell["id"], [])
        # A cell may ask more or fewer questions than before: then the first ones are compared.
        for former, ask in zip(former_asks, asks_in(source(cell)), strict=False):
            if former.unit != ask.unit or len(former.questions) != len(ask.questions):
                continue  # it is another question
            for old_name, name in zip(former.questions, ask.questions, strict=True):
                # What the record has under the new name is later, so it stays.
                if old_name in so_far and name not in so_far:
                    _note_again(folder, chapter, so_far[old_name], name)


def _note_again(folder: Path, chapter: str, known: record.Said, name: str) -> None:
    """Write into the record, under the question's new name, what it has under the old one."""
    if known.said is not None:
        record.note_said(folder, chapter, name, known.said)
    if known.has_gone_on:
        record.note_shown(folder, chapter, name)
    if known.is_closed:
        record.note_seen(folder, chapter, name)


def _keep(folder: Path, chapter: str, ask: Ask, former: Cell) -> None:
    """Write into the record the guess that the reader typed in an earlier version of the cell.

    There the cell set a variable, `my_gb = ...`, and the reader put the guess in place of the dots.
    The present cell, `my_gb = ask("one matrix", "GB")`, has a field, which shows what the record
    has. `former` is the earlier cell, and `ask` the question of the present one.
    """
    so_far = record.said_so_far(folder, chapter)
    for question, typed in _typed(source(former), ask):
        if question in so_far:  # what was typed into the new field is later, so it stays
            continue
        guess = OpenGuess(ask.questions, ask.unit, ask.among)  # reads text as the new field does
        # `say` refuses what is no answer to the question, such as dots that were left or nonsense.
        # Then the record stays as it is, and the field is empty.
        with suppress(ValueError):
            guess.say(question, typed)
            record.note_said(folder, chapter, question, guess.said[question])


def _typed(text: str, ask: Ask) -> Iterator[tuple[str, str]]:
    """Yield each question with the answer that an earlier version's cell, `text`, gives to it.

    In that cell, the reader assigned the answer to a variable, whose name is still `ask.name`. The
    answer is yielded as the text that the reader would type into the question's field today.
    """
    for node in statements(text):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        if node.targets[0].id == ask.name:
            # Several answers were a dict. Its keys, the questions, had other names in earlier
            # versions, but the same order.
            values = node.value.values if isinstance(node.value, ast.Dict) else [node.value]
            yield from zip(ask.questions, map(_as_typed, values), strict=False)


def _as_typed(value: ast.expr) -> str:
    """Return what stands between the quotes, or else the code, such as 4 * 12288 / 1000."""
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return value.value if is_text else ast.unparse(value)
