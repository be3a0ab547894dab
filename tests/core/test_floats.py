"""Every format against torch, NumPy or ml_dtypes, which do it in other ways and in other languages."""

import math
import re
import struct
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from course_utils.core import floats, measure

SECOND_LIBRARY = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
ON_THIS_COMPUTER = {"fp64": (">d", ">Q"), "fp32": (">f", ">I")}  # a number, and its bits
any_double = st.integers(0, 2**64 - 1).map(
    lambda bits: struct.unpack(">d", struct.pack(">Q", bits))[0]
)
any_single = st.integers(0, 2**32 - 1).map(
    lambda bits: struct.unpack(">f", struct.pack(">I", bits))[0]
)


def same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (
        math.isnan(a) and math.isnan(b)
    )


def bits_of(x: float, fmt: str) -> int:
    number, bits = ON_THIS_COMPUTER[fmt]
    return struct.unpack(bits, struct.pack(number, x))[0]


@pytest.mark.parametrize("fmt", measure.SMALL_FORMATS)
def test_every_pattern_decodes_to_what_the_library_reads(fmt):
    theirs = measure.every_value(fmt)
    assert len(theirs) == 2 ** floats.FORMATS[fmt].bits
    assert [
        bits for bits, value in enumerate(theirs) if not same(floats.decode(bits, fmt), value)
    ] == []


@pytest.mark.parametrize("fmt", measure.SMALL_FORMATS)
def test_every_value_encodes_to_its_own_pattern(fmt):
    values = {
        bits: value for bits, value in enumerate(measure.every_value(fmt)) if not math.isnan(value)
    }
    if fmt == "tf32":  # of half a million, one in 16, and each fraction bit at both of its values
        values = {bits: values[bits] for bits in values if bits % 17 == 0 or bits < 2**11}
    assert [bits for bits, value in values.items() if floats.encode(value, fmt) != bits] == []


def assert_is_the_computers_own(x: float, fmt: str) -> None:
    assert same(floats.decode(bits_of(x, fmt), fmt), x)
    assert math.isnan(x) or floats.encode(x, fmt) == bits_of(x, fmt)


@given(any_double)
@example(0.1)
@example(5e-324)
@example(2.2250738585072014e-308)  # the smallest normal
@example(1.7976931348623157e308)
def test_fp64_is_the_computers_own_double(x):
    assert_is_the_computers_own(x, "fp64")


@given(any_single)
@example(0.15625)
@example(1.401298464324817e-45)
@example(3.4028234663852886e38)
def test_fp32_is_the_computers_own_single(x):
    assert_is_the_computers_own(x, "fp32")


@given(any_double)
@example(3.4028235677973366e38)  # the tie between the largest fp32 and the next power of two
@example(math.nextafter(3.4028235677973366e38, 0))
@example(2.0**-150)  # the tie between 0 and the smallest subnormal
@example(math.nextafter(2.0**-150, 1))
def test_doubles_round_to_fp32_as_torch_rounds_them(x):
    assert same(floats.stored(x, "fp32"), torch.tensor(x, dtype=torch.float64).float().item())


@given(any_double | st.floats(-70000, 70000))
@example(65519.99999999999)
@example(65520.0)
@example(2.0**-25)
@example(2.0**-25 * (1 + 2.0**-50))  # torch goes by way of fp32 here, rounds twice, and gives 0
def test_doubles_round_to_fp16_as_numpy_rounds_them(x):
    with np.errstate(over="ignore"):
        assert same(floats.stored(x, "fp16"), float(np.float64(x).astype(np.float16)))


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "e4m3", "e5m2", "e2m1"])
def test_between_any_two_neighbours_a_second_library_rounds_the_same_way(fmt):
    finite = sorted({v for v in measure.every_value(fmt) if math.isfinite(v)})
    # NumPy's float16 takes the double; ml_dtypes rounds it to fp32 first, so give it a float32.
    wide = np.float64 if fmt == "fp16" else np.float32
    with np.errstate(over="ignore"):
        ties = np.array([(a + b) / 2 for a, b in pairwise(finite)], wide)
        near = [np.nextafter(ties[::3], wide(side)) for side in (-math.inf, math.inf)]
        ends = np.array(
            [*(finite[-1] * beyond for beyond in (1.01, 1.0625, 2, -2)), math.inf], wide
        )
        given = np.concatenate([ties, *near, ends])
        theirs = given.astype(SECOND_LIBRARY[fmt]).astype(np.float64)
    pairs = zip(given.tolist(), theirs.tolist(), strict=True)
    assert [x for x, value in pairs if not same(floats.stored(x, fmt), value)] == []


def rounded_to_tf32(single_bits: int) -> int:
    """The fp32 pattern with 13 bits taken off, rounded to nearest even in integers."""
    return (single_bits + 0x0FFF + (single_bits >> 13 & 1)) >> 13


@given(any_single)
@example(struct.unpack(">f", bytes.fromhex("3f801000"))[0])  # a tie, to even below
@example(struct.unpack(">f", bytes.fromhex("3f803000"))[0])  # a tie, to even above
@example(struct.unpack(">f", bytes.fromhex("7f7ff000"))[0])  # rounds up to infinity
def test_tf32_is_fp32_with_thirteen_bits_rounded_off(x):
    if not math.isnan(x):
        assert floats.encode(x, "tf32") == rounded_to_tf32(bits_of(x, "fp32"))


