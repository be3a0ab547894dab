"""What holds of every exercise: a mistake gets the advice that fits it, and nonsense a sentence.

`tests/chapters/*/tried.py` holds answers to each one: other right ways, and mistakes that no
exercise lists. `mistakes.json` holds what the reader sees of each mistake that is listed, in front
of the advice: numbers to be checked by hand.
"""

import inspect
import itertools
import json
import math
import pydoc
import re
import signal
import threading
import time
from importlib import import_module
from pathlib import Path

import einops
import numpy as np
import pytest
import torch

from course_utils.core.say import listed as listing
from course_utils.engine.judging import limits
from course_utils.engine.judging.agreement import agree, near, same
from course_utils.engine.judging.sentences import gave, shown
from course_utils.engine.judging.verdict import NOT_ATTEMPTED
from tests import ROOT
from tests.engine.tried import Tried
from tests.helpers.notebooks import exercises
from tests.helpers.thorough import few

EXERCISES = exercises()
MISTAKES = json.loads(Path(__file__).with_name("mistakes.json").read_text(encoding="utf-8"))
TRIED = {}
for path in sorted((ROOT / "tests" / "chapters").glob("*/tried.py")):
    TRIED |= import_module(f"tests.chapters.{path.parent.name}.tried").TRIED
# Exercises that list their mistakes.
LISTING = [e for e in EXERCISES if inspect.isgeneratorfunction(inspect.unwrap(e.judge))]
CHECKS = {exercise.judge.__name__: exercise.judge for exercise in EXERCISES}
# What may stand in a verdict: plain sentences on one line, without what only Python has a use for.
SENTENCES = re.compile(r"[^\n]{5,330}[.?]")
PYTHON = re.compile(
    r" at 0x|<class|<function|<lambda> gave|Traceback|Ellipsis|NoneType|numel|\btorch\._C"
)


def each(exercises):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda e: e.name)


def checked_by(exercise):
    """The exercise's check, with its notebook's name: tensors.windows."""
    return f"{exercise.notebook.stem.partition('_')[2]}.{exercise.judge.__name__}"


class Odd:
    """An object whose every method fails."""

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    def __repr__(self):
        raise RuntimeError("not to be shown")

    __hash__ = None


class SilentError(Exception):
    """An error whose message fails."""

    def __str__(self):
        raise RuntimeError("silent")


def no_value(*arguments):
    return 1


def gives_nothing(*arguments):
    return None


NOTHING = [
    None,
    math.nan,
    "nonsense",
    [],
    {},
    True,
    1j,
    no_value,
    Odd(),
    torch.tensor([math.nan] * 2),
]
OF_ANOTHER_TYPE = [
    (None, None),
    (math.nan,) * 3,
    10**5000,
    math.inf,
    torch.ones(2) > 0,
    "9" * 5000,
    (),
    len,
    torch.empty(2, 3, device="meta"),
    torch.eye(2).to_sparse(),
]
ERRORS = (
    ZeroDivisionError("division\nby zero"),
    KeyError(1),
    SystemExit(),
    SilentError(),
    AssertionError(),
)


def stops_with(error):
    def stopping(*arguments):
        raise error

    return stopping


def without_end(*arguments):
    return without_end(*arguments)


def first_case(check):
    """The arguments of the first case."""
    seen = []
    check(lambda *case: seen.append(case))
    return seen[0] if seen else ()


def answer(check, number):
    """A function that always gives the right answer, numbered 0, or makes that listed mistake."""

    def f(*case):
        came, _ = next(itertools.islice(check.__wrapped__(*case), number, None))
        if isinstance(came, BaseException):
            raise came
        return came

    return f


def assert_it_is_told(verdict):
    """Not yet, in a sentence or two that a student can read; or in a line for each part."""
    assert verdict.status == "not yet", verdict
    assert len(verdict.words) > 10, verdict
    lines = verdict.words.split("\n")
    assert all(SENTENCES.fullmatch(line) for line in lines), verdict
    assert not PYTHON.search(verdict.words), verdict


