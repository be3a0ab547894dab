"""The float lab's answers; test_browser.py looks at them from outside."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils import floats, labs
from course_utils.labs.panel import Panel


@pytest.mark.parametrize(
    "words", ["0.15625", "1e-8", "2^-24", "-3 * 2^-20", "−inf", "nan", "-0", "1e400", ".5", "7."]
)
def test_the_float_lab_takes_numbers_as_people_write_them(words):
    lab = labs.float_lab()
    lab.set(number=words)
    assert lab.screen.mistake == ""
    assert lab.screen.meaning.lower().removeprefix("the number ").startswith(words)


@pytest.mark.parametrize(
    "words",
    ["", " ", "abc", "1e", "--1", "1_000", "٣", "0x10", "1e99999", "9" * 61, "2^2^2", "__import__('os')"],
)
def test_the_float_lab_answers_nonsense_with_a_sentence(words):
    lab = labs.float_lab()
    lab.set(number=words)
    assert lab.screen.mistake.endswith(".")
    lab.set(number="1")
    assert lab.screen.mistake == ""


@given(st.text(max_size=30), st.integers(-170, 140), st.booleans())
def test_the_float_lab_survives_any_text(words, power, saturate):
    lab = ANY_LAB
    lab.set(number=words, times_two_to_the=power, saturate=saturate)
    assert lab.error is None or re.search(
        r"(are enough for any number here|like fp16 0x3c01|an integer of \d+ bits.*)\.$",
        str(lab.error),
        re.DOTALL,
    )
    ElementTree.fromstring(lab.screen.svg)


ANY_LAB = labs.float_lab()


@pytest.mark.parametrize("fmt", list(floats.FORMATS))
def test_clicking_any_bit_of_any_format_flips_that_bit_alone(fmt):
    lab = labs.float_lab()
    for place in range(floats.FORMATS[fmt].bits):
        lab.set(number="0.1", times_two_to_the=3)
        before = shown_bits(lab, fmt)
        lab.pick(f"{fmt}:{place}")
        assert lab.error is None
        assert shown_bits(lab, fmt) == before ^ 1 << place


def shown_bits(lab: Panel, fmt: str) -> int:
    """The pattern that the picture shows for that format."""
    tree = ElementTree.fromstring(lab.screen.svg)
    rows = [node for node in tree.iter() if node.get("data-row") == fmt]
    return int("".join("1" if node.get("aria-checked") == "true" else "0" for node in rows), 2)


def test_a_nan_keeps_the_bits_that_were_clicked():
    lab = labs.float_lab()
    lab.set(number="fp16 0x7c00")
    lab.pick("fp16:0")
    assert lab.controls["number"].value == "fp16 0x7c01"
    assert shown_bits(lab, "fp16") == 0x7C01
    assert "NaN, not a number" in lab.screen.svg


@pytest.mark.parametrize(
    ("words", "saturate", "said"),
    [
        ("65520", False, "overflow: infinity"),
        ("65520", True, "overflow: held at 65504"),
        ("465", False, "overflow: NaN"),
        ("465", True, "overflow: held at 448"),
        ("1e-8", False, "underflow: 0"),
        ("2^-24", False, "subnormal, exact"),
        ("-1e39", True, "overflow: held at -3.40282e+38"),
        ("inf", False, "infinity"),
        ("nan", False, "E2M1 has no NaN: all 16 patterns are numbers"),
        ("257", False, "error -1"),
    ],
)
def test_what_happens_to_a_number_is_named(words, saturate, said):
    lab = labs.float_lab()
    lab.set(number=words, saturate=saturate)
    assert f">{said}</text>" in lab.screen.svg


def test_every_preset_asks_about_the_number_that_it_brings():
    lab = labs.float_lab()
    for label, values in lab.lab.presets.items():
        lab.preset(label)
        assert lab.error is None
        assert values["number"] in lab.screen.meaning.lower()
        assert label.startswith(values["number"])


def test_the_step_stands_beside_every_formula_and_the_neighbours_where_there_is_room():
    lab = labs.float_lab()
    lab.set(number="0.1")
    beside = (f"{math.nextafter(0.1, to):.17g}" for to in (0, 1))
    assert f">step {math.ulp(0.1):.3g}, neighbours {', '.join(beside)}</text>" in lab.screen.svg
    assert "step 0.5, neighbours -0.5, 0.5</text>" in lab.screen.svg
    lab.set(number="65520")
    assert "step 512, neighbours 65280, 66048</text>" in lab.screen.svg
    lab.set(number="-1.2345678901234567e-200")
    assert f">step {math.ulp(1.2345678901234567e-200):.3g}</text>" in lab.screen.svg


def test_a_number_times_a_power_is_exact_before_any_format_rounds_it():
    lab = labs.float_lab()
    lab.set(number="0.1", times_two_to_the=-170)
    assert "too small for fp32, tf32, fp16, bf16, E4M3, E5M2 and E2M1" in lab.screen.meaning
    lab.set(number="fp16 0x0001", times_two_to_the=24)
    assert lab.screen.meaning == "The number fp16 0x0001 × 2^24 is exact in all eight."


def test_checking_every_pattern_counts_them_all_and_finds_no_difference(monkeypatch):
    monkeypatch.setattr("course_utils.measure.SMALL_FORMATS", ("fp16", "e4m3", "e2m1"))
    lab = labs.float_lab()
    job = "Check every pattern against torch and ml_dtypes"
    lab.start(job)
    lab.wait()
    assert lab.screen.report == "All 65,808 patterns of fp16, E4M3 and E2M1: 0 differ."
    monkeypatch.setattr("course_utils.measure.every_value", lambda fmt: [0.0, 0.5, 7.0])
    lab.start(job)
    lab.wait()
    assert "differ" in lab.screen.report
    assert ": 0 differ" not in lab.screen.report
