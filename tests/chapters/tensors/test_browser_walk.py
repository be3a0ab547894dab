"""The walk lab in JupyterLab: what is typed beside its sliders of whole numbers."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers.browser import lab_of, skip_without_browser

skip_without_browser()
ENDS = "stride 0 is a whole number from 0 to 12."


@pytest.fixture
def lab(labs_page: Page) -> Locator:
    return lab_of(labs_page, "walk")


@pytest.mark.parametrize(
    ("typed", "taken", "words"),
    [
        ("65536", "12", f"{ENDS} In place of “65536”, 12 was taken."),
        ("2^16", "12", f"{ENDS} In place of “2^16”, 12 was taken."),
        ("2^3", "8", ""),
        ("-1", "0", f"{ENDS} In place of “-1”, 0 was taken."),
        ("2.6", "3", f"{ENDS} In place of “2.6”, 3 was taken."),
        ("banana", "6", f"{ENDS} “banana” is none, so 6 was kept."),
        ("", "6", f"{ENDS} “” is none, so 6 was kept."),
        ("7", "7", ""),
    ],
)
def test_what_is_typed_beside_a_slider_is_taken_or_a_sentence_says_what_was(
    lab, typed, taken, words
):
    field = lab.get_by_role("textbox", name="stride 0, typed")
    field.fill("6")
    field.press("Enter")
    field.fill(typed)
    field.press("Enter")
    expect(field).to_have_text(taken)
    expect(lab.locator(".course-mistake")).to_have_text(words)
    handle = lab.get_by_role("slider", name="stride 0", exact=True)
    expect(handle).to_have_attribute("aria-valuetext", taken)
    handle.press("Home")
    expect(lab.locator(".course-mistake")).to_have_text("")
