"""The notebook as a reader meets it: a real JupyterLab, a real browser, a mouse and a keyboard."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import ROOT
from tests.helpers import browser

browser.skip_without_browser()


@pytest.fixture
def page(labs_page: Page) -> Page:
    return labs_page


@pytest.fixture
def lab(page: Page) -> Locator:
    """The float lab, showing 0.1."""
    lab = browser.lab_of(page, "float")
    lab.get_by_role("button", name="0.1 exact?", exact=True).click()
    expect(lab.locator(".course-meaning")).to_contain_text("0.1 is")
    return lab


def test_run_all_leaves_no_error(page, jupyter):
    folder, address = jupyter
    name = "03_einsum.ipynb"
    copy = browser.without_outputs(ROOT / "notebooks" / name, folder / name)
    notebook = browser.open_page(page.context, address, copy)
    browser.assert_no_errors(browser.run_all(notebook, copy))
    expect(notebook.locator(".course-lab").first).to_be_visible()
    notebook.close()


def test_dragging_the_slider_moves_the_picture(page, lab):
    before = lab.locator("svg").inner_html()
    handle = lab.locator(".noUi-handle")
    box = handle.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] - 40, y, steps=8)
    page.mouse.up()
    expect(lab.locator(".course-meaning")).to_contain_text(re.compile(r"0\.1 × 2\^-\d+ is"))
    assert lab.locator("svg").inner_html() != before


def test_clicking_a_bit_flips_it_and_changes_the_number(lab):
    sign = lab.locator("[data-key='fp16:15']")
    expect(sign).to_have_attribute("aria-checked", "false")
    sign.click()
    expect(sign).to_have_attribute("aria-checked", "true")
    expect(lab.get_by_label("number")).to_have_value("-0.0999755859375")


def test_keyboard_reaches_and_flips_bits_and_jupyterlab_takes_no_key(page, lab):
    cells = page.locator(".jp-Cell").count()
    lab.locator("[data-key='bf16:15']").click()
    expect(lab.locator("[data-key='bf16:15']")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")  # the same place in E4M3, whose exponent is narrower
    focused = page.locator(":focus")
    expect(focused).to_have_attribute("data-row", "e4m3")
    key = focused.get_attribute("data-key")
    was = focused.get_attribute("aria-checked")
    page.keyboard.press("Space")
    expect(lab.locator(f"[data-key='{key}']")).not_to_have_attribute("aria-checked", was)
    # The focus outlives the redrawing.
    expect(page.locator(":focus")).to_have_attribute("data-key", key)
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.keyboard.press("b")
    assert page.locator(".jp-Cell").count() == cells


def test_nonsense_gets_a_sentence_never_markup_and_the_next_number_clears_it(page, lab):
    field = lab.get_by_label("number")
    mistake = lab.locator(".course-mistake")
    field.fill("<img src=x onerror=alert(1)>")
    expect(mistake).to_contain_text("“<img src=x onerror=alert(1)>” is not a number yet")
    assert mistake.locator("img").count() == 0
    field.fill("257")
    expect(mistake).to_be_empty()
    expect(lab.locator(".course-meaning")).to_contain_text("257 is")
