"""A three-way merge of notebooks, cell by cell.

The three versions have the same names everywhere: `base` is the notebook that the reader's copy was
made from, `course` the course's new version, and `own` the reader's copy. What the reader changed,
added or deleted stays so; all else follows the course. Only a cell's text counts as a change,
because outputs, counts and times come from running it. Where both changed the same cell, both
changes are made if they concern different lines. Otherwise the reader's text stays, and the
course's stands in a note below it. The note is a cell of text, since a cell of code would run and
replace the reader's answer.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from course_utils.stage.notebook.files import Cell, Notebook, source

CONFLICT = "The course has changed this cell, and so have you."


def merged(base: Notebook, course: Notebook, own: Notebook) -> tuple[Notebook, list[str]]:
    """Return the reader's notebook brought up to date, and the ids of the cells in conflict."""
    base_cells = _by_id(base)
    course_cells = _by_id(course)
    own_cells = _by_id(own)
    cells: dict[str, Cell] = {}
    conflicts = []
    for id_ in _order(base_cells, course_cells, own_cells):
        result = _merge(base_cells.get(id_), course_cells.get(id_), own_cells.get(id_))
        if result.cell:
            cells[id_] = result.cell
        if result.is_conflict:
            conflicts.append(id_)
            # A conflict needs changes of the course's, so the course still has the cell.
            note = _note(course_cells[id_])
            # The note of an earlier merge stays, since the reader may have written into it.
            cells[note["id"]] = own_cells.get(note["id"], note)
    return {**own, "cells": list(cells.values())}, conflicts


def restored(course: Notebook, own: Notebook, ids: tuple[str, ...]) -> Notebook:
    """Return the reader's notebook with the cells `ids` as the course has them.

    Those that the reader has deleted are put back. All other cells stay as they are.
    """
    course_cells = _by_id(course)
    own_cells = _by_id(own)
    # Of the course's cells, those that the result has.
    needed = [id_ for id_ in course_cells if id_ in own_cells or id_ in ids]
    order = woven(list(own_cells), needed)  # the reader's order, with deleted cells put back
    cells = [course_cells[id_] if id_ in ids else own_cells[id_] for id_ in order]
    return {**own, "cells": cells}


def _by_id(notebook: Notebook) -> dict[str, Cell]:
    return {cell["id"]: cell for cell in notebook["cells"]}


@dataclass(frozen=True)
class _Merged:
    """A cell after the merge, or None if it is deleted.

    In a conflict, both the reader and the course have changed the same lines of the cell.
    """

    cell: Cell | None
    is_conflict: bool = False


def _merge(base: Cell | None, course: Cell | None, own: Cell | None) -> _Merged:
    """Return one cell merged. A version that does not have the cell is None."""
    base_text = _kind_and_text(base)
    course_text = _kind_and_text(course)
    own_text = _kind_and_text(own)
    if own is None:
        # The reader has deleted the cell, or never had it. It comes if its text is new.
        return _Merged(None if course_text == base_text else course)
    if course is None:
        # The course has deleted the cell, or the reader added it. What the reader wrote stays.
        return _Merged(None if own_text == base_text else own)
    if own_text == course_text or course_text == base_text:
        return _Merged(own)
    if own_text == base_text:
        return _Merged(course)
    return _with_changes_of_both(base, course, own)


def _with_changes_of_both(base: Cell | None, course: Cell, own: Cell) -> _Merged:
    """Return the cell with the reader's changes and the course's, or the reader's in a conflict."""
    # Both have added the cell, or one has turned code into text: there is no merging by lines.
    if base is None or _number_of_cell_types(base, course, own) > 1:
        return _Merged(own, is_conflict=True)
    text = _with_both_changes(source(base), source(course), source(own))
    if text is None:
        return _Merged(own, is_conflict=True)
    return _Merged({**own, "source": text.splitlines(keepends=True)})


def _number_of_cell_types(*cells: Cell) -> int:
    """Return how many types the cells have: 1 if all are code, or all are text."""
    return len({cell["cell_type"] for cell in cells})


