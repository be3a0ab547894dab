"""A notebook cut down to what a lecture of so many minutes shows, so that nobody has to jump in front of a room.

`notebooks/cuts.toml` says which sections and turns a lecture has. Whatever they need of the rest runs in folded
cells, so a cut runs from top to bottom by itself.
"""

import symtable
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.stage.notebook.code import is_open
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.outline import Part, is_code, outline, parted

FILE = "cuts.toml"
WORDS = "# The lecture leaves this out, and what follows needs it."


@dataclass(frozen=True)
class Plan:
    """What a lecture shows: these sections, and of their turns these alone; without some cells, by their ids."""

    sections: tuple[str, ...]
    turns: tuple[int, ...] = ()
    without: tuple[str, ...] = ()


def plans(path: Path) -> dict[str, Plan]:
    """The plans of that notebook, by the lecture's minutes; the file with them lies beside it."""
    cuts = tomllib.loads(path.with_name(FILE).read_text(encoding="utf-8")).get(path.stem, {})
    return {
        minutes: Plan(**{of: tuple(some) for of, some in said.items()})
        for minutes, said in cuts.items()
    }


def plan(path: Path, minutes: str) -> Plan:
    """The plan for so many minutes; ValueError if there is none."""
    there_are = plans(path)
    if minutes not in there_are:
        known = ", ".join(there_are) or "none"
        raise ValueError(
            f"There is no cut of {path.stem} for {minutes!r} minutes. There are cuts for: {known}."
        )
    return there_are[minutes]


def cut(notebook: Notebook, lecture: Plan) -> Notebook:
    """The notebook as that lecture shows it."""
    cells = list(parted(notebook["cells"]))
    seen = [_is_seen(part, lecture) for part in outline({"cells": cells}).parts]
    needed = _needed(cells, seen)
    imports = next(at for at, cell in enumerate(cells) if is_code(cell))
    kept, unseen = [], []
    for at, cell in enumerate(cells):
        if at in needed:
            unseen.append(cell)
        if not seen[at]:
            continue
        if unseen and is_code(cell):
            kept.insert(_after_what_ran(kept), _together(unseen))
            unseen = []
        kept.append(_folded(cell) if at == imports else cell)
    return {**notebook, "cells": kept}


def _after_what_ran(cells: Sequence[Cell]) -> int:
    """The place behind the last cell that computes: before a question, and what leads to it."""
    for at in reversed(range(len(cells))):
        if is_code(cells[at]) and not is_open(source(cells[at])):
            return at + 1
    return len(cells)


def is_folded(cell: Cell) -> bool:
    """Whether nobody in the room sees the cell: it is there because others need what it defines."""
    return bool(cell["metadata"].get("jupyter", {}).get("source_hidden"))


def _is_seen(part: Part, lecture: Plan) -> bool:
    if part.is_beyond or part.id in lecture.without:
        return False
    if part.turn is not None and part.turn not in lecture.turns:
        return False
    return not part.section or part.section in lecture.sections


def _needed(cells: Sequence[Cell], seen: Sequence[bool]) -> set[int]:
    """The places of the unseen cells that bind a name which a seen one needs, or another one of these.

    A function's body finds its names when it is called, and so perhaps in a cell below its own.
    """
    code = {at: Names.of(source(cell)) for at, cell in enumerate(cells) if is_code(cell)}

    def binding(name: str, before: int) -> Iterator[int]:
        places = [at for at in code if at < before and name in code[at].bound]
        yield from places[-1:]

    ask, asked = [(at, at) for at in code if seen[at]], set()
    while ask:
        at, called_at = ask.pop()
        if (at, called_at) in asked:
            continue
        asked.add((at, called_at))
        for name in code[at].read:
            ask += [(other, called_at) for other in binding(name, at)]
        for name in code[at].read_when_called:
            ask += [(other, called_at) for other in binding(name, called_at)]
    return {at for at, _ in asked if not seen[at]}


@dataclass(frozen=True)
class Names:
    """The global names that a cell binds, those that it reads, and those that its functions read."""

    bound: frozenset[str]
    read: frozenset[str]
    read_when_called: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Names":
        """The names of a cell of this text."""
        whole = symtable.symtable(text, "cell", "exec")
        symbols, below, inside = whole.get_symbols(), list(whole.get_children()), []
        while below:
            table = below.pop()
            below += table.get_children()
            inside += [one for one in table.get_symbols() if one.is_global()]
        return cls(
            frozenset(one.get_name() for one in symbols if one.is_assigned() or one.is_imported()),
            frozenset(one.get_name() for one in symbols if one.is_referenced()),
            frozenset(one.get_name() for one in inside if one.is_referenced()),
        )


def _folded(cell: Cell) -> Cell:
    hidden = {"source_hidden": True, "outputs_hidden": True}
    return {**cell, "metadata": {**cell["metadata"], "jupyter": hidden}}


def _together(cells: Collection[Cell]) -> Cell:
    """One folded cell that runs all of these."""
    (first, *_) = cells
    text = "\n\n".join([WORDS, *map(source, cells)])
    return _folded(
        {
            **first,
            "id": f"{first['id']}-cut",
            "source": text,
            "outputs": [],
            "execution_count": None,
        }
    )
