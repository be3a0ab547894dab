"""What `make versions` says of a cell that another torch runs otherwise."""

from types import SimpleNamespace

import pytest

from tests import NOTEBOOKS
from tests.notebooks import code
from tests.tools import versions

PATH = NOTEBOOKS[4]
CELL = next(number for number, cell in enumerate(code(PATH)) if cell.id == "9902353a")
SAID = "Notebook cell execution failed\nCell 7: {}\nInput:\npredicted = 1\n\nTraceback:\n{}\n"


@pytest.mark.parametrize(
    ("why", "traceback", "word", "told"),
    [
        ("differ", "mismatch\n\x1b[31m- 44\x1b[39m\n+ 43", "DIFFERS", ["mismatch", "- 44", "+ 43"]),
        ("caused an exception", "Cell In[1]\n\x1b[31mNameError\x1b[39m: name", "FAILS", ["NameError: name"]),
    ],
)
def test_a_cell_is_named_with_what_came_of_it_and_the_texts_that_take_a_number_from_it(
    why, traceback, word, told
):
    report = SimpleNamespace(
        nodeid=f"notebooks/{PATH.name}::Cell {CELL}", longreprtext=SAID.format(why, traceback)
    )
    first, *rest = versions.lines_on(report)
    assert first == f"{PATH.name} 9902353a {word}: {code(PATH)[CELL].source.splitlines()[0]}"
    assert [line.strip() for line in rest[: len(told)]] == told
    assert "    05_gradients 048e4f63: 335,544,320 is taken from it" in rest
