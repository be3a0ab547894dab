"""Run the notebooks in order and store what they show. Called by `make outputs`.

Only outputs are written; every cell's source stays as it is, and a notebook whose run fails stays
as it is altogether. What would differ from run to run without meaning anything is made the same.
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
    """Execute all cells in a fresh kernel, in place."""
    options = {"timeout": 120, "kernel_name": "python3", "record_timing": False}
    NotebookClient(
        notebook, resources={"metadata": {"path": str(ROOT / "notebooks")}}, **options
    ).execute()
    normalise(notebook)


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Take out what differs from run to run and machine to machine."""
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    of_any_run = {"kernelspec": python, "language_info": {"name": "python"}}
    ours = {KEY: notebook.metadata[KEY]} if KEY in notebook.metadata else {}
    notebook.metadata = nbformat.from_dict({**ours, **of_any_run})
    for cell in notebook.cells:
        for number, output in enumerate(cell.get("outputs", [])):
            if widget := output.get("data", {}).get(WIDGET):
                widget["model_id"] = (
                    f"{cell.id}-{number}"  # the widget itself ended with its kernel
                )


def store(path: Path) -> bool:
    """Run one notebook and store its outputs; whether the file changed."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook)
    return rewrite(path, notebook)


def main(names: list[str]) -> int:
    """`make outputs`, or `make outputs ARGS="01_floats.ipynb"` for one."""
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
            print(
                f"{path.name} is left as it was: {error.strerror}, {error.filename or path.parent}."
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
