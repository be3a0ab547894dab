"""The exercises: the folded solution is right and so are other ways; mistakes get advice, and nonsense a sentence."""

import json
import math
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

from course_utils.checks.agreement import agree, near, same
from course_utils.checks.sentences import shown
from course_utils.checks.verdict import NOT_ATTEMPTED
from tests.notebooks import exercises

EXERCISES = exercises()
TRIED = {
    check: tried
    for path in sorted((Path(__file__).parent / "tried").glob("[a-z]*.py"))
    for check, tried in import_module(f"tests.tried.{path.stem}").TRIED.items()
}
every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
# What may stand in a verdict: plain sentences on one line, without what only Python has a use for.
SENTENCES = re.compile(r"[^\n]{10,330}[.?]")
PYTHON = re.compile(r" at 0x|<class|<function|<lambda> gave|Traceback|Ellipsis|NoneType|numel|\btorch\._C")


class Odd:
    """What fails at everything."""

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    def __repr__(self):
        raise RuntimeError("not to be shown")

    __hash__ = None


class SilentError(Exception):
    """What fails even to say what it is."""

    def __str__(self):
        raise RuntimeError("silent")


def no_value(*arguments):
    return 1


NOTHING = [None, math.nan, "nonsense", [], {}, True, 1j, no_value, Odd(), torch.tensor([math.nan] * 2)]
OF_ANOTHER_TYPE = [
    *NOTHING,
    (None, None),
    (math.nan,) * 3,
    10**5000,
    math.inf,
    torch.ones(2) > 0,
    "9" * 5000,
    (),
]


def stops_with(error):
    def stopping(*arguments):
        raise error

    return stopping


def without_end(*arguments):
    return without_end(*arguments)


def assert_it_is_told(verdict):
    """Not yet, in a sentence or two that a student can read."""
    assert verdict.status == "not yet", verdict
    assert SENTENCES.fullmatch(verdict.words), verdict
    assert not PYTHON.search(verdict.words), verdict


@every_exercise
def test_the_stub_is_not_attempted_yet(exercise):
    assert exercise.verdict(exercise.stub) == NOT_ATTEMPTED


@every_exercise
def test_the_folded_solution_is_right(exercise):
    verdict = exercise.verdict(exercise.solution)
    assert verdict.right, verdict


def test_every_exercise_has_been_tried():
    assert {exercise.judge for exercise in EXERCISES} == set(TRIED)
    assert all(tried.right and len(tried.wrong) > 3 for tried in TRIED.values())


@every_exercise
def test_a_right_answer_is_right_in_whatever_type_and_by_whatever_way(exercise):
    for answer in TRIED[exercise.judge].right:
        verdict = exercise.judge(answer)
        assert verdict.right, verdict


@every_exercise
def test_a_plausible_mistake_gets_the_advice_that_fits_it(exercise):
    fitting = 0
    at_nonsense = exercise.judge((lambda *_: object()) if exercise.wants_function else -1).words
    for answer, advice in TRIED[exercise.judge].wrong:
        verdict = exercise.judge(answer)
        assert_it_is_told(verdict)
        assert advice in verdict.words, verdict
        fitting += advice not in at_nonsense
    assert fitting >= 3, "all the others get is what anything gets"


@every_exercise
def test_what_is_no_answer_at_all_gets_a_sentence(exercise):
    for answer in NOTHING:
        if answer is no_value and exercise.wants_function:
            continue
        verdict = exercise.judge(answer)
        assert_it_is_told(verdict)
        assert "anted" in verdict.words or "pattern" in verdict.words or "in quotes" in verdict.words, verdict


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if e.wants_function], ids=lambda e: e.name)
def test_a_function_that_gives_nonsense_or_stops_gets_a_sentence(exercise):
    for came in [*OF_ANOTHER_TYPE, len, iter(())]:
        assert_it_is_told(exercise.judge(lambda *_, came=came: came))
    for error in (
        ZeroDivisionError("division\nby zero"),
        KeyError(1),
        SystemExit(),
        SilentError(),
        AssertionError(),
    ):
        verdict = exercise.judge(stops_with(error))
        assert_it_is_told(verdict)
        assert (
            f"stopped in line {stops_with.__code__.co_firstlineno + 2} with {type(error).__name__}"
            in verdict.words
        )
    assert "RecursionError" in exercise.judge(without_end).words
    assert_it_is_told(exercise.judge(lambda: 1))


def test_the_line_that_is_named_is_the_readers_own():
    decoded = next(check for check in TRIED if check.__name__ == "decoded")

    def stumbles(bits, exponent_bits, fraction_bits):
        return json.loads("no json")

    line = stumbles.__code__.co_firstlineno + 1
    assert f"stopped in line {line} with JSONDecodeError" in decoded(stumbles).words
    assert "stopped with TypeError" in decoded(lambda bits: bits).words


def test_an_interrupt_is_the_readers_and_goes_through():
    decoded = next(check for check in TRIED if check.__name__ == "decoded")
    with pytest.raises(KeyboardInterrupt):
        decoded(stops_with(KeyboardInterrupt()))


def test_same_is_equal_to_the_last_bit():
    assert same(math.nan, math.nan)
    assert same(1, 1.0)
    assert not same(0.0, -0.0)
    assert not same(True, 1)
    assert not same("1", 1)
    assert not same(torch.zeros(2), 0.0)


def test_near_is_a_share_and_nothing_without_one():
    assert near(101, 100, 0.01)
    assert not near(102, 100, 0.01)
    assert not near(100, 100, 0.0)
    assert near((1.0, 2.0), [1.001, 2.0], 0.01)
    assert not near((1.0, 2.0), (1.0, 2.0, 3.0), 0.01)
    assert not near("1", 1, 0.5)
    assert not near(True, 1, 0.5)
    assert not near(10**400, 1.0, 0.5)


def test_parts_agree_each_in_its_own_way():
    assert agree((math.nan, 1.0), [math.nan, 1.001], 0.01)
    assert not agree((math.nan, 1.0), [math.nan, 1.1], 0.01)


def test_a_value_is_shown_briefly_and_without_an_address():
    assert shown(torch.zeros(2, 3)) == "a tensor of shape (2, 3)"
    assert shown((torch.zeros(2), 1)) == "(a tensor of shape (2,), 1)"
    assert shown(object()) == "a value of type object"
    assert shown(10**5000) == "a value of type int"
    assert shown("a\nb" * 99).startswith("'a")
    assert shown([0.1 + 0.2, (1,), 989.5e12, torch.zeros(())]) == "[0.3, (1,), 9.895e+14, tensor(0.)]"
    endless = []
    endless.append(endless)
    assert len(shown(endless)) < 80 > len(shown("9" * 5000))


def test_a_verdict_escapes_what_the_reader_wrote():
    spelled = next(check for check in TRIED if check.__name__ == "spelled")
    assert "&lt;script&gt;" in spelled("<script>")._repr_html_()
