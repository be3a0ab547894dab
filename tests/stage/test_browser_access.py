"""Everybody can use what is ours on a page.

axe-core finds no fault, and the keyboard reaches every control.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from course_utils.chapters import labs
from course_utils.chapters.floats.figures import range_and_gap
from course_utils.core import floats
from course_utils.stage.slides.deck import deck
from tests import NOTEBOOKS
from tests.engine.test_labs_contract import AROUND_PX, LAB_PX, NAMES, PICTURE_WIDTH_PX
from tests.helpers import browser

browser.skip_without_browser()

# What the Tab key comes to in a lab.
REACHABLE = """(lab) => {
  const kinds = "button, input, select, summary, a[href], .widget-readout, [tabindex='0']";
  const isReachable = (node) =>
    (node.tabIndex >= 0 || node.isContentEditable) &&
    !node.disabled &&
    node.checkVisibility({ visibilityProperty: true });
  return [...lab.querySelectorAll(kinds)].filter(isReachable);
}"""
# How a node looks, its own parts included.
LOOK = """(node) => [node, ...node.querySelectorAll("rect, .mark")].map((part) => {
  const { outline, stroke, strokeWidth } = getComputedStyle(part);
  return `${outline} ${stroke} ${strokeWidth}`;
}).join()"""

# The heights of the lab, of its picture, and of what is said below. Its table is folded, as it was
# at first.
HEIGHTS = """(lab) => {
  lab.querySelector(".course-numbers").open = false;
  const names = ["picture", "meaning", "report"];
  const parts = names.map((name) => lab.querySelector(`.course-${name}`));
  return [lab, ...parts].map((part) => part.getBoundingClientRect().height);
}"""


@pytest.fixture
def page(labs_page: Page) -> Iterator[Page]:
    """All labs on a laptop's screen."""
    labs_page.set_viewport_size({"width": 1366, "height": 768})
    yield labs_page
    labs_page.set_viewport_size(browser.VIEWPORT)


