"""What the course promises of each notebook, as `promised.toml` lists it, and what the notebooks have."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from course_utils.chapters import labs
from course_utils.stage.workspace.notebooks import BEYOND
from course_utils.stage.workspace.stubs import is_guess
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import exercises_of, read

LIST = ROOT / "tests" / "project" / "promised.toml"
TAKEN_AWAY = "taken_away"
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^##+ (?!Your turn)(.+)$", re.MULTILINE)
CHECK = re.compile(r"from course_utils\.chapters\.(\w+) import (?:\w+, )*check\b")
KEPT = re.compile(r"^(\w+) = check\.\w+\(\w+\)\.kept$")
DRAWN = re.compile(r"\bfigures\.(\w+)\(")
# The head of a table's third column, of what others reported or recorded.
BESIDE_REPORTED = re.compile(r"^.* {2}reported\b", re.ASCII)
Things = dict[str, dict[str, str]]


def listed() -> dict[str, Things]:
    """By notebook, what is promised: kind by kind, each thing's name and what it says of itself."""
    return parsed(LIST.read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, Things]:
    """The same of a list with that text."""
    whole = tomllib.loads(text)
    whole.pop(TAKEN_AWAY, None)
    for things in whole.values():
        for kind, of_a_kind in things.items():
            if isinstance(of_a_kind, list):
                things[kind] = dict.fromkeys(of_a_kind, "")
    return whole


def taken_away() -> list[dict[str, str]]:
    """What was promised once and is gone: "what" it was, and "why" it went."""
    return tomllib.loads(LIST.read_text(encoding="utf-8")).get(TAKEN_AWAY, [])


def there() -> dict[str, Things]:
    """The same of what the notebooks have."""
    return {path.stem: things_of(path) for path in NOTEBOOKS}


def things_of(path: Path) -> Things:
    cells = read(path).cells
    edge = next(at for at, cell in enumerate(cells) if cell.source.startswith(BEYOND))
    main_path, beyond = cells[:edge], cells[edge:]
    is_beyond = {cell.source for cell in beyond}
    turns: tuple[dict[str, str], dict[str, str]] = ({}, {})
    terms = {}
    chapter = CHECK.search("\n".join(cell.source for cell in cells))[1]
    for exercise in exercises_of(path):
        judge = exercise.call.partition("(")[0].removeprefix("check.")
        turns[exercise.check in is_beyond][f"{chapter}.{judge}"] = exercise.title
        if kept := KEPT.match(exercise.check):
            terms[kept[1]] = ""
    return {
        "sections": dict(_headings(main_path)),
        "turns": turns[False],
        "beyond": dict(_headings(beyond)),
        "turns_beyond": turns[True],
        "guesses": dict(_guesses(cells)),
        "labs": dict(_labs(cells)),
        "figures": dict(_figures(cells)),
        "terms": terms,
        "beside_reported": dict(_beside_reported(cells)),
    }


def names(things: dict[str, Things]) -> list[str]:
    """Each thing as one line of `taken_away` names it: "04_flops: turns: flops.days"."""
    return [
        f"{notebook}: {kind}: {name}"
        for notebook, kinds in things.items()
        for kind, of_a_kind in kinds.items()
        for name in of_a_kind
    ]


def _headings(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """By the cell's id, since a heading's words may be bettered; the second of a cell has a number."""
    for cell in cells:
        if cell.cell_type == "markdown":
            for number, title in enumerate(HEADING.findall(FENCED.sub("", cell.source))):
                yield (f"{cell.id}-{number}" if number else cell.id), title


def _code(cells: list[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in cells if cell.cell_type == "code"]


def _guesses(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    for at, cell in enumerate(_code(cells)):
        if is_guess(cell, _code(cells)[at + 1 :]):
            name, _, comment = cell.source.partition(" = ")
            yield name, comment.rpartition("  # ")[2] if "  # " in comment else ""


def _labs(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    for cell in _code(cells):
        name, controls, _ = labs.made_by(cell.source)
        if name and not controls:
            yield name, ""


def _figures(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """Of a figure that moves its lab and its controls; of one that stands still the function that draws it."""
    for cell in _code(cells):
        name, controls, _ = labs.made_by(cell.source)
        if controls:
            yield cell.id, f"the {name} lab's {', '.join(controls)}"
        elif drawn := DRAWN.findall(cell.source):
            yield cell.id, ", ".join(drawn)


def _beside_reported(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """Tables that set a prediction beside what nobody here made, with their first rows."""
    for cell in _code(cells):
        for output in cell.outputs:
            lines = output.get("data", {}).get("text/plain", "").split("\n")
            if BESIDE_REPORTED.match(lines[0]):
                yield cell.id, re.split(r" {2,}", lines[1])[0]
