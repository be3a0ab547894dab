"""A notebook that is opened again shows pictures of the labs whose kernel no longer has them.

A kernel that has ended or was restarted has no labs. In their place, JupyterLab would show
“Error displaying widget: model not found”. It has no fields of guesses either: a sentence in their
place says what is asked, or, once *Show* has been pressed, what was guessed. The picture of a lab
is from when its cell ran, without the marks that were drawn later: a sentence says that they are
kept.
"""

from pathlib import Path

from jupyter_core.utils import ensure_async
from jupyter_server.serverapp import ServerApp

from course_utils.core import record
from course_utils.core.say import OpenGuess
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.guessing.field import ASKS, CLOSED, CLOSED_WITHOUT
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import Ask, asks_in, figure_in
from course_utils.stage.notebook.files import WIDGET, Cell, Notebook, source
from course_utils.stage.workspace.outputs import without_views
from course_utils.stage.workspace.spacers import with_spacers_below_gone_fields

MARK = "course_kept"  # in the metadata of the sentence below a lab's picture
DRAWN = template("What you drew is kept as it was when Show was pressed.")
DRAWN_AGAIN = template("Run this cell, and its picture shows that again.")
AS_LEFT = template("Run this cell, and the lab is as you left it.")


def show_pictures_of_gone_labs(server: ServerApp) -> None:
    """Change the notebooks that the server sends to pages. Their files stay as they are."""
    contents = server.contents_manager
    kernels = server.kernel_manager
    get = contents.get
    restart_kernel = kernels.restart_kernel
    list_sessions = server.session_manager.list_sessions
    restarted = set()  # the ids of restarted kernels, since a restart does not change an id

    # `noting_restart` and `get_with_pictures` replace the server's own methods, and call them.

    async def noting_restart(kernel_id: str, *arguments: object, **options: object) -> None:
        """Restart the kernel, and note that it has lost its labs."""
        restarted.add(kernel_id)
        await ensure_async(restart_kernel(kernel_id, *arguments, **options))

    async def has_its_labs(path: str) -> bool:
        """Whether the notebook's kernel runs and was never restarted.

        Labs that were made after a restart are shown as pictures, too, if the page is opened again.
        """
        # A session has the path of an open notebook, and the kernel that runs for it.
        for session in await ensure_async(list_sessions()):
            # The path in a page's request may have a slash in front.
            if session["path"] == path.strip("/") and session["kernel"]["id"] not in restarted:
                return True
        return False

    async def get_with_pictures(path: str, *arguments: object, **options: object) -> Notebook:
        """Return what `get` returns; in a notebook without its labs, pictures in their place."""
        model = await ensure_async(get(path, *arguments, **options))
        # A page that asks only for a file's name and date gets no content.
        if model["type"] == "notebook" and model["content"]:
            is_alive = await has_its_labs(path)
            model["content"] = _as_reopened(model["content"], contents.root_dir, path, is_alive)
        return model

    contents.get = get_with_pictures
    kernels.restart_kernel = noting_restart


def _as_reopened(notebook: Notebook, root: str, path: str, is_alive: bool) -> Notebook:
    """Return the notebook of that path with what has to stand in place of labs and fields."""
    shown = notebook if is_alive else without_views(notebook)
    return with_guesses(shown, (Path(root) / path.strip("/")).parent)


def with_guesses(notebook: Notebook, folder: Path) -> Notebook:
    """Return the notebook with the guess itself in place of a question that was settled by *Show*.

    Below a guess that was left open, and whose field is gone, what follows is kept out of view.
    `folder` is where the notebook lies. Only the record in a reader's folder knows of guesses.
    """
    if not (folder / record.HIDDEN).is_dir():
        return notebook
    so_far = record.said_so_far(folder, about(notebook, "").chapter)
    cells = []
    settled = []  # the ids of the cells whose guesses are
    for cell in notebook["cells"]:
        ask = _question(cell)
        said = [] if ask is None else [so_far[name] for name in ask.questions if name in so_far]
        drawn = so_far.get(cell.get("id")) if _is_of_gone_lab(cell) else None
        if any(each.is_closed for each in said) or drawn:
            settled.append(cell.get("id"))
        if said:
            cells.append(_with_words(cell, _sentence(ask, so_far)))
        elif drawn:
            cells.append(_with_words_below(cell, _on_drawing(drawn)))
        else:
            cells.append(cell)
    return with_spacers_below_gone_fields({**notebook, "cells": cells}, settled)


def _question(cell: Cell) -> Ask | None:
    """Return what the cell asks for; None if it asks nothing, or has not run."""
    if cell["cell_type"] != "code" or cell.get("execution_count") is None:
        return None
    asks = asks_in(source(cell))
    return asks[0] if len(asks) == 1 else None


def _is_of_gone_lab(cell: Cell) -> bool:
    """Whether the cell has a lab in which a guess is drawn, and shows only a picture of it."""
    outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
    is_gone = any("image/png" in data and WIDGET not in data for data in outputs)
    if not is_gone or cell.get("execution_count") is None:
        return False
    figure = figure_in(source(cell))
    return figure is not None and figure.asks


def _with_words_below(cell: Cell, words: str) -> Cell:
    """Return the cell with these words below its picture, in place of those from an earlier time.

    A notebook that was opened again may have been saved with them.
    """
    others = [output for output in cell["outputs"] if MARK not in output.get("metadata", {})]
    below = {
        "data": {"text/plain": words},
        "metadata": {MARK: True},
        "output_type": "display_data",
    }
    return {**cell, "outputs": [*others, below]}


def _on_drawing(drawn: record.Said) -> str:
    """Return what is said below the picture of a lab, once *Show* was pressed in it."""
    if drawn.said is None:
        return in_a_row(translated(CLOSED_WITHOUT), translated(AS_LEFT))
    return in_a_row(translated(DRAWN), translated(DRAWN_AGAIN))


def _with_words(cell: Cell, words: str) -> Cell:
    outputs = [_saying(output, words) for output in cell["outputs"]]
    return {**cell, "outputs": outputs}


def _saying(output: dict[str, object], words: str) -> dict[str, object]:
    """Return the output of a field with these words in place of its text."""
    data = output.get("data", {})
    if "text/plain" not in data or "text/html" in data:  # a spacer has both
        return output
    return {**output, "data": {**data, "text/plain": words}}


def _sentence(ask: Ask, so_far: dict[str, record.Said]) -> str:
    """Return what the reader has said to the questions, and whether it stays so."""
    said = {name: so_far[name].said for name in ask.questions if name in so_far}
    given = {name: guess for name, guess in said.items() if guess is not None}
    guess = OpenGuess(ask.questions, ask.unit, ask.among, given)
    if not any(so_far[name].is_closed for name in said):
        what_follows = translated("To change it, or to see the answer, run this cell.")
    else:
        what_follows = translated(CLOSED) if given else translated(CLOSED_WITHOUT)
    return in_a_row(translated(ASKS), translated("{guess}.", guess=guess), what_follows)
