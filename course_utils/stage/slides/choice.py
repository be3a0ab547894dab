"""What of a notebook is for the room: its text, the code that teaches, and what came of all the rest."""

import ast
import base64
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from course_utils.chapters import labs
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.session import Session
from course_utils.stage.notebook.code import Figure, figure_in, is_stub
from course_utils.stage.notebook.outline import BEYOND, Part, outline
from course_utils.stage.notebook.prose import folds, for_a_still, without_folds
from course_utils.stage.present.cuts import is_folded
from course_utils.stage.slides.plain import as_table, in_plain_numbers

NOT_ATTEMPTED = "Not attempted yet"


def pieces(notebook: NotebookNode) -> Iterator[tuple[str, str | NotebookNode]]:
    """What is shown of the notebook, in its order.

    "prose" is in Markdown, "code" in Python, an "output" by its MIME type; "guess" says of what the room is asked to
    guess before the next slide, "turn" asks for an answer, and "folded" is one, below its title.
    """
    after_prose, parts = False, outline(notebook).parts
    for at, cell in enumerate(notebook.cells):
        part = parts[at]
        if cell.cell_type == "markdown":
            for title, answer in folds(cell.source):
                yield "folded", f"### {title}\n\n{answer}"
            text = without_folds(cell.source)
            if moves_beside(parts, at):
                text = for_a_still(text)
            if text:
                yield "prose", text
                after_prose = True
        elif cell.cell_type == "code" and not is_folded(cell):
            outputs = [output.data for output in cell.outputs if "data" in output]
            if code := shown_code(cell.source, outputs, after_prose):
                yield "code", code
            if part.is_guess:
                yield "guess", part.asked[0].comment
            elif part.is_answer:
                yield "turn", ""
            after_prose = after_prose and is_preparation(cell.source)
            if part.is_drawn_guess:
                yield "output", pictured(part.figure, shown=False)
                yield "guess", "in the picture"
                yield "output", pictured(part.figure, shown=True)
            elif can_be_drawn(part.figure):
                yield "output", pictured(part.figure)
            else:
                yield from (
                    ("output", plainly(data)) for data in outputs if not waits_for_the_reader(data)
                )


def main_part(notebook: NotebookNode) -> NotebookNode:
    """The notebook up to *Beyond*, and at its end what that would go into."""
    main, _ = _halves(notebook)
    beyond = [section.title for section in outline(notebook).sections if section.is_beyond]
    titles = [title for title in beyond if title != BEYOND]
    goes_into = "\n".join(f"- {title}" for title in titles)
    end = NotebookNode(
        cell_type="markdown", id="beyond", metadata={}, source=f"## Beyond\n\n{goes_into}"
    )
    return NotebookNode({**notebook, "cells": [*main, end] if titles else main})


def beyond_part(notebook: NotebookNode) -> NotebookNode:
    """The notebook from *Beyond* on."""
    return NotebookNode({**notebook, "cells": _halves(notebook)[1]})


def _halves(notebook: NotebookNode) -> tuple[list[NotebookNode], list[NotebookNode]]:
    parts = outline(notebook).parts
    at = next((at for at, part in enumerate(parts) if part.is_beyond), len(parts))
    return notebook.cells[:at], notebook.cells[at:]


def moves_beside(parts: Sequence[Part], at: int) -> bool:
    """Whether a lab stands next to that cell, so that its text may say how to move it."""
    beside = parts[max(0, at - 1) : at + 2]
    return any(part.figure for part in beside)


def can_be_drawn(figure: Figure | None) -> bool:
    """Whether the cell makes a lab whose picture is the same on every machine; one lab shows the machine's own times."""
    return figure is not None and (figure.lab != "matmul" or "where" in figure.answers)


def pictured(figure: Figure, **asked: bool) -> NotebookNode:
    """The picture of a cell's lab or figure, drawn without the line that says how to move it.

    With `shown`, as *Show* would leave it if nobody guessed, or as it is before.
    """
    session = Session(labs.lab_named(figure.lab))
    session.set({**figure.answers, **asked})
    for preset in figure.presets:
        session.preset(preset)
    words = f"{session.lab.name}. {session.shown['meaning']}"
    png = still.still_png(session.shown["svg"], words)
    return NotebookNode({"text/plain": words, "image/png": base64.b64encode(png).decode()})


def shown_code(source: str, outputs: Sequence[NotebookNode], after_prose: bool) -> str:
    """The code that a slide shows: what made a plain result, or a definition that the text has just announced.

    A table, a picture or a lab stands for its code, which mostly says how the table is made. Of what prepares the
    rest, and of a name alone, nothing is shown.
    """
    if is_preparation(source) or figure_in(source) or any(map(waits_for_the_reader, outputs)):
        return ""
    body = ast.parse(source).body
    shown = set().union(*outputs)
    if shown & {"text/html", "image/png"} or (len(body) == 1 and _is_a_name(body[0])):
        return ""
    if shown:
        return _without(source, body, ast.Import | ast.ImportFrom)
    is_definition = [isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body]
    if not (after_prose and any(is_definition)):
        return ""
    return _without(source, body, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)


def _is_a_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)


def _without(source: str, body: Sequence[ast.stmt], kind: type) -> str:
    """The source without the statements of that kind, its comments where they stand."""
    lines: list[str | None] = [*source.splitlines()]
    for node in body:
        if isinstance(node, kind):
            lines[node.lineno - 1 : node.end_lineno] = [None] * (node.end_lineno - node.lineno + 1)
    return "\n".join(line for line in lines if line is not None).strip("\n")


def is_preparation(source: str) -> bool:
    """Whether it is nothing but imports and places for the reader's answers."""
    body = ast.parse(source).body
    return all(isinstance(node, ast.Import | ast.ImportFrom) or is_stub(node) for node in body)


def waits_for_the_reader(data: NotebookNode) -> bool:
    """Whether an output only says that nothing has been tried."""
    return NOT_ATTEMPTED in data.get("text/plain", "")


def plainly(data: NotebookNode) -> NotebookNode:
    """The output as a slide shows it: what Python would repeat, in numbers that can be read from the last row."""
    if data.keys() != {"text/plain"}:
        return data
    said = data["text/plain"]
    if table := as_table(said):
        return NotebookNode({"text/plain": said, "text/html": table})
    return NotebookNode({"text/plain": in_plain_numbers(said)})
