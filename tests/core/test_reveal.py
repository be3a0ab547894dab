"""How close a guess is, and the picture of it beside what was measured."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils.core.say import Choice, Comparison, Guess, OpenGuess
from course_utils.core.say.axis import MOST_TICKS
from course_utils.core.say.closeness import FAR, WORDS, bounds, closeness
from course_utils.core.say.picture import Shown, for_any_guess

SPOT_ON, CLOSE, POWER, _, _ = WORDS


def compared(predicted, measured, guess, unit="", **options):
    return Comparison({"a": predicted}, {"a": measured}, unit, guess=guess, **options)


def shown(html):
    """The elements of what is shown as HTML."""
    return ElementTree.fromstring(f"<div>{html}</div>".replace("&nbsp;", " "))


def texts(html):
    return ["".join(text.itertext()) for text in shown(html).iter("text")]


def spoken(html):
    """What a screen reader says of each picture."""
    return [node.get("aria-label") for node in shown(html).iter() if node.get("role") == "img"]


def places(html):
    """Where the rings and dots are, in percent of the width."""
    circles = shown(html).iter("circle")
    return [float(circle.get("cx").removesuffix("%")) for circle in circles]


@pytest.mark.parametrize(
    ("measured", "unit", "said_by_word"),
    [
        (30, "percent", {SPOT_ON: [28, 32], CLOSE: [20, 27.9, 40], FAR: [19.9, 41]}),
        (27.6, "percent", {SPOT_ON: [25.6, 29.6], CLOSE: [17.6, 37.6]}),
        (0.3, "share", {SPOT_ON: [0.28, 0.32], CLOSE: [0.2, 0.4], FAR: [0.19, 0.41, 30]}),
        (197, "of 200", {SPOT_ON: [195, 199], CLOSE: [187, 194, 200], FAR: [186]}),
        (2, "of 4", {SPOT_ON: [2], FAR: [1, 3]}),
        # A share of a few percent, and one that is a size.
        (3.3, "% of the peak", {SPOT_ON: [3, 4], CLOSE: [2, 5, 0, 13], FAR: [14]}),
        (0.34, "percent", {SPOT_ON: [0.33], CLOSE: [0.3, 0.5], POWER: [0.2, 1], FAR: [2, 0]}),
        (0, "share", {SPOT_ON: [0], CLOSE: [0.01, 0.1], FAR: [0.11]}),
        (12, "of 18", {SPOT_ON: [12], CLOSE: [11, 13], FAR: [10, 14]}),
        # A small whole number is right or not; it has no power of ten.
        (1, "", {SPOT_ON: [1], FAR: [0, 2, 3]}),
        (2, "times", {SPOT_ON: [2], FAR: [1, 3, 6]}),
        (4, "times", {SPOT_ON: [4], CLOSE: [3, 5], FAR: [2, 6]}),
        (12, "bytes", {SPOT_ON: [12], CLOSE: [11, 13], POWER: [10, 37], FAR: [38, 3]}),
        (64, "times", {SPOT_ON: [64], CLOSE: [58, 70], POWER: [57, 71, 200], FAR: [8, 512]}),
        # Of a ratio near 1, the difference from 1 is what is asked.
        (1.08, "times", {SPOT_ON: [1.1], CLOSE: [1, 1.3], FAR: [1.4, 2]}),
        (25.4, "times", {SPOT_ON: [25], CLOSE: [17, 38], POWER: [10, 80], FAR: [100]}),
        (0, "bytes", {SPOT_ON: [0], FAR: [1]}),
        (2, "GB", {SPOT_ON: [1.9, 2.1], CLOSE: [1.4, 3], POWER: [0.7, 6], FAR: [7]}),
        (140, "days", {SPOT_ON: [133, 147], CLOSE: [100, 210], POWER: [50, 400], FAR: [500]}),
        (250, "percent", {SPOT_ON: [240], CLOSE: [350], POWER: [700], FAR: [10]}),
        (-3, "", {SPOT_ON: [-3], FAR: [-2, -9, 3]}),
        (math.inf, "", {SPOT_ON: [math.inf], FAR: [3, 1e300]}),
    ],
)
def test_the_bounds_of_a_word_fit_the_question(measured, unit, said_by_word):
    for word, several in said_by_word.items():
        assert {said: closeness(said, measured, unit) for said in several} == dict.fromkeys(
            several, word
        )


@given(st.floats(allow_nan=False), st.sampled_from(["", "GB", "percent", "share", "of 64"]))
def test_each_word_has_wider_bounds_than_the_one_before_it(measured, unit):
    within = bounds(measured, unit)
    words = [word for _, _, word in within]
    assert words == sorted(words, key=WORDS.index)
    for (low, high, _), (lower, higher, _) in pairwise(within):
        assert lower <= low <= high <= higher


def test_small_shares_have_an_axis_on_which_they_can_be_told_from_each_other():
    near = compared(0.338, 0.338, 1, "percent")._repr_html_()
    dot, ring = places(near)
    assert ring - dot > 20
    assert "Right power of ten: a factor of 2.96 too large." in near
    beside_a_large_one = compared(0.338, 0.338, 50, "percent")._repr_html_()
    assert places(beside_a_large_one)[1] == pytest.approx(50)


def test_without_a_guess_there_is_a_table_and_nothing_else():
    for one in (compared(1, 2, ...), Choice("a", among=("x", "y"), measured="x")):
        assert one._repr_html_().startswith("<table>")
        assert one._repr_html_().endswith("</table>")


def test_with_a_guess_the_measured_number_is_large_and_the_table_is_folded():
    html = compared(2.5e9, 2_415_919_104, 2.4e9, "bytes")._repr_html_()
    picture, folded = html.split("<details><summary>The numbers</summary>")
    assert re.findall(r"font-size:30px[^>]*>([^<]*)<", picture) == ["2.42 GB"]
    assert ">spot on</span>" in picture
    assert "<p>Spot on: 2.4 GB for 2.42 GB.</p>" in picture
    assert "<table>" not in picture
    assert "2,415,919,104" in folded
    assert spoken(html) == [
        "a: your guess 2.4 GB, predicted 2.5 GB, measured 2.42 GB. Spot on: 2.4 GB for 2.42 GB"
    ]


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (
            compared(53, 43.2, 20, "percent", digits=3, heads=("predicted", "reported")),
            ["a: your guess 20 %, predicted 53 %, reported 43.2 %. Far: 23.2 points too low"],
        ),
        (
            compared(40, 32, 30, "billions of parameters", heads=("by the state", "with a step")),
            [
                "a: your guess 30 billion parameters, by the state 40 billion parameters, "
                "with a step 32 billion parameters. Close: 0.938 times the number with a step"
            ],
        ),
        (
            compared(200, 191, 200, "of 200"),
            [
                "a: your guess 200 of 200, predicted 200 of 200, measured 191 of 200. "
                "Close: 9 too high"
            ],
        ),
        (
            Comparison({"a": 2, "<b>": 4}, {"a": 2, "<b>": 4}, "days", guess={"a": 3, "<b>": 4}),
            [
                "a: your guess 3 days, predicted 2 days, measured 2 days. Close: 1 too high",
                "<b>: your guess 4 days, predicted 4 days, measured 4 days. Spot on: 4 days",
            ],
        ),
        (
            Choice("stops", among=("fp16", "bf16"), measured="bf16", guess="fp16"),
            [
                "stops: your guess fp16, measured bf16. "
                "Missed: you said fp16, and what was measured is bf16"
            ],
        ),
    ],
)
def test_a_screen_reader_says_guess_prediction_and_measurement_with_their_units(comparison, words):
    assert spoken(comparison._repr_html_()) == words


def test_rows_that_nobody_guessed_stay_unfolded_because_the_picture_does_not_have_them():
    numbers = {"a": 1, "b": 2}
    of_one = Comparison(numbers, numbers, guess={"b": 3})._repr_html_()
    assert "<details open><summary>The numbers</summary>" in of_one
    of_both = Comparison(numbers, numbers, guess={"a": 1, "b": 3})._repr_html_()
    assert "<details><summary>The numbers</summary>" in of_both


def test_each_mark_has_a_name_and_a_number_and_what_is_the_same_is_named_once():
    heads = ("predicted", "reported")
    apart = texts(compared(53, 43.2, 20, "percent", heads=heads)._repr_html_())
    assert apart[-3:] == ["○ your guess 20 %", "● reported 43.2 %", "◆ predicted 53 %"]
    alike = texts(compared(16, 16, 9, "times")._repr_html_())
    assert alike[-2:] == ["○ your guess 9 times", "◆● predicted and measured 16 times"]


def test_a_share_lies_on_a_linear_axis_and_a_size_on_a_logarithmic_one():
    measured, guess = places(compared(75, 75, 25, "percent")._repr_html_())
    assert (measured - 6, guess - 6) == pytest.approx((0.75 * 88, 0.25 * 88), abs=0.01)
    html = compared(100, 100, 10**9, "bytes")._repr_html_()
    measured, guess = places(html)
    assert 6 < measured < guess < 94
    assert {"1 kB", "1 MB"} & set(texts(html)) or "100 bytes" in texts(html)
    assert len(texts(html)) - 2 <= MOST_TICKS


def test_what_has_no_place_on_the_axis_is_at_an_end_that_says_so():
    html = compared(8, 8, 0, "bytes")._repr_html_()
    assert places(html)[1] == 6
    assert "0" in texts(html)
    html = Comparison({"a": 8, "b": 0}, {"a": 8, "b": 0}, "days", guess={"a": -2.45, "b": 0})
    below_zero, at_zero = places(html._repr_html_())[1:4:2]
    assert 0 < below_zero < at_zero - 2
    html = compared(10**400, math.inf, 3, "bytes")._repr_html_()
    assert places(html)[0] == 94
    assert "∞" in texts(html)


def test_several_guesses_have_a_line_each_and_one_axis():
    numbers = {"a": 0, "<b>": 8192, "c": 0}
    html = Comparison(
        numbers, numbers, "bytes", guess={"a": 8192, "<b>": 8192, "c": 16e6}
    )._repr_html_()
    assert html.count('role="img"') == 3
    first, at_same, _, _, _, farthest = places(html)
    assert first == 6
    assert at_same == places(html)[2] == places(html)[3] < farthest
    assert "<b>:" not in html
    words = ["".join(span.itertext()) for span in shown(html).iter("span")]
    assert "<b>: 8.19 kB, your guess 8.19 kB" in words


def test_each_of_several_lines_says_how_far_off_its_guess_is_and_no_sentence_repeats_it():
    measured = {"a": 8, "b": 9e9, "c": 0, "d": 40}
    guess = {"a": 8, "b": 9, "c": 3, "d": 80}
    html = Comparison(measured, measured, guess=guess)._repr_html_()
    lines = ["".join(line.itertext()) for line in shown(html).iter("div")]
    unit = "Is it in the unit that was asked for?"
    for line in (
        "a: 8, your guess 8 spot on ",
        f"b: 9 × 10^9, your guess 9 far a factor of 1 billion too small. {unit}",
        "c: 0, your guess 3 far ",  # no factor says it
        "d: 40, your guess 80 right power of ten a factor of 2 too large",
    ):
        assert line in lines
    assert "<p>" not in html
    not_counted = Comparison(measured, measured, guess=guess | {"e": 1})._repr_html_()
    rows = "&#x27;a&#x27;, &#x27;b&#x27;, &#x27;c&#x27; and &#x27;d&#x27;"
    assert f"<p>There is nothing called &#x27;e&#x27; to guess here, but {rows}.</p>" in not_counted


def test_a_guess_that_was_asked_of_another_model_is_said_to_be_and_not_compared():
    asked = OpenGuess(("a step of llama-3-70b",), "bytes")
    asked.say("a step of llama-3-70b", "3 GB")
    of_gpt2 = {"parameters": 124e6, "a step of gpt2": 1e9}
    comparison = Comparison(of_gpt2, of_gpt2, guess=asked)
    assert comparison.guesses == []
    html = comparison._repr_html_()
    assert (
        "<p>Your guess is for &#x27;a step of llama-3-70b&#x27;. "
        "The table has no such row, so nothing is compared with the guess.</p>"
    ) in html
    assert "There is nothing called" not in html


def test_of_a_choice_all_options_are_seen_and_both_of_interest_are_named():
    names = ("fp16", "bf16", "<i>")
    wrong = Choice("stops", among=names, measured="bf16", guess="fp16")._repr_html_()
    picture, _, _ = wrong.partition("<details>")
    row = " ".join("".join(shown(picture).itertext()).split())
    assert row.startswith("bf16measuredmissedfp16your guessbf16measured<i>")
    right = Choice("stops", among=names, measured="bf16", guess="bf16")._repr_html_()
    assert "your guess and measured" in right
    assert "<p>Spot on: bf16.</p>" in right


any_number = st.floats() | st.integers() | st.just(10**400) | st.just(-(10**5000))
units = st.sampled_from(["", "GB", "bytes", "FLOP/s", "percent", "share", "of 200", "days"])


def assert_within_the_frame(html, numbers):
    """Every mark is on the axis or at one of its ends; only numbers below 0 lie left of that."""
    left = 3 if any(number < 0 for number in numbers) else 6
    assert all(left <= place <= 94 for place in places(html))


@given(any_number, any_number, any_number, units, st.sampled_from([None, 2, 3]))
@example(5e-324, 1e308, 3, "GB", None)
@example(10**400, 3.0, 10**400, "bytes", 3)
def test_whatever_is_compared_has_a_picture_within_its_frame(
    predicted, measured, said, unit, digits
):
    one = compared(predicted, measured, said, unit, digits=digits)
    assert repr(one)
    html = one._repr_html_()
    assert_within_the_frame(html, (predicted, measured, said))
    assert len(texts(html)) <= 2 * MOST_TICKS


@given(any_number, any_number, units, st.floats(-9, 9))
@example(0.0, 2.6e-127, "of 200", 0.0)
def test_there_is_a_picture_beforehand_on_which_a_guess_made_later_has_its_place(
    predicted, measured, unit, power
):
    guess = Guess("a", 1, measured, unit=unit)
    shown_later = Shown(guess, predicted, measured, ("predicted", "measured"))
    pictures = for_any_guess([shown_later])
    for _, html in pictures:
        assert html.count("data-guess=") == 3
        assert_within_the_frame(html, (predicted, measured))
    sizes = [x for x in (predicted, measured) if 1e-200 < x < 1e200]
    if sizes:
        later = min(sizes) * 10.0**power if power < 0 else max(sizes) * 10.0**power
        assert any(
            axis.lowest <= (later if axis.is_linear else math.log10(later)) <= axis.highest
            for axis, _ in pictures
        )
    assert any(axis.is_linear or axis.left > 6 for axis, _ in pictures), "for a guess of 0"


@pytest.mark.parametrize(
    ("unit", "said", "measured", "labels"),
    [
        ("GB", 0.6, 2.416, ("0.6 GB", "2.42 GB")),
        ("GB", 900, 2_400, ("900 GB", "2,400 GB")),
        ("GB", 0.05, 0.06, ("50 MB", "60 MB")),  # all are below one GB
        ("GB", 0.0006, 2.416, ("600 kB", "2.42 GB")),  # more than a thousand apart
        ("bytes", 600e6, 2.416e9, ("600 MB", "2.42 GB")),  # nobody counts so many in bytes
    ],
)
def test_a_picture_has_one_unit_the_one_asked_for_where_its_numbers_are_near(
    unit, said, measured, labels
):
    drawn = compared(measured, measured, {"a": said}, unit)._repr_html_()
    bold = re.findall(r'<tspan style="font-weight:bold">([^<]+)</tspan>', drawn)
    assert tuple(bold) == labels
    assert f">{labels[1]}</span>" in drawn, "in large letters"
    assert f"your guess {labels[0]}, predicted {labels[1]}, " in drawn, "as it is read aloud"
    rate = compared(40, 40, {"a": 0.5}, "TFLOP/s")._repr_html_()
    assert "your guess 0.5 TFLOP/s, predicted 40 TFLOP/s, " in rate
