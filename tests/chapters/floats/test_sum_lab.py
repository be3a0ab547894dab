"""The sum lab: one addition stands for many, so it is compared with a format that adds them all."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from course_utils.chapters import labs
from course_utils.chapters.floats.sum_lab.asked import FORMATS, Ones, predicted, sums
from course_utils.chapters.floats.sum_lab.picture import ONE, view
from course_utils.core import floats
from tests.helpers.labs import lines, nodes, text_of

DTYPES = {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}
# How many ones are added, as a power of two: more than it takes each sum to stop.
MOST_ADDED = {"bf16": 14, "fp16": 14, "fp32": 25}


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_sums_are_those_that_come_of_adding_one_by_one_and_stop_where_half_a_gap_is_1(fmt):
    most = MOST_ADDED[fmt]
    ones = np.ones(2**most, DTYPES[fmt])
    so_far = ones.cumsum()  # NumPy rounds after each 1
    by_numpy = [int(so_far[2**power - 1]) for power in range(most + 1)]
    assert sums(fmt)[: most + 1] == by_numpy
    assert sums(fmt)[-1] == predicted(fmt)
    assert floats.spacing(predicted(fmt), fmt) / 2 == 1


def test_the_line_is_the_sum_so_far_with_a_point_for_each_power_of_two():
    svg = view(Ones(power=7, shown=True), None).picture
    (way,) = lines(svg, "line measured")
    assert len(way) == 7 + 1


def test_below_the_line_are_the_numbers_that_the_format_has_near_the_sum():
    numbers_at_128 = view(Ones(power=7, shown=True), None).picture
    assert gaps_on_the_ruler(numbers_at_128) == [0.5] * 6 + [1] * 5
    assert nodes(numbers_at_128, "polyline", "pointed") == []
    numbers_at_256 = view(Ones(power=8, shown=True), None).picture
    assert gaps_on_the_ruler(numbers_at_256) == [1] * 3 + [2] * 2
    assert nodes(numbers_at_256, "polyline", "pointed") != []  # there 1 more is lost


def gaps_on_the_ruler(svg):
    xs = [top[0] for top, _ in lines(svg, "start")]
    return [round((right - left) / ONE, 2) for left, right in pairwise(xs)]


def test_a_single_1_is_added_once():
    assert view(Ones(power=0), None).meaning.startswith("1 is added once, and the sum is stored.")
    assert view(Ones(power=1), None).meaning.startswith("1 is added 2 times, and each sum is")


def test_what_a_format_has_stands_nearer_to_its_own_name_than_to_the_next():
    heads = nodes(view(Ones(), None).picture, "text", "small faint")
    names = nodes(view(Ones(), None).picture, "text", "strong")
    lefts = {node.text: float(node.get("x")) for node in [*heads, *names]}
    assert lefts["7 fraction bits"] - lefts["bf16"] < 50
    assert lefts["fp16"] - lefts["7 fraction bits"] > 100


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (8, "Every number that bf16 has near 256: + 1 falls back"),
        (2, "Some of the numbers that bf16 has near 4: + 1 counts"),
    ],
)
def test_the_numbers_near_the_sum_are_called_all_only_where_an_eighth_is_fine_enough(power, words):
    shown = view(Ones(power=power, shown=True), None)
    assert words in text_of(shown)
    total = 2**power
    by_ml_dtypes = set()
    for sixty_fourths in range(-192, 321):
        number = float(ml_dtypes.bfloat16(total + sixty_fourths / 64))
        if total - 3 <= number <= total + 5:
            by_ml_dtypes.add(number)
    are_all_drawn = len(lines(shown.picture, "start")) == len(by_ml_dtypes)
    assert are_all_drawn == words.startswith("Every")


def test_each_mark_is_compared_with_where_its_own_format_stops():
    in_bf16, in_fp32 = labs.lab_named("sum").guesses(Ones(guess=(8, None, 20)), None)
    assert in_bf16.asked == "where a sum of ones in bf16 stops"
    assert in_fp32.asked == "where a sum of ones in fp32 stops"
    assert (in_bf16.said, in_bf16.measured) == (2**8, 2**8)
    assert (in_fp32.said, in_fp32.measured) == (2**20, 2**24)
