"""What `stage.notebook` finds in a small notebook, in ours, and in strange ones."""

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.stage.notebook import code, prose
from course_utils.stage.notebook.about import About, about, unknown
from course_utils.stage.notebook.code import Figure, Reveal, asks_in, reveals_in
from course_utils.stage.notebook.files import source
from course_utils.stage.notebook.outline import Asked, Section, Turn, outline, parted
from course_utils.stage.notebook.prose import Question
from tests import NOTEBOOKS
from tests.helpers.notebooks import code as code_of
from tests.helpers.notebooks import prose as prose_of
from tests.helpers.notebooks import read

SMALL = {
    "opening": "# 9 · Small: a notebook",
    "imports": "from course_utils.chapters.flops import check\nfrom course_utils import labs",
    "words": "Words.\n\n## One\n\nA step takes 3 s. How many days do a million take?",
    "guess": 'my_days = ask("a million steps", "days")',
    "reveal": "reveal(my_days, predicted=34.7, measured=3e6 / 86_400)",
    "drawn": 'labs.figure("sum", "fmt", "shown", power=3)',
    "choice": 'my_word = ask("what becomes of it", among=("shown", "lost"))',
    "chosen": 'reveal(my_word, measured="lost")',
    "turn": "The rule.\n\n### Your turn 1 · Half\n\n*easy, 3 minutes.* Return the half.",
    "stub": "def my_half(n):\n    return ...",
    "check": "half = check.half(my_half).or_ours",
    "folded": f"{prose.SOLUTION}\n```python\ndef my_half(n):\n    return n / 2\n```\n</details>",
    "lab": 'lab = labs.einsum_lab()\nlab.preset("which order?")\nlab',
    "beyond": "# Beyond\n\n```\n## no heading\n```",
    "more": "## More of it\n\n*12 minutes.* Text.",
    "dict": 'my_bytes = ask(["relu", "gelu"], "bytes")',
    "last": 'Comparison({"relu": 1, "gelu": 2}, measured, guess=my_bytes)',
}
TEXTS = {"opening", "words", "turn", "folded", "beyond", "more"}


def small() -> nbformat.NotebookNode:
    cells = []
    for name, text in SMALL.items():
        new = nbformat.v4.new_markdown_cell if name in TEXTS else nbformat.v4.new_code_cell
        cells.append(new(text, id=name))
    return nbformat.v4.new_notebook(cells=cells)


@pytest.fixture(scope="module")
def parts():
    """What each cell of the small notebook contains, by its id."""
    return {part.id: part for part in outline(small()).parts}


def test_sections_and_turns_are_found_with_what_they_state():
    known = outline(small())
    assert known.heading == "9 · Small: a notebook"
    assert known.sections == (
        Section("One", "words"),
        Section("Beyond", "beyond", is_beyond=True),
        Section("More of it", "more", 12, is_beyond=True),
    )
    text = SMALL["turn"].removeprefix("The rule.\n\n")
    solution = "def my_half(n):\n    return n / 2"
    cells = ("turn", "stub", "check", "folded")
    turn = Turn(
        number=1,
        title="Half",
        check="flops.half",
        cells=cells,
        difficulty="easy",
        minutes=3,
        text=text,
        solution=solution,
    )
    assert known.turns == (turn,)


def test_guesses_are_found_as_they_are_asked_and_where_they_are_revealed(parts):
    asked = {name: part.asked for name, part in parts.items() if part.is_guess}
    words = "Words.\n\nA step takes 3 s. How many days do a million take?"
    question = Question(words, "days", item="a million steps")
    assert asked["guess"] == (Asked("my_days", (question,)),)
    (choice,) = asked["choice"]
    assert choice.questions == (Question(words, "", ("shown", "lost"), "what becomes of it"),)
    (several,) = asked["dict"]
    assert [question.item for question in several.questions] == ["relu", "gelu"]
    waiting = [part.id for part in parts.values() if part.waits_for_a_guess]
    assert waiting == ["guess", "drawn", "choice", "dict"]
    assert parts["reveal"].reveals == (Reveal("my_days"),)
    assert parts["chosen"].reveals == (Reveal("my_word"),)
    assert outline(small()).revealed("my_bytes") == Reveal("my_bytes")
    assert outline(small()).revealed("my_own") is None


def test_an_answer_is_what_the_next_cell_checks_and_no_guess(parts):
    assert [part.id for part in parts.values() if part.is_answer] == ["stub"]
    of_the_turn = [part.id for part in parts.values() if part.turn == 1]
    assert of_the_turn == ["turn", "stub", "check", "folded"]
    assert [part.id for part in parts.values() if part.is_solution] == ["folded"]


def test_a_half_written_function_is_an_answer_too():
    begun = "def my_sum(n):\n    total = n\n    total += n\n    return ..."
    cells = [nbformat.v4.new_code_cell(text) for text in (begun, "check.total(my_sum)")]
    assert [part.is_answer for part in outline({"cells": cells}).parts] == [True, False]


def test_labs_and_figures_are_found_with_how_they_begin(parts):
    figures = {name: part.figure for name, part in parts.items() if part.figure}
    assert figures == {
        "drawn": Figure("sum", ("fmt", "shown"), {"power": 3}),
        "lab": Figure("einsum", presets=("which order?",), is_whole=True),
    }


def test_a_cell_is_in_the_section_in_which_it_begins(parts):
    sections = {name: (part.section, part.is_beyond) for name, part in parts.items()}
    assert sections["words"] == ("", False)
    assert sections["lab"] == ("One", False)
    assert sections["beyond"] == ("Beyond", True)
    assert sections["last"] == ("More of it", True)


