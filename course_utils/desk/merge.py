"""A course's new version and a reader's own, made one: cell by cell, against the version that both began from.

What the reader changed, added or deleted stays so; all else follows the course. Only a cell's text
counts as a change: outputs, counts and times come of running it. Where both changed the same cell, the
reader's stays, and the course's new text stands below it, as text: as code it would run over the answer.
"""

import hashlib
import re

from course_utils.desk.notebooks import WIDGET, Cell, Notebook, source


def merged(base: Notebook, course: Notebook, own: Notebook) -> tuple[Notebook, list[str]]:
    """The reader's notebook brought up to date, and the ids of the cells that both had changed."""
    before, theirs, mine = (_by_id(notebook) for notebook in (base, course, own))
    cells: dict[str, Cell] = {}
    both_changed = []
    for id_ in _order(before, theirs, mine):
        cell = _chosen(before.get(id_), theirs.get(id_), mine.get(id_))
        if cell is None:
            continue
        cells[id_] = cell
        if _in_conflict(before.get(id_), theirs.get(id_), mine.get(id_)):
            both_changed.append(id_)
            note = _note(theirs[id_])
            if note["id"] not in mine:
                cells[note["id"]] = note
    return {**own, "cells": list(cells.values())}, both_changed


def restored(base: Notebook, own: Notebook, ids: tuple[str, ...]) -> Notebook:
    """The reader's notebook with these cells as the course has them; those that were deleted are back."""
    again, mine = _by_id(base), _by_id(own)
    order = _woven(list(mine), [id_ for id_ in again if id_ in mine or id_ in ids])
    return {**own, "cells": [again[id_] if id_ in ids else mine[id_] for id_ in order]}


def _by_id(notebook: Notebook) -> dict[str, Cell]:
    return {cell["id"]: cell for cell in notebook["cells"]}


def _chosen(before: Cell | None, theirs: Cell | None, mine: Cell | None) -> Cell | None:
    if mine is None:  # deleted by the reader, and back only if the course has something new to say there
        return theirs if theirs and (before is None or _text(theirs) != _text(before)) else None
    if theirs is None:  # the reader's own, or deleted by the course
        return mine if before is None or _text(mine) != _text(before) else None
    if _text(mine) == _text(theirs):
        untouched = before is not None and _shown(mine) == _shown(before)
        return theirs if untouched and _text(before) == _text(mine) else mine
    return theirs if before is not None and _text(mine) == _text(before) else mine


def _in_conflict(before: Cell | None, theirs: Cell | None, mine: Cell | None) -> bool:
    if theirs is None or mine is None or _text(mine) == _text(theirs):
        return False
    return before is None or _text(before) not in (_text(mine), _text(theirs))


def _text(cell: Cell) -> tuple[str, str]:
    return cell["cell_type"], source(cell)


def _shown(cell: Cell) -> list[object]:
    """A cell's outputs but for what differs from run to run, and for how their text is broken into lines."""
    return [
        {
            kind: "".join(text) if isinstance(text, list) else text
            for kind, text in {**output.get("data", {}), "text": output.get("text", "")}.items()
            if kind != WIDGET
        }
        for output in cell.get("outputs", [])
    ]


def _order(before: dict[str, Cell], theirs: dict[str, Cell], mine: dict[str, Cell]) -> list[str]:
    """The reader's order, unless the course has moved its cells: then the course's."""
    shared = [id_ for id_ in before if id_ in theirs]
    moved = shared != [id_ for id_ in theirs if id_ in before]
    first, second = (theirs, mine) if moved else (mine, theirs)
    return _woven(list(first), list(second))


def _woven(first: list[str], second: list[str]) -> list[str]:
    """The first list, and in it what only the second has: each behind what it stands behind there."""
    order, place = list(first), 0
    for id_ in second:
        if id_ in first:
            place = order.index(id_) + 1
        else:
            order.insert(place, id_)
            place += 1
    return order


def _note(theirs: Cell) -> Cell:
    """The course's new text of a cell that the reader has changed, too."""
    text = source(theirs)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    words = (
        "**The course has changed this cell, and so have you.** Yours stands above. The course's new text:"
    )
    language = "python" if theirs["cell_type"] == "code" else "markdown"
    told = f"{words}\n\n{fence}{language}\n{text}\n{fence}"
    digest = hashlib.sha256(f"{theirs['id']} {text}".encode()).hexdigest()[:12]
    return {"cell_type": "markdown", "id": f"new-{digest}", "metadata": {}, "source": told.splitlines(True)}
