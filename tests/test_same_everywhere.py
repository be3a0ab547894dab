"""One verdict everywhere: examples, seeds and order depend on nothing but the tests themselves."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import ROOT

ANYTHING = st.tuples(
    st.integers(), st.floats(), st.text(), st.lists(st.sampled_from("abc")), st.sets(st.text("ab"))
)
DRAWN = 40
ELSEWHERE = """
import tests.same_everywhere
from hypothesis import settings
from tests.test_same_everywhere import examples

import course_utils.labs, course_utils.checks.floats
print(*examples(settings()), *examples(settings()), *examples(settings.get_profile("same everywhere")), sep="\\n")
"""


def examples(chosen: settings) -> list[str]:
    """What a property test draws under these settings, torch's numbers included."""
    found = []

    @settings(chosen, max_examples=DRAWN)
    @given(ANYTHING)
    def draw(drawn):
        found.append(ascii((*drawn[:-1], sorted(drawn[-1]), torch.rand(1).item())))

    draw()
    return found


def test_the_same_examples_are_drawn_whatever_the_hash_seed_the_modules_the_folder_and_the_language(tmp_path):
    folder = tmp_path / "tests" / "clone"
    folder.mkdir(parents=True)
    strange = {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "CI": "true"}
    strange |= {"PYTHONPATH": str(ROOT), "HYPOTHESIS_PROFILE": "explore"}
    run = [sys.executable, "-c", ELSEWHERE]
    said = subprocess.run(
        run, cwd=folder, env=os.environ | strange, capture_output=True, text=True, check=True
    )
    here, lines = examples(settings.get_profile("same everywhere")), said.stdout.splitlines()
    assert len(here) == DRAWN
    assert len(set(here)) > 0.75 * DRAWN
    explored, explored_again, there = lines[:DRAWN], lines[DRAWN : 2 * DRAWN], lines[2 * DRAWN :]
    assert there == here
    assert here != explored != explored_again != here


def test_every_property_test_is_derandomised_and_keeps_nothing(request):
    tests = [item.obj for item in request.session.items if item.get_closest_marker("hypothesis")]
    theirs = [test._hypothesis_internal_use_settings for test in tests]
    for each in (settings.get_profile("same everywhere"), *theirs):
        assert (each.derandomize, each.database, each.deadline) == (True, None, None)
    assert settings.get_profile("explore").database is None


@pytest.mark.parametrize("_", range(2))
def test_each_test_begins_with_the_same_random_numbers(_):
    first = random.random(), np.random.rand(), torch.rand(1).item()
    assert first == (0.8444218515250481, 0.5488135039273248, 0.49625658988952637)
