"""A guess before its reveal: what a reader may type, how long it can be changed, and `reveal`."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.core.say import Choice, Comparison, OpenGuess, reveal
from course_utils.core.say.answer_units import HOW
from course_utils.core.say.typed import read

TYPED = {
    ("2.4", "GB"): "2.4 GB",
    (" 2.4 GB ", "GB"): "2.4 GB",
    ("2.4gb", "GB"): "2.4 GB",
    ("2,400 MB", "GB"): "2.4 GB",
    ("2300 MB", "GB"): "2.3 GB",
    ("2.25 GiB", "GB"): "2.41592 GB",
    ("2^31", "bytes"): "2,147,483,648 bytes",
    ("2 GiB", "bytes"): "2,147,483,648 bytes",
    ("16 megabytes", "bytes"): "16,000,000 bytes",
    ("1 Kibibyte", "bytes"): "1,024 bytes",
    ("3 gigabyte", "GB"): "3 GB",
    ("512 mebibytes", "GiB"): "0.5 GiB",
    ("2 teraFLOPs", "FLOPs"): "2,000,000,000,000 FLOPs",
    ("1/3", ""): "0.333333",
    ("2,5", ""): "2.5",
    ("3e9", "FLOPs"): "3,000,000,000 FLOPs",
    ("2.4 * 10^9", ""): "2,400,000,000",
    ("12 million", "tokens"): "12,000,000 tokens",
    ("12 %", "percent"): "12 %",
    ("12", "percent"): "12 %",
    ("250", "percent"): "250 %",
    ("12 %", "share"): "0.12",
    ("12 pct", "share"): "0.12",
    ("12 Percent", "share"): "0.12",
    ("98 percent", "% of AdamW's"): "98 % of AdamW's",
    ("98 pct", "percent"): "98 %",
    ("½", "times"): "0.5 times",
    ("２", "times"): "2 times",
    ("~5", "times"): "5 times",
    ("512 MiB", "GiB"): "0.5 GiB",
    ("2 kJ", "joules"): "2,000 joules",
    ("0.12", "share"): "0.12",
    ("57 %", "share"): "0.57",
    ("100 %", "share"): "1",
    ("3x", "times"): "3 times",
    ("98 %", "times"): "0.98 times",
    ("133 percent", "times"): "1.33 times",
    ("3 ×", "times"): "3 times",
    ("2 weeks", "days"): "14 days",
    ("197", "of 200"): "197 of 200",
    ("0", "of 200"): "0 of 200",
    ("4096", "of 4,096"): "4,096 of 4,096",
    ("-1.5", ""): "-1.5",
    ("9" * 60, ""): "1e+60",
    ("7+2+4+3", "times"): "16 times",
    ("1.5 + 3 GB", "GB"): "4.5 GB",
}
NOT_A_NUMBER = "is not a number here. Write "
NOT_A_SHARE = "A share is between 0 and 1"
TOO_LARGE = "is too large. Write it as 1500,"
TIMES = "because the answer is in times. Write it as 3, 1.5, 3x or 1/3."
ALONE = "and type the number alone. Write it as 3,"
REFUSED = {
    ("", "GB"): "Type a number.",
    ("   ", "GB"): "Type a number.",
    ("two", "GB"): f"'two' {NOT_A_NUMBER}it as 7, 1.5, 3,500 MB or 3 GiB.",
    ("...", "GB"): NOT_A_NUMBER,
    ('"2.4"', "GB"): NOT_A_NUMBER,
    ("'2.4'", "GB"): NOT_A_NUMBER,
    ("inf", "GB"): NOT_A_NUMBER,
    ("nan", ""): NOT_A_NUMBER,
    ("1e400", ""): TOO_LARGE,
    ("10^999", ""): TOO_LARGE,
    ("1/0", ""): TOO_LARGE,
    ("9" * 61, ""): "'99999999999999999999…' is too long: only 60 characters are read.",
    ("__import__('os')", ""): NOT_A_NUMBER,
    ("2.4 days", "GB"): "'days' does not fit here, because the answer is in GB. Write it as 7,",
    ("16 GB", "times"): f"'GB' does not fit here, {TIMES}",
    ("16SH", "times"): f"'SH' does not fit here, {TIMES}",
    ("98 %", "tokens"): "'%' does not fit here, because the answer is in tokens.",
    ("16 GB", ""): "because the answer is a number without a unit. Write it as 1500,",
    ("16 GB", "share"): "because the answer is a share. Write it as 0.3, 30 % or 1/3.",
    ("16 GB", "% of AdamW's"): "because the answer is in % of AdamW's. Write it as 30,",
    ("about 5", "times"): f"Leave out 'about', {ALONE}",
    ("$5", "times"): f"Leave out '$', {ALONE}",
    ("5-6", "times"): "'5-6' is two numbers, and the answer is one. Write it as 3,",
    ("5 to 6 weeks", "days"): "'5 to 6 weeks' is two numbers, and the answer is one.",
    ("5-6+1", "times"): "'5-6+1' is two numbers, and the answer is one.",
    ("44 G", "bytes"): "'G' is no unit here. Do you mean 44 GB? Write it as 4096,",
    ("16gi", "GB"): "'gi' is no unit here. Do you mean 16 GiB?",
    ("3 k", "bytes"): "Do you mean 3 kB?",
    ("44 G", "FLOPs"): "'G' does not fit here, because the answer is in FLOPs.",
    ("1½", "times"): f"'1½' {NOT_A_NUMBER}",
    ("Something between 2 and 3", "GB"): "'Something between 2…' is not a number here.",
    ("12 %", "of 200"): "the answer is a count. Write a whole number from 0 to 200.",
    ("-1", "GB"): "It cannot be below 0: -1 GB. Write it as 7,",
    ("-3 %", "percent"): "It cannot be below 0: -3 %. Write it as 30, 12.5 or 30 %.",
    ("1.2", "share"): NOT_A_SHARE,
    ("120 %", "share"): NOT_A_SHARE,
    ("250", "of 200"): "250 is more than there are. Write a whole number from 0 to 200.",
    ("1.5", "of 200"): "1.5 is not a whole number. Write a whole number from 0 to 200.",
    ("2.5", "elements"): "2.5 is not a whole number. Write it as 6, 1,500 or 2^10.",
    ("-1", "elements"): "It cannot be below 0: -1 elements. Write it as 6, 1,500 or 2^10.",
    ("4097", "of 4,096"): "4,097 is more than there are. Write a whole number from 0 to 4,096.",
}


def of_one(unit="", among=(), **more):
    return OpenGuess(("6 × 7",), unit, tuple(among), **more)


def said(guess, typed):
    guess.say("6 × 7", typed)
    return guess.said["6 × 7"]


@pytest.mark.parametrize(("typed", "unit"), TYPED)
def test_a_number_is_taken_in_every_way_in_which_people_write_it(typed, unit):
    guess = of_one(unit)
    said(guess, typed)
    assert guess.in_words("6 × 7") == TYPED[typed, unit]


@pytest.mark.parametrize(("typed", "unit"), REFUSED)
def test_nonsense_gets_a_sentence_and_the_former_guess_is_kept(typed, unit):
    guess = of_one(unit)
    words = re.escape(REFUSED[typed, unit])
    with pytest.raises(ValueError, match=words):
        guess.say("6 × 7", typed)
    assert guess.said == {}
    said(guess, "1")
    with pytest.raises(ValueError, match=words):
        guess.say("6 × 7", typed)
    assert guess.said == {"6 × 7": 1}


def test_each_way_in_which_a_unit_says_that_it_can_be_written_can_be_typed():
    for unit, sentence in HOW.items():
        examples = re.split(", | or ", sentence.removeprefix("Write it as ").removesuffix("."))
        assert 3 <= len(examples) <= 5, sentence
        for example in examples:
            assert read(example, unit) > 0, example


@pytest.mark.parametrize("typed", ["bf16", "BF16", " bf16 ", '"bf16"', "'Bf16'"])
def test_an_option_is_taken_in_any_case_and_with_quotes(typed):
    assert said(of_one(among=("fp16", "bf16")), typed) == "bf16"


@pytest.mark.parametrize("typed", ["", "b", "fp16, bf16", "1"])
def test_what_is_no_option_gets_the_list_of_them(typed):
    with pytest.raises(ValueError, match=r"^Choose one of these: fp16, bf16\.$"):
        said(of_one(among=("fp16", "bf16")), typed)


@given(st.floats(0, 1e14) | st.integers(0, 10**14), st.sampled_from(["", "GB", "percent"]))
def test_a_guess_can_be_typed_again_as_the_field_shows_it(number, unit):
    guess = of_one(unit)
    guess.said["6 × 7"] = number
    assert said(guess, guess.typed("6 × 7")) == pytest.approx(number, rel=1e-5)


@given(st.integers(0, 1000))
def test_a_share_in_percent_is_the_nearest_float(tenths):
    assert said(of_one("share"), f"{tenths / 10} %") == tenths / 1000


def test_a_guess_can_be_changed_until_show_is_pressed():
    guess = of_one("GB")
    assert said(guess, "2") == 2
    assert said(guess, "3") == 3
    guess.go_on()
    assert guess.is_closed
    with pytest.raises(ValueError, match="Show was pressed"):
        guess.say("6 × 7", "42")
    assert guess.said == {"6 × 7": 3}
    assert repr(guess) == "6 × 7: 3 GB"


def test_whoever_follows_the_guess_is_told_of_each_change_and_of_no_other():
    guess = of_one()
    seen = []
    guess.on_change.append(lambda: seen.append((dict(guess.said), guess.is_closed)))
    with pytest.raises(ValueError, match="'six'"):
        guess.say("6 × 7", "six")
    said(guess, "41")
    guess.close()
    guess.close()
    assert seen == [({"6 × 7": 41}, False), ({"6 × 7": 41}, True)]


def test_what_waits_until_it_is_seen_is_called_once():
    guess = of_one()
    calls = []
    guess.when_seen(lambda: calls.append("waited"))
    assert calls == []
    guess.go_on()
    guess.go_on()
    assert calls == ["waited"]
    guess.when_seen(lambda: calls.append("at once"))
    assert calls == ["waited", "at once"]


def test_several_questions_have_an_answer_each():
    guess = OpenGuess(("sending", "pauses"), "days")
    guess.say("pauses", "1 week")
    assert guess.said == {"pauses": 7}
    assert repr(guess) == "sending: no guess; pauses: 7 days"
    assert [guess.in_words(name) for name in guess.names] == ["", "7 days"]


def test_one_of_several_questions_says_and_does_what_the_whole_does():
    whole = OpenGuess(("sending", "pauses"), "days")
    one = whole["pauses"]
    seen = []
    one.when_seen(lambda: seen.append(one.in_words("pauses")))
    whole.say("pauses", "7")
    assert repr(one) == "pauses: 7 days", "also what is said after it was taken"
    assert seen == []
    whole.go_on()
    assert seen == ["7 days"]
    assert (whole.is_closed, one.is_closed) == (True, True)
    assert whole["sending"].is_closed
    other = OpenGuess(("sending", "pauses"), "days")
    other["pauses"].close()
    assert other.is_closed, "whoever has seen one answer has seen the other, too"
    with pytest.raises(KeyError, match="'days', but sending and pauses"):
        whole["days"]


@pytest.mark.parametrize(
    ("former", "unit", "among"),
    [
        (True, "", ()),
        ("2", "", ()),
        (None, "", ()),
        ([2], "", ()),
        (float("nan"), "", ()),
        (float("inf"), "", ()),
        (-1, "GB", ()),
        (250, "of 200", ()),
        (1.5, "of 200", ()),
        (12, "share", ()),
        ("fp8", "", ("fp16", "bf16")),
        (1, "", ("0", "1")),
    ],
)
def test_a_former_guess_that_makes_no_sense_is_ignored(former, unit, among):
    guess = of_one(unit, among)
    guess.recall("6 × 7", former)
    assert guess.said == {}


@given(st.floats(0, 1e300) | st.integers(0, 10**14))
def test_a_former_guess_comes_back_exactly(former):
    guess = of_one("bytes")
    guess.recall("6 × 7", former)
    assert guess.said == {"6 × 7": former}


# The reveal.


def test_without_a_guess_a_reveal_is_the_table_that_it_was_before_there_were_fields():
    number = reveal(of_one("GB"), predicted=2, measured=2.5, digits=2)
    before = Comparison({"6 × 7": 2}, {"6 × 7": 2.5}, "GB", digits=2)
    word = reveal(of_one(among=("a", "b")), measured="b")
    chosen = Choice("6 × 7", among=("a", "b"), measured="b")
    for now, then in ((number, before), (word, chosen)):
        assert repr(now) == repr(then)
        assert now._repr_html_() == then._repr_html_()
    assert repr(number) == (
        "GB     predicted  measured  measured / predicted\n"
        "6 × 7          2       2.5                   1.2"
    )


def test_guesses_come_in_the_order_of_the_questions_and_not_of_the_answers():
    guess = OpenGuess(("a", "b", "c"))
    for name in ("c", "a", "b"):
        guess.say(name, "5")
    numbers = {"a": 1, "b": 2, "c": 3}
    shown = reveal(guess, predicted=numbers, measured=numbers)
    assert [each.asked for each in shown.guesses] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("unit", "typed", "again"),
    [
        ("share", "5%", "5 %"),
        ("share", "0.05", "5 %"),
        ("share", "0.12345", "0.12345"),  # three digits would be another number
        ("bytes", "140 GB", "140 GB"),
        ("bytes", "8192", "8,192"),
        ("bytes", "12", "12"),
        ("days", "150", "150"),
        ("GB", "0.5", "0.5"),
    ],
)
def test_a_field_that_is_shown_again_has_the_guess_as_one_would_type_it(unit, typed, again):
    guess = OpenGuess(("a",), unit)
    guess.say("a", typed)
    said = guess.said["a"]
    assert guess.typed("a") == again
    guess.say("a", again)
    assert guess.said["a"] == said


def test_a_reveal_has_the_guess_in_a_column_and_keeps_it_though_the_reader_goes_on():
    guess = OpenGuess(("a", "b"), "days")
    guess.say("b", "7")
    shown = reveal(guess, predicted={"a": 1, "b": 2}, measured={"a": 1, "b": 7})
    guess.say("a", "5")
    assert [(each.asked, each.said) for each in shown.guesses] == [("b", 7)]
    assert repr(shown) == (
        "days  your guess  predicted  measured  measured / predicted\n"
        "a                         1         1             1 exactly\n"
        "b              7          2         7                   3.5\n"
        "b: spot on, 7 days."
    )


def test_a_reveal_of_one_of_several_questions_is_its_row():
    guess = OpenGuess(("a", "b"), "days")
    guess.say("b", "7")
    shown = reveal(guess["b"], predicted=2, measured=8, digits=3)
    assert [(each.asked, each.said) for each in shown.guesses] == [("b", 7)]
    word = OpenGuess(("a", "b"), among=("x", "y"))
    word.say("b", "X")
    assert reveal(word["b"], measured="y").guesses[0].said == "x"


def test_a_guess_is_judged_in_the_unit_in_which_it_was_asked_for_though_the_table_has_none():
    guess = of_one("percent")
    said(guess, "45 %")
    shown = Comparison({"6 × 7": 50, "days": 3}, {"6 × 7": 38, "days": 4}, guess=guess)
    assert repr(shown).endswith("6 × 7: close, 7 points too high.")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: reveal(2.4, predicted=2, measured=3), TypeError, "has returned, not 2.4"),
        (lambda: reveal(..., predicted=2, measured=3), TypeError, "not Ellipsis"),
        (lambda: reveal(of_one(), measured=3), TypeError, "name predicted="),
        (
            lambda: reveal(OpenGuess(("a", "b")), predicted=2, measured=3),
            ValueError,
            "a number for each of a and b",
        ),
        (
            lambda: reveal(OpenGuess(("a", "b")), predicted={"a": 2}, measured={"a": 3}),
            ValueError,
            "no number for b, but for a",
        ),
        (
            lambda: reveal(OpenGuess(("a", "b"), among=("x", "y")), measured="x"),
            ValueError,
            "Name one question of a and b",
        ),
        (lambda: reveal(of_one(among=("x", "y")), measured="z"), ValueError, "'z' is none of"),
    ],
)
def test_a_call_that_cannot_be_meant_says_what_is_missing(call, error, words):
    with pytest.raises(error, match=words):
        call()
