"""The floors of content: each notebook has what `promised.toml` lists, and what it has is listed there."""

import subprocess

import pytest

from tests import ROOT
from tests.helpers import promised

TO_LIST_IT = "python -m tests.tools.promised lists what is new, and follows a bettered title"
LISTED, THERE = promised.listed(), promised.there()
TAKEN_AWAY = {one["what"]: one["why"] for one in promised.taken_away()}


def test_what_was_promised_is_there_or_says_why_it_was_taken_away():
    gone = {*promised.names(LISTED)} - {*promised.names(THERE)}
    assert gone - {*TAKEN_AWAY} == set(), (
        f"Bring it back into the notebook, or add a [[taken_away]] to {promised.LIST.name}, with what and why."
    )
    assert {*TAKEN_AWAY} - gone == set(), "It is there, or was never promised."


def test_what_is_taken_away_has_a_reason():
    assert {what: why for what, why in TAKEN_AWAY.items() if len(why.split()) < 6} == {}


def test_what_a_notebook_has_is_promised_too():
    assert {*promised.names(THERE)} - {*promised.names(LISTED)} == set(), TO_LIST_IT


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
    """As far back as the checkout's history goes: whoever deletes a line does not get past its reason."""
    path = promised.LIST.relative_to(ROOT).as_posix()
    now, lost = {*promised.names(LISTED)}, {}
    for commit in git("log", "--format=%H", "--diff-filter=AM", "--", path).split():
        once = promised.names(promised.parsed(git("show", f"{commit}:{path}")))
        lost |= {name: commit for name in once if name not in now}
    assert lost == {}, "A line that was promised once stays, and gets a [[taken_away]]."
