"""The labs of notebooks 5 to 8 as a reader meets them: clicked, dragged, typed into, counted, trained and stopped."""

import random
import re

import pytest
from playwright.sync_api import expect

from tests import browser
from tests.tools.fuzz_browser import Room

browser.skip_without_browser()
NAMES = ("gradient", "optimizer", "memory")


def test_a_click_on_a_layer_freezes_it_and_the_keyboard_too(labs_page):
    lab = browser.lab_of(labs_page, "gradient")
    browser.press(lab, "what do plain data save?")
    expect(lab.locator(".course-meaning")).to_contain_text("0.9167 of 6BP")
    lab.locator("[data-key='0']").click()
    expect(lab.get_by_role("textbox", name="frozen layers")).to_have_value("0")
    expect(lab.locator(".course-meaning")).to_contain_text("Frozen: 1 of 4 layers")
    labs_page.keyboard.press("ArrowDown")
    labs_page.keyboard.press("Space")
    expect(lab.get_by_role("textbox", name="frozen layers")).to_have_value("0 1")


def test_the_transformer_is_counted_while_the_lab_stays_awake(labs_page):
    lab = browser.lab_of(labs_page, "gradient")
    browser.press(lab, "long sequences?")
    expect(lab.locator(".course-meaning")).to_contain_text("GPT-3 needs 2.771 × 6PN")
    lab.get_by_role("button", name="GPT-2 small", exact=True).click()
    browser.press(lab, "Count the transformer")
    expect(lab.locator(".course-report")).to_contain_text("Counted: ")
    expect(lab.locator(".course-picture")).to_contain_text(re.compile(r"backward[\d,]+exactly"))


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
    expect(meaning).to_contain_text("No plan takes fewer.")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_a_training_is_drawn_live_and_can_be_stopped(labs_page):
    lab = browser.lab_of(labs_page, "precision")
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


@pytest.mark.parametrize(
    ("name", "preset", "focused"),
    [
        ("gradient", "what do plain data save?", "[data-key='1']"),
        ("gradient", "what do plain data save?", ".noUi-handle"),
        ("memory", "GPT-2 small?", "select"),
        ("memory", "GPT-2 small?", "summary"),
        ("precision", "bf16?", ".widget-toggle-buttons button"),
        ("precision", "bf16?", ".jupyter-button"),
        ("precision", "bf16?", "input[type=checkbox]"),
    ],
)
def test_jupyterlab_takes_no_key_from_any_part_of_a_lab(labs_page, name, preset, focused):
    lab = browser.lab_of(labs_page, name)
    browser.press(lab, preset)
    browser.assert_takes_no_key(labs_page, lab.locator(focused).first)
    expect(lab.locator(".course-picture svg")).to_be_visible()


@pytest.fixture
def room(labs_page):
    """Its page with nothing in the way, whose failures are heard from now on."""
    labs_page.mouse.move(0, 0)
    return Room(labs_page, labs_page.folder)


@pytest.mark.parametrize("name", NAMES)
def test_no_lab_dies_under_a_hostile_hand(room, name):
    assert len(room.visit(name, random.Random(f"hand {name}"), moves=8)) >= 8
