"""The questions on the pages without a kernel: what is drawn for them, and where they lead."""

import json
import re

import pytest

from course_utils.core.say.closeness import WORDS
from course_utils.stage.notebook.code import asks_ahead
from course_utils.stage.notebook.outline import outline
from course_utils.stage.pages import recall_page, render
from course_utils.stage.recall import due
from course_utils.stage.recall.bank import QUESTIONS
from tests import NOTEBOOKS
from tests.helpers.notebooks import read

ON_THE_PAGE = dict(
    re.findall(r"^export const (\w+) = (.*);$", recall_page.script(), flags=re.MULTILINE)
)
DRAWN = {one["name"]: one for one in json.loads(ON_THE_PAGE["questions"])}


def test_the_page_has_the_schedule_of_python():
    assert json.loads(ON_THE_PAGE["intervals"]) == list(due.INTERVALS_DAYS)
    assert json.loads(ON_THE_PAGE["atOnce"]) == due.AT_ONCE
    assert json.loads(ON_THE_PAGE["words"]) == list(WORDS)
    met = (recall_page.HERE / "met.js").read_text(encoding="utf-8")
    assert f"const WORDS = {json.dumps(WORDS)};" in met


def test_every_question_is_there_in_six_sizes_as_python_draws_them():
    assert list(DRAWN) == list(QUESTIONS)
    for name, question in QUESTIONS.items():
        shown = {(one["text"], one["answer"]) for one in DRAWN[name]["draws"]}
        assert len(shown) == 6
        drawn = [question.draw(seed).asked for seed in range(40)]
        assert shown <= {(asked.text, asked.answer) for asked in drawn}


def test_an_exact_answer_is_a_number_that_javascript_has_exactly():
    for one in DRAWN.values():
        for draw in one["draws"]:
            assert not draw["isExact"] or abs(draw["answer"]) < 2**53


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_question_leads_to_a_heading_and_comes_after_a_guess_of_the_page(path):
    notebook = read(path)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    headings = set(re.findall(r' id="([^"]*)"', "".join(map(render.prose, texts))))
    asked = set()
    for part in outline(notebook).guesses:
        if not asks_ahead(part.text):
            asked.update(
                f"{path.stem} {one.item}" for guess in part.asked for one in guess.questions
            )
    here = [one for one in DRAWN.values() if one["link"].startswith(path.stem)]
    assert len(here) >= 5
    for one in here:
        assert one["link"].partition("#")[2] in headings
        assert one["met"]
        assert set(one["met"]) <= asked


def test_the_sites_front_page_leads_to_it():
    assert '<a href="recall.html">Three to recall, two minutes</a>' in render.contents_page()