def faults(page: Page, *parts: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong in these parts of the page, and where."""
    found = Axe().run(page, {"include": [[part] for part in parts]}).response
    return [
        (fault["id"], [node["html"][:100] for node in fault["nodes"]])
        for fault in found["violations"]
    ]


def test_all_labs_appear_and_none_of_them_fails(labs_page):
    browser.assert_no_errors(labs_page.saved)
    for name in NAMES:
        expect(browser.lab_of(labs_page, name).locator(".course-picture svg")).to_be_visible()


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_axe_finds_no_fault_in_labs_and_outputs(page, theme):
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-item[data-type=submenu]", has_text="Theme").first.hover()
    command = "[data-command='apputils:change-theme']"
    page.locator(command, has_text=f"JupyterLab {theme}").first.click()
    page.wait_for_selector(f"body[data-jp-theme-name='JupyterLab {theme}']", state="attached")
    assert faults(page, ".course-lab", ".jp-OutputArea-output") == []


def test_a_picture_of_an_output_has_its_words(page):
    (picture,) = page.locator(".jp-RenderedImage img").all()
    expect(picture).to_have_attribute("alt", range_and_gap(floats.FORMATS).words)


def test_the_tab_key_comes_to_every_control_shows_where_it_is_and_leaves_the_lab(page):
    assert_the_tab_key_comes_everywhere(page)


def assert_the_tab_key_comes_everywhere(page: Page) -> None:
    """In each lab the Tab key comes to every control, shows where it is, and leaves the lab."""
    for lab in page.locator(".course-lab").all():
        name = lab.get_attribute("aria-label")
        page.evaluate("document.activeElement.blur()")
        looks = lab.evaluate(f"(lab) => ({REACHABLE})(lab).map({LOOK})")
        lab.evaluate(f"(lab) => ({REACHABLE})(lab)[0].focus()")
        for number, look in enumerate(looks):
            at = lab.evaluate(f"(lab) => ({REACHABLE})(lab).indexOf(document.activeElement)")
            now = page.evaluate(f"({LOOK})(document.activeElement)")
            assert at == number, f"{name}: the Tab key comes to {at} in place of {number}"
            assert now != look or not number, f"{name}: nothing shows that the focus is at {number}"
            page.keyboard.press("Tab")
        assert not lab.evaluate("(lab) => lab.contains(document.activeElement)"), name


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_is_seen_at_once_on_a_laptop(page, name):
    """In every preset. tests/engine/test_labs_contract.py estimates it for every drawn state.

    It takes from here how much height there is around a lab's parts.
    """
    lab = browser.lab_of(page, name)
    for preset in labs.lab_named(name).presets:
        browser.press(lab, preset)
        height, *parts = lab.evaluate(HEIGHTS)
        assert height <= LAB_PX, preset
        assert height - sum(parts) <= AROUND_PX[name], preset
    assert lab.locator(".course-picture").bounding_box()["width"] <= PICTURE_WIDTH_PX


def test_on_a_small_laptop_no_picture_is_cut(page):
    page.set_viewport_size({"width": 1024, "height": 768})
    for name in NAMES:
        picture = browser.lab_of(page, name).locator(".course-picture")
        assert picture.evaluate("(one) => one.scrollWidth <= one.clientWidth"), name


def test_on_a_phone_pictures_keep_their_letters_and_are_moved_sideways(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for name in NAMES:
        picture = browser.lab_of(page, name).locator(".course-picture")
        shown, whole = picture.evaluate("(part) => [part.clientWidth, part.scrollWidth]")
        drawn = picture.locator("[data-mark]").count()  # a finger has to reach all of it
        assert shown < whole >= (480 if drawn else 720), name


# Of each slider with words beside it: what a screen reader says of it, and these words.
SAID_AND_SHOWN = """(lab) => [...lab.querySelectorAll(".noUi-handle")].flatMap((handle) => {
  const readout = handle.closest(".widget-slider").querySelector(".widget-readout");
  return readout ? [[handle.getAttribute("aria-valuetext"), readout.textContent]] : [];
})"""


@pytest.mark.parametrize("name", ["optimizer", "float", "sum"])
def test_of_a_slider_a_screen_reader_says_what_stands_beside_it(page, name):
    lab = browser.lab_of(page, name)
    for key in ("", "ArrowRight", "ArrowLeft"):
        if key:
            lab.locator(".noUi-handle:visible").first.press(key)
        expect(lab.locator(".noUi-handle").first).to_have_attribute("aria-label", re.compile("."))
        said_and_shown = lab.evaluate(SAID_AND_SHOWN)
        assert said_and_shown
        assert all(said == shown for said, shown in said_and_shown), said_and_shown


def test_of_a_size_a_screen_reader_says_the_whole_number(page):
    lab = browser.lab_of(page, "einsum")
    browser.press(lab, "when is attention linear?")
    handle = lab.get_by_role("slider", name="j", exact=True)
    expect(handle).to_have_attribute("aria-valuetext", "1,024")
    handle.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuetext", "1,218")
    expect(lab.get_by_role("textbox", name="j, typed", exact=True)).to_have_value("1218")
    for name in ("matmul", "timeline", "account"):
        for said in browser.lab_of(page, name).locator(".noUi-handle").all():
            expect(said).not_to_have_attribute("aria-valuetext", re.compile(r"\de\+"))


def test_a_slider_of_powers_plays_to_its_end_says_each_number_and_keeps_its_length(page):
    lab = browser.lab_of(page, "sum")
    browser.press(lab, "can bf16 count to 4,096?")
    handle = lab.locator(".noUi-handle:visible").first
    readout = lab.get_by_role("textbox", name="ones added, typed")
    expect(readout).to_have_value("2^12 = 4,096")
    handle.press("Home")
    expect(readout).to_have_value("2^0 = 1")
    expect(lab.locator(".course-meaning")).to_contain_text("1 is added once")
    length = lab.locator(".noUi-base:visible").first.bounding_box()["width"]
    lab.get_by_role("button", name="Play ones added", exact=True).click()
    expect(readout).to_have_value("2^26 = 67,108,864")
    expect(handle).to_have_attribute("aria-valuetext", "2^26 = 67,108,864")
    expect(lab.locator(".course-meaning")).to_contain_text("67,108,864 times")
    assert lab.locator(".noUi-base:visible").first.bounding_box()["width"] == length


def test_each_of_several_play_buttons_says_what_it_plays(page):
    lab = browser.lab_of(page, "optimizer")
    names = (
        "Play turned by, °",
        "turned by, °: back to the start",
        "Play step",
        "step: back to the start",
    )
    for name in names:
        button = lab.get_by_role("button", name=name, exact=True)
        expect(button).to_have_attribute("title", name)


def test_a_power_is_typed_beside_its_slider_by_keyboard_alone(page):
    lab = browser.lab_of(page, "sum")
    browser.press(lab, "can bf16 count to 4,096?")
    handle = lab.locator(".noUi-handle:visible").first
    readout = lab.get_by_role("textbox", name="ones added, typed")
    handle.press("Tab")
    expect(readout).to_be_focused()
    keyboard = page.keyboard
    for typed, words in (
        ("65536", "2^16 = 65,536"),
        ("8", "2^8 = 256"),
        ("2^20", "2^20 = 1,048,576"),
    ):
        keyboard.press("ControlOrMeta+a")
        keyboard.type(typed)
        keyboard.press("Enter")
        expect(readout).to_have_value(words)
        expect(handle).to_have_attribute("aria-valuetext", words)
    keyboard.press("ControlOrMeta+a")
    keyboard.type("many")
    keyboard.press("Enter")
    expect(lab.locator(".course-mistake")).to_contain_text("“many” is no power of two")
    expect(lab.locator(".course-picture")).not_to_have_class(re.compile("stale"))
    expect(readout).to_have_value("2^20 = 1,048,576")
    handle.press("ArrowLeft")
    expect(lab.locator(".course-mistake")).to_be_empty()
    expect(readout).to_have_value("2^19 = 524,288")


def test_jupyterlab_takes_no_letter_from_a_number_that_is_typed_beside_its_slider(page):
    lab = browser.lab_of(page, "float")
    browser.assert_takes_no_key(page, lab.get_by_role("textbox", name="times 2^k, typed"))


def test_a_link_to_the_glossary_shows_its_word_in_jupyterlab(page):
    for name in ("stride", "AdamW"):
        page.get_by_role("link", name=name, exact=True).first.click()
        word = page.locator(".jp-MarkdownViewer h2", has_text=name).first
        expect(word).to_be_in_viewport()
        page.locator(".lm-TabBar-tab", has_text="labs.ipynb").first.click()


def test_axe_finds_no_fault_in_a_deck(page, tmp_path: Path):
    path = tmp_path / "deck.html"
    path.write_text(deck(NOTEBOOKS[0]), encoding="utf-8")
    sheet = page.context.browser.new_page()
    sheet.goto(path.as_uri())
    sheet.emulate_media(media="print")  # on paper all slides are there at once
    assert faults(sheet, "main") == []
    sheet.close()
