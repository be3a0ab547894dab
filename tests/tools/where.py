"""Finds the cells of the notebooks that use a name: `make where NAME=figures.waterfall`.

A part of the name is enough, such as `figures` or `waterfall`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from tests import NOTEBOOKS
from tests.helpers.notebooks import read


def uses(path: Path) -> Iterator[tuple[str, str, set[str]]]:
    """Yield each code cell's id, the heading above it, and the names that it uses.

    A name is there as it is written, and with the module that it was imported from.
    """
    origins: dict[str, str] = {}  # where the imported names come from
    heading = ""
    for cell in read(path).cells:
        if cell.cell_type != "code":
            for title in re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE):
                heading = title
            continue
        tree = ast.parse(cell.source)
        origins.update(imported(tree))
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Name):
                written = ast.unparse(node)
                first, dot, rest = written.partition(".")
                names.add(written)
                names.add(origins.get(first, first) + dot + rest)
        yield cell.id, heading, names


def imported(tree: ast.AST) -> dict[str, str]:
    """Return the names that the module's `from … import` statements give.

    The value of each is its module, with the name that it has there.
    """
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def main(asked: str = "") -> int:
    """Print the notebook, the id and the heading of each cell that uses the name."""
    known = set()
    is_found = False
    for path in NOTEBOOKS:
        for id_, heading, names in uses(path):
            known |= names
            # With dots around both, "waterfall" is found in "figures.waterfall", and not "water".
            if any(f".{asked}." in f".{name}." for name in names):
                is_found = True
                print(path.stem, id_, heading, sep="  ")
    if not is_found:
        similar = get_close_matches(asked, known) or sorted(known)
        print(f"No cell uses {asked!r}. Cells use: {', '.join(similar)}")
    return not is_found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
