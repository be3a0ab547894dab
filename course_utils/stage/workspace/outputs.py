"""What a copy of a notebook shows: results to come, the course's results, labs as pictures."""

import sys

from course_utils.stage.notebook.files import WIDGET, Cell, Notebook, source


def to_come(notebook: Notebook) -> Notebook:
    """The notebook without its outputs: its results are still to come."""
    cells = [_emptied(cell) if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def for_this_kernel(notebook: Notebook) -> Notebook:
    """The notebook with the metadata that JupyterLab writes, so that opening it changes nothing."""
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
    of_kernel = {"kernelspec": kernel, "language_info": language}
    return {**notebook, "metadata": {**notebook["metadata"], **of_kernel}}


def with_results(own: Notebook, course: Notebook) -> Notebook:
    """The reader's notebook with the course's results in cells that are neither changed nor run."""
    stored = {cell["id"]: cell for cell in without_views(course)["cells"]}

    def shown(cell: Cell) -> Cell:
        theirs = stored.get(cell["id"], {})
        is_theirs = cell["cell_type"] == "code" and theirs and source(theirs) == source(cell)
        if not is_theirs or cell.get("outputs"):
            return cell
        # Without the count, which would say that it has run.
        return {**cell, "outputs": theirs["outputs"]}

    return {**own, "cells": list(map(shown, own["cells"]))}


def _emptied(cell: Cell) -> Cell:
    return {**cell, "outputs": [], "execution_count": None}


def without_views(notebook: Notebook) -> Notebook:
    """The notebook without its labs' live views, whose kernels are gone. Still pictures stay."""

    def still(cell: Cell) -> Cell:
        if not cell.get("outputs"):
            return cell
        return {**cell, "outputs": list(map(_without_view, cell["outputs"]))}

    return {**notebook, "cells": list(map(still, notebook["cells"]))}


def _without_view(output: dict[str, object]) -> dict[str, object]:
    data = output.get("data", {})
    if WIDGET not in data or "image/png" not in data:
        return output
    return {**output, "data": {kind: value for kind, value in data.items() if kind != WIDGET}}
