"""A quick share of `make fuzz`, and that it finds what it is there to find."""

from dataclasses import dataclass
from functools import cache

import pytest

from course_utils.chapters import labs
from course_utils.engine.labs.draw import svg
from course_utils.engine.labs.fields import tick, typed, whole
from course_utils.engine.labs.lab import View
from course_utils.engine.labs.panel import Panel
from course_utils.subjects import machines
from tests.helpers.small_lab import made
from tests.tools import fuzz


@pytest.fixture(autouse=True)
def _wired(monkeypatch):
    @cache
    def this_machine():
        """A machine from its data sheet, so that nothing is measured."""
        return machines.MACHINES["H100 SXM"]

    monkeypatch.setattr("course_utils.subjects.machines.this_machine", this_machine)
    with fuzz.wired():
        yield


def test_no_lab_dies_under_some_moves_in_any_order():
    assert fuzz.fuzz(labs.__all__, tries=6 * len(labs.__all__), seed=0, moves_each=6) is None


@dataclass(frozen=True)
class Faulty:
    n: int = whole("n", 3, 0, 20)
    ticked: bool = tick("ticked", False)
    words: str = typed("words", "a", examples=("a", "b"))


def faulty_lab(fault):
    """A lab of a slider and a tick, whose fault shows once it is ticked and moved."""

    def view(asked, found):
        drawn = svg.text(0, 9, asked.words)
        if asked.ticked and asked.n != 3:
            drawn = fault(asked.words)
        return View(svg.picture(10, 10, drawn), f"n is {asked.n}")

    presets = {"three?": {"n": 3, "ticked": False, "words": "b"}}
    return lambda: Panel(made(Faulty, view, presets=presets))


def fault_of_the_lab(words):
    raise RuntimeError("a fault")


def no_sentence(words):
    raise ValueError("oops")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (fault_of_the_lab, "a fault"),
        (no_sentence, "no sentence: “oops”"),
        (lambda words: f"<text>{words}</text>", ""),  # what was typed is markup now
        (lambda words: "<script/>", "script in the picture"),
    ],
)
def test_a_fault_is_found_and_told_in_few_moves(monkeypatch, fault, said):
    monkeypatch.setattr(labs, "faulty_lab", faulty_lab(fault), raising=False)
    _, moves, error = fuzz.fuzz(["faulty_lab"], tries=300, seed=0)
    assert said in str(error)
    assert len(moves) <= 3
