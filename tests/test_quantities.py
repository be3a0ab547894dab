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
    comparison = Comparison({"a": predicted}, {"a": measured}, **options)
    assert repr(comparison).splitlines()[1].endswith(f"  {ratio}")
    assert comparison.exact == (predicted == measured)


def test_digits_are_those_shown():
    shown = repr(Comparison({"a": 0.03741}, {"a": 0.03707}, digits=2))
    assert shown.splitlines()[1].split()[:3] == ["a", "0.037", "0.037"]


def test_the_readers_guess_stands_in_front_once_there_is_one():
    assert repr(Comparison({"a": 1}, {"a": 1}, guess=42)).splitlines()[1].split()[:3] == ["a", "42", "1"]
    for none_yet in (..., None, {"a": ...}):
        assert "guess" not in repr(Comparison({"a": 1, "b": 2}, {"a": 1, "b": 2}, guess=none_yet))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Comparison({}, {}), "at least one item"),
        (lambda: Comparison({"a": 1}, {"a": 1, "b": 2}), "these stand on one side alone: b."),
        (lambda: Comparison(Ledger({"a": 1}, "s"), {"a": 1}, "bytes"), "not bytes with s."),
        *(
            (lambda guess=guess: Comparison({"a": 1}, {"a": 1}, guess=guess), "plain number, without quotes")
            for guess in ("128", "128 bytes", [128])
        ),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=r"\.$") as caught:
        wrong()
    assert sentence in str(caught.value)


def test_tables_escape_what_they_show():
    assert "<b>" not in Comparison({"<b>": 1}, {"<b>": 1})._repr_html_()
    assert "<b>" not in Ledger({"<b>": 1})._repr_html_()


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
