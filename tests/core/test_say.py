"""Ledgers, comparisons and the wording of numbers."""

import math
import re
from functools import partial

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils.core.say import (
    Choice,
    Comparison,
    Guess,
    Ledger,
    OpenGuess,
    bytes_text,
    flops_text,
    in_words,
    number_text,
    rate_text,
    seconds_text,
    table,
)
from course_utils.core.say.closeness import WORDS, bounds_between


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
        (10**12, 10**12 + 1, {}, "1.000000000001"),
        (32_768, 32_772, {}, "1.00012"),
        (1.0, 1 - 1.9e-6, {}, "0.9999981"),
        (2.0**-24, 2.0**-24, {}, "1 exactly"),
        (0, 0, {}, "both 0"),
        (0, 3, {}, "not defined"),
        (2, 3, {}, "1.5"),
        (math.inf, math.inf, {}, "both infinite"),
        (math.nan, math.nan, {}, "both NaN"),
        # What is shown rounded is never called exact.
        (0.03741, 0.03707, {"digits": 2}, "0.99"),
        (0.5, 0.5, {"digits": 3}, "1.00"),
        (3.0, 10**400, {}, "out of a float's range"),
        (10**99, 10**99, {}, "1 exactly"),
    ],
)
def test_a_comparison_calls_only_the_same_number_exact(predicted, measured, options, ratio):
    comparison = compared(predicted, measured, **options)
    assert lines_of(comparison)[1].endswith(f"  {ratio}")


def open_and_folded(comparison):
    """The cells of the table in view, and of the one in the fold; None if there is none."""
    html = comparison._repr_html_()
    in_view, _, folded = html.partition("<details>")
    cells = [re.findall(r"<td>(.*?)</td>", part) for part in (in_view, folded)]
    return cells[0], cells[1] or None


def test_a_long_number_is_in_view_with_its_unit_and_in_full_in_the_fold():
    flops = {"forward, FLOPs": 258_545_287_168, "parameters": 494_032_768, "layers": 24}
    in_view, folded = open_and_folded(Comparison(flops, flops))
    assert in_view[1:5] == ["forward, FLOPs", "259 GFLOPs", "259 GFLOPs", "1 exactly"]
    assert in_view[5:8] == ["parameters", "494 million", "494 million"]
    assert in_view[9:12] == ["layers", "24", "24"]
    assert folded[1:4] == ["forward, FLOPs", "258,545,287,168", "258,545,287,168"]
    short = {"kept": 47_218_688}
    in_view, folded = open_and_folded(Comparison(short, short, "bytes"))
    assert in_view[1:3] == ["47,218,688", "47,218,688"], "to the byte, with separators"
    assert folded is None


def test_what_was_asked_for_is_exact_because_pages_judge_guesses_by_the_table():
    numbers = {"asked": 44_193_349_632, "beside it": 44_193_349_632}
    guess = OpenGuess(("asked",), "bytes")
    in_view, _ = open_and_folded(Comparison(numbers, numbers, guess=guess))
    assert in_view[2] == "44,193,349,632"
    (alone,) = [Comparison({"a": 10**9}, {"a": 10**9}, guess=guess)]
    in_view, folded = open_and_folded(alone)
    assert in_view[2] == "1,000,000,000"
    assert folded is None


def test_a_table_has_lists_without_brackets_and_says_yes_and_no():
    shown = table({"places": [0, 2, 4], "same": True, "shape": (4, 3)})
    cells = re.findall(r"<td>(.*?)</td>", shown._repr_html_())
    assert cells == ["places", "0, 2, 4", "same", "yes", "shape", "(4, 3)"]


def test_two_estimates_have_no_ratio():
    head, row, _ = lines_of(compared(-2.45, 7.36, guess=5, has_ratio=False))
    assert head.split() == ["your", "guess", "predicted", "measured"]
    assert row.split() == ["a", "5", "-2.45", "7.36"]