@each(EXERCISES)
def test_the_stub_is_not_attempted_yet_and_the_folded_solution_is_right(exercise):
    untouched = exercise.verdict(exercise.stub)
    assert untouched.status == NOT_ATTEMPTED.status
    has_dots = "..." in exercise.stub
    assert ("where the ... stands" in untouched.words) == has_dots
    assert exercise.judge(...) == NOT_ATTEMPTED
    verdict = exercise.verdict(exercise.solution)
    assert verdict.right, verdict
    assert SENTENCES.fullmatch(verdict.words), verdict


@each([exercise for exercise in EXERCISES if exercise.check.endswith((".or_ours", ".kept"))])
def test_what_follows_a_turn_uses_an_answer_that_is_right(exercise, capsys):
    ours = exercise.verdict(exercise.stub).or_ours
    assert "What follows uses ours." in capsys.readouterr().out
    assert ours is not ...
    assert exercise in LISTING or exercise.judge(ours).right
    theirs = exercise.verdict(exercise.solution)
    assert theirs.or_ours is theirs.answer
    assert "ours" not in capsys.readouterr().out
    wrong = exercise.judge(gives_nothing if exercise.wants_function else -1)
    assert wrong.or_ours is not wrong.answer
    told = " ".join(f"{wrong.words} What follows uses ours.".split())
    assert told in " ".join(capsys.readouterr().out.replace("\\'", "'").split())


def test_every_exercise_lists_its_mistakes_or_has_them_among_the_tried_ones():
    assert set(MISTAKES) == {checked_by(exercise) for exercise in LISTING}
    assert len(LISTING) > 25
    for exercise in EXERCISES:
        tried = TRIED.get(exercise.judge, Tried())
        listed = MISTAKES.get(checked_by(exercise), ())
        assert len(listed) + len(tried.wrong) > 3, exercise.name
        assert exercise in LISTING or tried.right, exercise.name


@each(EXERCISES)
def test_help_shows_the_question_and_that_an_answer_is_taken(exercise):
    shown_by_help = pydoc.plaintext.document(exercise.judge)
    assert exercise.judge.__doc__.splitlines()[0].endswith(".")
    assert f"{exercise.judge.__name__}(answer: object)" in shown_by_help
    assert exercise.judge.__doc__ in shown_by_help


WITH_TRIED = [exercise for exercise in EXERCISES if exercise.judge in TRIED]
# Each answer to a loop that is to be mended trains a model; those to A, D and E are those to B.
AT_ONCE = [e for e in WITH_TRIED if e.judge.__name__ not in ("mended_a", "mended_d", "mended_e")]


@each(few(WITH_TRIED, AT_ONCE))
def test_another_right_way_is_right_and_another_mistake_is_told_what_fits_it(exercise):
    for way in TRIED[exercise.judge].right:
        verdict = exercise.judge(way)
        assert verdict.right, verdict
    for mistaken, words in TRIED[exercise.judge].wrong:
        verdict = exercise.judge(mistaken)
        assert_it_is_told(verdict)
        assert words in verdict.words, verdict


def in_other_types(x):
    """The same value, as others may hand it in."""
    match x:
        case bool():
            return int(x), np.bool_(x), torch.tensor(x)
        case int():
            return np.int64(x), torch.tensor(x)
        case float():
            return np.float64(x), torch.tensor(x, dtype=torch.float64)
        case list() | tuple():
            return list(x), tuple(x)
        case torch.Tensor():
            return x, x.double()
    return (x,)


@each(LISTING)
def test_a_right_answer_is_right_in_every_type_of_number_or_list(exercise):
    calls = itertools.count()

    def in_another_type(*case):
        right = answer(exercise.judge, 0)(*case)
        call = next(calls)
        types = in_other_types(right) if call < 1000 else (right,)
        return types[call % len(types)]

    if exercise.wants_function:
        assert exercise.judge(in_another_type).right
    else:
        right, _ = next(exercise.judge.__wrapped__())
        assert all(exercise.judge(value).right for value in in_other_types(right))


