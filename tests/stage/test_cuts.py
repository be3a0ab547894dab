"""The cuts of the notebooks: they run by themselves, take the minutes that they are for, and are what INSTRUCTORS says."""

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
ALL = [(path, minutes) for path in NOTEBOOKS for minutes in cuts.plans(path)]
every_cut = pytest.mark.parametrize(("path", "lecture"), ALL, ids=[f"{p.stem}-{m}" for p, m in ALL])


def cut_of(path, lecture) -> nbformat.NotebookNode:
    return nbformat.from_dict(cuts.cut(read(path), cuts.plan(path, lecture)))


def lines_of(path) -> dict[str, str]:
    """What INSTRUCTORS says of that notebook, by the bold words that begin each line."""
    (part,) = re.findall(rf"^## {path.stem[1]} · .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^- \*\*(.+?)\*\*(.*)$", part, re.MULTILINE))


def test_every_notebook_has_a_cut_for_25_minutes():
    assert {path for path, lecture in ALL if lecture == "25"} == {*NOTEBOOKS}


@pytest.mark.parametrize(
    ("path", "lecture"),
    [one if one[0] in SOME_NOTEBOOKS else pytest.param(*one, marks=thorough) for one in ALL],
    ids=[f"{p.stem}-{m}" for p, m in ALL],
)
def test_a_cut_runs_by_itself_and_shows_what_the_whole_notebook_shows(
    path, lecture, tmp_path, request
):
    notebook = cut_of(path, lecture)
    for cell in notebook.cells:
        if cuts.is_folded(cell):
            cell.metadata.tags = [
                "nbval-ignore-output"
            ]  # nobody sees that a turn was not attempted
    written = tmp_path / path.name
    nbformat.write(notebook, written)
    said = compared(written, request.session)
    assert set(said) == {"."}, [
        cell.source
        for cell, one in zip(minutes.code_cells(notebook.cells), said, strict=True)
        if one == "F"
    ]


@every_cut
def test_a_cut_takes_no_longer_than_its_minutes(path, lecture):
    assert minutes.count_of_cut(path, lecture).minutes <= int(lecture)


@every_cut
def test_a_plan_names_sections_turns_and_cells_that_are_there(path, lecture):
    plan, cells = cuts.plan(path, lecture), list(parted(read(path).cells))
    text = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert {*plan.sections} <= {*re.findall(r"^## (.+)$", text, re.MULTILINE)}
    assert {*map(str, plan.turns)} <= {*re.findall(r"^### Your turn (\d+) ·", text, re.MULTILINE)}
    assert {*plan.without} <= {cell["id"] for cell in cells}
    assert "# Beyond" not in "".join(cell.source for cell in cut_of(path, lecture).cells)


@every_cut
def test_instructors_are_told_of_the_cut_that_there_is(path, lecture):
    plan, line = cuts.plan(path, lecture), lines_of(path)[f"{lecture} minutes:"]
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

SMALL = [
    ("markdown", "# 9 · Small\n\nAn opening."),
    ("code", "import math\nfrom helpers import check"),
    ("markdown", "## One\n\nWords."),
    ("code", "n = 3"),
    ("code", "def twice(n):\n    return 2 * n * offset"),
    (
        "markdown",
        "More.\n\n```python\n## no heading\n```\n\n### Your turn 1 · Half\n\n*easy, 1 minutes.* Do.",
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
    """Of the small notebook's cut: of each cell whether it is folded, and its text."""
    new = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    cells = [new[kind](text, id=f"c{at}") for at, (kind, text) in enumerate(SMALL)]
    found = cuts.cut({"cells": cells, "metadata": {}}, cuts.Plan(**plan))["cells"]
    return [(cuts.is_folded(cell), cell["source"]) for cell in found]


def test_what_a_lecture_needs_of_the_rest_is_run_folded_and_nothing_else():
    (opening, imports, folded, two, last) = small(sections=("Two",))
    assert opening == (False, SMALL[0][1])
    assert imports == (True, SMALL[1][1])
    needed = [
        SMALL[at][1] for at in (4, 6, 7, 9)
    ]  # a function, what it needs, and the turn's answer; not n
    assert folded == (True, "\n\n".join([cuts.WORDS, *needed]))
    assert (two, last) == ((False, "## Two\n\nWords."), (False, SMALL[11][1]))


def test_a_turn_that_is_left_out_goes_with_its_solution_and_the_text_before_it_stays():
    texts = [text for folded, text in small(sections=("One",)) if not folded]
    assert texts[1:] == [SMALL[2][1], "n = 3", SMALL[4][1], "More.\n\n```python\n## no heading\n```", "offset = 5", "After it."]  # fmt: skip
    assert any("### Your turn 1" in text for _, text in small(sections=("One",), turns=(1,)))
    assert "n = 3" not in [text for _, text in small(sections=("One",), without=("c3",))]


def test_a_cut_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(
        ValueError, match=r"no cut of 04_flops for '40' minutes\. There are cuts for: 25"
    ):
        cuts.plan(NOTEBOOKS[3], "40")


@pytest.mark.parametrize("options", [[], ["--results"]])
def test_what_is_presented_is_the_cut_and_the_notebooks_beside_it_are_whole(monkeypatch, options):
    served = {}

    def serve(arguments):
        (root,) = (Path(one.partition("=")[2]) for one in arguments if "root_dir" in one)
        served.update(
            {path.stem: nbformat.read(path, as_version=4) for path in root.glob("*.ipynb")}
        )

    monkeypatch.setattr("jupyterlab.labapp.main", serve)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setenv("CUT", "25")
    assert present.main(["04", *options]) == 0
    ids = [cell.id for cell in served["04_flops"].cells]
    assert ids == [cell.id for cell in cut_of(NOTEBOOKS[3], "25").cells]
    assert len(served["05_gradients"].cells) == len(read(NOTEBOOKS[4]).cells)
    shown = [
        cell
        for cell in minutes.code_cells(served["04_flops"].cells)
        if cell.outputs and not cuts.is_folded(cell)
    ]
    assert len(shown) > 5 if options else all(map(has_spacer, shown))


def test_nonsense_for_its_minutes_gets_a_sentence(monkeypatch, capsys):
    monkeypatch.setenv("CUT", "soon")
    assert present.main(["04"]) == 2
    assert "There are cuts for: 25." in capsys.readouterr().err
