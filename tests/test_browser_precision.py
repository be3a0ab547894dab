"""The precision lab as a reader meets it: pressed, dragged, ticked, trained and stopped."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import browser

browser.skip_without_browser()


@pytest.fixture
def lab(labs_page: Page) -> Locator:
    return browser.lab_of(labs_page, "precision")


def test_a_preset_and_a_format_change_what_is_lost(lab):
    browser.press(lab, "what does fp16 lose?")
    expect(lab.locator(".course-meaning")).to_contain_text("turns 47.06 % of these gradients to zero")
    browser.press(lab, "bf16")
    expect(lab.locator(".course-meaning")).to_contain_text("bf16 loses none of these gradients")
    browser.press(lab, "what is too far?")
    expect(lab.locator(".course-meaning")).to_contain_text("to infinity")


def test_the_slider_moves_the_histogram_by_the_keyboard_too(labs_page, lab):
    meaning = lab.locator(".course-meaning")
    for preset, seen in (
        ("does 2^10 help?", "At scale 2^10 fp16 turns"),
        ("what does fp16 lose?", "Without a scale fp16 turns"),
    ):
        browser.press(lab, preset)
        expect(meaning).to_contain_text(seen)  # before the keys, which it would take back otherwise
    handle = lab.get_by_role("slider", name="loss scale 2^")
    handle.focus()
    for _ in range(16):
        labs_page.keyboard.press("ArrowRight")
    expect(meaning).to_contain_text("At scale 2^16 fp16 loses none of these gradients")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_a_training_is_drawn_live_and_can_be_stopped(lab):
    browser.press(lab, "what is too far?")
    for mix in ("bf16 autocast", "fp16, GradScaler"):
        lab.get_by_role("checkbox", name=mix, exact=True).check()
    browser.press(lab, "Train")
    expect(lab.locator(".course-report")).to_contain_text(re.compile(r"Step \d+ of 200\."))
    browser.press(lab, "Stop")
    expect(lab.locator(".course-report")).to_contain_text(re.compile(r"Stopped\. Step \d+ of 200\."))
    browser.press(lab, "Train")
    expect(lab.locator(".course-report")).to_contain_text("GradScaler skipped")
    expect(lab.locator(".course-picture")).to_contain_text("fp16 × 2^40 NaN")


def test_nothing_ticked_gets_a_sentence(lab):
    for box in lab.get_by_role("checkbox").all():
        box.uncheck()
    browser.press(lab, "Train")
    expect(lab.locator(".course-report")).to_contain_text(
        "Nothing to train. Tick at least one mix of formats."
    )
    lab.get_by_role("checkbox", name="fp32", exact=True).check()
    browser.press(lab, "Train")
    expect(lab.locator(".course-report")).to_contain_text("Trained 1 of 6 mixes.")


@pytest.mark.parametrize(
    "focused", [".noUi-handle", ".widget-toggle-buttons button", ".jupyter-button", "input[type=checkbox]"]
)
def test_jupyterlab_takes_no_key_from_a_control(labs_page, lab, focused):
    browser.assert_takes_no_key(labs_page, lab.locator(focused).first)
    expect(lab.locator(".course-picture svg")).to_be_visible()
