"""How long strict nbval takes over the notebooks: called by `make seconds`, which prints what each of them took.

Nothing is compared less strictly than in `make test`, and a notebook that fails says so.
"""

import contextlib
import io
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from tests import NOTEBOOKS
from tests.notebooks import code

SLOWEST = 3  # cells of each notebook
# The later ones take longer, and a worker that began one of them last would be waited for.
LONGEST_FIRST = ("--no-loadscope-reorder", *map(str, reversed(NOTEBOOKS)))


class Stopwatch:
    """A plugin of pytest that adds up the reports of its workers: of each notebook its kernel's seconds, and its cells'."""

    def __init__(self) -> None:
        self.kernels_s: dict[str, float] = defaultdict(float)
        self.cells_s: dict[str, dict[int, float]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, cell = report.nodeid.partition("::Cell ")
        if report.when == "call":
            self.cells_s[Path(path).name][int(cell)] = report.duration
        else:
            self.kernels_s[Path(path).name] += report.duration


def table(took: Stopwatch) -> list[str]:
    """A line for each notebook and for each of its slowest cells, which are counted from 0 as nbval counts them."""
    lines = []
    for path in NOTEBOOKS:
        kernel_s, cells_s = took.kernels_s[path.name], took.cells_s[path.name]
        lines.append(
            f"{kernel_s + sum(cells_s.values()):6.1f} s  {path.name}, of which its kernel {kernel_s:.1f} s"
        )
        for number in sorted(cells_s, key=cells_s.get, reverse=True)[:SLOWEST]:
            first_line = code(path)[number].source.partition("\n")[0]
            lines.append(f"{cells_s[number]:10.2f} s  cell {number}: {first_line[:80]}")
    return lines


def main(options: list[str]) -> int:
    """Run pytest over the notebooks and print the table; what pytest says is shown only if something failed."""
    stopwatch, said, begun = Stopwatch(), io.StringIO(), time.perf_counter()
    with contextlib.redirect_stdout(said):
        code = pytest.main([*LONGEST_FIRST, "-q", *options], plugins=[stopwatch])
    if code:
        print(said.getvalue())
        return int(code)
    wall_s = time.perf_counter() - begun
    print(*table(stopwatch), sep="\n")
    print(f"{wall_s:6.1f} s  by the clock on the wall, with all that pytest itself does")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
