"""What a reader sees of guesses and verdicts comes in their language; what is kept stays English.

The language of these tests is English in capitals, so whatever is in small letters was typed by the
reader, stands in a notebook's cell, or was not translated.
"""

import re
from html import unescape
from types import SimpleNamespace

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from course_utils.core import keeping, record
from course_utils.core.say import Choice, Comparison, Guess, OpenGuess, answer_units, table, typed
from course_utils.core.say.language import speak
from course_utils.engine import guessing
from course_utils.engine.guessing.field import Field
from course_utils.engine.judging import (
    NotYetError,
    after_cell,
    errors,
    function,
    hints,
    objection,
    value,
)
from course_utils.engine.judging.verdict import Verdict
from course_utils.stage import kernel
from course_utils.stage.translations import package
from course_utils.stage.workspace.outputs import without_views
from tests import ROOT

NO_RETURN = "A FUNCTION GIVES NONE IF IT HAS NO RETURN, OR RETURNS PRINT(...)."
GAP = re.compile(r"(\{\w+\})")
EXERCISES = (
    "The way around is another thing.",
    "Both sides are equally long.",
    "The whole square has this area.",
    "Think of a carpet.",
    "its area",
    "No copies here.",
)


@pytest.fixture(autouse=True)
def capitals():
    """Have all sentences of the package, and of the exercises below, in capitals."""
    sentences = [sentence for _, sentence in package.sentences_of(ROOT / "course_utils")]
    speak({sentence: in_capitals(sentence) for sentence in (*sentences, *EXERCISES)})
    hints.TRIED.clear()
    yield
    speak({})


def in_capitals(sentence):
    parts = GAP.split(sentence)  # every second one is a gap
    parts[::2] = [part.upper() for part in parts[::2]]
    return "".join(parts)


@function([(2,), (3,)], hints=("Think of a carpet.",))
def square(side):
    """The check of a square's area."""
    yield side * side, "The whole square has this area."
    yield 4 * side, "The way around is another thing."


@function([(2, 3)], parts=lambda width, height: {"first": width, "second": height}, unit="bytes")
def both(width, height):
    """The check of a sum in parts."""
    yield width + height, "The sum of both."


@value(wanted="its area")
def area():
    """The check of a number."""
    yield 42.0, "The whole square has this area."
    yield 26.0, "The way around is another thing."


@objection("Both sides are equally long.")
def sides(answer):
    """The check of anything but 3."""
    if answer() == 3:
        raise NotYetError("No copies here.")


def words_of(html):
    return unescape(re.sub(r"<[^>]+>", " ", html))


def test_a_comparison_has_its_heads_and_the_words_on_the_guess():
    comparison = Comparison({"days": 9}, {"days": 100}, "GB", guess=90, heads=("a", "reported"))
    head, row, words = str(comparison).splitlines()
    assert head.split("  ")[-1].strip() == "REPORTED / a"
    assert "YOUR GUESS" in head
    assert row.split() == ["days", "90", "9", "100", "11.11"]
    assert words == "CLOSE: 0.9 TIMES WHAT WAS REPORTED."


def test_two_guesses_have_a_sentence_each():
    measured = {"a": 100, "b": 4}
    comparison = Comparison(measured, measured, guess={"a": 40, "b": 5, "c": 2})
    assert str(comparison).splitlines()[-1] == (
        "a: RIGHT POWER OF TEN, A FACTOR OF 2.5 TOO SMALL. b: CLOSE, 1 TOO HIGH. "
        "THERE IS NOTHING CALLED 'c' TO GUESS HERE, BUT 'a' AND 'b'."
    )


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (Guess("MFU", 11, 2, unit="percent"), "CLOSE: 9 POINTS TOO HIGH"),
        (Guess("MFU", 2, 30, unit="percent"), "FAR: 28 POINTS TOO LOW"),
        (Guess("layers", 11, 12), "CLOSE: 1 TOO LOW"),
        (Guess("days", 24_000, 12.5), "FAR: A FACTOR OF 1,920 TOO LARGE"),
        (Guess("days", 12.5, 24e9, "calculated"), "FAR: A FACTOR OF 1.92 BILLION TOO SMALL"),
        (Guess("GB", 200.5, 100, "with a step"), "RIGHT POWER OF TEN: A FACTOR OF 2 TOO LARGE"),
        (Guess("bytes", 12, 16, unit="bytes"), "RIGHT POWER OF TEN: 4 bytes TOO FEW"),
        (Guess("GB", 90, 100, "with a step"), "CLOSE: 0.9 TIMES THE NUMBER"),
        (Guess("GB", 100, 200.5, "with a step"), "RIGHT POWER OF TEN: A FACTOR OF 2 TOO SMALL"),
        (Guess("GB", 0, 8), "FAR: YOU SAID 0, AND WHAT WAS MEASURED IS 8"),
        (Guess("GB", 2.4, 2.416), "SPOT ON: 2.4 FOR 2.42"),
        (Guess("GB", 2.4e9, 2.4), "FAR: A FACTOR OF 1 BILLION TOO LARGE. IS IT IN THE UNIT"),
    ],
)
def test_how_far_off_a_guess_is(guess, words):
    assert guess.words.startswith(words)


