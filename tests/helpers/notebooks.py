"""The notebooks as data, for the tests that read them."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from course_utils.core.record import write_whole
from course_utils.stage.notebook.files import WIDGET
from course_utils.stage.notebook.outline import Turn, turns
from tests import NOTEBOOKS

if TYPE_CHECKING:  # the tools that count and compare never judge, and so start without the checks
    from course_utils.engine.judging.verdict import Verdict

PIXEL = (  # a PNG of one pixel, in base64
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Exercise:
    """An exercise as a notebook has it: the stub, the check, the folded solution."""

    notebook: Path
    number: str
    title: str
    imports: str
    stub: str
    check: str
    solution: str

    @property
    def name(self) -> str:
        return f"{self.notebook.stem}: {self.title}"

    @property
    def wants_function(self) -> bool:
        """Whether the reader writes a function, and not a value."""
        return "def " in self.stub

    @property
    def call(self) -> str:
        """The check's call alone, without the name and the attribute that take its verdict."""
        _, _, called = self.check.partition(" = ")
        return called.removesuffix(".or_ours").removesuffix(".kept") or self.check

    @functools.cached_property
    def judge(self) -> "Callable[[object], Verdict]":
        """The function that the check's call calls, such as `check.days`."""
        names: dict[str, object] = {}
        exec(self.imports, names)
        function, _, _ = self.call.partition("(")
        return eval(function, names)

    def verdict(self, answer: str) -> "Verdict":
        """Return the check's verdict on that answer, with all cells run as the reader runs them."""
        names: dict[str, object] = {}
        exec(self.imports, names)
        exec(answer, names)
        return eval(self.call, names)


@functools.cache
def read(path: Path) -> nbformat.NotebookNode:
    """Return a notebook of the course as it is stored.

    It is shared: change a copy, not this object.
    """
    return nbformat.read(path, as_version=4)


def rewrite(path: Path, notebook: nbformat.NotebookNode) -> bool:
    """Write the file anew, whole or not at all, and say whether its text has changed."""
    after = f"{nbformat.writes(notebook)}\n".encode()
    changes = after != path.read_bytes()
    if changes:
        write_whole(path, after)
    return changes


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path: Path) -> list[str]:
    """Return the text of the markdown cells."""
    return [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]


def exercises() -> list[Exercise]:
    """Return the exercises of all notebooks."""
    return [exercise for path in NOTEBOOKS for exercise in exercises_of(path)]


def exercises_of(path: Path) -> list[Exercise]:
    """Return a notebook's exercises: each is a heading, a stub, a check and a folded solution."""
    texts = {cell.id: cell.source for cell in read(path).cells}
    imports = code(path)[0].source
    return [_exercise(path, imports, texts, turn) for turn in turns(read(path))]


def _exercise(path: Path, imports: str, texts: dict[str, str], turn: Turn) -> Exercise:
    """Return the turn as an Exercise, and check that it has a solution and a difficulty.

    `texts` has the notebook's cells by their ids.
    """
    _, stub, check, _ = (texts[cell_id] for cell_id in turn.cells)
    named = f"{path.name}, your turn {turn.number}"
    assert turn.solution, f"{named} has no folded solution behind its check"
    assert turn.difficulty in ("easy", "medium", "hard"), f"{named} does not say how hard it is"
    return Exercise(path, str(turn.number), turn.title, imports, stub, check, turn.solution)


def short() -> nbformat.NotebookNode:
    """Return a notebook that stands for notebook 4 in tests, because the real one takes too long.

    It has a result, a guess, a lab's picture and two turns, and is stored as the course stores its
    own notebooks.
    """
    cells = [
        *_opening_cells(),
        *_turn_cells(1, "alone_s", "square_alone"),
        *_turn_cells(2, "really", "name_of_f32"),
    ]
    code_cells = [cell for cell in cells if cell.cell_type == "code"]
    for count, cell in enumerate(code_cells, 1):
        cell.execution_count = count
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = read(NOTEBOOKS[3]).metadata.course
    metadata = {"course": about, "kernelspec": kernel}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _opening_cells() -> list[nbformat.NotebookNode]:
    """Return the cells of the short notebook down to its first turn."""
    new = nbformat.v4
    result = new.new_output("execute_result", {"text/plain": "42"}, execution_count=2)
    view = {WIDGET: {"model_id": "0"}, "text/plain": "Your guess: 6 × 7?"}
    field = new.new_output("display_data", view)
    lab = {WIDGET: {"model_id": "1"}, "image/png": PIXEL, "text/plain": "A lab."}
    return [
        new.new_markdown_cell(
            "# 4 · FLOPs\n\n"
            "See [the glossary](GLOSSARY.md), or the [contents](../README.md#the-notebooks)."
        ),
        new.new_code_cell(
            "from course_utils import ask, reveal\nfrom course_utils.chapters.flops import check"
        ),
        new.new_code_cell("6 * 7", outputs=[result]),
        new.new_code_cell('my_product = ask("6 × 7")', outputs=[field]),
        new.new_code_cell("reveal(my_product, predicted=42, measured=6 * 7)"),
        new.new_code_cell("'this was a lab'", outputs=[new.new_output("display_data", lab)]),
    ]


def _turn_cells(number: int, answer: str, check: str) -> list[nbformat.NotebookNode]:
    """Return a turn's four cells. `answer` is the name that the reader sets."""
    new = nbformat.v4
    return [
        new.new_markdown_cell(
            f"### Your turn {number} · The {check}\n\n*easy, 3 minutes.* How many?"
        ),
        new.new_code_cell(f"{answer} = ..."),
        new.new_code_cell(f"check.{check}({answer})"),
        new.new_markdown_cell(
            "<details><summary>Solution</summary>\n\n```python\n1\n```\n\n</details>"
        ),
    ]
