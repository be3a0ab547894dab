"""Block formats against a slow loop over every element and every scale that others know."""

import bisect
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils import blocks, floats, measure

MAGNITUDE = st.floats(2**-20, 2**20, width=32)
NUMBER = st.one_of(st.just(0.0), MAGNITUDE, MAGNITUDE.map(lambda x: -x))
TENSOR = st.lists(NUMBER, min_size=1, max_size=70)
SCALES = {  # every one that can be stored, as others read its patterns
    "e8m0": torch.arange(255, dtype=torch.uint8).view(torch.float8_e8m0fnu).double().tolist(),
    "e4m3": [v for v in measure.every_value("e4m3")[:128] if v == v],
}
ELEMENTS = {fmt: sorted({v for v in measure.every_value(fmt) if v == v}) for fmt in ("e4m3", "e2m1")}


def nearest(x: Fraction, among: list[float], fmt: str) -> float:
    """By looking at those on either side; of two equally near, the one whose pattern ends in 0."""
    at = bisect.bisect_left(among, x)
    beside = among[max(at - 1, 0) : at + 1]
    return min(beside, key=lambda v: (abs(Fraction(v) - x), floats.encode(v, fmt) % 2))


def by_a_slow_loop(numbers: list[float], fmt: str) -> list[float]:
    """Each block's scale found among all that there are, each element among all that there are."""
    f = blocks.BLOCK_FORMATS[fmt]
    elements, scales, kept = ELEMENTS[f.element], SCALES[f.scale], []
    whole = Fraction(1)
    if f.scale == "e4m3" and any(numbers):
        whole = Fraction(float(np.float32(max(map(abs, numbers)) / (448 * 6))))
    for start in range(0, len(numbers), f.numbers):
        block = [Fraction(x) for x in numbers[start : start + f.numbers]]
        largest = max(map(abs, block))
        if f.scale == "e8m0":  # of the powers of two that keep the largest below the next one, the first
            beyond = 2 ** math.ceil(math.log2(elements[-1] + 1))
            scale = next(Fraction(s) for s in scales if largest < beyond * Fraction(s))
        else:
            scale = Fraction(nearest(largest / 6 / whole, scales, "e4m3")) * whole
        kept += [nearest(x / scale, elements, f.element) * float(scale) if scale else 0.0 for x in block]
    return kept


@pytest.mark.parametrize("fmt", blocks.BLOCK_FORMATS)
@given(TENSOR)
@example([0.0] * 40)
@example([1.0, 1000.0] * 20)
@example([500.0, 449.0, -511.0])  # MXFP8 keeps no more than 448 of these
@example([2.0**-20, 2.0**20] + [2.0**-20] * 30)  # the second block's scale is too small for E4M3
def test_every_block_is_kept_as_a_slow_loop_keeps_it(fmt, numbers):
    assert blocks.stored(numbers, fmt) == by_a_slow_loop(numbers, fmt)


@pytest.mark.parametrize(("fmt", "bits"), [("mxfp8", 8.25), ("mxfp4", 4.25), ("nvfp4", 4.5)])
def test_bits_per_number_are_those_of_the_tensors_that_torch_would_hold(fmt, bits):
    f = blocks.BLOCK_FORMATS[fmt]
    held = {"e8m0": torch.float8_e8m0fnu, "e4m3": torch.float8_e4m3fn, "e2m1": torch.float4_e2m1fn_x2}
    n = 32 * 16
    of_elements = torch.empty(n // 2 if f.element == "e2m1" else n, dtype=held[f.element])
    of_scales = torch.empty(n // f.numbers, dtype=held[f.scale])
    assert 8 * (of_elements.nbytes + of_scales.nbytes) / n == f.bits_per_number == bits


def test_what_a_block_can_hold_side_by_side():
    assert blocks.BLOCK_FORMATS["nvfp4"].reach == blocks.BLOCK_FORMATS["mxfp4"].reach == 12
    assert blocks.BLOCK_FORMATS["mxfp8"].reach == 448 * 2**9


def test_a_scale_stops_at_the_ends_of_its_format():
    assert blocks.block_scale([2.0**-149], "mxfp8") == 2.0**-127 == SCALES["e8m0"][0]
    assert blocks.block_scale([1e300], "mxfp4") == 2.0**127 == SCALES["e8m0"][-1]
    assert blocks.block_scale([1e6], "nvfp4") == 448 == SCALES["e4m3"][-1]
    assert blocks.tensor_scale([1e300], "nvfp4") == float(np.finfo(np.float32).max)
