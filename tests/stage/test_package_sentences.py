"""What the package says to a reader is in whole sentences, and comes in their language."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from course_utils.core.say import language as spoken
from course_utils.core.say.language import speak, translated
from course_utils.stage.translations import in_kernel, package
from tests.engine.test_checks import LISTING, first_case

PACKAGE = Path(__file__).parents[2] / "course_utils"
GAP = re.compile(r"[a-z_]+")


@pytest.fixture
def in_another_language():
    """Yield the function that sets translations; afterwards, sentences are English again."""
    yield speak
    speak({})


def calls() -> list[tuple[str, ast.Call]]:
    """Return each call of `translated` or `template`, with the place where it stands."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id in package.SPEAKS:
                found.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", node))
    return found


def gaps_of(sentence: str) -> list[tuple[str, str | None, str | None]]:
    """Return the gaps of a template: their names, formats and conversions."""
    return [(name, form, way) for _, name, form, way in Formatter().parse(sentence) if name]


def test_every_template_names_its_gaps_and_gets_a_value_for_each():
    wrong = []
    for place, call in calls():
        is_literal = isinstance(call.args[0], ast.Constant)
        given = {keyword.arg for keyword in call.keywords}
        if not is_literal or not given:  # one that is looked up whole may have braces of its own
            continue
        gaps = gaps_of(call.args[0].value)
        # How a number is written is decided before: a translator sees names only.
        are_plain = all(GAP.fullmatch(name) and not form and not way for name, form, way in gaps)
        if not are_plain or {name for name, _, _ in gaps} != given:
            wrong.append(f"{place}: {call.args[0].value}")
    assert not wrong


def test_no_template_is_made_of_parts():
    """An f-string would be another sentence each time, which no catalogue has."""
    made = [place for place, call in calls() if isinstance(call.args[0], ast.JoinedStr)]
    assert not made


def test_all_that_a_check_says_of_its_listed_answers_can_be_translated():
    """Wherever the sentence stands: a module of advice that nothing reads would stay English."""
    listed = package.exercises_of(PACKAGE) + package.sentences_of(PACKAGE)
    known = {sentence for _, sentence in listed}
    said = set()
    for exercise in LISTING:
        answers = exercise.judge.__wrapped__(*first_case(exercise.judge))
        said |= {sentence for _, sentence in answers}
    assert len(said) > 500
    assert said <= known


def test_a_sentence_is_said_in_the_readers_language(in_another_language):
    in_another_language({"{n} too low": "zu klein um {n}"})
    assert translated("{n} too low", n="3") == "zu klein um 3"
    assert translated("{n} too high", n="3") == "3 too high"


def test_advice_with_braces_of_its_own_is_left_as_it_is():
    assert translated("Return {name: tensor}.") == "Return {name: tensor}."


def test_what_a_reader_typed_may_have_braces():
    assert translated("{typed} is no number.", typed="{x}") == "{x} is no number."


def test_a_kernel_speaks_the_language_of_its_server(monkeypatch, in_another_language):
    monkeypatch.setenv("COURSE_LANG", "zh_CN")
    in_kernel.load_ipython_extension(None)
    assert spoken._translations == in_kernel.sentences_in("zh_CN")
    assert len(spoken._translations) > 100


def test_a_language_that_does_not_exist_leaves_the_kernel_in_english(monkeypatch):
    monkeypatch.setenv("COURSE_LANG", "xx")
    in_kernel.load_ipython_extension(None)
    assert translated("Right.") == "Right."
