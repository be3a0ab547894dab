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
    """The notebook in a file of these contents; ValueError if its cells cannot be told apart."""
    try:
        notebook = json.loads(contents)
        cells = notebook["cells"]
        is_sound = all(map(_is_sound, cells)) and len({cell["id"] for cell in cells}) == len(cells)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        is_sound = False
    if not is_sound:
        raise ValueError("it cannot be read as a notebook whose cells have ids, each its own")
    return notebook


def _is_sound(cell: Cell) -> bool:
    shown = [output.get("data", {}) for output in cell.get("outputs", [])]
    texts = cell["id"], cell["cell_type"], source(cell)
    has_texts = all(isinstance(text, str) for text in texts)
    return has_texts and all(isinstance(data, dict) for data in shown)


def write(path: Path, notebook: Notebook) -> None:
    """The notebook as JupyterLab writes it, whole or not at all."""
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    write_whole(path, f"{text}\n".encode())


def source(cell: Cell) -> str:
    """A cell's text, which a file holds as one string or as lines."""
    return "".join(cell["source"])
