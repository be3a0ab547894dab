"""Chooses what of a notebook a deck shows: text, code that teaches, and outputs of other code."""

import ast
import base64
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from course_utils.chapters import labs
from course_utils.core.say import listed
from course_utils.core.say.language import translated
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.session import Session
from course_utils.stage.notebook.code import Figure, asks_ahead, figure_in, is_stub
from course_utils.stage.notebook.outline import BEYOND, Asked, Part, outline
from course_utils.stage.notebook.prose import folds, for_a_still, without_contents, without_folds
from course_utils.stage.present.cuts import is_folded
from course_utils.stage.slides.plain import as_table, in_plain_numbers
from course_utils.stage.translations.edition import IN_ENGLISH, Edition

NOT_ATTEMPTED = "Not attempted yet"
Piece = tuple[str, str | NotebookNode]  # its kind and its content: see `pieces`


def pieces(notebook: NotebookNode, edition: Edition = IN_ENGLISH) -> Iterator[Piece]:
    """Yield the pieces of the notebook that a deck shows, in order, in the edition's language.

    The content of "prose" is Markdown, of "code" Python, and of "output" a dict by MIME types. That
    of "guess" says what the room guesses before the next slide: its unit, or the options. "turn"
    asks for an answer, and has no content. "folded" is an answer below its title, in Markdown.
    """
    # A text announces the code that comes next, where imports and stubs do not count as code. So
    # this is True from a text on, until any other code has come.
    after_prose = False
    parts = outline(notebook).parts
    for at, cell in enumerate(notebook.cells):
        part = parts[at]
        if cell.cell_type == "markdown":
            yield from _folded(cell, edition)
            text = without_contents(without_folds(cell.source))
            if moves_beside(parts, at):
                text = for_a_still(text)
            if text:
                yield "prose", edition.text(cell.id, text)
                after_prose = True
        # Folded cells only define names. What a cell asks ahead, a later notebook asks again.
        elif cell.cell_type == "code" and not (is_folded(cell) or asks_ahead(cell.source)):
            outputs = [output.data for output in cell.outputs if "data" in output]
            code = shown_code(cell.source, outputs, after_prose)
            if code and not part.is_guess:  # the slide asks in words
                yield "code", code
            yield from _asked(part)
            yield from _outcome(part, outputs)
            after_prose = after_prose and is_preparation(cell.source)


def _folded(cell: NotebookNode, edition: Edition) -> Iterator[Piece]:
    """Yield the answers that the notebook folds in this cell of text."""
    for title, answer in folds(cell.source):
        yield "folded", edition.text(cell.id, f"### {title}\n\n{answer}")


def _asked(part: Part) -> Iterator[Piece]:
    """Yield the piece that asks the room for what the reader would write in this cell.

    For a guess it is a "guess" with what is wanted. For an answer that a check judges it is a
    "turn" without content, because the text above the cell asks for the answer. Any other cell asks
    for nothing.
    """
    if part.is_guess:
        asked = part.asked[0]  # the only one, though it may have several questions
        yield "guess", _wanted(asked)
    elif part.is_answer:
        yield "turn", ""


def _wanted(asked: Asked) -> str:
    """Return what the room guesses: "fp16, bf16", "GB", or "weights and gradients, in GB".

    These are the options, the unit of one number, or several numbers with their unit.
    """
    first = asked.questions[0]  # all have the same unit
    if first.choices:
        return ", ".join(first.choices)
    if not asked.has_several:
        return first.unit
    names = listed([question.item for question in asked.questions])
    return f"{names}, in {first.unit}" if first.unit else names


def _outcome(part: Part, outputs: Sequence[NotebookNode]) -> Iterator[Piece]:
    """Yield the stored outputs of a cell; if the cell makes a lab, a picture drawn anew instead."""
    if part.is_drawn_guess:
        yield "output", pictured(part.figure, shown=False)
        yield "guess", "in the picture"
        yield "output", pictured(part.figure, shown=True)
    elif part.is_guess:
        return  # its output is the field for typing, which only works in a notebook
    elif can_be_drawn(part.figure):
        yield "output", pictured(part.figure)
    else:
        for data in outputs:
            if not waits_for_the_reader(data):
                yield "output", plainly(data)


