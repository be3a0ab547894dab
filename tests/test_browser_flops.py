"""The matmul lab as a reader meets it: dragged, typed into, timed, stopped, and given nonsense."""

import math
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from course_utils import machines
from course_utils.quantities import seconds_text
from tests import browser

browser.skip_without_browser()
# The last one of each publisher; tests/test_labs_matmul.py has them all, without a browser.
BY_OTHERS = {one.source.by: one for one in machines.recordings().values() if one.source}.values()


@pytest.fixture
def matmul(labs_page: Page) -> Locator:
    """The matmul lab, on this machine, with sizes that are done at once."""
    lab = browser.lab_of(labs_page, "matmul")
    lab.get_by_role("button", name="this machine", exact=True).click()
    lab.get_by_role("button", name="fp32", exact=True).click()
    for name in "BDK":
        lab.get_by_title(f"{name}, typed").fill("64")
    expect(lab.locator(".course-picture")).to_contain_text("2 · 64 · 64 · 64 = 524,288")
    return lab


def test_dragging_a_size_moves_the_prediction_and_the_typed_value(labs_page, matmul):
    handle = matmul.locator(".noUi-handle").first
    handle.focus()
    for _ in range(4):
        labs_page.keyboard.press("ArrowRight")
    expect(matmul.get_by_title("B, typed")).to_have_value("128")
    expect(matmul.locator(".course-picture")).to_contain_text("2 · 128 · 64 · 64 = 1,048,576")


def test_what_is_typed_stays_though_the_slider_has_no_such_step(matmul):
    for name, typed in (("D", "100"), ("K", "48000")):
        matmul.get_by_title(f"{name}, typed").fill(typed)
        expect(matmul.locator(".course-picture")).to_contain_text(f" {int(typed):,} ")
    matmul.get_by_title("B, typed").fill("7")  # what the sliders had to say of the others has come before
    expect(matmul.locator(".course-picture")).to_contain_text("2 · 7 · 100 · 48,000 = 67,200,000")


def test_timing_a_product_measures_it_and_keeps_its_row(matmul):
    matmul.get_by_role("button", name="Clear history").click()  # of what the cell has timed
    matmul.get_by_label("my guess").fill("1 ms")
    matmul.get_by_role("button", name="Time it").click()
    expect(matmul.locator(".course-report")).to_contain_text("Measured: ")
    expect(matmul.locator(".course-picture")).to_contain_text("times what is measured")
    expect(browser.rows_of(matmul).nth(1)).to_contain_text("this machine")
    matmul.get_by_role("button", name="Clear history").click()
    expect(browser.rows_of(matmul)).to_have_count(0)


def test_what_would_never_fit_is_predicted_and_not_run(matmul):
    for name in "BDK":
        matmul.get_by_title(f"{name}, typed").fill("2^20")
    expect(matmul.locator(".course-meaning")).to_contain_text("arithmetic is the limit")
    matmul.get_by_role("button", name="Time it").click()
    expect(matmul.locator(".course-report")).to_contain_text("Not run: it needs")


def test_stop_ends_a_product_in_the_middle(matmul):
    for name in "BDK":
        matmul.get_by_title(f"{name}, typed").fill("6000")  # some seconds
    expect(matmul.locator(".course-picture")).to_contain_text("2 · 6,000 · 6,000 · 6,000 = ")
    matmul.get_by_role("button", name="Time it").click()
    expect(matmul.locator(".course-report")).to_contain_text(re.compile("first call runs|process of its own"))
    matmul.get_by_role("button", name="Stop").click()
    expect(matmul.locator(".course-report")).to_contain_text("Stopped.")
    expect(matmul.get_by_role("button", name="Time it")).to_be_enabled()


def test_a_size_that_is_none_gets_a_sentence(matmul):
    matmul.get_by_title("D, typed").fill("<b>many</b>")
    expect(matmul.locator(".course-mistake")).to_contain_text("“<b>many</b>” is none.")
    matmul.get_by_title("D, typed").fill("32")
    expect(matmul.locator(".course-mistake")).to_be_empty()


def test_a_machine_on_paper_is_predicted_and_says_by_which_sheet(matmul):
    matmul.get_by_role("button", name="A100 SXM").click()
    matmul.get_by_role("button", name="bf16", exact=True).click()
    expect(matmul.locator(".course-picture")).to_contain_text("only on paper: no such machine here")
    expect(matmul.locator(".course-picture")).to_contain_text("NVIDIA A100 data sheet")


@pytest.mark.parametrize("recording", BY_OTHERS, ids=lambda recording: recording.name)
def test_a_gpu_that_others_recorded_is_chosen_timed_swept_and_guessed(matmul, recording):
    dtype = "fp16" if "fp16" in recording.seconds_by_size else "bf16"
    size = max(recording.seconds_by_size[dtype], key=math.prod)
    seconds = seconds_text(recording.seconds_by_size[dtype][size])
    matmul.get_by_role("button", name=recording.name).click()
    matmul.get_by_role("button", name=dtype, exact=True).click()
    for name, side in zip("BDK", size, strict=True):
        matmul.get_by_title(f"{name}, typed").fill(str(side))
    picture, report = matmul.locator(".course-picture"), matmul.locator(".course-report")
    expect(picture).to_contain_text(f"Recorded by {recording.source.by}: ")
    expect(matmul.locator(".course-meaning")).to_contain_text(
        f"Recorded by {recording.source.by}: {seconds}."
    )
    expect(picture.locator("circle.past")).to_have_count(len(recording.seconds_by_size[dtype]))
    guess = matmul.get_by_label("my guess")
    guess.fill("soon")
    expect(matmul.locator(".course-mistake")).to_contain_text("“soon” is none.")
    guess.fill("1 ms")
    expect(matmul.locator(".course-mistake")).to_be_empty()
    matmul.get_by_role("button", name="Time it").click()
    expect(report).to_contain_text(f"Recorded by {recording.source.by}: {seconds}")
    expect(picture).to_contain_text(" times what is measured")
    matmul.get_by_role("button", name="Sweep").click()
    expect(report).to_contain_text("recorded along K, at ")
    expect(browser.rows_of(matmul).nth(1)).to_contain_text(recording.name)
