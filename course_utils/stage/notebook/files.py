"""A notebook as a file: JSON, in which each cell has an id of its own."""

import json
from pathlib import Path

from course_utils.core.record import write_whole

WIDGET = "application/vnd.jupyter.widget-view+json"  # the kind of an output that is a widget
# As JSON has them: a cell with "id", "cell_type", "source" and so on, a notebook with "cells".
Cell = dict[str, object]
Notebook = dict[str, object]


def read(path: Path) -> Notebook:
    """Return the notebook in the file; ValueError if the course cannot read it."""
    return parsed(path.read_bytes())


def parsed(contents: bytes) -> Notebook:
    """Return the notebook in a file with these contents.

    Raise a ValueError if the course cannot read it. Its words have no beginning and no full stop,
    because callers put them into a sentence behind the file's name.
    """
    try:
        notebook = json.loads(contents)
        is_sound = _has_sound_cells(notebook)
    # The contents may be no JSON, or JSON of any other shape.
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        is_sound = False
    if not is_sound:
        raise ValueError("it cannot be read as a notebook whose cells have ids, each its own")
    return notebook


def _has_sound_cells(notebook: Notebook) -> bool:
    """Whether each cell has what the course reads, and no two cells have the same id."""
    cells = notebook["cells"]
    if not all(_is_sound(cell) for cell in cells):
        return False
    ids = {cell["id"] for cell in cells}
    return len(ids) == len(cells)


def _is_sound(cell: Cell) -> bool:
    """Whether id, type and source of the cell are texts, and each output's data are a dict."""
    for text in (cell["id"], cell["cell_type"], source(cell)):
        if not isinstance(text, str):
            return False
    outputs = cell.get("outputs", [])
    return all(isinstance(output.get("data", {}), dict) for output in outputs)


def write(path: Path, notebook: Notebook) -> None:
    """Write the notebook in JupyterLab's form, completely or not at all.

    So the file does not change where JupyterLab saves a notebook that nobody has changed.
    """
    write_whole(path, contents_of(notebook))


def contents_of(notebook: Notebook) -> bytes:
    """Return what a file with the notebook contains, in JupyterLab's form."""
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def source(cell: Cell) -> str:
    """Return a cell's text, which a file has as one string or as a list of lines."""
    return "".join(cell["source"])