def test_the_words_in_the_picture_of_a_guess():
    one = words_of(Comparison({"a": 90}, {"a": 100}, "GB", guess=120)._repr_html_())
    for words in ("MEASURED", "CLOSE", "YOUR GUESS", "PREDICTED", "THE NUMBERS"):
        assert words in one
    several = Comparison({"a": 90, "b": 3}, {"a": 100, "b": 4}, guess={"a": 90, "b": 1})
    assert ", YOUR GUESS 90" in words_of(several._repr_html_())


def test_a_choice_says_what_was_chosen_and_what_is_right():
    choice = Choice("format", among=("fp16", "bf16"), measured="bf16", guess="fp16")
    head, _, words = str(choice).splitlines()
    assert head.split() == ["YOUR", "GUESS", "MEASURED"]
    assert words == "MISSED: YOU SAID fp16, AND WHAT WAS MEASURED IS bf16."
    right = Choice("format", among=("fp16", "bf16"), measured="bf16", guess="bf16")
    assert "YOUR GUESS AND MEASURED" in words_of(right._repr_html_())


def test_what_the_record_and_the_contents_page_count_stays_english():
    guess = Guess("GB", 2.4, 2.416)
    assert guess.word == "spot on"
    assert guess.kind == "measured"


def test_yes_and_no_in_a_table():
    assert str(table({"half": {"is a view": True}})).split()[-1] == "YES"


@pytest.mark.parametrize(
    ("guess", "typed", "words"),
    [
        (OpenGuess(("a",), "GB"), "lots", "'lots' IS NOT A NUMBER HERE. WRITE IT AS 7,"),
        (OpenGuess(("a",), "GB"), "", "TYPE A NUMBER. WRITE IT AS 7,"),
        (OpenGuess(("a",), "GB"), "-1", "IT CANNOT BE BELOW 0: -1 GB."),
        (
            OpenGuess(("a",), "GB"),
            "9" * 61,
            "'99999999999999999999…' IS TOO LONG: ONLY 60 CHARACTERS",
        ),
        (OpenGuess(("a",), "GB"), "1/0", "'1/0' IS TOO LARGE."),
        (OpenGuess(("a",), "GB"), "1-2", "'1-2' IS TWO NUMBERS, AND THE ANSWER IS ONE."),
        (OpenGuess(("a",), "GB"), "ca. 2", "LEAVE OUT 'ca.', AND TYPE THE NUMBER ALONE."),
        (OpenGuess(("a",), "GB"), "2 d", "'d' DOES NOT FIT HERE, BECAUSE THE ANSWER IS IN GB."),
        (
            OpenGuess(("a",)),
            "2 d",
            "'d' DOES NOT FIT HERE, BECAUSE THE ANSWER IS A NUMBER WITHOUT A UNIT.",
        ),
        (OpenGuess(("a",), "of 9"), "2 d", "'d' DOES NOT FIT HERE, BECAUSE THE ANSWER IS A COUNT."),
        (
            OpenGuess(("a",), "share"),
            "2 d",
            "'d' DOES NOT FIT HERE, BECAUSE THE ANSWER IS A SHARE.",
        ),
        (
            OpenGuess(("a",), "of 9"),
            "0.5",
            "0.5 IS NOT A WHOLE NUMBER. WRITE A WHOLE NUMBER FROM 0 TO 9.",
        ),
        (OpenGuess(("a",), "share"), "2", "A SHARE IS BETWEEN 0 AND 1;"),
        (
            OpenGuess(("a",), "of 200"),
            "201",
            "201 IS MORE THAN THERE ARE. WRITE A WHOLE NUMBER FROM 0 TO 200.",
        ),
        (OpenGuess(("a",), among=("x", "y")), "z", "CHOOSE ONE OF THESE: x, y."),
        (OpenGuess(("a",), is_closed=True), "3", "SHOW WAS PRESSED, SO THIS GUESS"),
    ],
)
def test_what_a_field_refuses(guess, typed, words):
    field = Field(guess)
    field.say("a", typed)
    (line,) = field.lines
    sentence = line["fault"] if not guess.is_closed else field._faults["a"]
    assert sentence.startswith(words)


