"""The spacer below a guess: it keeps what follows out of view until the guess is made."""

import html
from collections.abc import Collection

from course_utils.stage.notebook.files import WIDGET, Cell, Notebook
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
    unanswered = _unanswered(notebook)
    spacer = _spacer(language_of(notebook))
    waiting = {cell["id"] for cell in cells if cell["id"] in unanswered and _has_not_run(cell)}
    spaced = [{**cell, "outputs": [spacer]} if cell["id"] in waiting else cell for cell in cells]
    return {**notebook, "cells": spaced}


def with_spacers_below_gone_fields(notebook: Notebook, settled: Collection[str | None]) -> Notebook:
    """Return the notebook with a spacer also below each guess that was left open.

    Its cell has run, but its field or lab is gone, and what stands in its place stays above the
    spacer. `settled` has the ids of the cells whose guesses the reader has settled.
    """
    left_open = _unanswered(notebook) - set(settled)
    spacer = _spacer(language_of(notebook))

    def spaced(cell: Cell) -> Cell:
        if cell.get("id") not in left_open or not _has_own_output(cell) or _is_alive(cell):
            return cell
        return {**cell, "outputs": [*_outputs_without_spacer(cell), spacer]}

    return {**notebook, "cells": [spaced(cell) for cell in notebook["cells"]]}


def _unanswered(notebook: Notebook) -> set[str]:
    """Return the ids of the cells that ask for a guess, and below which no answer is shown.

    An output of one of the next code cells, WITHIN of them, may be the answer.
    """
    guesses = {part.id for part in outline(notebook).parts if part.waits_for_a_guess}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    unanswered = set()
    for at, cell in enumerate(code):
        below = code[at + 1 : at + 1 + WITHIN]
        if cell.get("id") in guesses and not any(_has_own_output(other) for other in below):
            unanswered.add(cell["id"])
    return unanswered


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


def _has_not_run(cell: Cell) -> bool:
    return not cell["outputs"] and cell["execution_count"] is None


def _has_own_output(cell: Cell) -> bool:
    """Whether the cell has an output that is not a spacer."""
    return bool(_outputs_without_spacer(cell))


def _outputs_without_spacer(cell: Cell) -> list[dict[str, object]]:
    return [output for output in cell["outputs"] if not _is_spacer(output)]


def _is_alive(cell: Cell) -> bool:
    """Whether the page that shows the cell makes its field or lab from what the kernel has."""
    return any(WIDGET in output.get("data", {}) for output in cell["outputs"])


def without_spacers(notebook: Notebook) -> Notebook:
    """Return the notebook without its spacers; all other outputs stay."""
    cells = notebook["cells"]
    without = [
        {**cell, "outputs": _outputs_without_spacer(cell)} if cell.get("outputs") else cell
        for cell in cells
    ]
    return {**notebook, "cells": without}


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
