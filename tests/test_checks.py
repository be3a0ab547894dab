"""The exercises: the solution shown in the notebook passes, wrong answers fail with advice."""

import functools
import json
import math

import numpy as np
import pytest
import torch

from course_utils.checks import floats as check
from course_utils.checks import flops
from course_utils.checks.verdict import NOT_ATTEMPTED, near, same
from tests.notebooks import exercises

EXERCISES = exercises()


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_stub_is_not_attempted_yet(exercise):
    assert exercise.verdict(exercise.stub) == NOT_ATTEMPTED


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)
def test_the_folded_solution_is_right(exercise):
    verdict = exercise.verdict(exercise.solution)
    assert verdict.right, verdict


WRONG_VALUES = [
    (check.spelled, "0100011010000000", "the first bit says minus"),
    (check.spelled, "1100000011010000", "bias 127"),
    (check.spelled, -6.5, "as a string, in quotes"),
    (check.spelled, None, "as a string, in quotes"),
    (check.spelled, "1 10001 101", "9 came"),
    (check.spelled, "minus", "is not it"),
    (check.block_gib, "2.25 GiB", "without quotes"),
    (check.block_gib, math.nan, "is not it"),
    (check.block_gib, 2.415919104, "10^9"),
    (check.block_gib, 2.415919104 / 2, "in GB"),
    (check.block_gib, 1.125, "one matrix"),
    (check.block_gib, 4.5, "bf16 takes 2"),
    (check.block_gib, 2304, "MiB"),
    (check.block_gib, torch.zeros(3), "is not it"),
    (flops.cheaper_order, 2 * 1000**3 + 2 * 1000**2, "Start from the other end"),
    (flops.cheaper_order, 2_000_000, "one product"),
    (flops.cheaper_order, None, "is not it"),
    (flops.cheaper_order, math.nan, "is not it"),
    (flops.cheaper_order, "4e6", "is not it"),
    (flops.days, 11.4, "Half of 312"),
    (flops.days, 5.69, "sparse rate and at full peak"),
    (flops.days, 7.59, "forward pass alone"),
    (flops.days, 22.77 * 86400, "in seconds"),
    (flops.days, 22.77 * 1024, "one A100"),
    (flops.days, True, "is not it"),
    (flops.days, [22.77], "is not it"),
]


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_VALUES)
def test_a_wrong_value_gets_advice(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def ieee(bits, e, m, *, leading=1, exponent_of_zero=1, infinity=math.inf, nan=math.nan):
    """A decoder with one thing at a time done wrongly."""
    sign, exponent, fraction = bits >> (e + m), bits >> m & (2**e - 1), bits & (2**m - 1)
    bias = 2 ** (e - 1) - 1
    if exponent == 2**e - 1:
        return nan if fraction else (-1) ** sign * infinity
    if exponent == 0:
        return (-1) ** sign * (1 - leading + fraction / 2**m) * 2.0 ** (exponent_of_zero - bias)
    return (-1) ** sign * (1 + fraction / 2**m) * 2.0 ** (exponent - bias)


def stops_after_ties_up(fraction_bits, step):
    return 2.0 ** (fraction_bits + 1 + math.floor(math.log2(step)))


def half_up(bits):
    return (bits + 0x8000) >> 16


def without_nan(bits):
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def utilisation(rate, parameters, layers, width, sequence, peak, *, attention=12.0, passes=1.0):
    """MFU with one thing at a time done wrongly."""
    return passes * (6 * parameters + attention * layers * width * sequence) * rate / peak


def mean_roof(points):
    return sum(rate for _, rate in points) / len(points), 1.0


def outermost(points):
    points = sorted(points)
    return points[-1][1], points[0][1] / points[0][0]


def highest(points):
    return max(rate for _, rate in points), max(rate / x for x, rate in points)


WRONG_FUNCTIONS = [
    (flops.smallest_batch, lambda d, k, f, w: math.ceil(f / w), "takes a larger B"),
    (
        flops.smallest_batch,
        lambda d, k, f, w: math.ceil(f / w * d * k / (d * k - f / w * (d + k))) - 1,
        "expected",
    ),
    (
        flops.smallest_batch,
        lambda d, k, f, w: math.ceil(2 * f / w * d * k / (d * k - 2 * f / w * (d + k))),
        "bf16 has 2",
    ),
    (flops.smallest_batch, lambda d, k, f, w: None, "gave None"),
    (flops.smallest_batch, lambda d, k, f, w: math.nan, "gave nan"),
    (flops.smallest_batch, lambda d, k: 0, "TypeError"),
    (flops.utilisation, functools.partial(utilisation, attention=0), "leaves attention out"),
    (flops.utilisation, functools.partial(utilisation, attention=4), "has a backward pass too"),
    (flops.utilisation, functools.partial(utilisation, passes=1 / 3), "forward pass alone"),
    (flops.utilisation, lambda r, p, n, h, s, peak: utilisation(r, p, n, h, s * s, peak), "one S remains"),
    (flops.utilisation, lambda *_: "0.5", "gave '0.5'"),
    (flops.fitted_roofline, outermost, "need not lie on the roof"),
    (flops.fitted_roofline, lambda points: highest(points)[::-1], "The peak comes first"),
    (flops.fitted_roofline, mean_roof, "expected"),
    (flops.fitted_roofline, lambda points: highest(points)[0], "expected"),
    (flops.fitted_roofline, lambda points: (math.nan, math.nan), "expected"),
    (flops.fitted_roofline, 3, "A function is wanted"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, exponent_of_zero=0), "2^(1 - bias)"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, leading=0), "expected 0.0"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, infinity=65536.0), "expected inf"),
    (check.decoded, lambda b, e, m: ieee(b, e, m, nan=math.inf), "expected nan"),
    (check.decoded, lambda b, e, m: abs(ieee(b, e, m)), "expected -"),
    (check.decoded, lambda b, e, m: 1 / 0, "ZeroDivisionError"),
    (check.decoded, lambda bits: 0.0, "TypeError"),
    (check.decoded, lambda b, e, m: None, "gave None"),
    (check.stall, lambda m, step: 2.0 ** (m + 1), "steps of 1"),
    (check.stall, lambda m, step: step * 2.0 ** (m + 1), "power of two"),
    (check.stall, stops_after_ties_up, "Round the exponent up"),
    (check.stall, None, "A function is wanted"),
    (check.decoded, 3, "A function is wanted"),
    (check.decoded, lambda b, e, m: 0 if b == 0x8000 else ieee(b, e, m), "Zero has a sign too"),
    (check.decoded, functools.partial(ieee, infinity=65536.0), "your function(31744, 5, 10)"),
    (check.scale_for_e4m3, None, "A function is wanted"),
    (check.scale_for_e4m3, lambda x: x.abs().max() / 448, "the inverse"),
    (check.scale_for_e4m3, lambda x: -448 / x.abs().max(), "turns every sign"),
    (check.scale_for_e4m3, lambda x: 460 / x.abs().max(), "nothing is gained"),
    (check.bf16_by_integers, None, "A function is wanted"),
    (check.bf16_by_integers, lambda bits: (bits + 0x7FFF) >> 16, "every tie down"),
    (check.bf16_by_integers, lambda bits: float(bits >> 16), "TypeError"),
    (check.scale_for_e4m3, lambda x: 448 / x.abs().max(), "zeros"),
    (check.scale_for_e4m3, lambda x: 448 / max(x.max().item(), 1e-9), "magnitude"),
    (check.scale_for_e4m3, lambda x: 1.0, "room up to 448"),
    (check.scale_for_e4m3, lambda x: x, "not one number"),
    (check.scale_for_e4m3, lambda x: x.no_such_thing, "AttributeError"),
    (check.bf16_by_integers, lambda bits: bits >> 16, "rounds towards zero"),
    (check.bf16_by_integers, half_up, "every tie up"),
    (check.bf16_by_integers, without_nan, "must stay a NaN"),
]


