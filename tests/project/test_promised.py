"""No content gets lost: notebooks have what `promised.toml` lists, and it lists all they have."""

import subprocess

import pytest

from tests import ROOT
from tests.helpers import promised

TO_LIST_IT = "python -m tests.tools.promised lists what is new, and follows a bettered title"
LISTED = promised.listed()
THERE = promised.there()
LISTED_NAMES = set(promised.names(LISTED))
THERE_NAMES = set(promised.names(THERE))
TAKEN_AWAY = {gone["what"]: gone["why"] for gone in promised.taken_away()}


def test_what_was_promised_is_there_or_says_why_it_was_taken_away():
    gone = LISTED_NAMES - THERE_NAMES
    explained = set(TAKEN_AWAY)
    unexplained = gone - explained
    assert unexplained == set(), (
        "Bring it back into the notebook, "
        f"or add a [[taken_away]] to {promised.LIST.name}, with what and why."
    )
    assert explained - gone == set(), "It is there, or was never promised."


def test_what_is_taken_away_has_a_reason():
    for what, why in TAKEN_AWAY.items():
        assert len(why.split()) >= 6, what


def test_what_a_notebook_has_is_promised_too():
    unlisted = THERE_NAMES.difference(LISTED_NAMES)
    assert unlisted == set(), TO_LIST_IT


def test_the_list_says_what_the_notebooks_say():
    for notebook, kinds in THERE.items():
        for kind, things in kinds.items():
            said = LISTED[notebook].get(kind, {})
            assert {name: said.get(name) for name in things} == things, TO_LIST_IT


def test_no_notebook_lacks_what_each_of_them_has():
    for notebook, kinds in THERE.items():
        for kind in ("sections", "turns", "beyond", "guesses", "figures", "terms"):
            assert kinds[kind], f"{notebook}: {kind}"


def git(*asked: str) -> str:
    run = subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("not a git checkout")
    return run.stdout


def test_nothing_ever_promised_is_taken_out_of_the_list():
    """Each line that a commit of this checkout's history had is still there.

    So nobody can get round giving a reason by deleting the promise.
    """
    path = promised.LIST.relative_to(ROOT).as_posix()
    lost = {}
    for commit in git("log", "--format=%H", "--diff-filter=AM", "--", path).split():
        text_then = git("show", f"{commit}:{path}")
        for name in promised.names(promised.parsed(text_then)):
            if name not in LISTED_NAMES:
                lost[name] = commit
    assert lost == {}, "A line that was promised once stays, and gets a [[taken_away]]."
