"""Cases that each need a server, a browser or a class of answers: they run seldom.

`make test` leaves out each case that is marked `thorough`, by pytest's options in pyproject.toml,
and `make thorough` runs those cases. Each claim keeps at least one case in `make test`.
"""

from collections.abc import Iterable, Sequence

import pytest

from tests import NOTEBOOKS

thorough = pytest.mark.thorough
# The shortest notebook that asks in every way (for a number, several numbers, a word, a mark in a
# picture), and the notebook with the most labs. tests/stage/test_browser_guesses.py checks both.
SOME_NOTEBOOKS = [NOTEBOOKS[1], NOTEBOOKS[5]]


def few(cases: Iterable[object], kept: Sequence[object]) -> list[object]:
    """Return all cases for `pytest.mark.parametrize`; `make test` runs those that are kept."""
    cases = list(cases)
    unknown = [case for case in kept if case not in cases]
    if unknown or not kept:
        raise ValueError(f"A test keeps at least one of its own cases; {unknown} are none of them.")
    return [case if case in kept else pytest.param(case, marks=thorough) for case in cases]


few_notebooks = pytest.mark.parametrize(
    "path", few(NOTEBOOKS, SOME_NOTEBOOKS), ids=lambda path: path.stem
)
# For a test that goes through several notebooks with one server.
some_or_all_notebooks = pytest.mark.parametrize(
    "paths", [SOME_NOTEBOOKS, pytest.param(NOTEBOOKS, marks=thorough)], ids=["some", "all"]
)
