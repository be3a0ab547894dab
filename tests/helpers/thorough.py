"""What costs a server, a browser or a class of answers each time: a few cases in `make test`, all in `make thorough`.

A case that is marked `thorough` is left out of `make test` by pytest's options in pyproject.toml. Each claim keeps at least
one case there.
"""

from collections.abc import Iterable, Sequence

import pytest

from tests import NOTEBOOKS

thorough = pytest.mark.thorough
# The shortest notebook that asks in every way (for a number, several, a word, a mark in a picture), and the one with the
# most labs; tests/stage/test_browser_guesses.py holds them to it.
SOME_NOTEBOOKS = [NOTEBOOKS[1], NOTEBOOKS[5]]


def few(cases: Iterable[object], kept: Sequence[object]) -> list[object]:
    """All cases for `pytest.mark.parametrize`, of which `make test` runs those that are kept."""
    cases = list(cases)
    missing = [one for one in kept if one not in cases]
    if missing or not kept:
        raise ValueError(f"A test keeps at least one of its own cases; {missing} are none of them.")
    return [one if one in kept else pytest.param(one, marks=thorough) for one in cases]


few_notebooks = pytest.mark.parametrize(
    "path", few(NOTEBOOKS, SOME_NOTEBOOKS), ids=lambda path: path.stem
)
# For a test that goes through notebooks in one server.
some_or_all_notebooks = pytest.mark.parametrize(
    "paths", [SOME_NOTEBOOKS, pytest.param(NOTEBOOKS, marks=thorough)], ids=["some", "all"]
)
