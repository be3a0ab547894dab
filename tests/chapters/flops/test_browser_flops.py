"""The matmul lab as a reader meets it: dragged, typed into, timed, stopped, and given nonsense."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers import browser

browser.skip_without_browser()


@pytest.fixture
def matmul(labs_page: Page) -> Locator:
    """The matmul lab, on this machine, with sizes that are done at once."""
    lab = browser.lab_of(labs_page, "matmul")
    lab.get_by_label("machine").select_option("this machine")
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


def test_timing_a_product_measures_it_and_keeps_its_row(matmul):
    matmul.get_by_role("button", name="Clear history").click()  # of what the cell has timed
    matmul.get_by_role("button", name="Time it").click()
    expect(matmul.locator(".course-report")).to_contain_text("Measured: ")
    expect(matmul.locator(".course-picture")).to_contain_text("of the largest rate of a few")
    expect(browser.rows_of(matmul).nth(1)).to_contain_text("this machine")
    matmul.get_by_role("button", name="Clear history").click()
    expect(browser.rows_of(matmul)).to_have_count(0)


def test_a_job_leaves_the_lab_awake_and_stop_ends_it_in_the_middle(matmul):
    start = matmul.get_by_role("button", name="Time it")
    stop = matmul.get_by_role("button", name="Stop")
    picture = matmul.locator(".course-picture")
    report = matmul.locator(".course-report")
    expect(stop).to_be_disabled()
    for name in "BDK":
        matmul.get_by_title(f"{name}, typed").fill("6000")  # some seconds
    expect(picture).to_contain_text("2 · 6,000 · 6,000 · 6,000 = ")
    start.click()
    expect(report).to_contain_text(re.compile("first call runs|process of its own"))
    expect(start).to_be_disabled()
    matmul.get_by_title("B, typed").fill("64")  # while the job runs
    expect(picture).to_contain_text("2 · 64 · 6,000 · 6,000 = ")
    stop.click()
    expect(report).to_contain_text("Stopped.")
    expect(start).to_be_enabled()
