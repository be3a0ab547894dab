"""What `make versions` says of a cell whose result differs with another version of torch."""

import pytest

from tests.tools import versions
from tests.tools.shown_here import Outcome

CELL = "9902353a"


@pytest.mark.parametrize(
    ("here", "failure", "told"),
    [
        ("43", "", [f"{CELL} DIFFERS", "stored: 44", "here:   43"]),
        ("", "NameError: name", [f"{CELL} FAILED: NameError: name"]),
    ],
)
def test_a_cell_is_named_with_what_came_of_it_and_the_texts_that_take_a_number_from_it(
    here, failure, told
):
    differs = Outcome(CELL, 0.1, here, "44", False, failure)
    said, *taken = versions.lines_on(differs)
    assert [line.strip() for line in said.splitlines()] == told
    assert "    05_gradients 048e4f63: 335,544,320 is taken from it" in taken
    holds = Outcome(CELL, 9.0, "44", "44", False)
    assert list(versions.lines_on(holds)) == []