@pytest.mark.parametrize(
    ("fmt", "x", "over", "plain", "saturated"),
    [
        ("fp16", 65519.0, False, 65504, 65504),
        ("fp16", 65520.0, True, math.inf, 65504),
        ("bf16", 3.4e38, True, math.inf, (2 - 2**-7) * 2.0**127),
        ("e4m3", 464.0, False, 448, 448),
        ("e4m3", 465.0, True, math.nan, 448),
        ("e4m3", -math.inf, True, math.nan, -448),
        ("e5m2", 61439.0, False, 57344, 57344),
        ("e5m2", 61440.0, True, math.inf, 57344),
        ("e5m2", math.inf, True, math.inf, 57344),
        ("e2m1", 6.99, False, 6, 6),
        ("e2m1", 7.0, True, 6, 6),
        ("e2m1", -math.inf, True, -6, -6),
    ],
)
def test_beyond_the_largest_number(fmt, x, over, plain, saturated):
    assert floats.overflows(x, fmt) == over
    assert same(floats.stored(x, fmt), float(plain))
    assert floats.stored(x, fmt, saturate=True) == saturated


def test_torch_on_a_cpu_gives_nan_beyond_e4m3s_largest_number_up_to_2_12_and_saturates_from_2_13_on():
    saturates = not torch.__version__.startswith(("2.11.", "2.12."))
    beyond = [464.0, 465.0, 1e9, math.inf]
    for numbers in (beyond, beyond * 16):  # one by one, and as many as the processor takes at once
        cast = torch.tensor(numbers).to(torch.float8_e4m3fn).tolist()
        expected = [floats.stored(x, "e4m3", saturate=saturates) for x in numbers]
        assert all(map(same, cast, expected)), cast


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.0)
@example(1.0)
def test_fp64s_spacing_is_the_math_modules(x):
    assert floats.spacing(x, "fp64") == math.ulp(x)


@pytest.mark.parametrize("fmt", ["fp16", "bf16", "e4m3", "e5m2", "e2m1"])
def test_the_spacing_leads_from_every_number_to_the_next(fmt):
    numbers = sorted({abs(v) for v in measure.every_value(fmt) if math.isfinite(v)})
    for x, following in pairwise(numbers):
        assert floats.spacing(x, fmt) == floats.spacing(-x, fmt) == following - x


@pytest.mark.parametrize("fmt", ["fp64", "fp32", "fp16", "bf16", "e4m3", "e5m2", "e2m1"])
def test_a_formats_properties_are_the_librarys(fmt):
    f = floats.FORMATS[fmt]
    theirs = (
        torch.finfo(measure.DTYPES[fmt])
        if fmt in measure.DTYPES
        else ml_dtypes.finfo(SECOND_LIBRARY[fmt])
    )
    assert f.bits == theirs.bits
    assert (f.max, f.smallest_normal, f.epsilon) == (theirs.max, theirs.tiny, theirs.eps)
    assert f.smallest_subnormal == theirs.smallest_normal * theirs.eps


def test_the_worked_example_is_what_torch_writes():
    assert floats.fields(bits_of(0.15625, "fp32"), "fp32") == (0, 124, 2**21)
    assert (
        floats.formula(floats.encode(0.15625, "fp32"), "fp32")
        == "(-1)^0 × 1.25 × 2^(124 - 127) = 0.15625"
    )


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(list(floats.FORMATS)))
@example(8388609.0, "fp32")  # its own digits are few, those of its significand are 24
@example(0.1, "fp64")
@example(2.0**-149, "fp32")
def test_a_formula_as_it_is_written_equals_its_value_or_is_marked_as_approximate(x, fmt):
    bits = floats.encode(x, fmt, saturate=True)
    value = floats.decode(bits, fmt)
    parts = r"\(-1\)\^([01]) × (\S+) × 2\^\((\d+) - (\d+)\) ([=≈]) (\S+)"
    sign, significand, exponent, bias, equals, shown = re.fullmatch(
        parts, floats.formula(bits, fmt)
    ).groups()
    product = (-1) ** int(sign) * Fraction(significand) * Fraction(2) ** (int(exponent) - int(bias))
    assert float(shown) == value
    assert math.ldexp(float(significand), int(exponent) - int(bias)) == abs(value)
    assert (equals == "=") == (product == Fraction(shown) == Fraction(value))


@given(st.fractions(), st.sampled_from(list(floats.FORMATS)))
@example(Fraction(1, 10), "fp64")
@example(Fraction(1, 3), "bf16")
def test_no_number_of_the_format_is_nearer_than_the_one_stored(x, fmt):
    value = floats.stored(x, fmt)
    if math.isfinite(value) and not floats.overflows(x, fmt):
        error = abs(Fraction(value) - x)
        step = Fraction(floats.spacing(value, fmt))
        beside = [
            Fraction(value) + half * step / 2 for half in (-2, -1, 1, 2)
        ]  # below a power of two it is half as far
        assert all(error <= abs(n - x) for n in beside if floats.stored(n, fmt) == n)
