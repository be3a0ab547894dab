"""The outputs in a copy of a notebook: none yet, the course's own, or pictures in place of labs."""

import sys

from course_utils.core.say.language import translated
from course_utils.engine.guessing.field import ASKS
from course_utils.stage.notebook.files import WIDGET, Cell, Notebook, source


def to_come(notebook: Notebook) -> Notebook:
    """Return the notebook without outputs, as if none of its cells had run."""
    cells = [_emptied(cell) for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def _emptied(cell: Cell) -> Cell:
    """Return a cell of code as if it had not run; a cell of text as it is."""
    if cell["cell_type"] != "code":
        return cell
    return {**cell, "outputs": [], "execution_count": None}


def for_this_kernel(notebook: Notebook) -> Notebook:
    """Return the notebook with the metadata that JupyterLab would write on opening it.

    So a copy that was only opened is not changed by that.
    """
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    version = sys.version_info
    language = {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": f"{version.major}.{version.minor}.{version.micro}",
    }
    metadata = {**notebook["metadata"], "kernelspec": kernel, "language_info": language}
    return {**notebook, "metadata": metadata}


def with_results(own: Notebook, course: Notebook) -> Notebook:
    """Return the reader's notebook with the course's results in cells neither changed nor run."""
    course_cells = {cell["id"]: cell for cell in without_views(course)["cells"]}
    cells = [_with_result(cell, course_cells.get(cell["id"])) for cell in own["cells"]]
    return {**own, "cells": cells}


def _with_result(own: Cell, course: Cell | None) -> Cell:
    """Return the reader's cell, with the course's outputs if they belong to it.

    They do if the cell has no outputs of its own, and its code is still the course's.
    """
    if own["cell_type"] != "code" or own.get("outputs"):
        return own
    if not course or source(course) != source(own):
        return own
    # The execution count stays empty, since the reader has not run the cell.
    return {**own, "outputs": course["outputs"]}


def without_views(notebook: Notebook) -> Notebook:
    """Return the notebook without the live views of labs and guesses, whose kernels are gone.

    Still pictures and sentences stay in their place.
    """
    cells = [_cell_without_views(cell) for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def _cell_without_views(cell: Cell) -> Cell:
    """Return the cell with each of its outputs without a live view."""
    if not cell.get("outputs"):  # a cell of text has none
        return cell
    outputs = [_output_without_view(output) for output in cell["outputs"]]
    return {**cell, "outputs": outputs}


def _output_without_view(output: dict[str, object]) -> dict[str, object]:
    """Return the output without its live view, if it is that of a lab or a guess."""
    data = output.get("data", {})
    if WIDGET not in data:
        return output
    is_lab = "image/png" in data  # the lab's still picture
    text = "".join(data.get("text/plain", ""))  # a string, or a list of its lines
    # The sentence that stands in place of a guess's field, in English or the reader's language.
    is_guess = text.startswith((ASKS, translated(ASKS)))
    if not is_lab and not is_guess:  # a widget of the reader's own, with nothing else to show
        return output
    rest = {kind: value for kind, value in data.items() if kind != WIDGET}
    return {**output, "data": rest}
