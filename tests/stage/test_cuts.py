"""The cuts of the notebooks run by themselves and keep to their minutes, as INSTRUCTORS.md says."""

import os
import re
from pathlib import Path

import nbformat
import pytest

from course_utils.stage.notebook.outline import outline, parted
from course_utils.stage.present import cuts
from course_utils.stage.present import server as present
from course_utils.stage.workspace.spacers import has_spacer
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read
from tests.helpers.thorough import SOME_NOTEBOOKS, thorough
from tests.project.test_running import compared
from tests.tools import minutes

PAGE = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
BOLD = re.compile(r"\*\*(.+?)\*\*")
ALL = [(path, lecture) for path in NOTEBOOKS for lecture in cuts.plans(path)]
IDS = [f"{path.stem}-{lecture}" for path, lecture in ALL]
every_cut = pytest.mark.parametrize(("path", "lecture"), ALL, ids=IDS)
SOME = [cut if cut[0] in SOME_NOTEBOOKS else pytest.param(*cut, marks=thorough) for cut in ALL]


def cut_of(path, lecture) -> nbformat.NotebookNode:
    return nbformat.from_dict(cuts.cut(read(path), cuts.plan(path, lecture)))


def lines_of(path) -> dict[str, str]:
    """What INSTRUCTORS says of that notebook, by the bold words that begin each line."""
    (part,) = re.findall(rf"^## {path.stem[1]} · .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^- \*\*(.+?)\*\*(.*)$", part, re.MULTILINE))


def test_every_notebook_has_a_cut_for_25_minutes():
    assert {path for path, lecture in ALL if lecture == "25"} == {*NOTEBOOKS}


@pytest.mark.parametrize(("path", "lecture"), SOME, ids=IDS)
def test_a_cut_runs_by_itself_and_shows_what_the_whole_notebook_shows(
    path, lecture, tmp_path, request
):
    notebook = cut_of(path, lecture)
    for cell in notebook.cells:
        if cuts.is_folded(cell):
            # Nobody sees there that a turn was not attempted.
            cell.metadata.tags = ["nbval-ignore-output"]
    written = tmp_path / path.name
    nbformat.write(notebook, written)
    outcomes = compared(written, request.session)
    tried = zip(minutes.code_cells(notebook.cells), outcomes, strict=True)
    failed = [cell.source for cell, outcome in tried if outcome == "F"]
    assert failed == []
    assert set(outcomes) == {"."}


@every_cut
def test_a_cut_takes_no_longer_than_its_minutes(path, lecture):
    assert minutes.count_of_cut(path, lecture).minutes <= int(lecture)


@every_cut
def test_a_plan_names_sections_turns_and_cells_that_are_there(path, lecture):
    plan = cuts.plan(path, lecture)
    cells = list(parted(read(path).cells))
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert {*plan.sections} <= {*re.findall(r"^## (.+)$", text, re.MULTILINE)}
    assert {*map(str, plan.turns)} <= {*re.findall(r"^### Your turn (\d+) ·", text, re.MULTILINE)}
    assert {*plan.without} <= {cell["id"] for cell in cells}
    assert "# Beyond" not in "".join(cell.source for cell in cut_of(path, lecture).cells)


