"""Copies from before the course's modules moved come up to date with all that is the reader's.

In these copies a guess is typed in place of dots, and today it has a field. `before_the_move` has
the cells that have changed since, and the accountant, as they were then. They are stored because
neither a wheel nor a shallow checkout has those commits.
"""

import json
import re
from pathlib import Path

import nbformat
import pytest

from course_utils.core import accountant_file, record
from course_utils.core.accountant_file import MARK, NAME
from course_utils.core.say import Guess
from course_utils.stage.notebook.code import Ask, asks_in
from course_utils.stage.notebook.files import read, source
from course_utils.stage.notebook.outline import outline, turns
from course_utils.stage.workspace import copies
from course_utils.stage.workspace.former_guesses import carry_renamed, with_fields
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import Exercise, exercises_of

BEFORE = Path(__file__).with_name("before_the_move")
CELLS = json.loads((BEFORE / "cells.json").read_text(encoding="utf-8"))
GUESSED = 1  # at the first question of each notebook that asks for a number


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


# What the reader has done to `lost_share`, which the course had written, and under its mark.
MENDED = ("save_s / interval_s + ", "1 * save_s / interval_s + ")


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
    assert text.count(MENDED[0]) == 1
    text = text.replace(*MENDED)
    (mine / NAME).write_text(text, encoding="utf-8")
    return mine, list(copies.bring_up_to_date(ROOT / "notebooks", mine))


def asked_first(path: Path) -> Ask:
    """The first guess in the notebook that is one number, and that the copy of before has, too."""
    asks = [ask for part in outline(read(path)).guesses for ask in asks_in(part.text)]
    before = [cell.source for cell in as_before_the_move(path).cells]
    for ask in asks:
        is_old = any(text.startswith(f"{ask.name} = ...") for text in before)
        if is_old and not ask.among and len(ask.questions) == 1:
            return ask
    raise ValueError(f"{path.name} has no such guess.")


