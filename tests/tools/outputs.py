"""Runs the notebooks in order and stores what they show: `make outputs`.

Only outputs are written: every cell's source stays as it is. A notebook in which a cell fails is
not changed at all. What differs from run to run without a meaning, such as a widget's id, is
replaced by something that stays the same.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

from course_utils.stage.notebook.about import KEY
from course_utils.stage.workspace import copies
from tests import ROOT
from tests.helpers.notebooks import WIDGET, rewrite


def run(notebook: nbformat.NotebookNode) -> None:
    """Run all cells in a new kernel, and put their outputs into the notebook."""
    client = NotebookClient(
        notebook,
        resources={"metadata": {"path": str(ROOT / "notebooks")}},
        timeout=120,
        kernel_name="python3",
        record_timing=False,
    )
    client.execute()
    normalise(notebook)


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Take out what differs from run to run and machine to machine."""
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {}
    if KEY in notebook.metadata:
        metadata[KEY] = notebook.metadata[KEY]
    metadata["kernelspec"] = python
    metadata["language_info"] = {"name": "python"}
    notebook.metadata = nbformat.from_dict(metadata)
    for cell in notebook.cells:
        for number, output in enumerate(cell.get("outputs", [])):
            widget = output.get("data", {}).get(WIDGET)
            if widget:  # it has ended with its kernel, so any id will do
                widget["model_id"] = f"{cell.id}-{number}"


def store(path: Path) -> bool:
    """Run one notebook, store its outputs, and say whether that changed the file."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook)
    return rewrite(path, notebook)


def main(names: list[str]) -> int:
    """Run `make outputs`, or `make outputs ARGS="01_floats.ipynb"` for one notebook."""
    try:
        paths = copies.chosen(names)
    except ValueError as error:
        print(error)
        return 2
    for path in paths:
        try:
            print(path.name, "stored" if store(path) else "unchanged")
        except (CellExecutionError, CellTimeoutError) as error:
            print(f"{path.name} is left as it was: a cell failed.\n{error}")
            return 1
        except OSError as error:  # a read-only checkout, a full disk
            where = error.filename or path.parent
            print(f"{path.name} is left as it was: {error.strerror}, {where}.")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