def gives_an_object(*arguments):
    return object()


@each(LISTING)
def test_each_mistake_that_is_listed_gets_its_own_advice_and_no_other(exercise):
    nonsense = gives_an_object if exercise.wants_function else -1
    at_nonsense = exercise.judge(nonsense).words
    _, *listed = exercise.judge.__wrapped__(*first_case(exercise.judge))
    seen = []
    for number, (_, advice) in enumerate(listed, 1):
        made = answer(exercise.judge, number)
        verdict = exercise.judge(made if exercise.wants_function else made())
        assert_it_is_told(verdict)
        assert verdict.words.endswith(f" {advice}"), f"{verdict}, and not: {advice}"
        assert advice not in at_nonsense
        seen.append(re.sub(r" in line .*", "", verdict.words.removesuffix(advice).strip()))
    assert seen == MISTAKES[checked_by(exercise)]


@each(LISTING)
def test_a_power_with_a_name_in_advice_or_a_hint_is_written_as_python_writes_it(exercise):
    """Who copies `1 - beta^t` gets an error, or a wrong number; a plain 2^-7 is a number's name."""
    told = [advice for _, advice in exercise.judge.__wrapped__(*first_case(exercise.judge))]
    told += getattr(exercise.judge, "asked", {}).get("hints", ())
    assert not [words for words in told if re.search(r"\^\(|\^[A-Za-z]", words)]


def test_the_first_of_several_values_given_alone_is_told_how_many_are_wanted():
    tried = 0
    for exercise in LISTING:
        if not exercise.wants_function:
            continue
        (several, _), *mistakes = exercise.judge.__wrapped__(*first_case(exercise.judge))
        if isinstance(several, tuple):
            listed = [advice for mistake, advice in mistakes if same(mistake, several[0])]
            names = exercise.judge.asked["gives"]
            if names:
                beginning = "Return both: " if len(names) == 2 else f"Return all {len(names)}: "
                wanted = f"{names[0]} alone. {beginning}{listing(names)}."
            else:
                wanted = f"{len(several)} values are wanted."
            told = listed[0] if listed else wanted
            words = exercise.judge(first_value_of(answer(exercise.judge, 0))).words
            assert words.endswith(told), (checked_by(exercise), words)
            tried += 1
    assert tried > 5


def first_value_of(function):
    def first_value(*case):
        return function(*case)[0]

    return first_value


@each(LISTING)
def test_what_is_changed_in_place_is_noticed(exercise):
    def meddles(*case):
        came = answer(exercise.judge, 0)(*case)
        for x in case:
            if isinstance(x, torch.Tensor):
                x.zero_()
            elif isinstance(x, list | dict):
                x.clear()
        return came

    changeable = any(isinstance(x, torch.Tensor | list | dict) for x in first_case(exercise.judge))
    assert not changeable or exercise.judge(meddles).words.endswith("make a new one.")


@each(EXERCISES)
def test_an_answer_of_the_wrong_kind_gets_a_sentence(exercise):
    for answer in NOTHING:
        if answer is no_value and exercise.wants_function:
            continue
        verdict = exercise.judge(answer)
        assert_it_is_told(verdict)
        assert re.search("[Ww]anted|pattern|in quotes", verdict.words), verdict


@each([exercise for exercise in EXERCISES if exercise.wants_function])
def test_a_function_that_gives_nonsense_or_stops_gets_a_sentence(exercise):
    for came in [*NOTHING, *OF_ANOTHER_TYPE, iter(())]:
        assert_it_is_told(exercise.judge(lambda *_, came=came: came))
    line = stops_with.__code__.co_firstlineno + 2
    for error in ERRORS:
        verdict = exercise.judge(stops_with(error))
        assert_it_is_told(verdict)
        assert f"stopped in line {line} with {type(error).__name__}" in verdict.words
    assert "RecursionError" in exercise.judge(without_end).words
    assert_it_is_told(exercise.judge(lambda: 1))
    # The reader interrupts what takes too long.
    interrupted = exercise.judge(stops_with(KeyboardInterrupt()))
    assert_it_is_told(interrupted)
    assert f"was interrupted in line {line}" in interrupted.words


