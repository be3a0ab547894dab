"""The guesses of the room as a table for a spreadsheet: a row for each value in each round."""

import csv
import io
from collections.abc import Iterator, Sequence

from course_utils.stage.poll.rounds import Json, Value

HEAD = (
    "question",
    "words",
    "unit",
    "round",
    "guess",
    "how many",
    "right",
    "answer",
    "answer is",
)
MARK = "\ufeff"  # a byte order mark: without it, Excel takes the text for another encoding


def as_csv(states: Sequence[Json]) -> str:
    """Return the table as text in which no cell begins a formula."""
    file = io.StringIO()
    table = csv.writer(file)
    table.writerow(HEAD)
    for state in states:
        for row in _rows(state):
            table.writerow([_plain(cell) for cell in row])
    return MARK + file.getvalue()


def _rows(state: Json) -> Iterator[list[Value]]:
    """Yield a row, with the columns of HEAD, for each value that was guessed in each round."""
    words = " ".join(state["words"].split())  # in one line
    measured = "" if state["measured"] is None else state["measured"]
    how = state["how"] or ""  # what the answer is called, such as "measured"
    for number, guessed in enumerate(state["rounds"], start=1):
        for value, count in guessed:
            yield [
                state["key"],
                words,
                state["unit"],
                number,
                value,
                count,
                _is_right(state, value),
                measured,
                how,
            ]


def _is_right(state: Json, value: Value) -> str:
    """Whether the guess is right, as "yes" or "no"; "" if the answer is unknown.

    If there are two bands, the stricter one counts.
    """
    measured = state["measured"]
    if measured is None:
        return ""
    if isinstance(measured, str):
        return "yes" if value == measured else "no"
    # Without bands, only the exact answer is right. The strictest band comes first; each has its
    # two ends and its words.
    bands = state["bands"] or [(measured, measured, "")]
    low, high, _ = bands[0]
    return "yes" if low <= value <= high else "no"


def _plain(cell: Value) -> Value:
    """Return the cell; a text that is a formula to a spreadsheet gets an apostrophe in front."""
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t"))
    return f"'{cell}" if is_formula else cell
