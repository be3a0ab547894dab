"""Cuts a notebook down to what a lecture of so many minutes shows, so that nobody skips cells.

`notebooks/cuts.toml` lists the sections and turns that a lecture shows. If these need other cells,
those are kept, but folded. So a cut notebook runs from top to bottom by itself.
"""

import symtable
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.stage.notebook.code import is_guess, is_open
from course_utils.stage.notebook.files import Cell, Notebook, source
from course_utils.stage.notebook.outline import Part, is_code, outline, parted

FILE = "cuts.toml"
WORDS = "# The lecture leaves this out, and what follows needs it."


@dataclass(frozen=True)
class Plan:
    """The sections that a lecture shows, and the turns in them: no others are shown.

    `without` has the ids of further cells that are left out.
    """

    sections: tuple[str, ...]
    turns: tuple[int, ...] = ()
    without: tuple[str, ...] = ()


def plans(path: Path) -> dict[str, Plan]:
    """Return the plans for the notebook `path`, by the minutes, from FILE in the same folder."""
    every_notebook = tomllib.loads(path.with_name(FILE).read_text(encoding="utf-8"))
    by_minutes = {}
    for minutes, table in every_notebook.get(path.stem, {}).items():
        # `table` is like {"sections": ["One number in three formats"], "turns": [1]}.
        fields = {name: tuple(values) for name, values in table.items()}
        by_minutes[minutes] = Plan(**fields)
    return by_minutes


def plan(path: Path, minutes: str) -> Plan:
    """Return the plan for a lecture of that many minutes, such as "25".

    If there is none, raise a ValueError that lists the minutes for which there is one.
    """
    by_minutes = plans(path)
    if minutes not in by_minutes:
        known = ", ".join(by_minutes) if by_minutes else "none"
        raise ValueError(
            f"There is no cut of {path.stem} for {minutes!r} minutes. There are cuts for: {known}."
        )
    return by_minutes[minutes]


def cut(notebook: Notebook, lecture: Plan) -> Notebook:
    """Return the notebook as that lecture shows it."""
    # A cell of text is divided at its headings, so that a section can be left out.
    cells = list(parted(notebook["cells"]))
    seen = [_is_seen(part, lecture) for part in outline({"cells": cells}).parts]
    needed = _needed(cells, seen)
    # The first code cell, which has the imports. It runs, but an audience need not see it.
    imports = next(at for at, cell in enumerate(cells) if is_code(cell))
    kept = []
    waiting = []  # needed cells, which run before the next code that is seen
    for at, cell in enumerate(cells):
        if at in needed:
            waiting.append(cell)
        if not seen[at]:
            continue
        if waiting and is_code(cell):
            place = _behind_last_computation(kept)
            kept.insert(place, _together(waiting))
            waiting = []
        kept.append(_folded(cell) if at == imports else cell)
    return {**notebook, "cells": kept}


def _behind_last_computation(cells: Sequence[Cell]) -> int:
    """Return the position behind the last cell that computes; if none does, the last position.

    What follows that position is a question: its text, and cells that ask for guesses. So a cell
    that is inserted there does not come between a question and its answer.
    """
    for at in reversed(range(len(cells))):
        text = source(cells[at])
        # An `is_open` cell only sets names to `...`, in place of an answer that is asked for.
        if is_code(cells[at]) and not is_open(text) and not is_guess(text):
            return at + 1
    return len(cells)


def is_folded(cell: Cell) -> bool:
    """Whether the cell is folded: it is there because others need the names that it defines."""
    in_jupyter = cell["metadata"].get("jupyter", {})
    return bool(in_jupyter.get("source_hidden"))


def _is_seen(part: Part, lecture: Plan) -> bool:
    """Whether the lecture shows the cell."""
    if part.is_beyond or part.id in lecture.without:
        return False
    if part.turn is not None and part.turn not in lecture.turns:
        return False
    # What stands above the first section, the opening, is always shown.
    return not part.section or part.section in lecture.sections


def _needed(cells: Sequence[Cell], seen: Sequence[bool]) -> set[int]:
    """Return the positions of the unseen cells that seen ones need, directly or through another.

    A cell needs those that define the names it reads. A function's body looks names up when it is
    called, so they may be defined anywhere above the call. If cell 2 is `def f(): return x`, cell 4
    is `x = 1`, and cell 5, which is seen, is `f()`, then cell 5 needs cell 2, and cell 2 needs
    cell 4, although that is below it.
    """
    code = {at: Names.of(source(cell)) for at, cell in enumerate(cells) if is_code(cell)}

    def defining(name: str, before: int) -> int | None:
        """Return the position of the last cell that defines the name above position `before`."""
        above = [at for at in code if at < before and name in code[at].bound]
        return above[-1] if above else None

    # Pairs of a cell and of the seen cell for which it is needed, by their positions. The functions
    # that the first one defines may be called in the second one, at `called_at`.
    to_visit = [(at, at) for at in code if seen[at]]
    visited = set()
    while to_visit:
        at, called_at = to_visit.pop()
        if (at, called_at) in visited:
            continue
        visited.add((at, called_at))
        definers = {defining(name, at) for name in code[at].read}
        definers |= {defining(name, called_at) for name in code[at].read_when_called}
        # None stands for names that no cell defines, such as those of Python itself.
        to_visit += [(other, called_at) for other in definers if other is not None]
    return {at for at, _ in visited if not seen[at]}


@dataclass(frozen=True)
class Names:
    """The global names that a cell binds, those that it reads, and those that its functions read.

    A function reads them when it is called, and not where it is defined.
    """

    bound: frozenset[str]
    read: frozenset[str]
    read_when_called: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Names":
        """Return the names of a cell of this text."""
        whole = symtable.symtable(text, "cell", "exec")
        symbols = whole.get_symbols()
        # For symtable, the definition of a function or of a class is an assignment, too.
        bound = [symbol for symbol in symbols if symbol.is_assigned() or symbol.is_imported()]
        read = [symbol for symbol in symbols if symbol.is_referenced()]
        return cls(_names(bound), _names(read), _names(_read_inside(whole)))


def _read_inside(table: symtable.SymbolTable) -> list[symtable.Symbol]:
    """Return the global names that functions and classes in that table read, however nested."""
    read = []
    for inner in table.get_children():
        for symbol in inner.get_symbols():
            if symbol.is_global() and symbol.is_referenced():
                read.append(symbol)
        read += _read_inside(inner)
    return read


def _names(symbols: Iterable[symtable.Symbol]) -> frozenset[str]:
    return frozenset(symbol.get_name() for symbol in symbols)


def _folded(cell: Cell) -> Cell:
    """Return the cell with its code and its outputs folded, as JupyterLab shows it."""
    hidden = {"source_hidden": True, "outputs_hidden": True}
    return {**cell, "metadata": {**cell["metadata"], "jupyter": hidden}}


def _together(cells: Sequence[Cell]) -> Cell:
    """Return one folded cell that runs all of these."""
    first = cells[0]
    text = "\n\n".join([WORDS, *map(source, cells)])  # WORDS is a comment that says why
    cell_id = f"{first['id']}-cut"
    joined = {**first, "id": cell_id, "source": text, "outputs": [], "execution_count": None}
    return _folded(joined)
