"""Ledgers, comparisons and the wording of numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.quantities import (
    Comparison,
    Ledger,
    bytes_text,
    flops_text,
    number_text,
    rate_text,
    seconds_text,
)


@given(st.dictionaries(st.text(min_size=1), st.integers(), min_size=1))
def test_a_ledger_is_a_mapping_with_a_total(items):
    ledger = Ledger(items, "bytes")
    assert dict(ledger) == items == ledger
    assert ledger.total == sum(items.values())


def test_a_comparison_is_exact_only_to_the_last_digit():
    assert Comparison({"a": 2**60}, {"a": 2**60}).exact
    assert not Comparison({"a": 2**60}, {"a": 2**60 + 1}).exact
    assert Comparison({"a": 1, "b": 5}, {"a": 1, "b": 2}).largest_difference == 3


def test_a_comparison_never_calls_two_different_numbers_equal():
    assert "1 exactly" in repr(Comparison({"a": 7}, {"a": 7}))
    assert "1 exactly" not in repr(Comparison({"a": 10**12}, {"a": 10**12 + 1}))
    assert "1 +1.0e-12" in repr(Comparison({"a": 10**12}, {"a": 10**12 + 1}))
    assert "both 0" in repr(Comparison({"a": 0}, {"a": 0}))
    assert "not defined" in repr(Comparison({"a": 0}, {"a": 3}))


def test_exactly_is_said_of_whole_numbers_and_equal_bits_never_of_rounded_figures_or_of_inf_over_inf():
    assert "exactly" not in repr(Comparison({"a": math.inf, "b": math.nan}, {"a": math.inf, "b": math.nan}))
    shown = repr(Comparison({"a": 0.03741}, {"a": 0.03707}, digits=2))
    assert shown.splitlines()[1].split() == ["a", "0.037", "0.037", "0.99"]
    assert "exactly" not in repr(Comparison({"a": 0.5, "b": 2}, {"a": 0.5, "b": 2}, digits=3))
    assert "1 exactly" in repr(Comparison({"a": 2.0**-24}, {"a": 2.0**-24}))


def test_the_readers_guess_stands_in_front_once_there_is_one():
    assert "guess" not in repr(Comparison({"a": 1}, {"a": 1}, guess=...))
    assert repr(Comparison({"a": 1}, {"a": 1}, guess=42)).splitlines()[1].split()[:3] == ["a", "42", "1"]
    assert "guess" not in repr(Comparison({"a": 1, "b": 2}, {"a": 1, "b": 2}, guess={"a": ...}))


def test_nan_is_never_hidden_and_equal_infinities_do_not_differ():
    for items in ({"a": 1, "b": math.nan}, {"a": math.nan, "b": 1}):
        assert math.isnan(Comparison(items, {"a": 1, "b": 1}).largest_difference)
    assert Comparison({"a": math.inf}, {"a": math.inf}).largest_difference == 0
    with pytest.raises(ValueError, match="at least one item"):
        Comparison({}, {})


@pytest.mark.parametrize("guess", ["128", "128 bytes", [128]])
def test_a_guess_that_is_no_number_gets_a_sentence(guess):
    with pytest.raises(ValueError, match="plain number, without quotes"):
        Comparison({"a": 1}, {"a": 1}, guess=guess)
    assert "guess" not in repr(Comparison({"a": 1}, {"a": 1}, guess=None))


def test_tables_escape_what_they_show():
    assert "<b>" not in Comparison({"<b>": 1}, {"<b>": 1})._repr_html_()
    assert "<b>" not in Ledger({"<b>": 1})._repr_html_()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (bytes_text(128), "128 bytes"),
        (bytes_text(2**20), "1,048,576 bytes = 1 MiB = 1.05 MB"),
        (bytes_text(80 * 10**9), "80,000,000,000 bytes = 74.5 GiB = 80 GB"),
        (flops_text(6.3e24), "6.3 YFLOPs"),
        (flops_text(999_999), "1 MFLOPs"),
        (rate_text(1979e12 / 2), "990 TFLOP/s"),
        (seconds_text(0), "0 ns"),
        (seconds_text(0.9996), "1 s"),
        (flops_text(-5e12), "-5 TFLOPs"),
        (bytes_text(-(2**30)), "-1,073,741,824 bytes = -1 GiB = -1.07 GB"),
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
