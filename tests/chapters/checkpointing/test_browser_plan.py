"""The plan lab in JupyterLab: what is typed beside its sliders of a few numbers."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.helpers.browser import assert_takes_no_key, lab_of, skip_without_browser

skip_without_browser()
NAME = "minutes between saves"


@pytest.fixture
def lab(labs_page: Page) -> Locator:
    return lab_of(labs_page, "plan")


@pytest.mark.parametrize(
    ("typed", "taken", "is_refused"),
    [("30", "30", False), ("29", "30", True), ("abc", "60", True), ("60", "60", False)],
)
def test_the_nearest_number_is_taken_and_a_sentence_says_which(lab, typed, taken, is_refused):
    field = lab.get_by_role("textbox", name=f"{NAME}, typed")
    field.fill("60")
    field.press("Enter")
    expect(field).to_have_text("60")
    field.fill(typed)
    field.press("Enter")
    expect(field).to_have_text(taken)
    handle = lab.get_by_role("slider", name=NAME, exact=True)
    expect(handle).to_have_attribute("aria-valuetext", taken)
    mistake = lab.locator(".course-mistake")
    if is_refused:
        expect(mistake).to_contain_text(f"; not {typed}. {NAME} = {taken}")
    else:
        expect(mistake).to_have_text("")


def test_jupyterlab_takes_no_letter_that_is_typed_there(labs_page, lab):
    assert_takes_no_key(labs_page, lab.get_by_role("textbox", name=f"{NAME}, typed"))
