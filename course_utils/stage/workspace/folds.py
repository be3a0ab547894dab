"""Import cells are folded in a copy, because a page of imports says nothing to a beginner.

JupyterLab then shows the cell's first line alone. A click unfolds it, and it runs like any other.
"""

from course_utils.stage.notebook.code import is_imports
from course_utils.stage.notebook.files import Cell, Notebook, source

JUPYTER = "jupyter"  # the entry of a cell's metadata in which JupyterLab keeps what is folded
FOLDED = "source_hidden"


def with_folds(own: Notebook, course: Notebook) -> Notebook:
    """The notebook with its import cells folded, but for those that the reader has changed."""
    texts = {cell["id"]: source(cell) for cell in course["cells"]}
    cells = []
    for cell in own["cells"]:
        is_as_given = texts.get(cell["id"]) == source(cell)
        cells.append(_folded(cell) if is_as_given and _has_imports_only(cell) else cell)
    return {**own, "cells": cells}


def without_folds(own: Notebook) -> Notebook:
    """The notebook with its import cells unfolded, as the course has them."""
    cells = [_unfolded(cell) if _has_imports_only(cell) else cell for cell in own["cells"]]
    return {**own, "cells": cells}


def _has_imports_only(cell: Cell) -> bool:
    return cell["cell_type"] == "code" and is_imports(source(cell))


def _folded(cell: Cell) -> Cell:
    return _with_entry(cell, {**_entry(cell), FOLDED: True})


def _unfolded(cell: Cell) -> Cell:
    rest = {key: value for key, value in _entry(cell).items() if key != FOLDED}
    return _with_entry(cell, rest)


def _entry(cell: Cell) -> dict[str, object]:
    """What JupyterLab keeps in the cell's metadata; empty if it is missing or of a wrong type."""
    metadata = cell.get("metadata")
    entry = metadata.get(JUPYTER) if isinstance(metadata, dict) else None
    return entry if isinstance(entry, dict) else {}


def _with_entry(cell: Cell, entry: dict[str, object]) -> Cell:
    """The cell with that entry in its metadata, or without any if it is empty."""
    metadata = cell.get("metadata")
    rest = metadata if isinstance(metadata, dict) else {}
    rest = {key: value for key, value in rest.items() if key != JUPYTER}
    return {**cell, "metadata": {**rest, JUPYTER: entry} if entry else rest}
