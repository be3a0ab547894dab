"""The decks: what is chosen from a notebook, and that a deck needs nothing but itself."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from course_utils.desk.stubs import asks_in_the_picture
from course_utils.room.slides import __main__, formulas
from course_utils.room.slides.choice import is_preparation, is_shown, pieces, revealed
from course_utils.room.slides.deck import deck
from tests import NOTEBOOKS

LOADING = {"src", "srcset", "href", "data", "poster", "xlink:href"}


class Read:
    """A notebook's deck: what it would load, where its links lead, its pictures' words and its text outside code."""

    def __init__(self, path):
        self.cells, self.html = nbformat.read(path, as_version=4).cells, deck(path)
        page = BeautifulSoup(self.html, "html.parser")
        self.links = [tag["href"] for tag in page("a")]
        self.pictures = [tag["alt"] for tag in page("img")]
        self.loads = [
            tag[name] for tag in page(True) if tag.name != "a" for name in LOADING & tag.attrs.keys()
        ]
        for tag in page(["pre", "code", "script", "style"]):
            tag.decompose()
        self.text = page.get_text()


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def shown(request):
    return Read(request.param)


def test_a_deck_is_one_file_that_loads_nothing(shown):
    assert [load[:60] for load in shown.loads if not load.startswith("data:")] == []
    assert re.findall(r"@import|url\(", shown.html) == []


def test_no_formula_is_left_raw(shown):
    formulas_in_it = sum(cell.source.count("$$") for cell in shown.cells if cell.cell_type == "markdown") / 2
    assert "$" not in shown.text
    assert shown.html.count('class="formula"') == formulas_in_it


def test_a_link_to_a_notebook_leads_to_the_deck_beside(shown):
    inside = {link for link in shown.links if not link.startswith("http")}
    assert inside
    assert inside <= {f"{path.stem}.html" for path in NOTEBOOKS}


def test_every_picture_is_there_and_speaks_for_itself(shown):
    outputs = []
    for cell in shown.cells:
        outputs += [output.data for output in cell.get("outputs", [])]
        outputs += [revealed(cell.source)] if asks_in_the_picture(cell.source) else []
    drawn = [data["text/plain"] for data in outputs if "image/png" in data]
    assert shown.pictures == [text.split(" (A live lab")[0] for text in drawn]
    assert min(map(len, shown.pictures)) > 30


def test_every_solution_is_in_it_and_no_check_that_waits_for_the_reader(shown):
    assert (
        shown.html.count("<h3>Solution</h3>") == sum("<summary>Solution" in c.source for c in shown.cells) > 2
    )
    assert "Not attempted yet" not in shown.html


def test_what_instructors_are_told_of_the_notebook_is_in_its_deck(shown):
    (told,) = re.findall(r'<template id="notes">(.*?)</template>', shown.html, re.DOTALL)
    assert all(f"<strong>{minutes} minutes:</strong>" in told for minutes in (10, 25, 50))
    assert told.count("<h2") == 1


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nfrom torch import nn",
        "my_guess = ...  # bytes",
        'my_bytes = {"relu": ..., "gelu": ...}',
        "def my_decode(bits):\n    return ...",
        "@checked\ndef scores(q):\n    return ...",
    ],
)
def test_imports_and_places_for_answers_are_preparation(source):
    assert is_preparation(source)
    assert not is_shown(source, [], after_prose=True)


def test_a_definition_is_shown_where_the_text_has_just_introduced_it():
    definition = "def double(x):\n    return 2 * x"
    assert is_shown(definition, [], after_prose=True)
    assert not is_shown(definition, [], after_prose=False)


def test_the_room_is_asked_for_a_guess_and_for_an_answer_that_is_checked():
    new = nbformat.v4.new_code_cell
    cells = [
        new("my_bytes = ...  # bytes"),
        new("8 * 4"),
        new("my_days = ..."),
        new("check.days(my_days)"),
    ]
    answer = nbformat.v4.new_markdown_cell("<details><summary>Solution</summary>\n\n3\n\n</details>")
    shown = [("guess", "bytes"), ("turn", ""), ("folded", "### Solution\n\n3")]
    assert list(pieces(nbformat.v4.new_notebook(cells=[*cells, answer]))) == shown


def test_code_that_only_draws_is_hidden_and_its_picture_is_not():
    cell = nbformat.v4.new_code_cell("figures.curve(x)")
    cell.outputs = [nbformat.v4.new_output("execute_result", {"image/png": "", "text/plain": "<Figure>"})]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert [kind for kind, _ in pieces(notebook)] == ["output"]
    cell.source = "x = measured()\nfigures.curve(x)"
    assert [kind for kind, _ in pieces(notebook)] == ["code", "output"]


def test_a_formula_says_its_source_and_keeps_its_size():
    drawn = formulas.svg(r"\frac{1}{2} < 3")
    assert r'aria-label="\frac{1}{2} &lt; 3"' in drawn
    height = re.search(r'viewBox="0 \S+ \S+ (\S+)"', drawn)[1]
    assert 150 < float(height) < 300  # of 100 to the em: two rows of letters at full size


def test_a_notebook_that_is_not_there_is_named_with_those_that_are(capsys):
    assert __main__.main(["09_more.ipynb"]) == 2
    assert "There is no notebook '09_more.ipynb'. There are: 01_floats" in capsys.readouterr().out
