"""Ledgers, comparisons and the wording of numbers."""

import math
import re
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils.core.say import (
    Choice,
    Comparison,
    Guess,
    Ledger,
    bytes_text,
    flops_text,
    number_text,
    rate_text,
    seconds_text,
)


def compared(predicted, measured, **options):
    return Comparison({"a": predicted}, {"a": measured}, **options)


def lines_of(shown):
    return repr(shown).splitlines()


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=1))
def test_a_ledger_is_a_mapping_with_a_total(items):
    ledger = Ledger(items, "bytes")
    assert dict(ledger) == items == ledger
    assert ledger.total == sum(items.values())


@pytest.mark.parametrize(
    ("predicted", "measured", "options", "ratio"),
    [
        (7, 7, {}, "1 exactly"),
        (10**12, 10**12 + 1, {}, "1 +1.0e-12"),
        (2.0**-24, 2.0**-24, {}, "1 exactly"),
        (0, 0, {}, "both 0"),
        (0, 3, {}, "not defined"),
        (2, 3, {}, "1.5"),
        (math.inf, math.inf, {}, "both infinite"),
        (math.nan, math.nan, {}, "both NaN"),
        # What is shown rounded is never called exact.
        (0.03741, 0.03707, {"digits": 2}, "0.99"),
        (0.5, 0.5, {"digits": 3}, "1.00"),
    ],
)
def test_a_comparison_calls_only_the_same_number_exact(predicted, measured, options, ratio):
    comparison = compared(predicted, measured, **options)
    assert lines_of(comparison)[1].endswith(f"  {ratio}")


def test_digits_are_those_shown():
    _, row = lines_of(compared(0.03741, 0.03707, digits=2))
    assert row.split()[:3] == ["a", "0.037", "0.037"]


def test_the_readers_guess_stands_in_front_once_there_is_one():
    _, row, _ = lines_of(compared(1, 1, guess=42))
    assert row.split()[:3] == ["a", "42", "1"]
    both = {"a": 1, "b": 2}
    for none_yet in (..., None, {"a": ...}):
        comparison = Comparison(both, both, guess=none_yet)
        assert "guess" not in repr(comparison)


def test_a_lone_guess_is_of_the_first_item_and_each_says_how_far_off_it_was():
    both = {"a": 10, "b": 4}
    assert Comparison(both, both, guess=9).guesses == [Guess("a", 9, 10)]
    said = repr(Comparison(both, both, guess={"a": 10, "b": 2, "c": 1}))
    assert said.splitlines()[1].split()[1] == "10"
    assert "Your guess of a is right. Your guess of b is 0.5 times what was measured." in said
    assert "nothing called 'c' to guess here, but a and b." in said
    without_a_ratio = compared(0, 0, guess=3)
    assert repr(without_a_ratio).endswith("Your guess is not what was measured.")


def test_a_wild_guess_is_shown_in_lines_of_usual_length():
    too_long_for_str = -(10**5000)
    for guess in (1e300, 10**300, 10**400, too_long_for_str):
        lines = lines_of(compared(10, 10, guess=guess))
        assert "your guess" in lines[0]
        assert max(map(len, lines)) < 100


def test_a_comparison_of_other_kinds_names_them_in_its_columns_and_beside_the_guess():
    reported = Comparison(
        {"days": 144},
        {"days": 260},
        heads=("supposed", "reported"),
        guess=130,
        unit="d",
        digits=3,
    )
    columns = ["d", "your guess", "supposed", "reported", "reported / supposed"]
    head, row, below = lines_of(reported)
    assert head.split() == " ".join(columns).split()
    assert row.split() == ["days", "130", "144", "260", "1.81"]
    assert below == "Your guess is 0.5 times what was reported."
    html = reported._repr_html_()
    assert re.findall(r"<th>(.*?)</th>", html)[:5] == columns
    assert below in html
    assert "measured" not in repr(reported) + html
    assert Guess("days", "ten", 260, "reported").words == "not what was reported"
    head, _ = lines_of(compared(1, 2))
    assert head.split()[:2] == ["predicted", "measured"]


NO_UNIT = "993,377,483 times what was measured. Is it in the unit that was asked for?"


