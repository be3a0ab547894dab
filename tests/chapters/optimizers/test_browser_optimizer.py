"""The optimizer lab in JupyterLab: what is typed beside its slider of many numbers."""

import pytest
from playwright.sync_api import Page, expect

from tests.helpers.browser import lab_of, skip_without_browser

skip_without_browser()


@pytest.mark.parametrize(
    ("typed", "taken", "said"),
    [
        ("0.033", "0.033", ""),
        ("0.0333", "0.033", "The slider of lr has no 0.0333: 0.033, the nearest, was taken."),
        ("abc", "0.018", "lr is one of 0.001, 0.0011, 0.0012, …, 10; not abc. lr = 0.018"),
    ],
)
def test_of_many_numbers_the_sentence_names_the_nearest_and_not_all(
    labs_page: Page, typed, taken, said
):
    lab = lab_of(labs_page, "optimizer")
    field = lab.get_by_role("textbox", name="lr, typed")
    field.fill("0.018")
    field.press("Enter")
    expect(field).to_have_text("0.018")
    # Until the lab is drawn anew, since that takes an earlier sentence away.
    expect(lab.locator(".course-meaning")).to_contain_text("lr = 0.018")
    field.fill(typed)
    field.press("Enter")
    expect(field).to_have_text(taken)
    expect(lab.locator(".course-mistake")).to_have_text(said)