def main_part(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook up to *Beyond*, and at its end a list of the sections from there on."""
    main, _ = _halves(notebook)
    beyond = [section.title for section in outline(notebook).sections if section.is_beyond]
    titles = [title for title in beyond if title != BEYOND]  # *Beyond* itself is a section, too
    if not titles:
        return NotebookNode({**notebook, "cells": main})
    items = "\n".join(f"- {title}" for title in titles)
    end = NotebookNode(
        cell_type="markdown", id="beyond", metadata={}, source=f"## Beyond\n\n{items}"
    )
    return NotebookNode({**notebook, "cells": [*main, end]})


def beyond_part(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook from *Beyond* on."""
    _, beyond = _halves(notebook)
    return NotebookNode({**notebook, "cells": beyond})


def _halves(notebook: NotebookNode) -> tuple[list[NotebookNode], list[NotebookNode]]:
    """Return the cells before *Beyond*, and those from there on."""
    for at, part in enumerate(outline(notebook).parts):
        if part.is_beyond:
            return notebook.cells[:at], notebook.cells[at:]
    return notebook.cells, []


def moves_beside(parts: Sequence[Part], at: int) -> bool:
    """Whether the cell or a neighbour makes a lab, so that its text may say how to move the lab."""
    beside = parts[max(0, at - 1) : at + 2]  # the cell before, the cell itself, and the next one
    return any(part.figure for part in beside)


def can_be_drawn(figure: Figure | None) -> bool:
    """Whether the cell makes a lab whose picture is the same on every machine.

    The picture of the matmul lab is not: it shows the machine's own times, unless `where` names
    another machine.
    """
    if figure is None:
        return False
    return figure.lab != "matmul" or "where" in figure.answers


def pictured(figure: Figure, **asked: bool) -> NotebookNode:
    """Return the picture of a cell's lab or figure as an output, with its meaning as the text.

    With `shown=True` it is the picture after the button *Show* was pressed, without a guess; with
    `shown=False` it is the picture before that.
    """
    session = Session(labs.lab_named(figure.lab))
    session.set({**figure.answers, **asked})
    for preset in figure.presets:
        session.preset(preset)
    meaning = session.shown["meaning"]
    words = translated("{lab}. {meaning}", lab=translated(session.lab.name), meaning=meaning)
    png = still.still_png(session.shown["svg"], words)
    return NotebookNode({"text/plain": words, "image/png": base64.b64encode(png).decode()})


def shown_code(source: str, outputs: Sequence[NotebookNode], after_prose: bool) -> str:
    """Return the part of a cell's code that a slide shows; "" if it shows none.

    A slide shows the code of a plain result, and a definition that the text has just announced. It
    does not show the code of a table, a picture or a lab, which is mostly layout, nor preparations,
    nor a line that is a name alone.
    """
    if is_preparation(source) or figure_in(source):
        return ""
    if any(waits_for_the_reader(data) for data in outputs):  # the code is the call of a check
        return ""
    kinds = set().union(*outputs)  # the MIME types of all outputs
    if "text/html" in kinds or "image/png" in kinds:
        return ""
    body = ast.parse(source).body
    if len(body) == 1 and _is_a_name(body[0]):
        return ""
    if kinds:  # the code has a plain result
        return _without(source, body, ast.Import | ast.ImportFrom)
    has_definition = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body)
    if after_prose and has_definition:
        return _without(source, body, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)
    return ""


def _is_a_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)


def _without(source: str, body: Sequence[ast.stmt], kind: type) -> str:
    """Return the source without the statements of this kind; comments stay where they are.

    `body` has the source's statements. `kind` is a class of `ast`, or several joined by |.
    """
    dropped = set()  # numbers of lines; a statement may have several
    for node in body:
        if isinstance(node, kind):
            dropped.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(source.splitlines(), 1)
    return "\n".join(line for number, line in lines if number not in dropped).strip("\n")


def is_preparation(source: str) -> bool:
    """Whether the code is nothing but imports, and stubs for the reader's answers."""
    body = ast.parse(source).body
    return all(isinstance(node, ast.Import | ast.ImportFrom) or is_stub(node) for node in body)


def waits_for_the_reader(data: NotebookNode) -> bool:
    """Whether an output only says that nothing has been tried."""
    return NOT_ATTEMPTED in data.get("text/plain", "")


def plainly(data: NotebookNode) -> NotebookNode:
    """Return the output as a slide shows it: a dict as a table, another value with short numbers.

    An output with more than a text, such as a picture, is returned as it is.
    """
    if data.keys() != {"text/plain"}:
        return data
    text = data["text/plain"]
    table = as_table(text)
    if table:
        return NotebookNode({"text/plain": text, "text/html": table})
    return NotebookNode({"text/plain": in_plain_numbers(text)})