def test_the_words_of_the_field_itself():
    guess = OpenGuess(("a",), "GB")
    field = Field(guess)
    assert field.labels["show"] == "SHOW"
    assert "{left}" in field.labels["left"]  # which the page fills in
    guess.close()
    assert field.words == "SHOW WAS PRESSED BEFORE THERE WAS A GUESS."
    assert guessing.field.labels()["yourGuess"] == "YOUR GUESS"


def test_the_page_has_no_words_of_its_own():
    """All that field.js shows comes from Python, and each of its names for it has words there."""
    code = "\n".join(line.partition("// ")[0] for line in Field._esm.splitlines())
    assert set(re.findall(r"\blabels\.(\w+)", code)) == set(guessing.field.labels())
    assert re.findall(r"[\"'`][A-Z][a-z]+[ \"'`]", code) == ['"Enter"']


def test_a_right_answer_and_one_that_is_not_there_yet():
    assert repr(square(lambda side: side * side)) == "RIGHT. THE WHOLE SQUARE HAS THIS AREA."
    assert repr(square(...)).startswith("NOT ATTEMPTED YET. PUT YOUR ANSWER WHERE THE ... STANDS")
    assert repr(sides(lambda: 2)) == "RIGHT. BOTH SIDES ARE EQUALLY LONG."


def test_a_listed_mistake_gets_its_advice_and_grading_sees_it_in_english():
    verdict = square(lambda side: 4 * side)
    assert verdict.status == "not yet"
    assert verdict.words == (
        "WITH side = 2, YOUR FUNCTION GAVE 8; EXPECTED 4. THE WAY AROUND IS ANOTHER THING."
    )
    assert verdict.looks_like == verdict.without_case == "The way around is another thing."
    assert area(26).words == "26 IS NOT IT. THE WAY AROUND IS ANOTHER THING."
    assert sides(lambda: 3).words == "NO COPIES HERE."


def test_a_wrong_value():
    assert area(30.0).words == "30 IS TOO SMALL. WANTED: ITS AREA."
    assert area(43.0).words.startswith("43 IS CLOSE, BUT SOMETHING IS ROUNDED")
    assert area("42").words.startswith("'42' IS NOT ONE PLAIN NUMBER: WRITE IT WITHOUT QUOTES")
    assert area(len).words.startswith("A FUNCTION IS NOT ONE PLAIN NUMBER.")


def test_a_result_of_another_kind():
    def none(side):
        return None

    def in_a_tensor(side):
        return torch.ones(2, 3)

    assert square(none).words.endswith(" GAVE None; EXPECTED 4. " + NO_RETURN)
    assert square(in_a_tensor).words == (
        "WITH side = 2, in_a_tensor GAVE A TENSOR OF SHAPE (2, 3); EXPECTED 4. "
        "ONE PLAIN NUMBER IS WANTED."
    )


def test_a_sum_in_parts():
    assert both(lambda width, height: width).words == (
        "WITH width = 2 AND height = 3, YOUR FUNCTION GAVE 2 INSTEAD OF 5 bytes. "
        "First ✓, second LEFT OUT: 3 SHORT."
    )
    four = both(lambda width, height: 4)
    assert four.words.endswith(
        "GAVE 4 INSTEAD OF 5 bytes. First ✓, second AS LARGE AS first: 1 SHORT."
    )
    assert both(lambda width, height: 77).words.endswith(
        "GAVE 77 INSTEAD OF 5 bytes, 72 TOO MANY. "
        "THE DIFFERENCE DOES NOT SHOW WHICH PART IS WRONG, AND IT MAY BE MORE THAN ONE."
    )