def test_an_answer_that_does_not_end_is_ended_and_what_its_loop_was_doing_is_said(monkeypatch):
    monkeypatch.setattr(limits, "LONGEST_S", 0.2)

    def climbs(name):
        total = 0
        while total + 1 != total:  # which of Python's integers none is
            try:
                total = 1
            except Exception:
                total = 2
        return total

    line = climbs.__code__.co_firstlineno
    begun = time.monotonic()
    verdict = CHECKS["recipe"](climbs)
    assert_it_is_told(verdict)
    said = re.search(r"in line (\d+), with name = '([\w ]+)', total = 1", verdict.words)
    assert line + 2 <= int(said[1]) <= line + 6
    assert "had not ended after 5 s" in verdict.words
    assert time.monotonic() - begun < 20
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    assert verdict.or_ours("bf16 adamw")["optimizer"] == ("bf16", "bf16")
    in_a_thread = []

    def judge():
        in_a_thread.append(CHECKS["recipe"](lambda name: 0.0))

    thread = threading.Thread(target=judge)
    thread.start()
    thread.join()
    assert_it_is_told(in_a_thread[0])  # a thread gets no signal, and is judged all the same


def test_the_line_that_is_named_is_the_readers_own():
    def stumbles(bits, exponent_bits, fraction_bits):
        return json.loads("no json")

    line = stumbles.__code__.co_firstlineno + 1
    assert f"stopped in line {line} with JSONDecodeError" in CHECKS["by_formula"](stumbles).words
    assert "stopped with TypeError" in CHECKS["by_formula"](lambda bits: bits).words


def test_each_of_our_six_patterns_gives_what_torch_gives_by_another_route():
    ours = CHECKS["patterns"]({}).or_ours
    t = torch.randn(2, 3, 4)
    u = torch.randn(3)
    v = torch.randn(5)
    q = torch.randn(2, 3, 4, 6)
    k = torch.randn(2, 3, 5, 6)
    w = torch.randn(2, 3, 4, 5)
    expected_by_torch = [
        ("sum", [t], t.sum((1, 2))),
        ("transpose", [t], t.mT),
        ("dot", [u, u], u.square().sum()),
        ("outer", [u, v], torch.stack([x * v for x in u])),
        ("scores", [q, k], q @ k.mT),
        ("mix", [w, k], w @ k),
    ]
    for name, operands, expected in expected_by_torch:
        assert torch.allclose(einops.einsum(*operands, ours[name]), expected, atol=1e-5), name


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


def test_the_parts_of_a_list_agree_each_by_its_own_kind():
    assert agree((math.nan, 1.0), [math.nan, 1.001], 0.01)
    assert not agree((math.nan, 1.0), [math.nan, 1.1], 0.01)


def test_a_value_is_shown_briefly_and_without_an_address():
    assert shown(torch.zeros(2, 3)) == "a tensor of shape (2, 3)"
    assert shown((torch.zeros(2), 1)) == "(a tensor of shape (2,), 1)"
    assert shown(object()) == "a value of type object"
    assert shown(10**5000) == "a value of type int"
    assert shown("a\nb" * 99).startswith("'a")
    several = [0.1 + 0.2, (1,), 989.5e12, torch.zeros(())]
    assert shown(several) == "[0.3, (1,), 9.895 × 10^14, tensor(0.)]"
    assert shown([2_142_208, 1e-9, -0.0, 1.0]) == "[2142208, 1 × 10^-9, -0, 1]"
    assert shown(list(range(100, 160))).endswith("111, … 159]")
    assert shown({"optimizer": ("fp32",) * 2, "master": ()}).startswith("{'optimizer': ('fp32'")
    endless = []
    endless.append(endless)
    assert len(shown(endless)) < 80
    assert len(shown("9" * 5000)) < 80


