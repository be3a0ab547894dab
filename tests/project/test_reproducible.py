"""The same verdict everywhere: examples, seeds and order depend on the tests alone."""

import io
import os
import platform
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import ROOT, conftest
from tests.helpers import warm

ANYTHING = st.tuples(
    st.integers(), st.floats(), st.text(), st.lists(st.sampled_from("abc")), st.sets(st.text("ab"))
)
DRAWN = 40
ELSEWHERE = """
import tests.helpers.reproducible
from hypothesis import settings
from tests.project.test_reproducible import examples

import course_utils.chapters.labs, course_utils.chapters.floats.check
for chosen in (settings(), settings(), settings.get_profile("reproducible")):
    print(*examples(chosen), sep="\\n")
"""


def examples(chosen: settings) -> list[str]:
    """What a property test draws under these settings, including numbers of torch's generator."""
    found = []

    @settings(chosen, max_examples=DRAWN)
    @given(ANYTHING)
    def draw(drawn):
        *ordered, drawn_set = drawn
        found.append(ascii((*ordered, sorted(drawn_set), torch.rand(1).item())))

    draw()
    return found


def test_the_same_examples_are_drawn_whatever_the_hash_seed_the_modules_the_folder_and_the_language(
    tmp_path,
):
    folder = tmp_path / "tests" / "clone"
    folder.mkdir(parents=True)
    strange = {
        "PYTHONHASHSEED": "2",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Pacific/Kiritimati",
        "CI": "true",
        "PYTHONPATH": str(ROOT),
        "HYPOTHESIS_PROFILE": "explore",
    }
    run = [sys.executable, "-c", ELSEWHERE]
    said = subprocess.run(
        run, cwd=folder, env=os.environ | strange, capture_output=True, text=True, check=True
    )
    here = examples(settings.get_profile("reproducible"))
    assert len(here) == DRAWN
    assert len(set(here)) > 0.75 * DRAWN

    lines = said.stdout.splitlines()
    explored = lines[:DRAWN]
    explored_again = lines[DRAWN : 2 * DRAWN]
    there = lines[2 * DRAWN :]
    assert there == here
    assert explored != here
    assert explored_again not in (here, explored)


def test_every_property_test_is_derandomised_and_keeps_nothing(request):
    tests = [item.obj for item in request.session.items if item.get_closest_marker("hypothesis")]
    theirs = [test._hypothesis_internal_use_settings for test in tests]
    for chosen in (settings.get_profile("reproducible"), *theirs):
        assert chosen.derandomize
        assert chosen.database is None
        assert chosen.deadline is None
    assert settings.get_profile("explore").database is None


@pytest.mark.parametrize("_", range(2))
def test_each_test_begins_with_the_same_random_numbers(_):
    first = random.random(), np.random.rand(), torch.rand(1).item()
    assert first == (0.8444218515250481, 0.5488135039273248, 0.49625658988952637)


def test_a_failing_run_ends_with_what_to_send_us(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert 1 == 2")
    options = ["-o", "addopts=", "-p", "tests.conftest"]
    command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
    level = {"ATEN_CPU_CAPABILITY": "default", "PYTHONHASHSEED": "31", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | level,
        capture_output=True,
        text=True,
        check=False,
    )
    said = run.stdout
    _, _, to_send = said.rpartition("what to send us")
    *_, what_to_do, count = to_send.strip().splitlines()
    assert f"Python {platform.python_version()}, torch {torch.__version__} with DEFAULT\n" in said
    assert f"{platform.platform()}, hash seed 31\n" in said
    assert "open an issue of this project" in what_to_do
    assert "1 failed" in count


@pytest.mark.parametrize(("came", "says"), [("passed", False), ("skipped", False), ("error", True)])
def test_nothing_is_to_be_sent_where_nothing_failed(pytestconfig, came, says):
    said = io.StringIO()
    reporter = pytest.TerminalReporter(pytestconfig, said)
    reporter.stats[came] = ["a report"]
    assert list(conftest.pytest_terminal_summary(reporter)) == [None]
    assert ("what to send us" in said.getvalue()) == says


FORKED = """
from pathlib import Path
from tests.helpers import warm
from tests.helpers.kernels import kernel_in, printed

ASKED = [
    "import os, torch",
    "print(os.environ['PYTHONHASHSEED'], torch.backends.cpu.get_cpu_capability())",
]
warm.pytest_configure()
with kernel_in(Path()) as (_, client):
    print(printed(client, "; ".join(ASKED)))
"""


def test_a_kernel_has_the_instructions_and_the_hash_seed_that_its_tests_were_given():
    level = {"ATEN_CPU_CAPABILITY": "default", "PYTHONHASHSEED": "31", warm.WHERE: ""}
    run = subprocess.run(
        [sys.executable, "-c", FORKED],
        cwd=ROOT,
        env=os.environ | level,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "31 DEFAULT"
