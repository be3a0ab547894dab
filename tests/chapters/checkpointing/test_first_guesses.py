"""The table at the end of the course has the guesses from its beginning."""

import pytest

from course_utils.chapters.checkpointing import first_guesses
from course_utils.chapters.checkpointing.first_guesses import beside_your_guesses
from course_utils.core import record
from course_utils.core.say import Comparison, Guess
from tests import NOTEBOOKS
from tests.helpers.notebooks import code
from tests.project.test_notebooks import AHEAD

NONE = "No first guess is in your record."


def shown():
    """Both reveals as text, each as a list of lines."""
    guesses = beside_your_guesses(days_of_70b=(143.9, 165.2), billions_on_8_gpus=(40, 40))
    return [reveal.splitlines() for reveal in repr(guesses).split("\n\n")]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A reader's folder."""
    (tmp_path / record.HIDDEN).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_questions_are_those_that_notebook_1_asks_ahead():
    ahead = [found for cell in code(NOTEBOOKS[0]) for found in AHEAD.findall(cell.source)]
    asked = {(notebook, name, unit) for name, unit, notebook in ahead}
    assert asked == {first_guesses.DAYS, first_guesses.LARGEST}


def test_a_guess_from_the_record_stands_beside_the_counted_number(mine):
    record.note_said(mine, "flops", first_guesses.DAYS[1], 150)
    record.note_said(mine, "optimizers", first_guesses.LARGEST[1], 2.5)
    days, billions = shown()
    assert days[1].split()[-4:] == ["150", "144", "165", "1.15"]
    assert days[2] == "Close: 0.908 times the number by your accountant."
    assert billions[1].split()[-4:-1] == ["2.5", "40", "40"]
    assert billions[2].startswith("Far: ")
    pictured = beside_your_guesses(days_of_70b=(144, 165), billions_on_8_gpus=(40, 40))
    assert pictured._repr_html_().count("<details>") == 2  # each has a picture above its numbers
    assert not isinstance(pictured, Comparison)  # so that no guess is recorded a second time


def test_the_first_guess_is_shown_though_a_later_one_was_better(mine):
    record.note_said(mine, "flops", first_guesses.DAYS[1], 10)
    record.note_said(mine, "flops", first_guesses.DAYS[1], 150)
    record.note_guess(mine, "flops", Guess(first_guesses.DAYS[1], 10, 143.9, unit="days"))
    record.note_said(mine, "flops", first_guesses.DAYS[1], 144)
    assert shown()[0][1].split()[-4] == "10"


def test_without_a_guess_or_without_a_record_the_table_says_so(mine):
    without_guesses = shown()
    (mine / record.HIDDEN).rmdir()
    assert shown() == without_guesses
    assert [reveal[-1] for reveal in without_guesses] == [NONE, NONE]
    assert without_guesses[0][1].split()[-3:] == ["144", "165", "1.15"]