RIGHT_IN_ANOTHER_TYPE = [
    (flops.cheaper_order, 4e6),
    (flops.cheaper_order, torch.tensor(4_000_000)),
    (flops.days, np.float64(22.7)),
    (flops.utilisation, lambda *run: torch.tensor(utilisation(*run), dtype=torch.float64)),
    (flops.fitted_roofline, lambda points: list(highest(points))),
    (
        flops.fitted_roofline,
        lambda points: np.array(points).T[1].max() * np.array([1, 0]) + [0, highest(points)[1]],
    ),
    (check.spelled, "0b1100011010000000"),
    (check.block_gib, np.float32(2.25)),
    (check.decoded, lambda b, e, m: np.float32(ieee(b, e, m))),
    (check.decoded, lambda b, e, m: torch.tensor(ieee(b, e, m))),
    (check.scale_for_e4m3, lambda x: np.float32(448) / np.abs(x.numpy()).max() if x.any() else np.float32(1)),
    (
        check.bf16_by_integers,
        lambda bits: np.uint16(bits >> 16 | 0x40 if bits & 0x7FFFFFFF > 0x7F800000 else without_nan(bits)),
    ),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT_IN_ANOTHER_TYPE)
def test_a_right_answer_is_right_in_whatever_type_it_comes(judge, answer):
    assert judge(answer).right, judge(answer)


def test_the_line_that_is_named_is_the_readers_own():
    def stumbles(bits, exponent_bits, fraction_bits):
        return json.loads("no json")

    line = stumbles.__code__.co_firstlineno + 1
    assert f"stopped in line {line} with JSONDecodeError" in check.decoded(stumbles).words
    assert "stopped with TypeError" in check.decoded(lambda bits: bits).words


@pytest.mark.parametrize(("judge", "answer", "advice"), WRONG_FUNCTIONS)
def test_a_wrong_function_gets_advice_and_no_stack_trace(judge, answer, advice):
    verdict = judge(answer)
    assert verdict.status == "not yet"
    assert advice in verdict.words


def test_same_is_equal_to_the_last_bit():
    assert same(math.nan, math.nan)
    assert same(1, 1.0)
    assert not same(0.0, -0.0)
    assert not same(True, 1)
    assert not same("1", 1)
    assert not same(torch.zeros(2), 0.0)


def test_near_is_a_share_and_nothing_without_one():
    assert near(101, 100, 0.01)
    assert not near(102, 100, 0.01)
    assert not near(100, 100, 0.0)
    assert near((1.0, 2.0), [1.001, 2.0], 0.01)
    assert not near((1.0, 2.0), (1.0, 2.0, 3.0), 0.01)
    assert not near("1", 1, 0.5)
    assert not near(True, 1, 0.5)


def test_a_verdict_escapes_what_the_reader_wrote():
    assert "<script>" not in check.spelled("<script>")._repr_html_()