def answer(own: Path, term: Exercise) -> None:
    """Do as a reader does: run the first cell, guess, and solve the exercise, which is noted."""
    notebook = nbformat.read(own, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.execution_count = 1
    name = asked_first(term.notebook).name
    guess = next(cell for cell in notebook.cells if cell.source.startswith(f"{name} = ..."))
    guess.source = f"{name} = {GUESSED}  # a guess"
    (stub,) = [cell for cell in notebook.cells if cell.source == term.stub]
    stub.source = term.solution
    nbformat.write(notebook, own)
    (check,) = [turn.check for turn in turns(read(own)) if turn.title == term.title]
    record.note(own.parent, check, "right")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_copy_comes_up_to_date_with_its_answers_and_without_a_conflict(workspace, path):
    mine, sentences = workspace
    texts = {cell["id"]: source(cell) for cell in read(mine / path.name)["cells"]}
    course = {cell["id"]: source(cell) for cell in read(path)["cells"]}
    brought = f"{path.name} is brought up to date; what you wrote"
    assert any(line.startswith(brought) for line in sentences)
    assert not any("both you and the course" in line for line in sentences)
    assert list(texts) == list(course), "no cell more, and none less"
    ask = asked_first(path)
    said = record.said_so_far(mine, path.stem[3:])
    assert said == {ask.questions[0]: record.Said(GUESSED)}, "its field has it"
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


def test_the_accountant_keeps_what_the_reader_wrote_or_changed_and_the_rest_are_stubs(workspace):
    mine, _ = workspace
    text = accountant_file.program_text(mine / NAME)
    expected = accountant_file.ours()
    for path in NOTEBOOKS:
        expected = with_term(expected, term_of(path))
    lost_share = accountant_file.statements(accountant_before_the_move())["lost_share"].lstrip("\n")
    lost_share = lost_share.replace(*MENDED).replace(f"  {MARK}", "")
    expected = accountant_file.with_term(expected, "lost_share", lost_share)
    own = {name_of(term_of(path)) for path in NOTEBOOKS} | {"lost_share"}
    assert {*accountant_file.theirs(text)} == own
    assert text == expected
    assert text.count(MARK) == len(accountant_file.TERMS) + len(accountant_file.ADDED) - len(own)


def test_brought_up_to_date_once_it_is_up_to_date(workspace):
    mine, _ = workspace
    assert list(copies.bring_up_to_date(ROOT / "notebooks", mine)) == []


# What was typed in place of the dots.


def course_of(*texts: str) -> dict[str, object]:
    """Notebook 1 with these cells of code."""
    cells = [
        {"cell_type": "code", "id": f"c{number}", "source": text, "metadata": {}}
        for number, text in enumerate(texts)
    ]
    return {"cells": cells, "metadata": {"course": {"title": "1 · Floats", "chapter": "floats"}}}


def brought(folder: Path, new: str, *former: str) -> tuple[list[str], dict[str, record.Said]]:
    """The reader's cells when the course asks with the cell `new`, and what its field then has."""
    own = course_of("\n".join(former))
    course = course_of(new)
    cells = with_fields(own, course, folder)["cells"]
    return [source(cell) for cell in cells], record.said_so_far(folder, "floats")


@pytest.mark.parametrize(
    ("former", "said"),
    [
        ("my_gb = 2.4", 2.4),
        ("my_gb = 2.4  # GB", 2.4),
        ("my_gb = 4 * 12288 / 1024", 48),
        ("my_gb = 2**31", 2**31),
        ("my_gb = '2,400 MB'", 2.4),
        ("my_gb = ...", None),
        ("my_gb = None", None),
        ("my_gb = True", None),
        ("my_gb = -1", None),
        ("my_gb = [2]", None),
        ("my_gb = quit()", None),
        ("my_gb = {}", None),
        ("my_other = 2", None),
        ("my_gb = (", None),
    ],
)
def test_what_was_typed_in_place_of_the_dots_is_in_the_new_field_if_it_makes_sense(
    tmp_path, former, said
):
    new = 'my_gb = ask("one matrix", "GB")'
    cells, found = brought(tmp_path, new, former)
    assert cells == [new]
    assert found == ({} if said is None else {"one matrix": record.Said(said)})


def test_a_dict_of_guesses_comes_along_in_its_order_and_an_option_in_its_case(tmp_path):
    new = 'my_days = ask(["a", "b", "c"], "days")'
    _, found = brought(tmp_path, new, "my_days = {'a': 1, 'bee': ..., 'sea': 3.5}")
    assert found == {"a": record.Said(1), "c": record.Said(3.5)}
    new = 'my_word = ask("which", among=("fp16", "bf16"))'
    _, found = brought(tmp_path, new, "my_word = 'BF16'")
    assert found["which"] == record.Said("bf16")


def test_a_field_that_has_a_guess_keeps_it_and_a_cell_that_asks_stays_the_readers(tmp_path):
    record.note_said(tmp_path, "floats", "one matrix", 5)
    new = 'my_gb = ask("one matrix", "GB")'
    _, found = brought(tmp_path, new, "my_gb = 2")
    assert found == {"one matrix": record.Said(5)}
    own = 'my_gb = ask("one matrix", "GB")\n# I know that.'
    cells, _ = brought(tmp_path, new, own)
    assert cells == [own]


def test_a_question_that_got_another_name_keeps_its_guess_and_whether_it_was_answered(tmp_path):
    former = course_of('my_a = ask("old", "GB")', 'my_b = ask(["b", "c"])', 'my_d = ask("d", "GB")')
    new = course_of(
        'my_a = ask("new", "GB")', 'my_b = ask(["b", "see"])', 'my_d = ask("d", "days")'
    )
    record.note_said(tmp_path, "floats", "old", 3)
    record.note_guess(tmp_path, "floats", Guess("old", 3, 4, unit="GB"))
    record.note_said(tmp_path, "floats", "c", 5)
    record.note_said(tmp_path, "floats", "d", 6)
    for _ in range(2):
        carry_renamed(former, new, tmp_path)
        found = record.said_so_far(tmp_path, "floats")
        assert found["new"] == record.Said(3, is_closed=True)
        assert found["see"] == record.Said(5)
        assert found.keys() == {"old", "c", "d", "new", "see"}
    assert len(record.guesses(tmp_path)["floats"]) == 1, "it is counted once"