@pytest.mark.parametrize(
    ("result", "expected", "unit", "sentence"),
    [
        (44_193_349_632, 512, "bytes", "gave 44.2 GB (44,193,349,632 bytes); expected 512 bytes."),
        (
            2_110_464_000,
            14_909_440,
            "FLOPs",
            "gave 2.11 billion (2,110,464,000); expected 14.9 million (14,909,440) FLOPs.",
        ),
        (12_435_258, 7, "", "gave 12,435,258; expected 7."),  # eight digits are still read
        (494_031_872, 494_032_768, "", "gave 494,031,872; expected 494,032,768."),
        # Digits behind both, or behind neither.
        (0.5, 3 * 10**9, "", "gave 0.5; expected 3 billion."),
        (
            1_850_000_000.5,
            1_442_119_680,
            "FLOPs",
            "gave 1.85 billion; expected 1.44 billion FLOPs.",
        ),
        (
            1.85e9,
            1_442_119_680,
            "FLOPs",
            "gave 1.85 billion (1,850,000,000); expected 1.44 billion (1,442,119,680) FLOPs.",
        ),
        # Three digits, or as many as tell two numbers apart; of an integer, all.
        (0.0518961, 0.130803, "", "gave 0.0519; expected 0.131."),
        (0.1308034, 0.1308035, "", "gave 0.1308034; expected 0.1308035."),
        (1_095.58, 1_155.53, "s", "gave 1,096; expected 1,156 s."),
        (6.4264e6, 12, "", "gave 6,426,400; expected 12."),
        (-(10**9), 3, "", "gave -1,000,000,000; expected 3."),
        (float("inf"), 10**9, "", "gave inf; expected 1,000,000,000."),
        # What is too long for a sentence is cut.
        (10**400, 10**9, "", f"gave {10**400:,}"[:55] + " … 00,000,000; expected 1,000,000,000."),
    ],
)
def test_two_long_numbers_are_told_apart_in_words(result, expected, unit, sentence):
    assert gave(result, expected, 0, unit) == sentence


@pytest.mark.parametrize(
    ("result", "expected", "sentence"),
    [
        (3770, {"a": 1, "b": 2}, "gave one number, 3,770; expected a dict with the keys a and b."),
        (None, {"row": 5}, "gave None; expected a dict with the key row."),
        ([1, 2], {"row": 5}, "gave [1, 2]; expected a dict with the key row."),
        ({"a": 1}, 5, "gave a dict with the key a; expected one number, 5."),
        ({}, 5, "gave an empty dict; expected one number, 5."),
        (
            {94888609460256: 96},
            96,
            "gave a dict whose keys are long numbers; expected one number, 96.",
        ),
    ],
)
def test_where_a_dict_came_or_was_expected_it_is_said_in_words(result, expected, sentence):
    assert gave(result, expected, 0) == sentence


def test_two_tensors_of_bools_are_told_apart_by_a_number_and_others_by_their_dtype():
    result = torch.tensor([0.0, 1.0])
    wanted = "gave a tensor of shape (2,), as expected, but [0] is"
    assert gave(result.bool(), torch.ones(2).bool(), 0) == f"{wanted} 0, and should be 1."
    assert gave(result.bool(), result, 0).endswith("torch.bool; expected torch.float32.")
    assert gave(result * 1j, result, 0).endswith("torch.complex64; expected torch.float32.")


def test_a_verdict_in_parts_has_a_line_for_each_part_that_is_wrong():
    ours = CHECKS["patterns"]({}).or_ours
    shown = CHECKS["patterns"](ours | {"dot": "i, j ->", "outer": "i, j ->"})._repr_html_()
    assert "</b> sum ✓, transpose ✓, scores ✓, mix ✓.<br>dot: &#x27;i, j" in shown
    assert "give it one name.<br>outer: &#x27;i, j" in shown


def test_a_verdict_escapes_what_the_reader_wrote():
    assert "&lt;script&gt;" in CHECKS["patterns"]("<script>")._repr_html_()
