"""What the course promises of each notebook, as `promised.toml` lists it, and what the notebooks have."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from course_utils.stage.notebook.outline import Outline, Part, outline
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import exercises_of, read

LIST = ROOT / "tests" / "project" / "promised.toml"
TAKEN_AWAY = "taken_away"
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^##+ (?!Your turn)(.+)$", re.MULTILINE)
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
    known = outline(read(path))
    main_path = [part for part in known.parts if not part.is_beyond]
    beyond = [part for part in known.parts if part.is_beyond]
    kept = (KEPT.match(exercise.check) for exercise in exercises_of(path))
    return {
        "sections": dict(_headings(main_path)),
        "turns": {turn.check: turn.title for turn in known.turns if not turn.is_beyond},
        "beyond": dict(_headings(beyond)),
        "turns_beyond": {turn.check: turn.title for turn in known.turns if turn.is_beyond},
        "guesses": dict(_guesses(known)),
        "labs": {figure.lab: "" for figure in known.figures if figure.is_whole},
        "figures": dict(_figures(known)),
        "terms": {found[1]: "" for found in kept if found},
        "beside_reported": dict(_beside_reported(read(path).cells)),
    }


def names(things: dict[str, Things]) -> list[str]:
    """Each thing as one line of `taken_away` names it: "04_flops: turns: flops.days"."""
    return [
        f"{notebook}: {kind}: {name}"
        for notebook, kinds in things.items()
        for kind, of_a_kind in kinds.items()
        for name in of_a_kind
    ]


def _headings(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """By the cell's id, since a heading's words may be bettered; the second of a cell has a number."""
    for part in parts:
        if not part.is_code:
            for number, title in enumerate(HEADING.findall(FENCED.sub("", part.text))):
                yield (f"{part.id}-{number}" if number else part.id), title


def _guesses(known: Outline) -> Iterator[tuple[str, str]]:
    for part in known.guesses:
        for asked in part.asked:
            yield asked.name, asked.comment


def _figures(known: Outline) -> Iterator[tuple[str, str]]:
    """Of a figure that moves its lab and its controls; of one that stands still the function that draws it."""
    for part in known.parts:
        if part.figure and part.figure.controls:
            yield part.id, f"the {part.figure.lab} lab's {', '.join(part.figure.controls)}"
        elif part.is_code and (drawn := DRAWN.findall(part.text)):
            yield part.id, ", ".join(drawn)


def _beside_reported(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """Tables that set a prediction beside what nobody here made, with their first rows."""
    for cell in cells:
        for output in cell.get("outputs", []):
            lines = output.get("data", {}).get("text/plain", "").split("\n")
            if BESIDE_REPORTED.match(lines[0]):
                yield cell.id, re.split(r" {2,}", lines[1])[0]
