"""How long strict nbval takes over the notebooks: called by `make seconds`, which prints what each of them took.

Nothing is compared less strictly than in `make test`, and a notebook that fails says so.
"""

import contextlib
import io
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest

from tests import NOTEBOOKS

SLOWEST = 3  # cells of each notebook
# Each notebook has a kernel of its own, as in `make test`, but one that need not read torch from disk again.
WARM = ("-p", "tests.tools.warm")
# The later ones take longer, and a worker that began one of them last would be waited for.
LONGEST_FIRST = ("--no-loadscope-reorder", *map(str, reversed(NOTEBOOKS)))


@dataclass
class Notebook:
    """What one notebook took: its kernel's start and stop, and each of its cells."""

    kernel_s: float = 0.0
    cells_s: dict[int, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.kernel_s + sum(self.cells_s.values())

    @property
    def slowest(self) -> list[int]:
        """The numbers of its slowest cells, the slowest first."""
        return sorted(self.cells_s, key=self.cells_s.get, reverse=True)[:SLOWEST]


@dataclass
class Stopwatch:
    """A plugin of pytest that adds up the reports of its workers."""

    notebooks: dict[str, Notebook] = field(default_factory=lambda: defaultdict(Notebook))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, cell = report.nodeid.partition("::Cell ")
        notebook = self.notebooks[Path(path).name]
        if report.when == "call":
            notebook.cells_s[int(cell)] = report.duration
        else:
            notebook.kernel_s += report.duration


def table(notebooks: dict[str, Notebook]) -> list[str]:
    """A line for each notebook and for each of its slowest cells, which are counted from 0 as nbval counts them."""
    lines = []
    for path in NOTEBOOKS:
        took = notebooks[path.name]
        code = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        lines.append(f"{took.seconds:6.1f} s  {path.name}, of which its kernel {took.kernel_s:.1f} s")
        for number in took.slowest:
            first_line = code[number].partition("\n")[0]
            lines.append(f"{took.cells_s[number]:10.2f} s  cell {number}: {first_line[:80]}")
    return lines


def main(options: list[str]) -> int:
    """Run pytest over the notebooks and print the table; what pytest says is shown only if something failed."""
    stopwatch, said, begun = Stopwatch(), io.StringIO(), time.perf_counter()
    with contextlib.redirect_stdout(said):
        code = pytest.main([*WARM, *LONGEST_FIRST, "-q", *options], plugins=[stopwatch])
    if code:
        print(said.getvalue())
        return int(code)
    wall_s = time.perf_counter() - begun
    print(*table(stopwatch.notebooks), sep="\n")
    print(f"{wall_s:6.1f} s  by the clock on the wall, with all that pytest itself does")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
