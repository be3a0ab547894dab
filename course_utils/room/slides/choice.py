"""What of a notebook is for the room: all of its text, and the code that says something."""

import ast
import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from course_utils.desk.notebooks import WIDGET

SOLUTION = re.compile(r"<details>.*?</details>", re.DOTALL)
NOT_ATTEMPTED = "Not attempted yet"


def pieces(notebook: NotebookNode) -> Iterator[tuple[str, str | NotebookNode]]:
    """What is shown of the notebook, in its order.

    "prose" is in Markdown, "code" in Python, an "output" by its MIME type; "guess" says of what the room is asked to
    guess before the next slide, and "turn" asks for an answer.
    """
    after_prose = False
    for at, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            if text := SOLUTION.sub("", cell.source).strip():
                yield "prose", text
                after_prose = True
        elif cell.cell_type == "code":
            outputs = [output.data for output in cell.outputs if "data" in output]
            if is_shown(cell.source, outputs, after_prose):
                yield "code", cell.source
            below = notebook.cells[at + 1 :]
            if is_guess(cell.source, below):
                yield "guess", cell.source.partition("#")[2].strip()
            elif is_turn(cell.source, below):
                yield "turn", ""
            after_prose = after_prose and is_preparation(cell.source)
            yield from (("output", data) for data in outputs if not waits_for_the_reader(data))


def is_shown(source: str, outputs: list[NotebookNode], after_prose: bool) -> bool:
    """Not what only prepares, waits or draws; a definition only where the text has just introduced it."""
    if is_preparation(source) or any(map(waits_for_the_reader, outputs)):
        return False
    if not outputs:
        return after_prose
    shown = set().union(*outputs)
    (first, *more) = ast.parse(source).body
    only_draws = "image/png" in shown and isinstance(first, ast.Expr) and not more
    return not only_draws and WIDGET not in shown


def is_preparation(source: str) -> bool:
    """Nothing but imports and places for the reader's answers."""
    body = ast.parse(source).body
    return all(isinstance(node, ast.Import | ast.ImportFrom) or is_stub(node) for node in body)


def is_guess(source: str, below: Sequence[NotebookNode]) -> bool:
    """Whether it is a place for a guess, and not for an answer that the next cell checks."""
    body = ast.parse(source).body
    is_open = bool(body) and all(isinstance(node, ast.Assign) and is_stub(node) for node in body)
    return is_open and not _is_checked(below)


def is_turn(source: str, below: Sequence[NotebookNode]) -> bool:
    """Whether it is a place for an answer that the next cell checks."""
    return any(map(is_stub, ast.parse(source).body)) and _is_checked(below)


def _is_checked(below: Sequence[NotebookNode]) -> bool:
    return "check." in next((cell.source for cell in below if cell.cell_type == "code"), "")


def is_stub(node: ast.stmt) -> bool:
    """Something given as `...`, or a function whose whole body is `return ...`."""
    if isinstance(node, ast.FunctionDef):
        (*docstring, last) = node.body
        return len(docstring) < 2 and isinstance(last, ast.Return) and is_stub_value(last.value)
    return isinstance(node, ast.Assign) and is_stub_value(node.value)


def is_stub_value(value: ast.expr | None) -> bool:
    """Whether it is the `...` of an answer that is not given yet, or a dict of them."""
    if isinstance(value, ast.Dict):
        return all(map(is_stub_value, value.values))
    return isinstance(value, ast.Constant) and value.value is ...


def waits_for_the_reader(data: NotebookNode) -> bool:
    """Whether an output only says that nothing has been tried."""
    return NOT_ATTEMPTED in data.get("text/plain", "")
