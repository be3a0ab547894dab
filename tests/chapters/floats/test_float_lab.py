"""The float lab's answers; test_browser.py looks at them from outside."""

import math
import re
from collections import defaultdict
from fractions import Fraction
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.chapters import labs
from course_utils.chapters.floats.float_lab.asked import PRESETS, Cast, flipped
from course_utils.chapters.floats.float_lab.picture import view
from course_utils.core import floats
from tests.helpers.labs import text_of

SATURATING = {"saturate": True}
IN_THREE = {"formats": "fp32, bf16, fp16"}
# The number, what else is asked, and what is said of it.
SHOWN = [
    ("65520", {}, "overflow: infinity"),
    ("65520", SATURATING, "overflow: held at 65504"),
    ("465", {}, "overflow: NaN"),
    ("465", SATURATING, "overflow: held at 448"),
    ("1e-8", {}, "underflow: 0"),
    ("2^-24", {}, "subnormal, exact"),
    ("-1e39", SATURATING, "overflow: held at -3.40282e+38"),
    ("inf", {}, " infinity "),
    ("nan", {}, "E2M1 has no NaN: all 16 patterns are numbers"),
    ("nan", {}, "all 1, and its fraction is not 0; in E4M3, all bits but the sign are 1."),
    (
        "nan",
        IN_THREE,
        "NaN is not a number: its exponent bits are all 1, and its fraction is not 0.",
    ),
    ("fp16 0x7c01", {}, "NaN, not a number"),
    ("257", {}, "error -1"),
    # The gap to the next number.
    ("0.1", {}, f"gap {math.ulp(0.1):.3g} "),
    ("0.1", {}, "gap 0.5 "),
    ("65520", {}, "gap 512 "),
    ("-1.2345678901234567e-200", {}, f"gap {math.ulp(1.2345678901234567e-200):.3g} "),
    # In a sentence.
    (
        "257",
        {},
        "257 is too large for E2M1; rounded in bf16, E4M3 and E5M2; "
        "exact in fp64, fp32, tf32 and fp16.",
    ),
    ("0.1", {}, "The number 0.1 is too small for E2M1; exact in none of them."),
    (
        "0.1",
        {"times_two_to_the": -170},
        "0.1 × 2^-170 is too small for fp32, tf32, fp16, bf16, E4M3, E5M2 and E2M1; "
        "exact in none of them.",
    ),
    ("257", IN_THREE, "The number 257 is rounded in bf16; exact in fp32 and fp16."),
    ("0.1", IN_THREE, "exact in none of them."),
    (
        "fp16 0x0001",
        {"times_two_to_the": 24},
        "The number fp16 0x0001 × 2^24 is exact in all eight.",
    ),
]


@pytest.mark.parametrize(("number", "others", "sentence"), SHOWN)
def test_what_happens_to_a_number_is_said(number, others, sentence):
    cast = Cast(number=number, **others)
    assert sentence in text_of(view(cast, None))


def test_every_preset_asks_about_the_number_that_it_brings():
    for label, values in PRESETS.items():
        assert label.startswith(values["number"])


NUMBERS = {
    "0.15625": Fraction(5, 32),
    "1e-8": Fraction(1, 10**8),
    ".5": Fraction(1, 2),
    "7.": 7,
    "1e400": 10**400,
    "2^-24": Fraction(1, 2**24),
    "-0 * 2^3": 0,
    "-3 * 2^-20": Fraction(-3, 2**20),
    "-2^3": -8,
    "−inf": -math.inf,
    "-0": 0,
}
NO_NUMBERS = (
    "",
    "abc",
    "1e",
    "1_000",
    "٣",
    "0x10",
    "1e99999",
    "2^2^2",
    "__import__('os')",
    "fp16 0xzz",
)


@pytest.mark.parametrize("words", NUMBERS)
def test_numbers_are_taken_as_people_write_them_and_exactly(words):
    assert Cast(number=words).x == NUMBERS[words]


def test_a_zero_keeps_its_sign_and_nan_is_a_number_too():
    for words in ("-0", "-0 * 2^3"):
        assert math.copysign(1, Cast(number=words).x) == -1
    assert math.isnan(Cast(number="NaN").x)


@pytest.mark.parametrize("words", NO_NUMBERS)
def test_what_is_no_number_gets_a_sentence(words):
    refusal = rf"^“{re.escape(words)}” is not a number yet\. .*like fp16 0x3c01\."
    with pytest.raises(ValueError, match=refusal):
        Cast(number=f" {words}")


def test_what_is_too_long_for_a_number_gets_a_sentence():
    refusal = r"That is 61 characters long; 60 are enough for any number here\."
    with pytest.raises(ValueError, match=refusal):
        Cast(number="9" * 61)


# Bits that are clicked.


def shown_bits(cast: Cast) -> dict[str, int]:
    """The pattern that the picture shows for each format."""
    digits = defaultdict(str)
    picture = ElementTree.fromstring(view(cast, None).picture)
    for node in picture.iter():
        fmt = node.get("data-row")
        if fmt:
            is_on = node.get("aria-checked") == "true"
            digits[fmt] += "1" if is_on else "0"
    return {fmt: int(shown, base=2) for fmt, shown in digits.items()}


@settings(max_examples=25)
@given(st.floats(allow_nan=False), st.integers(-170, 140), st.booleans())
def test_every_format_shows_what_it_stores_of_a_number_times_a_power(x, power, saturate):
    cast = Cast(number=repr(x), times_two_to_the=power, saturate=saturate)
    exact = x
    if x and math.isfinite(x):
        exact = Fraction(repr(x)) * Fraction(2) ** power
    shown = shown_bits(cast)
    assert list(shown) == list(floats.FORMATS)
    for fmt, bits in shown.items():
        assert bits == floats.encode(exact, fmt, saturate=saturate)


@pytest.mark.parametrize("fmt", list(floats.FORMATS))
def test_clicking_any_bit_of_any_format_flips_that_bit_alone_and_the_format_holds_the_number(fmt):
    cast = Cast(number="0.1", times_two_to_the=3)
    bits = shown_bits(cast)[fmt]
    for place in range(floats.FORMATS[fmt].bits):
        clicked = Cast(**flipped(f"{fmt}:{place}", cast))
        assert shown_bits(clicked)[fmt] == bits ^ 1 << place
        fate = "NaN" if math.isnan(clicked.x) else "exact"
        assert clicked.stored[fmt].fate == fate


def test_a_nan_keeps_the_bits_that_were_clicked():
    lab = labs.float_lab()
    lab.set(number="fp16 0x7c00")
    lab.pick("fp16:0")
    assert lab.values["number"] == "fp16 0x7c01"
    assert shown_bits(Cast(number="fp16 0x7c01"))["fp16"] == 0x7C01
