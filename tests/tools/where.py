"""Which cells of the notebooks use a name. `make where NAME=figures.waterfall`; a part will do, `figures` or `ravine`."""

import ast
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from tests import NOTEBOOKS
from tests.helpers.notebooks import read


def uses(path: Path) -> Iterator[tuple[str, str, set[str]]]:
    """Each code cell's id, the heading above it, and the names that it uses, as they are written and in full."""
    origins, heading = {}, ""
    for cell in read(path).cells:
        if cell.cell_type != "code":
            heading = [heading, *re.findall(r"^#+ (.+)$", cell.source, re.MULTILINE)][-1]
            continue
        nodes = list(ast.walk(ast.parse(cell.source)))
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                origins |= {
                    alias.asname or alias.name: f"{node.module}.{alias.name}"
                    for alias in node.names
                }
        written = {
            ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute | ast.Name)
        }
        parts = [name.partition(".") for name in written]
        yield (
            cell.id,
            heading,
            written | {origins.get(first, first) + dot + rest for first, dot, rest in parts},
        )


def main(asked: str = "") -> int:
    """Print a line for each cell: the notebook, the cell's id, the heading above it."""
    known, is_found = set(), False
    for path in NOTEBOOKS:
        for id_, heading, names in uses(path):
            known |= names
            if any(f".{asked}." in f".{name}." for name in names):
                is_found = True
                print(path.stem, id_, heading, sep="  ")
    if not is_found:
        print(
            f"No cell uses {asked!r}. Cells use:",
            ", ".join(get_close_matches(asked, known) or sorted(known)),
        )
    return not is_found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
