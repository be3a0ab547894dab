"""The labs of notebooks 5 to 8 as a reader meets them: clicked, dragged and moved by keys."""

import random
import re

import pytest
from playwright.sync_api import expect

from tests.helpers import browser
from tests.tools.fuzz_browser import WatchedPage

browser.skip_without_browser()
NAMES = ("optimizer", "timeline")
CHANGED = re.compile(r"\bchanged\b")


def test_the_recomputed_layers_follow_the_keyboard_and_the_best_plan_is_a_click_away(labs_page):
    lab = browser.lab_of(labs_page, "plan")
    browser.press(lab, "all layers again?")
    meaning = lab.locator(".course-meaning")
    expect(meaning).to_contain_text("The best plan takes 108")
    lab.locator(".noUi-handle").nth(1).focus()
    for _ in range(20):
        labs_page.keyboard.press("ArrowLeft")
    labs_page.keyboard.press("ArrowLeft")
    expect(meaning).to_contain_text("Does not fit")
    browser.press(lab, "Show the best plan")
    expect(meaning).to_contain_text("No plan takes noticeably fewer.")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_a_scale_that_has_changed_is_marked_for_a_while(labs_page):
    lab = browser.lab_of(labs_page, "timeline")
    scale = lab.locator('[data-scale="bytes"]')
    browser.press(lab, "do 8 H100s hold 8B?")
    expect(scale).to_have_text("scale: 0 to 200 GB")
    expect(scale).not_to_have_class(CHANGED)
    browser.press(lab, "what do scores take?")
    expect(scale).to_have_class(CHANGED)
    assert scale.text_content() == "scale: 0 to 3 GB"
    expect(scale).not_to_have_class(CHANGED)


def test_by_keyboard_seldom_used_controls_unfold_and_a_preset_that_moves_one_unfolds_them(
    labs_page,
):
    lab = browser.lab_of(labs_page, "timeline")
    fused = lab.get_by_role("checkbox", name="fused attention")
    moment = lab.get_by_role("slider", name="moment, %")
    browser.press(lab, "do 8 H100s hold 8B?")
    fewer = lab.get_by_role("button", name="Fewer controls", exact=True)
    if fewer.count():  # another test has unfolded them
        browser.press(lab, "Fewer controls")
    expect(fused).to_be_hidden()
    expect(moment).to_be_hidden()
    more = lab.get_by_role("button", name="More controls", exact=True)
    more.press("Enter")
    expect(fused).to_be_visible()
    expect(moment).to_be_visible()
    expect(fewer).to_be_focused()
    labs_page.keyboard.press("Tab")
    expect(moment).to_be_focused()
    fewer.press("Enter")
    expect(fused).to_be_hidden()
    browser.press(lab, "what do scores take?")
    expect(fused).to_be_visible()
    expect(fused).not_to_be_checked()


@pytest.mark.parametrize(
    ("name", "preset", "focused"),
    [
        ("float", "0.1 exact?", "[data-key]"),
        ("walk", "is a transpose even?", ".noUi-handle"),
        ("timeline", "what do scores take?", "select"),
        ("timeline", "what do scores take?", "summary"),
        ("precision", "bf16?", ".widget-toggle-buttons button"),
        ("precision", "bf16?", ".jupyter-button"),
        ("precision", "where are the cliffs?", "[data-mark]"),
    ],
)
def test_jupyterlab_takes_no_key_from_any_part_of_a_lab(labs_page, name, preset, focused):
    lab = browser.lab_of(labs_page, name)
    browser.press(lab, preset)
    browser.assert_takes_no_key(labs_page, lab.locator(focused).first)
    expect(lab.locator(".course-picture svg")).to_be_visible()


@pytest.fixture
def watched(labs_page):
    """The labs' page with no mouse over a lab. Its failures are heard from now on."""
    labs_page.mouse.move(0, 0)
    return WatchedPage(labs_page, labs_page.folder)


@pytest.mark.parametrize("name", NAMES)
def test_no_lab_dies_under_a_hostile_hand(watched, name):
    assert len(watched.visit(name, random.Random(f"hand {name}"), moves=8)) >= 8
