"""What waits for the reader in a notebook: guesses, answers to turns, and the room that keeps what follows out of view."""

import ast
import re
from collections.abc import Sequence

from course_utils.stage.workspace.notebooks import Cell, Notebook, source

# The stored output of a guess that is still to come. It fills the window, so that nothing of the answer is in it; and
# it goes as soon as the cell runs, as any output does.
ROOM_LINES = 38
WITHIN = 3  # code cells below a guess, its answer is shown
WORDS = "Your guess first: in place of the dots, or in the picture that this cell draws. Run the cell, and what follows comes up."
ROOM = {
    "data": {"text/plain": [f"{WORDS}\n", *["\n"] * ROOM_LINES, "."]},
    "metadata": {},
    "output_type": "display_data",
}


def with_room(notebook: Notebook) -> Notebook:
    """The notebook with room below each guess that has not run and whose answer is not shown."""
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    after = {cell["id"]: code[at + 1 : at + 1 + WITHIN] for at, cell in enumerate(code)}

    def waits(at: int, cell: Cell) -> bool:
        if cell["cell_type"] != "code" or cell["outputs"] or cell["execution_count"] is not None:
            return False
        return asks(cell, cells[at + 1 :]) and not any(one["outputs"] for one in after[cell["id"]])

    shown = [{**cell, "outputs": [ROOM]} if waits(at, cell) else cell for at, cell in enumerate(cells)]
    return {**notebook, "cells": shown}


def without_room(notebook: Notebook) -> Notebook:
    cells = [{**cell, "outputs": []} if has_room(cell) else cell for cell in notebook["cells"]]
    return {**notebook, "cells": cells}


def has_room(cell: Cell) -> bool:
    """Whether the cell's output is only room."""
    outputs = cell.get("outputs", [])
    return bool(outputs) and all(
        WORDS in "".join(out.get("data", {}).get("text/plain", "")) for out in outputs
    )


def asks(cell: Cell, below: Sequence[Cell]) -> bool:
    """Whether it is a place for a guess, typed or drawn."""
    return is_guess(cell, below) or asks_in_the_picture(source(cell))


def is_guess(cell: Cell, below: Sequence[Cell]) -> bool:
    """Whether it is a place for a guess to type, and not for an answer that the next cell checks."""
    return is_open(source(cell)) and not _is_checked(below)


def is_open(text: str) -> bool:
    """Whether all that the cell does is to set names to `...`."""
    body = _parsed(text)
    return bool(body) and all(isinstance(node, ast.Assign) and is_stub(node) for node in body)


def asks_in_the_picture(text: str) -> bool:
    """Whether the cell makes a figure in which a guess is drawn: it has the button *Show*."""
    return bool(re.search(r'labs\.figure\([^)]*"shown"', text))


def is_turn(cell: Cell, below: Sequence[Cell]) -> bool:
    """Whether it is a place for an answer that the next cell checks."""
    return any(map(is_stub, _parsed(source(cell)))) and _is_checked(below)


def _parsed(text: str) -> list[ast.stmt]:
    """The cell's statements; none if it is not Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return []


def _is_checked(below: Sequence[Cell]) -> bool:
    return "check." in next((source(cell) for cell in below if cell["cell_type"] == "code"), "")


def is_stub(node: ast.stmt) -> bool:
    """Whether it sets something to `...`, or is a function whose whole body is `return ...`."""
    if isinstance(node, ast.FunctionDef):
        (*docstring, last) = node.body
        return len(docstring) < 2 and isinstance(last, ast.Return) and is_stub_value(last.value)
    return isinstance(node, ast.Assign) and is_stub_value(node.value)


def is_stub_value(value: ast.expr | None) -> bool:
    """Whether it is the `...` of an answer that is not given yet, or a dict of them."""
    if isinstance(value, ast.Dict):
        return all(map(is_stub_value, value.values))
    return isinstance(value, ast.Constant) and value.value is ...
