"""A three-way merge of notebooks, cell by cell: the course's new version, the reader's own, and the base of both.

What the reader changed, added or deleted stays so; all else follows the course. Only a cell's text
counts as a change: outputs, counts and times come of running it. Where both changed the same cell, both changes
are made if they touch different lines. If not, the reader's text stays, and the course's stands below it, as
text: as code it would run over the answer.
"""

import hashlib
import re
from collections import Counter
from difflib import SequenceMatcher

from course_utils.stage.notebook.files import Cell, Notebook, source

CONFLICT = "The course has changed this cell, and so have you."


def merged(base: Notebook, course: Notebook, own: Notebook) -> tuple[Notebook, list[str]]:
    """The reader's notebook brought up to date, and the ids of the cells in conflict: both had changed the same lines."""
    before, theirs, mine = (_by_id(notebook) for notebook in (base, course, own))
    cells: dict[str, Cell] = {}
    conflicts = []
    for id_ in _order(before, theirs, mine):
        cell, note = _merged_cell(before.get(id_), theirs.get(id_), mine.get(id_))
        if cell:
            cells[id_] = cell
        if note:
            conflicts.append(id_)
            cells[note["id"]] = mine.get(note["id"], note)
    return {**own, "cells": list(cells.values())}, conflicts


def restored(base: Notebook, own: Notebook, ids: tuple[str, ...]) -> Notebook:
    """The reader's notebook with these cells as the course has them; those that were deleted are back."""
    again, mine = _by_id(base), _by_id(own)
    order = woven(list(mine), [id_ for id_ in again if id_ in mine or id_ in ids])
    return {**own, "cells": [again[id_] if id_ in ids else mine[id_] for id_ in order]}


def _by_id(notebook: Notebook) -> dict[str, Cell]:
    return {cell["id"]: cell for cell in notebook["cells"]}


def _merged_cell(
    before: Cell | None, theirs: Cell | None, mine: Cell | None
) -> tuple[Cell | None, Cell | None]:
    """The merged cell, or None if it goes; and the note below it, or None without a conflict."""
    old, new, own = (cell and _text(cell) for cell in (before, theirs, mine))
    if (
        mine is None
    ):  # deleted by the reader, and back only if the course has something new to say there
        return (None if new == old else theirs), None
    if theirs is None:  # the reader's own, or deleted by the course
        return (None if own == old else mine), None
    if own == new or new == old:
        return mine, None
    if own == old:
        return theirs, None
    is_one_kind = before and before["cell_type"] == theirs["cell_type"] == mine["cell_type"]
    both = _with_both_changes(source(before), source(theirs), source(mine)) if is_one_kind else None
    return (
        (mine, _note(theirs)) if both is None else ({**mine, "source": both.splitlines(True)}, None)
    )


def _with_both_changes(before: str, theirs: str, mine: str) -> str | None:
    """The text with both changes, or None if both changed the same lines.

    What both added at one place stands there one after the other, the course's first.

    >>> _with_both_changes("import a, b", "import a", "import os\\nimport a, b")
    'import os\\nimport a'
    """
    old, new, own = (text.split("\n") for text in (before, theirs, mine))
    if _has_all_of(Counter(own), Counter(new), Counter(old)):
        return mine
    changes = []
    for lines in (new, own):
        for kind, begin, end, first, last in SequenceMatcher(
            None, old, lines, autojunk=False
        ).get_opcodes():
            if kind != "equal":
                changes.append((begin, end, lines[first:last]))
    text, place = [], 0
    for begin, end, lines in sorted(changes, key=lambda change: change[:2]):
        if begin < place:
            return None
        text += [*old[place:begin], *lines]
        place = end
    return "\n".join([*text, *old[place:]])


def _has_all_of(own: Counter[str], new: Counter[str], old: Counter[str]) -> bool:
    """Whether the reader's lines already contain the course's change, as after a merge that was interrupted."""
    return new != old and new - old <= own - old and old - new <= old - own


def _text(cell: Cell) -> tuple[str, str]:
    return cell["cell_type"], source(cell)


def _order(before: dict[str, Cell], theirs: dict[str, Cell], mine: dict[str, Cell]) -> list[str]:
    """The reader's order, unless the course has moved its cells: then the course's."""
    shared = [id_ for id_ in before if id_ in theirs]
    moved = shared != [id_ for id_ in theirs if id_ in before]
    first, second = (theirs, mine) if moved else (mine, theirs)
    return woven(list(first), list(second))


def woven(first: list[str], second: list[str]) -> list[str]:
    """The first list, with the items that only the second has. Each stands after the item that it follows in the second."""
    order, place = list(first), 0
    for id_ in second:
        if id_ in first:
            place = order.index(id_) + 1
        else:
            order.insert(place, id_)
            place += 1
    return order


def _note(theirs: Cell) -> Cell:
    """The course's new text of a cell where the reader has changed the same lines."""
    text = source(theirs)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    language = "python" if theirs["cell_type"] == "code" else "markdown"
    words = f"**{CONFLICT}** Yours stands above. The course's new text:\n\n{fence}{language}\n{text}\n{fence}"
    digest = hashlib.sha256(f"{theirs['id']} {text}".encode()).hexdigest()[:12]
    return {
        "cell_type": "markdown",
        "id": f"new-{digest}",
        "metadata": {},
        "source": words.splitlines(True),
    }