def _with_both_changes(base: str, course: str, own: str) -> str | None:
    """Return the base text with both versions' changes; None if these concern the same line.

    Lines that both have added at the same point follow one another, the course's first.

    >>> _with_both_changes("import a, b", "import a", "import os\\nimport a, b")
    'import os\\nimport a'
    """
    base_lines = base.split("\n")
    course_lines = course.split("\n")
    own_lines = own.split("\n")
    # After an earlier merge that was interrupted, the reader's copy contains the change already.
    if _has_change(own=own_lines, base=base_lines, course=course_lines):
        return own
    changes = _changes(base_lines, course_lines) + _changes(base_lines, own_lines)
    # Changes at the same point stay in this order, because Python's sort is stable.
    changes.sort(key=lambda change: (change.begin, change.end))
    lines = []
    done = 0  # how many lines of the base text are in `lines`, or were replaced
    for change in changes:
        if change.begin < done:  # these lines were replaced by the change before
            return None
        lines += base_lines[done : change.begin]
        lines += change.lines
        done = change.end
    lines += base_lines[done:]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Change:
    """The lines of the base text from `begin` to before `end` are replaced by `lines`."""

    begin: int
    end: int
    lines: list[str]


def _changes(base: list[str], changed: list[str]) -> list[_Change]:
    """Return the changes that make the changed lines out of the base lines."""
    changes = []
    matcher = SequenceMatcher(None, base, changed, autojunk=False)
    for kind, begin, end, changed_begin, changed_end in matcher.get_opcodes():
        if kind != "equal":
            changes.append(_Change(begin, end, changed[changed_begin:changed_end]))
    return changes


def _has_change(*, own: list[str], base: list[str], course: list[str]) -> bool:
    """Whether the reader's copy, too, has all lines that the course added, and none it removed.

    Only how often each line occurs is compared, because the reader's own changes may have moved the
    lines. If the course only moved lines, no number has changed, and the result is False.
    """
    in_own = Counter(own)  # the number of times that each line occurs
    in_base = Counter(base)
    in_course = Counter(course)
    if in_course == in_base:
        return False
    added = in_course - in_base  # what is below 0 is left out, as always between two Counters
    removed = in_base - in_course
    # `<=` says that no line occurs more often on the left than on the right.
    return added <= in_own - in_base and removed <= in_base - in_own


def _kind_and_text(cell: Cell | None) -> tuple[str, str] | None:
    """Return the kind and the text of a cell; None if there is no cell.

    A cell counts as changed only if its kind or its text differs, and not its outputs.
    """
    if cell is None:
        return None
    return cell["cell_type"], source(cell)


def _order(base: dict[str, Cell], course: dict[str, Cell], own: dict[str, Cell]) -> list[str]:
    """Return the ids of all cells in the reader's order; in the course's, if that has changed."""
    order_before = [id_ for id_ in base if id_ in course]
    order_now = [id_ for id_ in course if id_ in base]
    # The first argument of `woven` keeps its order; the second one only adds what the first lacks.
    if order_before == order_now:
        return woven(list(own), list(course))
    return woven(list(course), list(own))


def woven(first: list[str], second: list[str]) -> list[str]:
    """Return the first list, with the items that only the second list has.

    Each added item stands behind the item that it follows in the second list.

    >>> woven(["a", "b", "c"], ["a", "x", "y", "c"])
    ['a', 'x', 'y', 'b', 'c']
    """
    order = list(first)
    at = 0  # where the next item that only the second list has is added
    for item in second:
        if item in first:
            at = order.index(item) + 1
        else:
            order.insert(at, item)
            at += 1
    return order


def _note(course: Cell) -> Cell:
    """Return the cell of text that goes below the reader's, with the course's new text in it."""
    text = source(course)
    # The fence around the text has to be longer than any row of backticks in it.
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    language = "python" if course["cell_type"] == "code" else "markdown"
    words = f"**{CONFLICT}** Yours stands above. The course's new text:"
    note = f"{words}\n\n{fence}{language}\n{text}\n{fence}"
    # The same text gets the same id again, so that a second merge adds no second note.
    digest = hashlib.sha256(f"{course['id']} {text}".encode()).hexdigest()
    return {
        "cell_type": "markdown",
        "id": f"new-{digest[:12]}",
        "metadata": {},
        "source": note.splitlines(keepends=True),
    }
