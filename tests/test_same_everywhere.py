"""One verdict everywhere: examples, seeds and order depend on nothing but the tests themselves."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from tests import ROOT

DRAWS = """
import sys
from hypothesis import given, settings, strategies as st
import tests.conftest
import torch

if "modules" in sys.argv:
    import course_utils.labs, course_utils.checks.floats

@settings(max_examples=200)
@given(st.tuples(st.integers(), st.floats(), st.text(), st.lists(st.sampled_from("abc")), st.sets(st.text("ab"))))
def test_draws(drawn):
    print(ascii((*drawn[:-1], sorted(drawn[-1]), torch.rand(1).item())))

test_draws()
"""


def drawing(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen:
    """A property test in a process of its own, which says what it draws."""
    folder.mkdir(parents=True)
    script = folder / "test_draws.py"
    script.write_text(DRAWS)
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in ("CI", "HYPOTHESIS_PROFILE")}
        | {"PYTHONPATH": str(ROOT)}
        | environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_same_examples_are_drawn_whatever_the_hash_seed_the_modules_the_folder_and_the_language(tmp_path):
    elsewhere = {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"}
    processes = [
        drawing(tmp_path / "here", PYTHONHASHSEED="1"),
        drawing(tmp_path / "tests" / "clone", "modules", **elsewhere),
        drawing(tmp_path / "in CI", CI="true"),
        drawing(tmp_path / "explored", HYPOTHESIS_PROFILE="explore"),
        drawing(tmp_path / "explored in CI", HYPOTHESIS_PROFILE="explore", CI="true"),
    ]
    here, there, in_ci, explored, explored_in_ci = (
        process.communicate()[0].splitlines() for process in processes
    )
    assert len(here) == 200
    assert len(set(here)) > 150
    assert there == here
    assert in_ci == here
    assert here != explored != explored_in_ci != here


def test_every_property_test_is_derandomised_and_keeps_nothing(request):
    tests = [item.obj for item in request.session.items if item.get_closest_marker("hypothesis")]
    for test in tests:
        chosen = test._hypothesis_internal_use_settings
        assert chosen.derandomize, test
        assert chosen.database is None, test
        assert chosen.deadline is None, test


def test_what_a_run_explores_is_drawn_anew_and_kept_nowhere():
    assert not settings.get_profile("explore").derandomize
    assert settings.get_profile("explore").database is None


@pytest.mark.parametrize("_", range(2))
def test_each_test_begins_with_the_same_random_numbers(_):
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == (
        0.8444218515250481,
        0.5488135039273248,
        0.49625658988952637,
    )
