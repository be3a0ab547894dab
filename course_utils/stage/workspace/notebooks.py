"""A notebook as JSON: its cells by their ids, and the exercises among them."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from course_utils.core.record import write_whole

BEYOND = "# Beyond"
HEADING = re.compile(r"^### Your turn (\d+) · (.+)$", re.MULTILINE)
# The second way is that of copies from before the chapters.
CHECKS = re.compile(
    r"from course_utils\.(?:chapters\.(\w+) import (?:\w+, )*check|checks import (\w+) as check)\b"
)
CHECK = re.compile(r"\bcheck\.(\w+)\(")
WIDGET = "application/vnd.jupyter.widget-view+json"
Cell = dict[str, object]
Notebook = dict[str, object]


@dataclass(frozen=True)
class Exercise:
    """One exercise: its number, its title, its check ("flops.days"), and its cells.

    Those below the heading "Beyond" are not on the main path.
    """

    number: int
    title: str
    check: str
    cells: tuple[str, ...]
    is_beyond: bool = False


def read(path: Path) -> Notebook:
    return parsed(path.read_bytes())


def parsed(contents: bytes) -> Notebook:
    """The notebook that a file of these contents holds; ValueError if its cells cannot be told apart."""
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
    return all(isinstance(text, str) for text in texts) and all(isinstance(data, dict) for data in shown)


def write(path: Path, notebook: Notebook) -> None:
    """The notebook as JupyterLab writes it, whole or not at all."""
    write_whole(path, json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def source(cell: Cell) -> str:
    """A cell's text, which a file holds as one string or as lines."""
    return "".join(cell["source"])


def to_come(notebook: Notebook) -> Notebook:
    """The notebook without its outputs: its results are still to come."""
    cells = [_emptied(cell) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def for_this_kernel(notebook: Notebook) -> Notebook:
    """The notebook with the metadata that JupyterLab would write when it opens it; so opening changes nothing."""
    language = {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
        "version": ".".join(map(str, sys.version_info[:3])),
    }
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return {**notebook, "metadata": {**notebook["metadata"], "kernelspec": kernel, "language_info": language}}


def with_results(own: Notebook, course: Notebook) -> Notebook:
    """The reader's notebook with the course's results in the cells that the reader has neither changed nor run."""
    stored = {cell["id"]: cell for cell in without_views(course)["cells"]}

    def shown(cell: Cell) -> Cell:
        theirs = stored.get(cell["id"], {})
        is_theirs = cell["cell_type"] == "code" and theirs and source(theirs) == source(cell)
        # Without the count, which would say that it has run.
        return {**cell, "outputs": theirs["outputs"]} if is_theirs and not cell.get("outputs") else cell

    return {**own, "cells": list(map(shown, own["cells"]))}


def _emptied(cell: Cell) -> Cell:
    return {**cell, "outputs": [], "execution_count": None}


def without_views(notebook: Notebook) -> Notebook:
    """The notebook without its labs' live views, whose kernels are gone. The still pictures stay."""
    cells = [
        {**cell, "outputs": list(map(_without_view, cell["outputs"]))} if cell.get("outputs") else cell
        for cell in notebook["cells"]
    ]
    return {**notebook, "cells": cells}


def _without_view(output: dict[str, object]) -> dict[str, object]:
    data = output.get("data", {})
    if WIDGET not in data or "image/png" not in data:
        return output
    return {**output, "data": {kind: value for kind, value in data.items() if kind != WIDGET}}


def exercises(notebook: Notebook) -> list[Exercise]:
    """The notebook's exercises in their order: each a heading, and what follows it up to its folded solution."""
    cells, found, is_beyond = notebook["cells"], [], False
    checks = next((new or old for cell in cells for new, old in CHECKS.findall(source(cell))), "")
    for begin, cell in enumerate(cells):
        is_beyond = is_beyond or (cell["cell_type"] == "markdown" and source(cell).startswith(BEYOND))
        heading = HEADING.search(source(cell)) if cell["cell_type"] == "markdown" else None
        if heading:
            parts = cells[begin : begin + 4]
            check = next((name for part in parts for name in CHECK.findall(source(part))), "")
            ids = tuple(part["id"] for part in parts)
            found.append(Exercise(int(heading[1]), heading[2].strip(), f"{checks}.{check}", ids, is_beyond))
    return found
