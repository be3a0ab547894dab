"""The spacer below a guess, which keeps what follows out of view until it is made."""

from course_utils.stage.notebook.files import Cell, Notebook
from course_utils.stage.notebook.outline import outline

# The stored output of a guess that is still to come. It fills the window, so that nothing of the
# answer is in it; and it goes as soon as the cell runs, as any output does.
SPACER_LINES = 38
WITHIN = 3  # code cells below a guess, its answer is shown
WORDS = (
    "Your guess first: in place of the dots, or in the picture that this cell draws. "
    "Run the cell, and what follows comes up."
)
SPACER = {
    "data": {"text/plain": [f"{WORDS}\n", *["\n"] * SPACER_LINES, "."]},
    "metadata": {},
    "output_type": "display_data",
}


def with_spacers(notebook: Notebook) -> Notebook:
    """The notebook with a spacer below each guess that has not run; not where it is answered."""
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    after = {cell["id"]: code[at + 1 : at + 1 + WITHIN] for at, cell in enumerate(code)}
    asks = {part.id for part in outline(notebook).parts if part.waits_for_a_guess}

    def waits(cell: Cell) -> bool:
        if cell["id"] not in asks or cell["outputs"] or cell["execution_count"] is not None:
            return False
        return not any(one["outputs"] for one in after[cell["id"]])

    shown = [{**cell, "outputs": [SPACER]} if waits(cell) else cell for cell in cells]
    return {**notebook, "cells": shown}


def without_spacers(notebook: Notebook) -> Notebook:
    cells = [{**cell, "outputs": []} if has_spacer(cell) else cell for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def has_spacer(cell: Cell) -> bool:
    """Whether the cell's output is only a spacer."""
    outputs = cell.get("outputs", [])
    return bool(outputs) and all(
        WORDS in "".join(out.get("data", {}).get("text/plain", "")) for out in outputs
    )
