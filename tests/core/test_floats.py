"""Every format against torch, NumPy or ml_dtypes, which convert numbers in other ways."""

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
IN_A_SECOND_LIBRARY = list(SECOND_LIBRARY)
ON_THIS_COMPUTER = {"fp64": (">d", ">Q"), "fp32": (">f", ">I")}  # a number, and its bits


def with_bits(bits: int, fmt: str) -> float:
    number_code, bits_code = ON_THIS_COMPUTER[fmt]
    (x,) = struct.unpack(number_code, struct.pack(bits_code, bits))
    return x


def bits_of(x: float, fmt: str) -> int:
    number_code, bits_code = ON_THIS_COMPUTER[fmt]
    (bits,) = struct.unpack(bits_code, struct.pack(number_code, x))
    return bits


any_double = st.integers(0, 2**64 - 1).map(lambda bits: with_bits(bits, "fp64"))
any_single = st.integers(0, 2**32 - 1).map(lambda bits: with_bits(bits, "fp32"))
finite_double = st.floats(allow_nan=False, allow_infinity=False)
any_format = st.sampled_from(list(floats.FORMATS))


def same(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    same_sign = math.copysign(1, a) == math.copysign(1, b)
    return a == b and same_sign


@pytest.mark.parametrize("fmt", measure.SMALL_FORMATS)
def test_every_pattern_decodes_to_what_the_library_reads(fmt):
    theirs = measure.every_value(fmt)
    assert len(theirs) == 2 ** floats.FORMATS[fmt].bits
    wrong = []
    for bits, value in enumerate(theirs):
        if not same(floats.decode(bits, fmt), value):
            wrong.append(bits)
    assert wrong == []


@pytest.mark.parametrize("fmt", measure.SMALL_FORMATS)
def test_every_value_encodes_to_its_own_pattern(fmt):
    wrong = []
    for bits, value in enumerate(measure.every_value(fmt)):
        # Of TF32's half a million, one in 17, and each fraction bit at both of its values.
        left_out = fmt == "tf32" and bits % 17 != 0 and bits >= 2**11
        if left_out or math.isnan(value):
            continue
        if floats.encode(value, fmt) != bits:
            wrong.append(bits)
    assert wrong == []


def assert_is_the_computers_own(x: float, fmt: str) -> None:
    bits = bits_of(x, fmt)
    assert same(floats.decode(bits, fmt), x)
    if not math.isnan(x):
        assert floats.encode(x, fmt) == bits


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
    theirs = torch.tensor(x, dtype=torch.float64).float().item()
    assert same(floats.stored(x, "fp32"), theirs)


@given(any_double | st.floats(-70000, 70000))
@example(65519.99999999999)
@example(65520.0)
@example(2.0**-25)
@example(2.0**-25 * (1 + 2.0**-50))  # torch goes by way of fp32 here, rounds twice, and gives 0
def test_doubles_round_to_fp16_as_numpy_rounds_them(x):
    with np.errstate(over="ignore"):
        theirs = np.float64(x).astype(np.float16)
    assert same(floats.stored(x, "fp16"), float(theirs))


@pytest.mark.parametrize("fmt", IN_A_SECOND_LIBRARY)
def test_between_any_two_neighbours_a_second_library_rounds_the_same_way(fmt):
    finite = sorted({*filter(math.isfinite, measure.every_value(fmt))})
    largest = finite[-1]
    # NumPy's float16 takes the double; ml_dtypes rounds it to fp32 first, so give it a float32.
    wide = np.float64 if fmt == "fp16" else np.float32
    with np.errstate(over="ignore"):
        gaps = np.diff(finite)
        ties = (finite[:-1] + gaps / 2).astype(wide)
        below = np.nextafter(ties[::3], wide(-math.inf))
        above = np.nextafter(ties[::3], wide(math.inf))
        beyond = np.array([1.01, 1.0625, 2, -2, math.inf]) * largest
        given = np.concatenate([ties, below, above, beyond.astype(wide)])
        theirs = given.astype(SECOND_LIBRARY[fmt]).astype(np.float64)
    wrong = []
    for x, value in zip(given.tolist(), theirs.tolist(), strict=True):
        if not same(floats.stored(x, fmt), value):
            wrong.append(x)
    assert wrong == []


def rounded_to_tf32(single_bits: int) -> int:
    """The fp32 pattern with 13 bits taken off, rounded to nearest even in integers."""
    is_odd = single_bits >> 13 & 1
    return (single_bits + 0x0FFF + is_odd) >> 13


@given(any_single)
@example(with_bits(0x3F801000, "fp32"))  # a tie, to even below
@example(with_bits(0x3F803000, "fp32"))  # a tie, to even above
@example(with_bits(0x7F7FF000, "fp32"))  # rounds up to infinity
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


def test_torch_on_a_cpu_gives_nan_beyond_e4m3s_largest_number_and_saturates_from_2_13_on():
    saturates = not torch.__version__.startswith(("2.11.", "2.12."))
    beyond = [464.0, 465.0, 1e9, math.inf]
    # One by one, and as many as the processor takes at once.
    for numbers in (beyond, beyond * 16):
        cast = torch.tensor(numbers).to(torch.float8_e4m3fn).tolist()
        expected = [floats.stored(x, "e4m3", saturate=saturates) for x in numbers]
        for stored_by_torch, stored in zip(cast, expected, strict=True):
            assert same(stored_by_torch, stored), cast


@given(finite_double)
@example(0.0)
@example(1.0)
def test_fp64s_spacing_is_the_math_modules(x):
    assert floats.spacing(x, "fp64") == math.ulp(x)


@pytest.mark.parametrize("fmt", IN_A_SECOND_LIBRARY)
def test_the_spacing_leads_from_every_number_to_the_next(fmt):
    finite = filter(math.isfinite, measure.every_value(fmt))
    sizes = sorted({abs(value) for value in finite})
    for x, following in pairwise(sizes):
        assert floats.spacing(x, fmt) == following - x
        assert floats.spacing(-x, fmt) == following - x


@pytest.mark.parametrize("fmt", ["fp64", "fp32", *IN_A_SECOND_LIBRARY])
def test_a_formats_properties_are_the_librarys(fmt):
    f = floats.FORMATS[fmt]
    if fmt in measure.DTYPES:
        theirs = torch.finfo(measure.DTYPES[fmt])
    else:
        theirs = ml_dtypes.finfo(SECOND_LIBRARY[fmt])
    assert f.bits == theirs.bits
    assert f.max == theirs.max
    assert f.smallest_normal == theirs.tiny
    assert f.epsilon == theirs.eps
    assert f.smallest_subnormal == theirs.smallest_normal * theirs.eps


def test_the_worked_example_is_what_torch_writes():
    bits = bits_of(0.15625, "fp32")
    assert floats.encode(0.15625, "fp32") == bits
    assert floats.fields(bits, "fp32") == (0, 124, 2**21)
    assert floats.formula(bits, "fp32") == "(-1)^0 × 1.25 × 2^(124 - 127) = 0.15625"


@given(finite_double, any_format)
@example(8388609.0, "fp32")  # its own digits are few, those of its significand are 24
@example(0.1, "fp64")
@example(2.0**-149, "fp32")
def test_a_formula_as_it_is_written_equals_its_value_or_is_marked_as_approximate(x, fmt):
    bits = floats.encode(x, fmt, saturate=True)
    value = floats.decode(bits, fmt)
    parts = r"\(-1\)\^([01]) × (\S+) × 2\^\((\d+) - (\d+)\) ([=≈]) (\S+)"
    match = re.fullmatch(parts, floats.formula(bits, fmt))
    sign, significand, exponent, bias, equals, shown = match.groups()
    power = int(exponent) - int(bias)
    assert float(shown) == value
    assert math.ldexp(float(significand), power) == abs(value)

    product = (-1) ** int(sign) * Fraction(significand) * Fraction(2) ** power
    is_exact = product == Fraction(shown) == Fraction(value)
    assert equals == ("=" if is_exact else "≈")


@given(st.fractions(), any_format)
@example(Fraction(1, 10), "fp64")
@example(Fraction(1, 3), "bf16")
def test_no_number_of_the_format_is_nearer_than_the_one_stored(x, fmt):
    value = floats.stored(x, fmt)
    if not math.isfinite(value) or floats.overflows(x, fmt):
        return
    error = abs(Fraction(value) - x)
    half_gap = Fraction(floats.spacing(value, fmt)) / 2  # a whole one, below a power of two
    for halves in (-2, -1, 1, 2):
        other = Fraction(value) + halves * half_gap
        if floats.stored(other, fmt) == other:
            assert error <= abs(other - x)
