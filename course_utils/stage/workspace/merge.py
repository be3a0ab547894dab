"""A three-way merge of notebooks, cell by cell.

It takes the notebook that the reader's copy was made from (`base`), the course's new version
(`course`), and the reader's copy (`own`). What the reader changed, added or deleted stays so; all
else follows the course. Only a cell's text counts as a change, because outputs, counts and times
come from running it. Where both changed the same cell, both changes are made if they concern
different lines. Otherwise the reader's text stays, and the course's stands in a note below it. The
note is a cell of text, since a cell of code would run and replace the reader's answer.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

from course_utils.stage.notebook.files import Cell, Notebook, source

CONFLICT = "The course has changed this cell, and so have you."


def merged(base: Notebook, course: Notebook, own: Notebook) -> tuple[Notebook, list[str]]:
    """The reader's notebook brought up to date, and the ids of the cells in conflict."""
    before = _by_id(base)
    theirs = _by_id(course)
    mine = _by_id(own)
    cells: dict[str, Cell] = {}
    conflicts = []
    for id_ in _order(before, theirs, mine):
        result = _merge(before.get(id_), theirs.get(id_), mine.get(id_))
        if result.cell:
            cells[id_] = result.cell
        if result.is_conflict:
            conflicts.append(id_)
            note = _note(theirs[id_])
            cells[note["id"]] = mine.get(note["id"], note)  # the reader may have written into it
    return {**own, "cells": list(cells.values())}, conflicts


def restored(base: Notebook, own: Notebook, ids: tuple[str, ...]) -> Notebook:
    """The reader's notebook with these cells as the course has them, even if they were deleted."""
    again = _by_id(base)
    mine = _by_id(own)
    known = [id_ for id_ in again if id_ in mine or id_ in ids]
    order = woven(list(mine), known)
    cells = [again[id_] if id_ in ids else mine[id_] for id_ in order]
    return {**own, "cells": cells}


def _by_id(notebook: Notebook) -> dict[str, Cell]:
    return {cell["id"]: cell for cell in notebook["cells"]}


@dataclass(frozen=True)
class _Merged:
    """The cell after the merge, or None if it is deleted; and whether both changed its lines."""

    cell: Cell | None
    is_conflict: bool = False


def _merge(before: Cell | None, theirs: Cell | None, mine: Cell | None) -> _Merged:
    """One cell merged. Each version is None where it does not have the cell."""
    old = _text(before)
    new = _text(theirs)
    own = _text(mine)
    if mine is None:
        # The reader deleted it. It comes back only if the course has something new to say there.
        return _Merged(None if new == old else theirs)
    if theirs is None:
        # The course deleted it, or it is the reader's own. What the reader changed stays.
        return _Merged(None if own == old else mine)
    if own == new or new == old:
        return _Merged(mine)
    if own == old:
        return _Merged(theirs)
    return _with_changes_of_both(before, theirs, mine)


def _with_changes_of_both(before: Cell | None, theirs: Cell, mine: Cell) -> _Merged:
    if before is None or _kinds(before, theirs, mine) > 1:
        return _Merged(mine, is_conflict=True)
    text = _with_both_changes(source(before), source(theirs), source(mine))
    if text is None:
        return _Merged(mine, is_conflict=True)
    return _Merged({**mine, "source": text.splitlines(keepends=True)})


def _kinds(*cells: Cell) -> int:
    return len({cell["cell_type"] for cell in cells})


def _with_both_changes(before: str, theirs: str, mine: str) -> str | None:
    """The text with both changes, or None if both changed the same lines.

    Lines that both added at the same point follow one another, the course's first.

    >>> _with_both_changes("import a, b", "import a", "import os\\nimport a, b")
    'import os\\nimport a'
    """
    old = before.split("\n")
    new = theirs.split("\n")
    own = mine.split("\n")
    if _has_all_of(Counter(own), Counter(new), Counter(old)):
        return mine
    changes = _changes(old, new) + _changes(old, own)
    changes.sort(key=lambda change: (change.begin, change.end))
    lines = []
    done = 0  # lines of the old text
    for change in changes:
        if change.begin < done:
            return None
        lines += old[done : change.begin]
        lines += change.lines
        done = change.end
    lines += old[done:]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Change:
    """The old text's lines from `begin` to `end` are replaced by these."""

    begin: int
    end: int
    lines: list[str]


def _changes(old: list[str], new: list[str]) -> list[_Change]:
    changes = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, begin, end, new_begin, new_end in matcher.get_opcodes():
        if kind != "equal":
            changes.append(_Change(begin, end, new[new_begin:new_end]))
    return changes


def _has_all_of(own: Counter[str], new: Counter[str], old: Counter[str]) -> bool:
    """Whether the reader's lines contain the course's change already.

    They do after a merge that was interrupted before it was recorded.
    """
    if new == old:
        return False
    added = new - old
    removed = old - new
    return added <= own - old and removed <= old - own


def _text(cell: Cell | None) -> tuple[str, str] | None:
    """What a change is judged by: the cell's kind and its text."""
    if cell is None:
        return None
    return cell["cell_type"], source(cell)


def _order(before: dict[str, Cell], theirs: dict[str, Cell], mine: dict[str, Cell]) -> list[str]:
    """The reader's order, unless the course has moved its cells: then the course's."""
    order_before = [id_ for id_ in before if id_ in theirs]
    order_now = [id_ for id_ in theirs if id_ in before]
    if order_before == order_now:
        return woven(list(mine), list(theirs))
    return woven(list(theirs), list(mine))


def woven(first: list[str], second: list[str]) -> list[str]:
    """The first list, with the items that only the second one has.

    Each of these stands behind the item that it follows in the second list.

    >>> woven(["a", "b", "c"], ["a", "x", "y", "c"])
    ['a', 'x', 'y', 'b', 'c']
    """
    order = list(first)
    at = 0
    for item in second:
        if item in first:
            at = order.index(item) + 1
        else:
            order.insert(at, item)
            at += 1
    return order


def _note(theirs: Cell) -> Cell:
    """A cell with the course's new text, for below the reader's."""
    text = source(theirs)
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    language = "python" if theirs["cell_type"] == "code" else "markdown"
    words = f"**{CONFLICT}** Yours stands above. The course's new text:"
    note = f"{words}\n\n{fence}{language}\n{text}\n{fence}"
    digest = hashlib.sha256(f"{theirs['id']} {text}".encode()).hexdigest()
    return {
        "cell_type": "markdown",
        "id": f"new-{digest[:12]}",
        "metadata": {},
        "source": note.splitlines(keepends=True),
    }
