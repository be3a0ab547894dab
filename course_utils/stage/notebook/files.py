"""A notebook as a file: JSON, whose cells are told apart by their ids."""

import json
from pathlib import Path

from course_utils.core.record import write_whole

WIDGET = "application/vnd.jupyter.widget-view+json"
Cell = dict[str, object]
Notebook = dict[str, object]


def read(path: Path) -> Notebook:
    return parsed(path.read_bytes())


def parsed(contents: bytes) -> Notebook:
    """The notebook in a file with these contents; ValueError if its cells cannot be told apart."""
    try:
        notebook = json.loads(contents)
        is_sound = _has_sound_cells(notebook)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        is_sound = False
    if not is_sound:
        raise ValueError("it cannot be read as a notebook whose cells have ids, each its own")
    return notebook


def _has_sound_cells(notebook: Notebook) -> bool:
    cells = notebook["cells"]
    if not all(_is_sound(cell) for cell in cells):
        return False
    ids = {cell["id"] for cell in cells}
    return len(ids) == len(cells)


def _is_sound(cell: Cell) -> bool:
    for text in (cell["id"], cell["cell_type"], source(cell)):
        if not isinstance(text, str):
            return False
    outputs = cell.get("outputs", [])
    return all(isinstance(output.get("data", {}), dict) for output in outputs)


def write(path: Path, notebook: Notebook) -> None:
    """Write the notebook as JupyterLab would: completely, or not at all."""
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(path, f"{text}\n".encode())


def source(cell: Cell) -> str:
    """A cell's text, which a file holds as one string or as lines."""
    return "".join(cell["source"])
