"""What the room guessed, as a table for a spreadsheet: a row for each value in each round."""

import csv
import io
from collections.abc import Iterator, Sequence

from course_utils.stage.poll.rounds import Json, Value

HEAD = ("question", "words", "unit", "round", "guess", "how many", "right", "answer", "answer is")
MARK = "\ufeff"  # without it, Excel takes the text for another encoding


def as_csv(states: Sequence[Json]) -> str:
    """The table, ready for a spreadsheet: no text in it begins a formula."""
    file = io.StringIO()
    table = csv.writer(file)
    table.writerow(HEAD)
    for state in states:
        table.writerows([_plain(cell) for cell in row] for row in _rows(state))
    return MARK + file.getvalue()


def _rows(state: Json) -> Iterator[list[Value]]:
    asked = [state["key"], " ".join(state["words"].split()), state["unit"]]
    answer = ["" if state["measured"] is None else state["measured"], state["how"] or ""]
    for number, guessed in enumerate(state["rounds"], 1):
        for value, count in guessed:
            yield [*asked, number, value, count, _is_right(state, value), *answer]


def _is_right(state: Json, value: Value) -> str:
    """By the stricter of the bands, if there are two."""
    if state["measured"] is None:
        return ""
    if isinstance(state["measured"], str):
        return "yes" if value == state["measured"] else "no"
    (low, high, _), *_ = state["bands"] or [(state["measured"], state["measured"], "")]
    return "yes" if low <= value <= high else "no"


def _plain(cell: Value) -> Value:
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t"))
    return f"'{cell}" if is_formula else cell