def test_an_error_a_change_in_place_and_an_endless_loop(monkeypatch):
    def fails(side):
        raise KeyError("side")

    def endless(side):
        while side:
            pass

    stopped = r"WITH side = 2, fails STOPPED IN LINE \d+ WITH KeyError: 'side'\."
    assert re.fullmatch(stopped, square(fails).words)
    assert errors.stopped(fails, errors.InPlaceError()).startswith("CHANGED WHAT IT WAS GIVEN.")
    monkeypatch.setattr("course_utils.engine.judging.limits.LONGEST_S", 0.01)
    sentence = square(endless).words
    ended = r".* endless HAD NOT ENDED AFTER \d S, AND WAS ENDED IN LINE \d+, WITH side = 2\. "
    assert re.fullmatch(ended + r"DOES ITS LOOP COME TO AN END\?", sentence)


def test_hints_and_what_follows(capsys):
    wrong = [square(lambda side: side + 7), square(lambda side: side + 8)]
    assert wrong[0].or_ours(3) == 9
    assert "WHAT FOLLOWS USES OURS. HINT 1 OF 1: THINK OF A CARPET." in capsys.readouterr().out
    assert wrong[1].or_ours(3) == 9
    assert "THE SOLUTION IS FOLDED BELOW." in capsys.readouterr().out
    assert "<b>NOT YET.</b>" in wrong[0]._repr_html_()


@pytest.mark.parametrize(
    ("unit", "among", "asked"),
    [
        ("GB", (), "a, b, IN GB?"),
        ("of 200", (), "a, b, OF 200?"),
        ("share", (), "a, b, FROM 0 TO 1?"),
        ("", (), "a, b?"),
        ("", ("x", "y"), "a, b? ONE OF THESE: x, y."),
    ],
)
def test_what_stands_in_place_of_a_field_outlives_the_live_view(unit, among, asked):
    bundle, _ = Field(OpenGuess(("a", "b"), unit, among=among))._repr_mimebundle_()
    words = {"text/plain": f"YOUR GUESS: {asked} (TO TYPE IT, RUN THIS CELL.)"}
    cell = {"outputs": [{"data": bundle}]}
    assert without_views({"cells": [cell]}) == {"cells": [{"outputs": [{"data": words}]}]}


def test_a_verdict_that_is_taken_back(monkeypatch):
    assert repr(Verdict("not judged", "A.")) == "NOT JUDGED. A."
    shown = []
    monkeypatch.setattr(Verdict, "take_back", lambda verdict, words: shown.append(words))
    cell = SimpleNamespace(info=SimpleNamespace(raw_cell="check.area(my_area)"))
    monkeypatch.setattr(after_cell, "stopped", {"my_area"})
    after_cell._remember({}, [Verdict("right", exercise="area")], cell)
    assert shown == [after_cell.STOPPED.upper()]


def test_in_chinese_no_space_follows_a_sentence(capsys):
    speak(
        {
            "{text} {sentence}": "{text}{sentence}",
            "Not yet.": "还不对。",
            "What follows uses ours.": "后面用我们的。",
            "{typed} is not a number here.": "{typed}在这里不是数。",
            "'{typed}'": "“{typed}”",
            '"{typed}"': "“{typed}”",
            answer_units.HOW[""]: "写成 1500。",
        }
    )
    wrong = Verdict("not yet", "面积不对。", ours=lambda: 9, exercise="area")
    assert wrong.or_ours == 9
    assert "还不对。面积不对。后面用我们的。" in capsys.readouterr().out
    assert "<b>还不对。</b>面积不对。</div>" in wrong._repr_html_()
    for text in ("三", "it's"):
        with pytest.raises(ValueError, match=f"^“{text}”在这里不是数。写成 1500。$"):
            typed.read(text)


def test_a_term_that_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / record.HIDDEN).mkdir()
    kept = keeping._kept("days", "mine/accountant.py", ["days"])
    assert kept == "IT IS KEPT IN mine/accountant.py. YOURS NOW: 1 OF 13 TERMS."
    assert keeping.keep("days", 3, square).startswith("BUT NOT KEPT IN ")


def test_a_name_that_the_kernel_does_not_know(monkeypatch):
    monkeypatch.setattr(kernel, "_code_of_this_notebook", lambda: [("a", "days = 3")])
    error = NameError("days", name="days")
    shell = InteractiveShell()
    monkeypatch.setattr(shell, "showtraceback", lambda *_, **__: None)
    kernel._explain(shell, NameError, error, None)
    (words,) = error._render_traceback_()
    assert words.startswith("THE KERNEL DOES NOT KNOW days. THE CELL THAT BEGINS “days = 3”")
