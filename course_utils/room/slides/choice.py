"""What of a notebook is for the room: all of its text, and the code that says something."""

import ast
import base64
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from course_utils import labs
from course_utils.desk.notebooks import WIDGET
from course_utils.desk.stubs import asks_in_the_picture, is_guess, is_stub, is_turn
from course_utils.labs.draw import still
from course_utils.labs.session import Session

FOLDED = re.compile(r"<details><summary>(.*?)</summary>(.*?)</details>", re.DOTALL)
NOT_ATTEMPTED = "Not attempted yet"


def pieces(notebook: NotebookNode) -> Iterator[tuple[str, str | NotebookNode]]:
    """What is shown of the notebook, in its order.

    "prose" is in Markdown, "code" in Python, an "output" by its MIME type; "guess" says of what the room is asked to
    guess before the next slide, "turn" asks for an answer, and "folded" is one, below its title.
    """
    after_prose = False
    for at, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            for title, answer in FOLDED.findall(cell.source):
                yield "folded", f"### {title}\n\n{answer.strip()}"
            if text := FOLDED.sub("", cell.source).strip():
                yield "prose", text
                after_prose = True
        elif cell.cell_type == "code":
            outputs = [output.data for output in cell.outputs if "data" in output]
            if is_shown(cell.source, outputs, after_prose):
                yield "code", cell.source
            below = notebook.cells[at + 1 :]
            if is_guess(cell, below):
                yield "guess", cell.source.partition("#")[2].strip()
            elif is_turn(cell, below):
                yield "turn", ""
            after_prose = after_prose and is_preparation(cell.source)
            yield from (("output", data) for data in outputs if not waits_for_the_reader(data))
            if asks_in_the_picture(cell.source):
                yield "guess", "in the picture"
                yield "output", revealed(cell.source)


def revealed(source: str) -> NotebookNode:
    """The picture of a cell's figure as *Show* would leave it, if nobody guessed."""
    name, _, answers = labs.made_by(source)
    session = Session(labs.lab_named(name))
    session.set(answers)
    session.set({"shown": True})
    words = f"{session.lab.name}. {session.shown['meaning']}"
    png = still.still_png(session.shown["svg"], words)
    return NotebookNode({"text/plain": words, "image/png": base64.b64encode(png).decode()})


def is_shown(source: str, outputs: list[NotebookNode], after_prose: bool) -> bool:
    """Whether code is shown: not if it only prepares, waits or draws, and a definition only if the text announced it."""
    if is_preparation(source) or any(map(waits_for_the_reader, outputs)):
        return False
    if not outputs:
        return after_prose
    shown = set().union(*outputs)
    (first, *more) = ast.parse(source).body
    only_draws = "image/png" in shown and isinstance(first, ast.Expr) and not more
    return not only_draws and WIDGET not in shown


def is_preparation(source: str) -> bool:
    """Whether it is nothing but imports and places for the reader's answers."""
    body = ast.parse(source).body
    return all(isinstance(node, ast.Import | ast.ImportFrom) or is_stub(node) for node in body)


def waits_for_the_reader(data: NotebookNode) -> bool:
    """Whether an output only says that nothing has been tried."""
    return NOT_ATTEMPTED in data.get("text/plain", "")
