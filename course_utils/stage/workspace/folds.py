"""Import cells are folded in a copy, because a page of imports says nothing to a beginner.

JupyterLab then shows the cell's first line alone. A click unfolds it, and it runs like any other.
"""

from course_utils.stage.notebook.code import is_imports
from course_utils.stage.notebook.files import Cell, Notebook, source

JUPYTER = "jupyter"  # the entry of a cell's metadata in which JupyterLab keeps what is folded
FOLDED = "source_hidden"
GIVEN_FOLDED = "comes_folded"  # in the metadata of a cell that was folded here, unfolded or not


def with_folds(own: Notebook, course: Notebook, former: Notebook | None = None) -> Notebook:
    """Return the notebook with its import cells folded, but for those that the reader has changed.

    `own` is a copy that is about to be written, and `former` the one that it replaces, if there is
    one. What the reader has unfolded in the former copy is not folded again.
    """
    texts = {cell["id"]: source(cell) for cell in course["cells"]}  # as the course gives them
    former_cells = former["cells"] if former else []
    unfolded = {cell["id"] for cell in former_cells if _is_unfolded(cell)}
    cells = []
    for cell in own["cells"]:
        is_as_given = texts.get(cell["id"]) == source(cell)
        if is_as_given and _has_imports_only(cell):
            # Marked also if it stays unfolded, so that the next copy leaves it so, too.
            cells.append(_marked(cell, is_folded=cell["id"] not in unfolded))
        else:
            cells.append(cell)
    return {**own, "cells": cells}


def without_folds(own: Notebook) -> Notebook:
    """Return the notebook with its import cells unfolded, as the course has them.

    So a copy can be compared with the course's notebook: a fold is no change of the reader's.
    """
    cells = [_unfolded(cell) if _has_imports_only(cell) else cell for cell in own["cells"]]
    return {**own, "cells": cells}


def _has_imports_only(cell: Cell) -> bool:
    return cell["cell_type"] == "code" and is_imports(source(cell))


def _is_unfolded(cell: Cell) -> bool:
    """Whether the cell came folded, and the reader has unfolded it."""
    return GIVEN_FOLDED in _metadata(cell) and FOLDED not in _entry(cell)


def _marked(cell: Cell, *, is_folded: bool) -> Cell:
    """Return the cell with the mark of one that came folded; it is folded only if `is_folded`."""
    course_cell = _unfolded(cell)
    marked = {**course_cell, "metadata": {**_metadata(course_cell), GIVEN_FOLDED: True}}
    entry = dict(_entry(course_cell))
    if is_folded:
        entry[FOLDED] = True
    return _with_entry(marked, entry)


def _unfolded(cell: Cell) -> Cell:
    """Return the cell as the course has it, with no trace of a fold."""
    kept = {key: value for key, value in _metadata(cell).items() if key != GIVEN_FOLDED}
    entry = {key: value for key, value in _entry(cell).items() if key != FOLDED}
    return _with_entry({**cell, "metadata": kept}, entry)


def _metadata(cell: Cell) -> dict[str, object]:
    """Return the cell's metadata; empty if it is missing or of a wrong type."""
    metadata = cell.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _entry(cell: Cell) -> dict[str, object]:
    """Return what JupyterLab keeps in the cell's metadata; empty if it keeps nothing there."""
    entry = _metadata(cell).get(JUPYTER)
    return entry if isinstance(entry, dict) else {}


def _with_entry(cell: Cell, entry: dict[str, object]) -> Cell:
    """Return the cell with that entry in its metadata, or without any if it is empty."""
    rest = {key: value for key, value in _metadata(cell).items() if key != JUPYTER}
    metadata = {**rest, JUPYTER: entry} if entry else rest
    return {**cell, "metadata": metadata}
