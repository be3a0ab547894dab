"""How many lines of code each part of the project has, and each notebook loads: `make ledger`.

It only counts. The ceilings are in tests/project/test_house.py.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests import NOTEBOOKS, ROOT
from tests.helpers.lines import code_lines, loaded_by

LANGUAGES = {
    ".py": "Python",
    ".js": "JavaScript",
    ".mjs": "JavaScript",
    ".css": "CSS",
    ".html": "HTML",
}
COLUMNS = ("Python", "JavaScript", "CSS", "HTML")
ORDER = ("course_utils", "core", "subjects", "engine", "chapters", "stage", "tests", "tools")
Lines = dict[tuple[str, str], Counter[str]]


def main() -> int:
    """Print both tables: the lines of each part, and those that each notebook loads."""
    print("\n".join(house(lines_by_part(ROOT))))
    print()
    print("\n".join(loads()))
    return 0


def lines_by_part(root: Path) -> Lines:
    """Return lines of code by language, for each room and each part in it."""
    found: Lines = {}
    paths = [*(root / "course_utils").rglob("*"), *(root / "tests").rglob("*")]
    for path in sorted(paths):
        if path.suffix in LANGUAGES and "__pycache__" not in path.parts:
            counted = found.setdefault(place(path.relative_to(root)), Counter())
            counted[LANGUAGES[path.suffix]] += code_lines(path)
    return found


def place(path: Path) -> tuple[str, str]:
    """Return the room and the part to which a file belongs; tests and tools are rooms of their own.

    >>> place(Path("course_utils/core/say/guesses.py"))
    ('core', 'say')
    >>> place(Path("tests/tools/colab_modules/google.py"))
    ('tools', '')
    """
    room, *inside = path.with_suffix("").parts
    if room == "course_utils" and len(inside) > 1:
        room, *inside = inside
    part = inside[0]
    if part == "tools":
        return "tools", ""
    if part in ("__init__", "conftest"):
        return room, ""
    return room, part


def house(lines: Lines) -> Iterator[str]:
    """Yield a line for each room, and below it a line for each of its parts."""
    yield _row("lines of code", dict(zip(COLUMNS, COLUMNS, strict=True)))
    for room in sorted({room for room, _ in lines}, key=ORDER.index):
        parts = {part: counted for (of, part), counted in lines.items() if of == room}
        yield _row(room, sum(parts.values(), Counter()))
        for part, counted in parts.items():
            if part:
                yield _row(f"    {part}", counted)
    yield _row("all of it", sum(lines.values(), Counter()))


def _row(name: str, counted: dict[str, object]) -> str:
    """Return a line of the table: the name, and a number or a text for each language."""
    line = f"{name:28}"
    for column in COLUMNS:
        value = counted.get(column) or ""  # nothing for a language that it does not use
        text = f"{value:,}" if isinstance(value, int) else value
        line += f"{text:>12}"
    return line.rstrip()


def loads() -> Iterator[str]:
    """Yield a line for each notebook: how many lines of code its imports load.

    The second number leaves out what all notebooks load.
    """
    loaded = loaded_by(NOTEBOOKS)
    by_all = set.intersection(*loaded.values())
    yield f"{'lines of code loaded by':28}{'in all':>12}{'of its own':>12}"
    yield f"{'every notebook':28}{_lines_of(by_all):>12,}"
    for path, modules in loaded.items():
        own = modules - by_all
        yield f"{path.stem:28}{_lines_of(modules):>12,}{_lines_of(own):>12,}"


def _lines_of(modules: set[Path]) -> int:
    """Count the lines of code of these modules together."""
    return sum(code_lines(path) for path in modules)


if __name__ == "__main__":
    sys.exit(main())
