"""What the checks of *Beyond* in notebook 01 know is held by slower ways."""

import math
import random

from course_utils.chapters.floats import beyond_check


def added_one_by_one(fraction_bits: int, number: float) -> float:
    """Where a sum stops, with every single addition."""
    total = 0.0
    after = number
    while after != total:
        total = after
        gap = 2.0 ** (math.frexp(total + number)[1] - 1 - fraction_bits)
        after = round((total + number) / gap) * gap
    return total


def test_additions_are_skipped_only_where_each_adds_the_same():
    draw = random.Random("sums that stop")
    for _ in range(600):
        fraction_bits = draw.randint(1, 10)
        tenths = draw.randint(1, 2000) / 10
        halves = draw.randint(1, 2000) / 2 ** draw.randint(0, 8)  # many of these are ties
        for number in (tenths, halves, 10 ** draw.uniform(-6, 6)):
            stop = beyond_check._where_the_sum_stops(fraction_bits, number)
            assert stop == added_one_by_one(fraction_bits, number), (fraction_bits, number)