def test_divided_at_its_headings_a_notebook_has_the_same_text_and_the_same_turns():
    cells = list(parted(small().cells))
    assert [cell["id"] for cell in cells if cell["id"] not in SMALL] == ["words-1", "turn-1"]
    text = "".join(cell["source"] for cell in cells)
    whole = "".join(SMALL.values())
    assert without_blanks(text) == without_blanks(whole)
    (turn,) = outline({"cells": cells}).turns
    assert turn.cells == ("turn-1", "stub", "check", "folded")


def without_blanks(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "= no Python",
        "%time 3",
        "\x00",
        "x[0] = ...",
        "a, b = ..., ...",
        "labs.figure(*names)",
        "labs.figure(name, power=3)",
        "labs.figure()",
        "labs.show()",
        "my_days = ask()",
        "my_days = ask(name, unit)",
        "my_days = ask(3, 'days')",
        "my_days = ask('a step', 3)",
        "my_days = ask([1, 2])",
        "my_days = ask('a step', among=3)",
        "my_days = ask({[]: 1})",
        "my_days = ask(*names, **more)",
        "my_days, = ask('a step', 'days')",
        'my_days = other("a million steps", "days")',
        "Comparison(guess=3, **more)",
        "Comparison(guess={**mine})",
        "lab.preset(name)",
    ],
)
def test_what_a_reader_may_write_is_neither_a_guess_nor_a_figure_and_no_error(text):
    (part,) = outline({"cells": [nbformat.v4.new_code_cell(text)]}).parts
    assert part.asked == ()
    assert not part.is_guess
    assert part.figure is None
    assert part.reveals == ()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_in_each_notebook_it_finds_as_many_things_as_another_way_of_counting(path):
    known = outline(read(path))
    text = "\n".join(prose_of(path))
    assert len(known.turns) == text.count("### Your turn ") == text.count(prose.SOLUTION)
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    found = [section.title for section in known.sections]
    assert [title for title in found if title != "Beyond"] == titles

    sources = [cell.source for cell in code_of(path)]
    with_figure = [source for source in sources if "labs.figure(" in source]
    with_lab = [source for source in sources if "_lab()" in source]
    with_drawn_guess = [source for source in with_figure if '"shown"' in source]
    with_reveal = [source for source in sources if "guess=" in source or "reveal(" in source]
    figures = [figure for figure in known.figures if not figure.is_whole]
    assert len(figures) == len(with_figure)
    assert len(known.figures) - len(figures) == len(with_lab)
    assert sum(figure.asks for figure in figures) == len(with_drawn_guess)
    assert sum(len(part.reveals) for part in known.parts) == len(with_reveal)
    assert len(known.guesses) == len(with_reveal)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_guess_is_asked_in_plain_words_by_a_name_of_its_own_and_revealed_once_below(path):
    names = []
    open_asks = {}
    for part in outline(read(path)).parts:
        if not part.is_code:
            continue
        asks = asks_in(part.text)
        assert len(asks) == part.text.count("ask("), "only plain words and numbers can be read"
        for reveal in part.reveals:
            open_asks.pop(reveal.name)  # KeyError: not asked above, or revealed before
        for ask in asks:
            assert ask.name not in open_asks
            assert not (ask.unit and ask.among), "an option has no unit"
            open_asks[ask.name] = ask
            names += ask.questions
    assert open_asks == {}, "they are revealed nowhere"
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_question_is_a_row_of_the_table_that_reveals_it(path):
    asked = {}
    for cell in read(path)["cells"]:
        if cell["cell_type"] != "code":
            continue
        for reveal in reveals_in(source(cell)):
            output = cell["outputs"][-1]["data"]["text/plain"]
            rows = "".join(output).splitlines()
            for question in asked.pop(reveal.name).questions:
                assert any(row.startswith(f"{question}  ") for row in rows), question
        asked |= {ask.name: ask for ask in asks_in(source(cell))}


# What a notebook says of itself.


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_without_our_metadata_is_known_by_its_heading_and_its_name(path):
    known = about(read(path), path.name)
    bare = about({**read(path), "metadata": {}}, path.name)
    assert bare == About(known.title, chapter=known.chapter)
    assert bare.minutes_and_needs == ""
    assert unknown(path.name).chapter == known.chapter
    assert unknown(path.name).title.lower() == known.title.lower()


single_values = st.none() | st.booleans() | st.integers() | st.text()
json_values = st.recursive(single_values, lambda inner: st.lists(inner, max_size=3))
said = st.dictionaries(st.sampled_from([*About.__dataclass_fields__, "other"]), json_values)


@given(json_values | said)
def test_whatever_stands_in_the_metadata_the_notebook_has_a_title(course):
    notebook = {"cells": small().cells, "metadata": {"course": course}}
    known = about(notebook, "09_small.ipynb")
    assert known.title == "Small" or known.title == course["title"]
    assert isinstance(known.minutes_and_needs, str)
    assert len(outline(notebook).turns) == 1


def test_the_chapter_of_a_copy_from_before_the_chapters_is_known_by_its_imports():
    cells = [nbformat.v4.new_code_cell("from course_utils.checks import flops as check")]
    cells += [cell for cell in small().cells if cell.id in ("turn", "stub", "check", "folded")]
    (turn,) = outline({"cells": cells, "metadata": {}}).turns
    assert turn.check == "flops.half"


def test_a_blank_has_the_comment_of_its_last_line_alone():
    assert code.blanks_in("my_days = ...\n# not this")[0].comment == ""
    (blank,) = code.blanks_in('my_days = {"a": ...}  # in days')
    assert blank == code.Blank("my_days", ("a",), "in days")
