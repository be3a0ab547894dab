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

ADDED = {"bf16": (ml_dtypes.bfloat16, 14), "fp16": (np.float16, 14), "fp32": (np.float32, 25)}


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_sums_are_those_that_come_of_adding_one_by_one_and_stop_where_half_a_step_is_1(fmt):
    kind, power = ADDED[fmt]
    every = np.ones(2**power, kind).cumsum()  # NumPy rounds after each 1
    assert [int(every[2**k - 1]) for k in range(power + 1)] == sums(fmt)[: power + 1]
    assert sums(fmt)[-1] == predicted(fmt)
    assert floats.spacing(predicted(fmt), fmt) / 2 == 1


def test_the_line_is_the_sum_so_far_and_below_it_are_the_numbers_that_the_format_has():
    for power, apart in ((7, [0.5] * 6 + [1] * 5), (8, [1] * 3 + [2] * 2)):
        svg = view(Ones(power=power, shown=True), None).picture
        (way,) = lines(svg, "line measured")
        assert len(way) == power + 1
        xs = [x for (x, _), _ in lines(svg, "start")]
        assert [round((b - a) / ONE, 2) for a, b in pairwise(xs)] == apart
        assert bool(nodes(svg, "polyline", "pointed")) == (power == 8)


@pytest.mark.parametrize(("power", "words"), [(8, "Every number that bf16 has near 256: + 1 falls back"), (2, "Some of the numbers that bf16 has near 4: + 1 counts")])  # fmt: skip
def test_the_numbers_near_the_sum_are_called_all_only_where_an_eighth_is_fine_enough(power, words):
    asked = Ones(power=power, shown=True)
    view_of_it = view(asked, None)
    assert words in text_of(view_of_it)
    total = 2**power
    there_are = {stored_in_bf16(total + n / 64) for n in range(-192, 321)}
    drawn = [x for (x, _), _ in lines(view_of_it.picture, "start")]
    inside = [n for n in there_are if total - 3 <= n <= total + 5]
    assert (len(drawn) == len(inside)) == words.startswith("Every")


def stored_in_bf16(x):
    return float(ml_dtypes.bfloat16(x))


def test_each_mark_is_compared_with_where_its_own_format_stops():
    guesses = labs.lab_named("sum").guesses(Ones(guess=(8, None, 20)), None)
    assert [(guess.said, guess.measured) for guess in guesses] == [(256, 256), (2**20, 2**24)]
    assert [guess.asked for guess in guesses] == [
        f"where a sum of ones in {fmt} stops" for fmt in ("bf16", "fp32")
    ]