@pytest.mark.parametrize(
    ("ends", "said", "words"),
    [
        ((19.2, 31.7), 20, "Spot on: 20 days"),
        ((-2.45, 7.36), 1, "Spot on: 1 day"),
        ((93.1, 43.0), 60, "Spot on: 60 days"),  # the one that is called shortest is longer
        ((19.2, 31.7), 19, "Spot on: 19 days for 19.2 days"),
        ((19.2, 31.7), 15, "Close: 0.781 times the number by the shortest"),
        ((19.2, 31.7), 60, "Right power of ten: a factor of 1.89 too large"),
        ((0, 27.7), 40, "Close: 1.44 times the number by the longest"),
        ((19.2, 31.7), 0.1, "Far: a factor of 192 too small"),
    ],
)
def test_a_guess_between_two_estimates_is_spot_on_and_another_is_judged_by_the_nearer(
    ends, said, words
):
    heads = ("by the shortest", "by the longest")
    options = {"unit": "days", "digits": 3, "heads": heads, "has_ratio": False}
    comparison = compared(*ends, guess=said, **options)
    _, _, below = lines_of(comparison)
    assert below == f"{words}."
    low, high = sorted(ends)
    of_words = bounds_between(*ends, "days")
    word = next((word for least, most, word in of_words if least <= said <= most), "far")
    (guess,) = comparison.guesses
    assert guess.word == word, "pages judge by the bounds"
    assert (word == "spot on") >= (low <= said <= high)


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
    assert "a: spot on, 10. b: far, a factor of 2 too small." in said
    assert "nothing called 'c' to guess here, but 'a' and 'b'." in said
    without_a_ratio = compared(0, 0, guess=3)
    assert repr(without_a_ratio).endswith("Far: you said 3, and what was measured is 0.")


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
    assert below == "Right power of ten: a factor of 2 too small."
    html = reported._repr_html_()
    assert re.findall(r"<th>(.*?)</th>", html)[:5] == columns
    assert below in html
    assert "measured" not in repr(reported) + html
    assert (
        Guess("days", "ten", 260, "reported").words
        == "Missed: you said ten, and what was reported is 260"
    )
    head, _ = lines_of(compared(1, 2))
    assert head.split()[:2] == ["predicted", "measured"]


TIMES_3 = "Right power of ten: 3 times"
ASKS_FOR_THE_UNIT = ". Is it in the unit that was asked for?"


@pytest.mark.parametrize(
    ("said", "measured", "options", "words"),
    [
        (65_536, 65_504.0, {}, "Spot on: 65,536 for 65,504"),  # fp16's largest
        (16, 16.0003, {"digits": 3}, "Spot on: 16"),
        (144, 143.927, {"unit": "days"}, "Spot on: 144 days"),
        # In the units and digits that the picture above the sentence has.
        (2.4, 2.416, {"unit": "GB"}, "Spot on: 2.4 GB for 2.42 GB"),
        (64e6, 67_108_864, {"unit": "bytes"}, "Spot on: 64 MB for 67.1 MB"),
        (44.2e9, 44_193_349_632, {"unit": "bytes"}, "Spot on: 44.2 GB"),
        (1.3e12, 1_357_824_000_000, {"unit": "FLOP/s"}, "Spot on: 1.3 TFLOP/s for 1.36 TFLOP/s"),
        (0.25, 0.264, {"unit": "share"}, "Spot on: 25 % for 26.4 %"),
        (9, 10, {}, "Close: 1 too low"),
        (90, 100, {"unit": "GB"}, "Close: 0.9 times what was measured"),
        (12, 16, {"unit": "bytes"}, "Right power of ten: 4 bytes too few"),
        (17, 16, {"unit": "bytes"}, "Close: 1 byte too many"),
        (40, 16, {"unit": "bytes"}, "Right power of ten: 24 bytes too many"),
        (16.5, 16, {"unit": "bytes"}, "Close: 1.03 times what was measured"),
        (13.3, 10, {"unit": "days"}, "Close: 1.33 times what was measured"),
        (53.2, 40, {"unit": "billions"}, "Close: 1.33 times what was measured"),
        (1, 2, {}, "Far: a factor of 2 too small"),
        (10, 20, {}, "Right power of ten: a factor of 2 too small"),
        (11, 2, {"unit": "percent"}, "Close: 9 points too high"),
        (0.3, 0.25, {"unit": "share"}, "Close: 5 points too high"),
        (4, 0.5, {"unit": "percent"}, "Far: a factor of 8 too large"),
        (360, 180, {"unit": "percent"}, "Right power of ten: a factor of 2 too large"),
        (25, 0.25, {"unit": "share"}, f"Far: 2,475 points too high{ASKS_FOR_THE_UNIT}"),
        (190, 197, {"unit": "of 200"}, "Close: 7 too low"),
        (2.4e9, 2.416, {}, f"Far: a factor of 993 million too large{ASKS_FOR_THE_UNIT}"),
        (0.5, 50, {}, f"Far: a factor of 100 too small{ASKS_FOR_THE_UNIT}"),
        (4, 40, {}, "Far: a factor of 10 too small"),
        (2.0**-24, 2.0**-13, {}, "Far: a factor of 2,048 too small"),
        (20_481, 10, {}, "Far: a factor of 2,050 too large"),
        (163_840, 10, {}, "Far: a factor of 16,400 too large"),
        (7, 30, {}, "Far: a factor of 4.29 too small"),
        (8, 2.21e10, {}, "Far: a factor of 2.76 billion too small"),
        (1e300, 3, {}, "Far: a factor of 3.33 × 10^299 too large"),
        (500, 39.1, {"heads": ("by rule", "with a step")}, "Far: a factor of 12.8 too large"),
        (
            100,
            39.1,
            {"heads": ("by rule", "with a step")},
            "Right power of ten: a factor of 2.56 too large",
        ),
    ],
)
def test_a_guess_is_judged_in_the_words_that_fit_its_unit(said, measured, options, words):
    _, _, below = lines_of(compared(measured, measured, guess=said, **options))
    assert below == (words if words.endswith("?") else f"{words}.")


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
    assert guess.word in WORDS
    assert guess.off == 1 or said != measured