@pytest.mark.parametrize(
    ("said", "measured", "digits", "words"),
    [
        (65_536, 65_504.0, None, "32 too large: this number is exact"),  # fp16's largest
        (667, 668, None, "1 too small: this number is exact"),
        (16, 16.0003, 3, "right"),
        (144, 143.927, 3, "right"),
        (144, 143.927, None, "near: less than 0.5 % too large"),
        (67e6, 67_108_864, None, "near: less than 0.5 % too small"),
        (10, 10.2, 3, "0.98 times what was measured"),
        (2.4e9, 2.416, None, NO_UNIT),
        (0.5, 50, None, "0.01 times what was measured. Is it in the unit that was asked for?"),
        (4, 40, None, "0.1 times what was measured"),
    ],
)
def test_a_guess_is_right_where_it_is_exact_and_near_where_nearness_counts(
    said, measured, digits, words
):
    _, _, below = lines_of(compared(measured, measured, guess=said, digits=digits))
    end = "" if words.endswith("?") else "."
    assert below == f"Your guess is {words}{end}"
    guess = Guess("a", said, measured, digits=digits)
    assert guess.is_right == (words == "right")
    assert guess.is_near == words.startswith("near")
    assert guess.is_right == (guess.off == 1)


@pytest.mark.parametrize("guess", ["128", "128 bytes", [128], True, 1j, {"a": "x"}])
def test_a_guess_that_is_no_number_is_told_so_and_stops_nothing(guess):
    comparison = compared(1, 1, guess=guess)
    assert "A guess is a plain number, without quotes or a unit; " in repr(comparison)
    assert comparison.guesses == []
    assert "is not counted." in comparison._repr_html_()


any_number = st.floats() | st.integers()


@given(said=any_number, measured=any_number)
@example(said=1e300, measured=3)
def test_however_far_off_a_guess_is_there_are_words_for_it(said, measured):
    guess = Guess("a", said, measured)
    assert guess.off >= 1
    assert 0 < len(guess.words) < 120
    assert guess.off == 1 or said != measured


def test_a_choice_shows_what_was_chosen_beside_what_was_measured():
    choice = partial(Choice, "stops first", among=("fp16", "bf16"), measured="bf16")
    assert repr(choice()).split() == ["measured", "stops", "first", "bf16"]
    assert choice(guess=" BF16 ").guesses == [Guess("stops first", "bf16", "bf16")]
    assert repr(choice(guess="fp16")).endswith("Your guess is not what was measured.")
    for nonsense in ("fp8", 3, ["bf16"], print):
        asked = choice(guess=nonsense)
        assert "Choose one of these, in quotes: fp16, bf16." in repr(asked)
        assert "<built-in" not in repr(asked)
        assert asked.guesses == []


def test_tables_escape_what_they_show():
    bold = {"<b>": 1}
    for table in (Comparison(bold, bold), Ledger(bold)):
        assert "<b>" not in table._repr_html_()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (bytes_text(128), "128 bytes"),
        (bytes_text(2**20), "1,048,576 bytes = 1 MiB = 1.05 MB"),
        (bytes_text(80 * 10**9), "80,000,000,000 bytes = 74.5 GiB = 80 GB"),
        (bytes_text(-(2**30)), "-1,073,741,824 bytes = -1 GiB = -1.07 GB"),
        (bytes_text(1000 * 2**20), "1,048,576,000 bytes = 1,000 MiB = 1.05 GB"),
        (flops_text(6.3e24), "6.3 YFLOPs"),
        (flops_text(999_499), "999 kFLOPs"),
        (flops_text(999_999), "1 MFLOPs"),
        (flops_text(-5e12), "-5 TFLOPs"),
        (rate_text(1979e12 / 2), "990 TFLOP/s"),
        (seconds_text(0), "0 ns"),
        (seconds_text(0.9996), "1 s"),
        (seconds_text(59.9), "59.9 s"),
        (seconds_text(143.927 * 86400), "144 days"),
        (seconds_text(-0.002), "-2 ms"),
        (number_text(2**70), "1,180,591,620,717,411,303,424"),
        (number_text(0.1), "0.1"),
        (number_text(math.inf), "inf"),
        (number_text(math.nan), "nan"),
    ],
)
def test_numbers_are_worded_as_a_person_would(said, words):
    assert said == words
