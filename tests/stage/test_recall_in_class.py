"""Three questions of earlier notebooks at the head of one that is presented."""

import shutil
from datetime import date, timedelta

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from course_utils.core.say import OpenGuess
from course_utils.engine import guessing
from course_utils.stage.notebook.files import read
from course_utils.stage.notebook.outline import outline
from course_utils.stage.present import asking
from course_utils.stage.present import server as present
from course_utils.stage.recall import in_class
from course_utils.stage.recall.bank import QUESTIONS
from course_utils.stage.recall.napkin import number_of
from tests import NOTEBOOKS, ROOT

COURSE = ROOT / "notebooks"
DAY = date(2026, 3, 2)


@pytest.mark.parametrize("number", range(2, 9))
def test_three_questions_of_earlier_notebooks_come_from_their_main_paths(number):
    seen = {}
    for days in range(20):
        chosen = in_class.chosen(number, DAY + timedelta(days), COURSE)
        numbers = [number_of(question.chapter) for question in chosen]
        assert len({question.name for question in chosen}) == 3
        assert number - 1 in numbers
        assert len(set(numbers)) == min(3, number - 1)
        assert max(numbers) < number
        seen.update({question.name: question for question in chosen})
    assert len(seen) > 3, "another day asks others"
    for path in NOTEBOOKS[: number - 1]:
        beyond = {part.id for part in outline(read(path)).parts if part.is_beyond}
        assert not beyond.intersection(one.cell for one in seen.values())


def test_notebook_1_has_nothing_to_recall(monkeypatch, capsys):
    monkeypatch.setenv("RECALL", "1")
    assert present.main(["01", "--no-browser"]) == 2
    assert "Before notebook 1 there is nothing to recall" in capsys.readouterr().err


@pytest.mark.parametrize("number", range(2, 9))
def test_the_room_is_asked_on_the_wall_and_gets_the_answer_there(tmp_path, number):
    path = NOTEBOOKS[number - 1]
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    present.prepare(copy, None, False, recall=in_class.cells(number, DAY, COURSE))
    cells = read(copy)["cells"]
    ids = [cell["id"] for cell in cells]
    assert ids[0] == read(path)["cells"][0]["id"], "the opening stays in front"
    assert ids.index("recall-2-answer") < ids.index("recall-head") + 11
    assert [cell["id"] for cell in read(path)["cells"]] == [
        name for name in ids if not name.startswith("recall-")
    ]
    asked = list(asking.asked(outline(read(copy)).parts, f"{number:02}", None))
    names = {}
    for place, question in enumerate(in_class.chosen(number, DAY, COURSE)):
        drawn = question.draw(DAY.toordinal())
        (entry,) = (one for one in asked if one.name == f"my_recall_{place + 1}")
        (shown,) = entry.questions
        assert shown["words"] == drawn.asked.text
        assert shown["unit"] == drawn.asked.unit
        text = cells[ids.index(f"recall-{place}-answer")]["source"]
        result = in_class.Recalled(drawn, drawn.asked.answer)
        (answer,) = asking.answered(asked, "".join(text), result, names)
        assert answer["measured"] == drawn.asked.answer
        assert answer["how"] == "calculated"


def test_without_phones_the_field_takes_a_guess_and_the_answer_says_how_it_follows(monkeypatch):
    monkeypatch.setattr(guessing, "display", lambda _: None)
    quiet = Config(HistoryManager={"enabled": False})
    shell = InteractiveShell(config=quiet)
    drawn = QUESTIONS["tensors.steps"].draw(DAY.toordinal())
    mistake = drawn.asked.mistakes[0]
    for cell in [*in_class.cells(4, DAY, COURSE)[:2], *in_class._cells_of(drawn, 0)]:
        if cell["cell_type"] == "code":
            with capture_output():
                result = shell.run_cell(cell["source"])
            result.raise_error()
    shown = result.result._repr_markdown_()
    assert shown.startswith(f"It is {drawn.asked.answer_text}.")
    guess = OpenGuess(("the first",), drawn.asked.unit)
    guess.say("the first", str(mistake.said))
    said = in_class.recalled("tensors.steps", drawn.seed, guess)._repr_markdown_()
    assert in_class._as_markdown(mistake.advice) in said
    assert in_class._as_markdown(drawn.asked.derivation) in said


def test_a_text_without_markup_is_shown_as_it_is():
    assert in_class._as_markdown("2*3 < a_b") == r"2\*3 \< a\_b"