def test_a_choice_shows_what_was_chosen_beside_what_was_measured():
    choice = partial(Choice, "stops first", among=("fp16", "bf16"), measured="bf16")
    assert repr(choice()).split() == ["measured", "stops", "first", "bf16"]
    assert choice(guess=" BF16 ").guesses == [Guess("stops first", "bf16", "bf16")]
    assert repr(choice(guess="fp16")).endswith(
        "Missed: you said fp16, and what was measured is bf16."
    )
    found = choice(guess="fp16", kind="found")
    assert repr(found).split()[:3] == ["your", "guess", "found"]
    assert repr(found).endswith("Missed: you said fp16, and what was found is bf16.")
    for nonsense in ("fp8", 3, ["bf16"], print):
        asked = choice(guess=nonsense)
        assert "Choose one of these, in quotes: fp16, bf16." in repr(asked)
        assert "<built-in" not in repr(asked)
        assert asked.guesses == []


def test_tables_escape_what_they_show():
    bold = {"<b>": 1}
    for shown in (Comparison(bold, bold), Ledger(bold)):
        assert "<b>" not in shown._repr_html_()


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
        (number_text(10**5000), "1.00000e+5000"),
        (in_words(44_193_349_632, "bytes"), "44.2 GB"),
        (in_words(0.5, "GB"), "500 MB"),
        (in_words(1.358e12, "FLOP/s"), "1.36 TFLOP/s"),
        (in_words(143.927, "days"), "144 days"),
        (in_words(1, "days"), "1 day"),
        (in_words(39.6, "billions of parameters"), "39.6 billion parameters"),
        (in_words(43.2, "percent of the peak"), "43.2 %"),
        (in_words(0.0265, "share"), "2.65 %"),
        (in_words(197, "of 200"), "197 of 200"),
        (in_words(65_504.0), "65,504"),
        (in_words(0.00089123, digits=2), "0.00089"),
        (in_words(15e12, "tokens"), "1.5 × 10^13 tokens"),
        (in_words(10**5000), "10^5000"),
        (in_words(math.inf, "GB"), "∞ GB"),
        (number_text(2**70), "1,180,591,620,717,411,303,424"),
        (number_text(0.1), "0.1"),
        (number_text(math.inf), "inf"),
        (number_text(math.nan), "nan"),
    ],
)
def test_numbers_are_worded_as_a_person_would(said, words):
    assert said == words


def test_a_table_writes_numbers_in_their_unit_and_flags_as_words() -> None:
    shown = table({"HBM": 80_000_000_000, "full": False, "dtype": torch.bfloat16}, "bytes")
    assert repr(shown) == "HBM       80 GB\nfull         no\ndtype  bfloat16"
    assert "<th>" not in shown._repr_html_()


def test_a_table_of_mappings_has_heads_and_exact_numbers_on_request() -> None:
    shown = table(
        {"a": {"size": 2.0078125, "ok": True}, "b": {"size": 4096, "ok": False}}, exact=True
    )
    assert shown.rows == [["", "size", "ok"], ["a", "2.00781", "yes"], ["b", "4,096", "no"]]
    assert "<th>size</th>" in shown._repr_html_()
