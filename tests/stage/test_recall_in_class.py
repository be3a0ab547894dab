"""Three questions of earlier notebooks at the head of one that is presented."""

import shutil
from datetime import date, timedelta
from html import escape

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
from course_utils.stage.recall.items import ITEMS
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


def run(cells):
    """Run the cells in a shell of their own; return what the last one shows."""
    shell = InteractiveShell(config=Config(HistoryManager={"enabled": False}))
    for cell in cells:
        if cell["cell_type"] == "code":
            with capture_output():
                result = shell.run_cell(cell["source"])
            result.raise_error()
    return shell, result.result


def test_the_call_of_ask_says_what_is_asked_in_words_that_no_other_question_has():
    assert list(ITEMS) == list(QUESTIONS)
    assert len(set(ITEMS.values())) == len(ITEMS)
    for number in range(2, 9):
        questions = in_class.chosen(number, DAY, COURSE)
        cells = {cell["id"]: cell["source"] for cell in in_class.cells(number, DAY, COURSE)}
        for place, question in enumerate(questions):
            call = cells[f"recall-{place}-ask"]
            assert call.startswith(f'my_recall_{place + 1} = ask("{ITEMS[question.name]}"')
            assert len(call) <= 100


def test_a_cell_with_an_answer_names_only_the_guess_and_shows_the_answer_it_was_asked_for(
    monkeypatch,
):
    monkeypatch.setattr(guessing, "display", lambda _: None)
    cells = in_class.cells(4, DAY, COURSE)
    for place, question in enumerate(in_class.chosen(4, DAY, COURSE)):
        end = [cell["id"] for cell in cells].index(f"recall-{place}-answer") + 1
        assert cells[end - 1]["source"] == f"recalled(guess=my_recall_{place + 1})"
        shell, shown = run(cells[:end])
        asked = question.draw(DAY.toordinal()).asked
        assert shown.answer == asked.answer
        # Nobody has guessed: the answer stands large, and then how it follows.
        html = shown._repr_html_()
        assert html.startswith(f"<p>{escape(asked.text)}</p>")
        assert f'<p style="{in_class.LARGE}">{escape(f"It is {asked.answer_text}.")}</p>' in html
        assert html.endswith(f"<p>{escape(asked.derivation)}</p>")
        assert repr(shown).startswith(f"It is {asked.answer_text}.")
        guess = shell.user_ns[f"my_recall_{place + 1}"]
        assert not guess.is_closed, "nobody has seen the answer yet"
        guess.go_on()
        assert guess.is_closed


def test_a_guess_stands_beside_the_answer_as_in_a_reveal_with_the_advice_on_a_mistake(monkeypatch):
    monkeypatch.setattr(guessing, "display", lambda _: None)
    name = next(n for n in QUESTIONS if not QUESTIONS[n].draw(DAY.toordinal()).asked.is_exact)
    asked = QUESTIONS[name].draw(DAY.toordinal()).asked
    mistake = asked.mistakes[0]
    recalled = in_class.answers_of(str(DAY), name)
    guess = OpenGuess((ITEMS[name],), asked.unit)
    guess.say(ITEMS[name], str(mistake.said))
    html = recalled(guess)._repr_html_()
    assert html.startswith(f"<p>{escape(asked.text)}</p><div")
    assert "<svg" in html
    assert "your guess" in html
    assert "calculated and calculated" not in html
    assert f"<p>{escape(mistake.advice)}</p>" in html


def test_where_only_the_exact_number_is_right_no_picture_makes_a_near_one_look_so():
    name = next(n for n in QUESTIONS if QUESTIONS[n].draw(DAY.toordinal()).asked.is_exact)
    drawn = QUESTIONS[name].draw(DAY.toordinal())
    html = in_class.Recalled(drawn, drawn.asked.answer + 1)._repr_html_()
    assert "<svg" not in html
    assert f'<p style="{in_class.LARGE}">It is {drawn.asked.answer_text}.' in html


def test_a_text_without_markup_is_shown_as_it_is():
    assert in_class._as_markdown("2*3 < a_b") == r"2\*3 \< a\_b"