@every_cut
def test_instructors_are_told_of_the_cut_that_there_is(path, lecture):
    plan = cuts.plan(path, lecture)
    line = lines_of(path)[f"{lecture} minutes:"]
    assert {*BOLD.findall(line)} | {"Takeaways"} == {*plan.sections}
    assert {*re.findall(r"your turn (\d+)", line)} == {*map(str, plan.turns)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_instructors_are_told_the_minutes_of_each_section(path):
    assert f"- {minutes.line(path)}\n" in PAGE


@every_cut
def test_a_guess_of_the_notebook_is_a_guess_in_its_cut(path, lecture):
    def guesses(notebook):
        return [part.id for part in outline(notebook).parts if part.waits_for_a_guess]

    notebook = cut_of(path, lecture)
    kept = {cell.id for cell in notebook.cells}
    assert guesses(notebook) == [name for name in guesses(read(path)) if name in kept]
    assert len(guesses(notebook)) >= 2


# On a small notebook.

BLOCK = "More.\n\n```python\n## no heading\n```"
SMALL = [
    ("markdown", "# 9 · Small\n\nAn opening."),
    ("code", "import math\nfrom helpers import check"),
    ("markdown", "## One\n\nWords."),
    ("code", "n = 3"),
    ("code", "def twice(n):\n    return 2 * n * offset"),
    (
        "markdown",
        f"{BLOCK}\n\n### Your turn 1 · Half\n\n*easy, 1 minutes.* Do.",
    ),
    ("code", "my_half = ..."),
    ("code", "half = check.half(my_half).or_ours"),
    ("markdown", "<details><summary>Solution</summary>1</details>"),
    ("code", "offset = 5"),
    ("markdown", "After it.\n\n## Two\n\nWords."),
    ("code", "half + twice(4)"),
    ("markdown", "# Beyond"),
    ("code", "n"),
]


def small(**plan) -> list[tuple[bool, str]]:
    """The small notebook's cut: of each cell, whether it is folded, and its text."""
    new = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    cells = [new[kind](text, id=f"c{at}") for at, (kind, text) in enumerate(SMALL)]
    found = cuts.cut({"cells": cells, "metadata": {}}, cuts.Plan(**plan))["cells"]
    return [(cuts.is_folded(cell), cell["source"]) for cell in found]


def test_what_a_lecture_needs_of_the_rest_is_run_folded_and_nothing_else():
    opening, imports, folded, two, last = small(sections=("Two",))
    texts = [text for _, text in SMALL]
    assert opening == (False, texts[0])
    assert imports == (True, texts[1])
    function = texts[4]
    answer = texts[6:8]
    what_the_function_needs = texts[9]  # and not n
    needed = [cuts.WORDS, function, *answer, what_the_function_needs]
    assert folded == (True, "\n\n".join(needed))
    assert two == (False, "## Two\n\nWords.")
    assert last == (False, texts[11])


def test_a_turn_that_is_left_out_goes_with_its_solution_and_the_text_before_it_stays():
    texts = [text for folded, text in small(sections=("One",)) if not folded]
    _, heading = SMALL[2]
    _, function = SMALL[4]
    assert texts[1:] == [heading, "n = 3", function, BLOCK, "offset = 5", "After it."]
    assert any("### Your turn 1" in text for _, text in small(sections=("One",), turns=(1,)))
    assert "n = 3" not in [text for _, text in small(sections=("One",), without=("c3",))]


def test_a_cut_that_is_not_there_is_named_with_those_that_are():
    words = "no cut of 04_flops for '40' minutes. There are cuts for: 25"
    with pytest.raises(ValueError, match=re.escape(words)):
        cuts.plan(NOTEBOOKS[3], "40")


@pytest.mark.parametrize("options", [[], ["--results"]])
def test_what_is_presented_is_the_cut_and_the_notebooks_beside_it_are_whole(monkeypatch, options):
    served = {}

    def serve(arguments):
        (option,) = (argument for argument in arguments if "root_dir" in argument)
        _, _, root = option.partition("=")
        for path in Path(root).glob("*.ipynb"):
            served[path.stem] = nbformat.read(path, as_version=4)

    monkeypatch.setattr("jupyterlab.labapp.main", serve)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setenv("CUT", "25")
    assert present.main(["04", *options]) == 0
    ids = [cell.id for cell in served["04_flops"].cells]
    assert ids == [cell.id for cell in cut_of(NOTEBOOKS[3], "25").cells]
    assert len(served["05_gradients"].cells) == len(read(NOTEBOOKS[4]).cells)
    code = minutes.code_cells(served["04_flops"].cells)
    shown = [cell for cell in code if cell.outputs and not cuts.is_folded(cell)]
    if options:
        assert len(shown) > 5
    else:
        assert all(map(has_spacer, shown))


def test_nonsense_for_its_minutes_gets_a_sentence(monkeypatch, capsys):
    monkeypatch.setenv("CUT", "soon")
    assert present.main(["04"]) == 2
    assert "There are cuts for: 25." in capsys.readouterr().err
