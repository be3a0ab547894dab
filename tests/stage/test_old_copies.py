"""Copies from before the course's modules moved come up to date with all that is the reader's.

`before_the_move` has the cells that the move changed, and the accountant, as the last commit before
it had them. They are stored because neither a wheel nor a shallow checkout has that commit.
"""

import json
import re
from pathlib import Path

import nbformat
import pytest

from course_utils.core import accountant_file, record
from course_utils.core.accountant_file import MARK, NAME
from course_utils.stage.notebook.files import read, source
from course_utils.stage.notebook.outline import turns
from course_utils.stage.workspace import copies
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import Exercise, exercises_of

BEFORE = Path(__file__).with_name("before_the_move")
CELLS = json.loads((BEFORE / "cells.json").read_text(encoding="utf-8"))
OPEN = re.compile(r"^(my_\w+) = \.\.\.")
GUESSED = "42  # guessed before the move"


def as_before_the_move(path: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = "\n".join(CELLS[path.stem].get(cell.id, [cell.source]))
    kept = {name: notebook.metadata[name] for name in ("kernelspec", "language_info")}
    return nbformat.from_dict({**notebook, "metadata": kept})


def accountant_before_the_move() -> str:
    """As a workspace got it, with the mark behind the first line of each term.

    It ends with a line of comment that is not in the course's any more.
    """
    text = (BEFORE / "accountant.txt").read_text(encoding="utf-8")
    text += "\n\n# As it was before the move.\n"
    first_line = rf"^(def (?:{'|'.join(accountant_file.TERMS)})\(.*:)$"
    return re.sub(first_line, rf"\1  {MARK}", text, flags=re.MULTILINE)


def term_of(path: Path) -> Exercise:
    """The notebook's first exercise whose right answer becomes a term of the accountant."""
    kept = [exercise for exercise in exercises_of(path) if exercise.check.endswith(".kept")]
    return kept[0]


def name_of(term: Exercise) -> str:
    name, _, _ = term.check.partition(" = ")
    return name


def with_term(text: str, term: Exercise) -> str:
    """That accountant with the exercise's solution in the place of the course's term."""
    name = name_of(term)
    function = re.sub(rf"\bmy_{name}\b", name, term.solution)
    return accountant_file.with_term(text, name, function)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A reader's folder from before the move, brought up to date, and what was said then.

    The reader has worked on every notebook.
    """
    course = tmp_path_factory.mktemp("course")
    mine = tmp_path_factory.mktemp("workspace") / "my_notebooks"
    for path in NOTEBOOKS:
        nbformat.write(as_before_the_move(path), course / path.name)
    assert list(copies.bring_up_to_date(course, mine)) == []
    text = accountant_before_the_move()
    (mine / record.HIDDEN / NAME).write_text(text, encoding="utf-8")
    for path in NOTEBOOKS:
        answer(mine / path.name, term_of(path))
        text = with_term(text, term_of(path))
    (mine / NAME).write_text(text, encoding="utf-8")
    return mine, list(copies.bring_up_to_date(ROOT / "notebooks", mine))


def answer(own: Path, term: Exercise) -> None:
    """Do as a reader does: run the first cell, guess, and solve the exercise, which is noted."""
    notebook = nbformat.read(own, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.execution_count = 1
    guess = next(cell for cell in notebook.cells if OPEN.match(cell.source))
    guess.source = OPEN.sub(rf"\1 = {GUESSED}", guess.source)
    (stub,) = [cell for cell in notebook.cells if cell.source == term.stub]
    stub.source = term.solution
    nbformat.write(notebook, own)
    (check,) = [turn.check for turn in turns(read(own)) if turn.title == term.title]
    record.note(own.parent, check, "right")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_copy_comes_up_to_date_with_its_answers_and_without_a_conflict(workspace, path):
    mine, said = workspace
    texts = {cell["id"]: source(cell) for cell in read(mine / path.name)["cells"]}
    course = {cell["id"]: source(cell) for cell in read(path)["cells"]}
    brought = f"{path.name} is brought up to date; what you wrote"
    assert any(line.startswith(brought) for line in said)
    assert not any("both you and the course" in line for line in said)
    assert list(texts) == list(course), "no cell more, and none less"
    assert GUESSED in "\n".join(texts.values())
    assert term_of(path).solution in texts.values()
    for id_ in CELLS[path.stem]:
        now = course[id_].replace("(../README.md#the-notebooks)", "(/contents)")
        assert texts[id_] == now


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_first_cell_runs(workspace, path):
    mine, _ = workspace
    first = next(cell for cell in read(mine / path.name)["cells"] if cell["cell_type"] == "code")
    assert first["id"] in CELLS[path.stem]
    exec(source(first), {})


def test_the_record_of_before_counts_for_the_exercises_of_today(workspace):
    mine, _ = workspace
    done = record.done(mine)
    today = {turn.check for path in NOTEBOOKS for turn in turns(read(path))}
    assert len(done) == len(NOTEBOOKS)
    assert {*done} <= today


def test_the_accountant_keeps_the_readers_terms_and_is_else_the_courses(workspace):
    mine, _ = workspace
    text = accountant_file.program_text(mine / NAME)
    expected = accountant_file.ours()
    for path in NOTEBOOKS:
        expected = with_term(expected, term_of(path))
    assert {*accountant_file.theirs(text)} == {name_of(term_of(path)) for path in NOTEBOOKS}
    assert text == expected


def test_brought_up_to_date_once_it_is_up_to_date(workspace):
    mine, _ = workspace
    assert list(copies.bring_up_to_date(ROOT / "notebooks", mine)) == []
