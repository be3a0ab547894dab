"""What the course promises of each notebook, by `promised.toml`, and what the notebooks have."""

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
# "days = check.days(my_days).kept", which writes the term into the accountant.
KEPT = re.compile(r"^(\w+) = check\.\w+\(\w+\)\.kept$")
DRAWN = re.compile(r"\bfigures\.(\w+)\(")
# A table whose third column holds what others reported or recorded has this head.
BESIDE_REPORTED = re.compile(r"^.* {2}reported\b", re.ASCII)
Things = dict[str, dict[str, str]]


def listed() -> dict[str, Things]:
    """Return what is promised of each notebook: by kind, the things by name, and their words."""
    return parsed(LIST.read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, Things]:
    """Read a list of promises from its text in TOML."""
    whole = tomllib.loads(text)
    whole.pop(TAKEN_AWAY, None)
    for things in whole.values():
        for kind, of_a_kind in things.items():
            if isinstance(of_a_kind, list):
                things[kind] = dict.fromkeys(of_a_kind, "")
    return whole


def taken_away() -> list[dict[str, str]]:
    """Return what was once promised and is gone: each has "what" it was and "why" it went."""
    return tomllib.loads(LIST.read_text(encoding="utf-8")).get(TAKEN_AWAY, [])


def there() -> dict[str, Things]:
    """Return what each notebook has, in the shape of `listed()`."""
    return {path.stem: things_of(path) for path in NOTEBOOKS}


def things_of(path: Path) -> Things:
    known = outline(read(path))
    main_path = [part for part in known.parts if not part.is_beyond]
    beyond = [part for part in known.parts if part.is_beyond]
    labs = [figure.lab for figure in known.figures if figure.is_whole]
    return {
        "sections": dict(_headings(main_path)),
        "turns": _turns(known, beyond=False),
        "beyond": dict(_headings(beyond)),
        "turns_beyond": _turns(known, beyond=True),
        "guesses": dict(_guesses(known)),
        "labs": dict.fromkeys(labs, ""),
        "figures": dict(_figures(known)),
        "terms": dict.fromkeys(_terms(path), ""),
        "beside_reported": dict(_beside_reported(read(path).cells)),
    }


def _turns(known: Outline, beyond: bool) -> dict[str, str]:
    """By the name of its check, the title of each turn of the main path, or of *Beyond*."""
    return {turn.check: turn.title for turn in known.turns if turn.is_beyond == beyond}


def _terms(path: Path) -> Iterator[str]:
    """Yield the terms that the reader's right answers write into the accountant."""
    for exercise in exercises_of(path):
        kept = KEPT.match(exercise.check)
        if kept:
            yield kept[1]


def names(things: dict[str, Things]) -> list[str]:
    """Return each thing as one line of `taken_away` names it: "04_flops: turns: flops.days"."""
    lines = []
    for notebook, kinds in things.items():
        for kind, of_a_kind in kinds.items():
            lines.extend(f"{notebook}: {kind}: {name}" for name in of_a_kind)
    return lines


def _headings(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """Yield each heading, named by its cell's id, because its words may be improved.

    A second heading in the same cell has a number behind the id.
    """
    for part in parts:
        if part.is_code:
            continue
        for number, title in enumerate(HEADING.findall(FENCED.sub("", part.text))):
            name = part.id if number == 0 else f"{part.id}-{number}"
            yield name, title


def _guesses(known: Outline) -> Iterator[tuple[str, str]]:
    for part in known.guesses:
        for asked in part.asked:
            names = ", ".join(question.item for question in asked.questions)
            unit = asked.questions[0].unit
            yield asked.name, f"{names}, {unit}" if unit else names


def _figures(known: Outline) -> Iterator[tuple[str, str]]:
    """Yield each cell with a figure: if the figure moves, its lab and its controls.

    If it stands still, the functions that draw it.
    """
    for part in known.parts:
        if part.figure and part.figure.controls:
            yield part.id, f"the {part.figure.lab} lab's {', '.join(part.figure.controls)}"
        elif part.is_code:
            drawn = DRAWN.findall(part.text)
            if drawn:
                yield part.id, ", ".join(drawn)


def _beside_reported(cells: list[NotebookNode]) -> Iterator[tuple[str, str]]:
    """Tables that set a prediction beside what others reported, with their first row's name."""
    for cell in cells:
        for output in cell.get("outputs", []):
            lines = output.get("data", {}).get("text/plain", "").split("\n")
            if BESIDE_REPORTED.match(lines[0]):
                first_row = re.split(r" {2,}", lines[1])
                yield cell.id, first_row[0]
