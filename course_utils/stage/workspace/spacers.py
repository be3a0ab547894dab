"""The spacer below a guess: it keeps what follows out of view until the guess is made."""

import html
from collections.abc import Sequence

from course_utils.stage.notebook.files import Cell, Notebook
from course_utils.stage.notebook.outline import outline
from course_utils.stage.translations.edition import language_of
from course_utils.stage.translations.sentences import said
from course_utils.stage.translations.templates import WAITS

# The spacer is the stored output of the cell of a guess. It fills the window, so that the answer is
# not in view, and disappears as soon as the cell runs, as any output does. In the course's own
# JupyterLab it is as high as the window, by its class; elsewhere it has so many lines.
SPACER_LINES = 38  # enough to fill a laptop's window
CLASS = "course-spacer"  # in stage/workspace/keys, and in the style of stage/present
WITHIN = 3  # the code cells below a guess among which one shows the answer
WORDS = WAITS
MARK = "course_spacer"
# Spacers of earlier versions, which copies may still have.
FORMER_WORDS = (
    "Your guess first: run this cell (Shift+Enter), and it asks for it. "
    "What follows comes up with Show.",
    "Your guess first: in place of the dots, or in the picture that this cell draws. "
    "Run the cell, and what follows comes up.",
)


def with_spacers(notebook: Notebook) -> Notebook:
    """Return the notebook with a spacer below each guess that has not run.

    A guess gets no spacer if one of the next code cells has an output, which may be the answer.
    """
    cells = notebook["cells"]
    guesses = {part.id for part in outline(notebook).parts if part.waits_for_a_guess}
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    waiting = set()  # the ids of the cells that get a spacer
    for at, cell in enumerate(code):
        if cell["id"] in guesses and _waits(cell, code[at + 1 : at + 1 + WITHIN]):
            waiting.add(cell["id"])
    spacer = _spacer(language_of(notebook))
    spaced = [{**cell, "outputs": [spacer]} if cell["id"] in waiting else cell for cell in cells]
    return {**notebook, "cells": spaced}


def _spacer(spoken: str) -> dict[str, object]:
    """Return the spacer; a translated one is known by a mark, and not by its words."""
    words = said(spoken, WORDS)
    # The point at the end keeps the blank lines from being the end of the text.
    text = [f"{words}\n", *["\n"] * SPACER_LINES, "."]
    page = f'<pre class="{CLASS}">{html.escape("".join(text))}</pre>'
    return {
        "data": {"text/html": page, "text/plain": text},
        "metadata": {} if words == WORDS else {MARK: True},
        "output_type": "display_data",
    }


def words_of(cell: Cell) -> str:
    """Return what the spacer of a cell says."""
    text = "".join(cell["outputs"][0]["data"]["text/plain"])
    words, _, _ = text.partition("\n")
    return words


def _waits(guess: Cell, below: Sequence[Cell]) -> bool:
    """Whether the guess's cell has not run, and none of the cells below has an output.

    `below` has the next code cells, WITHIN of them, among which one shows the answer.
    """
    if guess["outputs"] or guess["execution_count"] is not None:
        return False
    return not any(cell["outputs"] for cell in below)


def without_spacers(notebook: Notebook) -> Notebook:
    """Return the notebook without its spacers; all other outputs stay."""
    cells = [{**cell, "outputs": []} if has_spacer(cell) else cell for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def has_spacer(cell: Cell) -> bool:
    """Whether the cell's output is only a spacer."""
    outputs = cell.get("outputs", [])
    return bool(outputs) and all(_is_spacer(output) for output in outputs)


def is_only_our_spacer(cell: Cell, notebook: Notebook) -> bool:
    """Whether the cell's output is, to the letter, the spacer that the course puts there now.

    The texts may be in one piece or in lines. Somebody else's output may have a spacer's words or
    mark, and a script besides.
    """
    in_pieces = [_in_one_piece(output) for output in cell.get("outputs", [])]
    return in_pieces == [_in_one_piece(_spacer(language_of(notebook)))]


def _in_one_piece(output: Cell) -> Cell:
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    return {**output, "data": data}


def _is_spacer(output: dict[str, object]) -> bool:
    """Whether the output has the mark or the words of a spacer, or of one of an earlier version."""
    metadata = output.get("metadata")
    if isinstance(metadata, dict) and MARK in metadata:
        return True
    data = output.get("data", {})
    text = "".join(data.get("text/plain", ""))  # a string, or a list of its lines
    return any(words in text for words in (WORDS, *FORMER_WORDS))
