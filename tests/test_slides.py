"""The decks: what is chosen from a notebook, and that a deck needs nothing but itself."""

import re
from html.parser import HTMLParser

import nbformat
import pytest

from course_utils.room.slides import __main__, formulas
from course_utils.room.slides.choice import is_preparation, is_shown, pieces
from course_utils.room.slides.deck import deck
from tests import NOTEBOOKS

DECKS = {path.stem: deck(path) for path in NOTEBOOKS}
LOADING = {"src", "srcset", "href", "data", "poster", "xlink:href"}


class Read(HTMLParser):
    """What a deck would load, where its links lead, its pictures' words and its text outside code."""

    def __init__(self, html):
        super().__init__()
        self.loads, self.links, self.pictures, self.text, self.inside = [], [], [], "", []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "a":
            self.links.append(attrs["href"])
        else:
            self.loads += [attrs[name] for name in LOADING & set(attrs)]
        if tag == "img":
            self.pictures.append(attrs["alt"])
        if tag in ("pre", "code", "script", "style"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self.inside:
            self.inside.remove(tag)

    def handle_data(self, data):
        self.text += "" if self.inside else data


READ = {name: Read(html) for name, html in DECKS.items()}


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_is_one_file_that_loads_nothing(name):
    assert [load[:60] for load in READ[name].loads if not load.startswith("data:")] == []
    assert re.findall(r"@import|url\(", DECKS[name]) == []


@pytest.mark.parametrize("name", DECKS)
def test_no_formula_is_left_raw(name):
    notebook = nbformat.read(next(p for p in NOTEBOOKS if p.stem == name), as_version=4)
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert "$" not in READ[name].text
    assert DECKS[name].count('class="formula"') == sum(source.count("$$") for source in sources) / 2


@pytest.mark.parametrize("name", DECKS)
def test_a_link_to_a_notebook_leads_to_the_deck_beside(name):
    inside = {link for link in READ[name].links if not link.startswith("http")}
    assert inside
    assert inside <= {f"{other}.html" for other in DECKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_picture_is_there_and_speaks_for_itself(path):
    outputs = [
        output.data for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])
    ]
    drawn = [data["text/plain"] for data in outputs if "image/png" in data]
    told = READ[path.stem].pictures
    assert told == [text.split(" (A live lab")[0] for text in drawn]
    assert min(map(len, told)) > 30


@pytest.mark.parametrize("name", DECKS)
def test_solutions_and_checks_that_wait_for_the_reader_are_left_out(name):
    assert "Solution" not in READ[name].text
    assert "Not attempted yet" not in DECKS[name]


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


def test_what_only_draws_is_hidden_and_its_picture_is_not():
    cell = nbformat.v4.new_code_cell("figures.curve(x)")
    cell.outputs = [nbformat.v4.new_output("execute_result", {"image/png": "", "text/plain": "<Figure>"})]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    assert [piece.kind for piece in pieces(notebook)] == ["output"]
    cell.source = "x = measured()\nfigures.curve(x)"
    assert [piece.kind for piece in pieces(notebook)] == ["code", "output"]


def test_a_formula_says_its_source_and_keeps_its_size():
    drawn = formulas.svg(r"\frac{1}{2} < 3")
    assert r'aria-label="\frac{1}{2} &lt; 3"' in drawn
    height = re.search(r'viewBox="0 \S+ \S+ (\S+)"', drawn)[1]
    assert (
        150 < float(height) < 300
    )  # of 100 to the em: two rows of letters at full size, one above the other


def test_a_notebook_that_is_not_there_is_named_with_those_that_are(capsys):
    assert __main__.main(["09_more.ipynb"]) == 2
    assert "No notebook 09_more.ipynb. There are: 01_floats.ipynb" in capsys.readouterr().out
