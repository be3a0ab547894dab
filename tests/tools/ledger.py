"""How many lines of code each part of the house has, and what each notebook loads: `make ledger`.

Nothing here is limited: a chapter never pays for the stage. The ceilings are in tests/project/test_house.py.
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
    print("\n".join(house(lines_by_part(ROOT))))
    print()
    print("\n".join(loads()))
    return 0


def lines_by_part(root: Path) -> Lines:
    """Lines of code by language, for each room and each part in it."""
    found: Lines = {}
    for path in sorted(
        path for top in ("course_utils", "tests") for path in (root / top).rglob("*")
    ):
        if path.suffix in LANGUAGES and "__pycache__" not in path.parts:
            counted = found.setdefault(place(path.relative_to(root)), Counter())
            counted[LANGUAGES[path.suffix]] += code_lines(path)
    return found


def place(path: Path) -> tuple[str, str]:
    """The room and the part to which a file belongs; tests and tools are rooms of their own.

    >>> place(Path("course_utils/core/say/guesses.py")), place(Path("tests/tools/colab_modules/google.py"))
    (('core', 'say'), ('tools', ''))
    """
    top, *inside = path.with_suffix("").parts
    if top == "course_utils" and len(inside) > 1:
        top, *inside = inside
    if inside[0] == "tools":
        return "tools", ""
    return top, "" if inside[0] in ("__init__", "conftest") else inside[0]


def house(lines: Lines) -> Iterator[str]:
    """A line for each room, and below it one for each of its parts."""
    yield _row("lines of code", dict(zip(COLUMNS, COLUMNS, strict=True)))
    for room in sorted({room for room, _ in lines}, key=ORDER.index):
        parts = {part: counted for (of, part), counted in lines.items() if of == room}
        yield _row(room, sum(parts.values(), Counter()))
        for part, counted in parts.items():
            if part:
                yield _row(f"    {part}", counted)
    yield _row("all of it", sum(lines.values(), Counter()))


def _row(name: str, counted: dict[str, object]) -> str:
    numbers = [counted.get(column, 0) or "" for column in COLUMNS]
    texts = [f"{one:,}" if isinstance(one, int) else one for one in numbers]
    return f"{name:28}{''.join(f'{text:>12}' for text in texts)}".rstrip()


def loads() -> Iterator[str]:
    """A line for each notebook: the lines of what its imports load, in all and beyond what all notebooks load."""
    loaded = loaded_by(NOTEBOOKS)
    by_all = set.intersection(*loaded.values())
    yield f"{'lines of code loaded by':28}{'in all':>12}{'of its own':>12}"
    yield f"{'every notebook':28}{sum(map(code_lines, by_all)):>12,}"
    for path, modules in loaded.items():
        in_all, own = sum(map(code_lines, modules)), sum(map(code_lines, modules - by_all))
        yield f"{path.stem:28}{in_all:>12,}{own:>12,}"


if __name__ == "__main__":
    sys.exit(main())
