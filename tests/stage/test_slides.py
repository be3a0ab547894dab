"""The decks: what is chosen from a notebook, and that a deck needs nothing but itself."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from course_utils.stage.notebook.code import figure_in
from course_utils.stage.notebook.prose import for_a_still
from course_utils.stage.present import cuts
from course_utils.stage.slides import __main__, formulas
from course_utils.stage.slides.choice import is_preparation, pieces, shown_code
from course_utils.stage.slides.deck import deck_of_cut, decks
from tests import NOTEBOOKS

LOADING = {"src", "srcset", "href", "data", "poster", "xlink:href"}


class Read:
    """A notebook's decks, and what a reader of their HTML finds in them.

    That is what they would load, where links lead, code and results, pictures' words, other text.
    """

    def __init__(self, path):
        self.path = path
        self.cells = nbformat.read(path, as_version=4).cells
        self.files = decks(path)
        self.html = "".join(self.files.values())
        page = BeautifulSoup(self.html, "html.parser")
        self.links = [tag["href"] for tag in page("a")]
        self.pictures = [tag["alt"] for tag in page("img")]
        self.loads = []
        for tag in page(True):
            if tag.name != "a":
                self.loads += [tag[name] for name in LOADING & tag.attrs.keys()]
        self.code = [tag.get_text() for tag in page("pre", class_="code")]
        self.results = [tag.get_text() for tag in page("pre", class_="result")]
        self.emphasised = {tag.get_text() for tag in page("em")}
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
    text = "".join(cell.source for cell in shown.cells if cell.cell_type == "markdown")
    assert "$" not in shown.text
    assert shown.html.count('class="formula"') == text.count("$$") / 2


def test_a_link_to_a_notebook_leads_to_the_deck_beside(shown):
    inside = {link for link in shown.links if not link.startswith("http")}
    assert inside
    decks_beside = {f"{path.stem}.html" for path in NOTEBOOKS}
    assert inside <= decks_beside | {f"{shown.path.stem}_beyond.html"}


def test_nothing_leads_to_the_contents_which_no_deck_has(shown):
    assert "The series: " in shown.text
    assert "The series: contents" not in shown.text
    assert "to the contents" not in shown.text


def test_every_picture_is_there_and_speaks_for_itself(shown):
    pictures = 0
    for cell in shown.cells:
        pictures += sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
        figure = figure_in(cell.source) if cell.cell_type == "code" else None
        if figure and figure.asks:
            pictures += 1  # it is there as a question, and as its answer
    assert len(shown.pictures) == pictures
    assert min(map(len, shown.pictures)) > 30
    assert "live lab" not in " ".join(shown.pictures)


def test_no_plumbing_is_on_a_slide(shown):
    assert len(shown.code) > 5
    plumbing = r"guess=|^(?:import|from) |\b(?:Comparison|Choice|Table|side_by_side)\(|labs\."
    for code in shown.code:
        assert not re.search(plumbing, code, re.MULTILINE), code
    long_number = r"\d\.\d{10,}|(?<![\w.-])\d{6,}(?!\])"
    for result in shown.results:
        assert not re.search(long_number, result), result


def test_nobody_is_told_to_move_a_picture_that_stands_still(shown):
    assert shown.emphasised & {"Show", "Fit", "play", "Show the best plan"} == set()


def test_what_goes_beyond_has_a_deck_of_its_own_to_which_the_end_of_the_main_path_leads(shown):
    main = shown.files[f"{shown.path.stem}.html"]
    beyond = shown.files[f"{shown.path.stem}_beyond.html"]
    text = "\n".join(cell.source for cell in shown.cells)
    before, _, after = text.partition("\n# Beyond")
    for part, mine, other in ((before, main, beyond), (after, beyond, main)):
        for title in re.findall(r"^## (.+)$", part, re.MULTILINE):
            heading = f">{title.split('`')[0].split('&')[0].split('*')[0]}"
            assert f"<h2{heading}" in mine
            assert f"<h2{heading}" not in other
    assert main.rindex("<h2>Beyond</h2>") > main.rindex("<h2>Takeaways</h2>")
    assert f'<a href="{shown.path.stem}_beyond.html">' in main


def test_the_deck_of_a_lecture_has_its_sections_alone_and_asks_its_guesses(shown):
    ((name, html),) = deck_of_cut(shown.path, "25").items()
    assert name == f"{shown.path.stem}_25.html"
    plan = cuts.plan(shown.path, "25")
    titles = BeautifulSoup(html, "html.parser")("h2")
    assert [tag.get_text() for tag in titles if tag.parent.name == "div"] == [*plan.sections]
    asked = html.count('class="guess">Your guess')
    assert asked >= 2
    assert html.count('class="guess">Your answer') == len(plan.turns)
    assert html.count("<h3>Solution</h3>") == len(plan.turns)
    assert 'data-minutes="{}"' in html  # of a whole section, and here it is none


def test_every_solution_is_in_it_and_no_check_that_waits_for_the_reader(shown):
    solutions = sum("<summary>Solution" in cell.source for cell in shown.cells)
    assert solutions > 2
    assert shown.html.count("<h3>Solution</h3>") == solutions
    assert "Not attempted yet" not in shown.html


def test_what_instructors_are_told_of_the_notebook_is_in_its_deck(shown):
    for html in shown.files.values():
        (told,) = re.findall(r'<template id="notes"[^>]*>(.*?)</template>', html, re.DOTALL)
        assert all(f"<strong>{minutes} minutes:</strong>" in told for minutes in (10, 25, 50))
        assert told.count("<h2") == 1


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nfrom torch import nn",
        "my_days = ...  # days",
        'my_bytes = {"relu": ..., "gelu": ...}',
        "def my_decode(bits):\n    return ...",
        "@checked\ndef scores(q):\n    return ...",
    ],
)
def test_imports_and_places_for_answers_are_preparation(source):
    assert is_preparation(source)
    assert shown_code(source, [], after_prose=True) == ""


def test_a_definition_is_shown_where_the_text_has_just_introduced_it():
    definition = "def double(x):\n    return 2 * x"
    assert shown_code(f"n = 3\n\n\n{definition}\n\n\ndouble(n)", [], after_prose=True) == definition
    assert shown_code(definition, [], after_prose=False) == ""


def test_the_room_is_asked_for_a_guess_and_for_an_answer_that_is_checked():
    new = nbformat.v4.new_code_cell
    cells = [
        new('my_bytes = ask("eight numbers in fp32", "bytes")'),
        new("8 * 4"),
        new('my_format = ask("finer steps", among=("fp16", "bf16"))'),
        new('my_counts = ask(["relu", "gelu"], "bytes")'),
        new("my_days = ..."),
        new("check.days(my_days)"),
    ]
    folded = "<details><summary>Solution</summary>\n\n3\n\n</details>"
    answer = nbformat.v4.new_markdown_cell(folded)
    shown = [
        ("guess", "bytes"),
        ("guess", "fp16, bf16"),
        ("guess", "relu and gelu, in bytes"),
        ("turn", ""),
        ("folded", "### Solution\n\n3"),
    ]
    assert list(pieces(nbformat.v4.new_notebook(cells=[*cells, answer]))) == shown


def test_a_table_or_a_picture_stands_for_the_code_that_makes_it_and_a_result_beside_its_own():
    cell = nbformat.v4.new_code_cell("import math\nx = 3\nmath.sqrt(x)")
    notebook = nbformat.v4.new_notebook(cells=[cell])

    def shown(**data):
        data = {kind.replace("_", "/"): said for kind, said in data.items()}
        cell.outputs = [nbformat.v4.new_output("execute_result", data)]
        return list(pieces(notebook))

    assert [kind for kind, _ in shown(image_png="", text_plain="<Figure>")] == ["output"]
    assert [kind for kind, _ in shown(text_html="<table>", text_plain="a table")] == ["output"]
    result = {"text/plain": "1.732"}
    assert shown(text_plain="1.7320508075688772") == [
        ("code", "x = 3\nmath.sqrt(x)"),
        ("output", result),
    ]
    cell.source = "x"
    assert shown(text_plain="1.7320508075688772") == [("output", result)]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (
            "Where does it stop? Set a mark for each: drag it, or Tab to it. "
            "Then press *Show*, and play.",
            "Where does it stop?",
        ),
        (
            "bf16 is half of fp32. (Type 0.1: none has it. A tenth is no sum.) "
            "A float is a number.",
            "bf16 is half of fp32. A float is a number.",
        ),
        (
            "It is a bound.\n\nMove c until it fits. Then press *Fit*. "
            "Choose a GPU, and *Fit* again: which moves?",
            "It is a bound.",
        ),
        (
            "Look.\n\n- *does it fit?*: move one control.\n- a list\n"
            "- Raise *sequence*: what then?",
            "Look.\n\n- a list",
        ),
    ],
)
def test_beside_a_lab_a_slide_leaves_out_how_it_is_moved(said, left):
    assert for_a_still(said) == left


def test_beside_a_lab_a_slide_leaves_out_nothing_else():
    said = "Momentum moves faster. Players drag on. Now choose (4, 3): all steps are 2 long."
    assert for_a_still(said) == said


def test_a_formula_says_its_source_and_keeps_its_size():
    drawn = formulas.svg(r"\frac{1}{2} < 3")
    assert r'aria-label="\frac{1}{2} &lt; 3"' in drawn
    height = re.search(r'viewBox="0 \S+ \S+ (\S+)"', drawn)[1]
    assert 150 < float(height) < 300  # of 100 to the em: two rows of letters at full size


def test_a_notebook_that_is_not_there_is_named_with_those_that_are(capsys):
    assert __main__.main(["09_more.ipynb"]) == 2
    assert "There is no notebook '09_more.ipynb'. There are: 01_floats" in capsys.readouterr().out
