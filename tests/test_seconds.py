"""What `make seconds` says of a run."""

from types import SimpleNamespace

import pytest

from tests import NOTEBOOKS
from tests.tools import seconds


def test_a_notebooks_seconds_are_its_kernels_and_its_cells_the_slowest_first():
    stopwatch = seconds.Stopwatch()
    for path in NOTEBOOKS:
        took = [("setup", 0, 1.0), *(("call", cell, 0.25 * cell) for cell in range(5)), ("teardown", 4, 0.5)]
        for when, cell, duration in took:
            node = f"notebooks/{path.name}::Cell {cell}"
            stopwatch.pytest_runtest_logreport(SimpleNamespace(nodeid=node, when=when, duration=duration))
    lines = seconds.table(stopwatch.notebooks)
    assert len(lines) == 4 * len(NOTEBOOKS)
    whole, *cells = lines[:4]
    assert whole.split()[:3] == ["4.0", "s", NOTEBOOKS[0].name + ","]
    assert whole.endswith("its kernel 1.5 s")
    assert [line.split()[0] for line in cells] == ["1.00", "0.75", "0.50"]
    assert [line.split()[3] for line in cells] == ["4:", "3:", "2:"]
    assert "x = torch.zeros(4, 8)" in cells[2]


def test_a_run_that_fails_says_why_and_shows_no_seconds(monkeypatch, capsys):
    def failing(*_: object, **__: object) -> int:
        print("Cell 3 differs")
        return 1

    monkeypatch.setattr(pytest, "main", failing)
    assert seconds.main([]) == 1
    assert capsys.readouterr().out == "Cell 3 differs\n\n"
