"""The labs of notebooks 05 and 06 as a reader meets them: clicked, dragged, typed into, counted."""

import random
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests import browser
from tests.tools.fuzz_browser import Room
from tests.waiting import wait_until

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


def test_layers_that_are_none_get_a_sentence(labs_page):
    lab = browser.lab_of(labs_page, "gradient")
    browser.press(lab, "what do plain data save?")
    lab.get_by_role("textbox", name="frozen layers").fill("<img src=x>")
    expect(lab.locator(".course-mistake")).to_contain_text("“<img src=x>” are no layers")
    assert lab.locator("img").count() == 0
    browser.press(lab, "what do plain data save?")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_the_transformer_is_counted_while_the_lab_stays_awake(labs_page):
    lab = browser.lab_of(labs_page, "gradient")
    browser.press(lab, "long sequences?")
    expect(lab.locator(".course-meaning")).to_contain_text("GPT-3 needs 2.771 × 6PN")
    lab.get_by_role("button", name="GPT-2 small", exact=True).click()
    browser.press(lab, "Count the transformer")
    expect(lab.locator(".course-report")).to_contain_text("Counted: ")
    expect(lab.locator(".course-picture")).to_contain_text(re.compile(r"backward[\d,]+exactly"))


def test_the_learning_rate_past_the_edge_is_named(labs_page):
    lab = browser.lab_of(labs_page, "optimizer")
    browser.press(lab, "who diverges?")
    expect(lab.locator(".course-meaning")).to_contain_text(re.compile(r"SGD diverges: lr × 100 = 2\.\d+ > 2"))


def test_a_slider_of_the_optimizer_lab_moves_the_picture(labs_page):
    lab = browser.lab_of(labs_page, "optimizer")
    browser.press(lab, "who wins?")
    before = lab.locator("svg").first.inner_html()
    handle = lab.locator(".noUi-handle").first
    handle.focus()
    for _ in range(5):
        labs_page.keyboard.press("ArrowLeft")
    wait_until(lambda: lab.locator("svg").first.inner_html() != before, "the picture has moved")
    expect(lab.locator(".course-mistake")).to_be_empty()


def test_a_model_that_does_not_fit_is_told_what_would_make_it_fit(labs_page):
    lab = browser.lab_of(labs_page, "memory")
    browser.press(lab, "Llama 3 8B?")
    meaning = lab.locator(".course-meaning")
    expect(meaning).to_contain_text("Does not fit: each of the 8 machines would hold 169 GB and has 80 GB")
    browser.press(lab, "Make it fit")
    expect(meaning).to_contain_text("Fits: ")
    browser.press(lab, "GPT-2 small?")
    expect(meaning).to_contain_text("Fits: ")


def test_a_count_stands_beside_the_prediction(labs_page):
    lab = browser.lab_of(labs_page, "memory")
    browser.press(lab, "GPT-2 small?")
    browser.press(lab, "Count it")
    expect(lab.locator(".course-picture")).to_contain_text("every part exactly as predicted")


@pytest.mark.parametrize(
    ("name", "preset", "focused"),
    [
        ("gradient", "what do plain data save?", "[data-key='1']"),
        ("gradient", "what do plain data save?", ".noUi-handle"),
        ("memory", "GPT-2 small?", "select"),
        ("memory", "GPT-2 small?", "summary"),
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


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("(lab) => { lab.querySelector('.course-picture').innerHTML = ''; }", "no picture"),
        (
            "(lab) => { lab.querySelector('.course-meaning').innerHTML = '<b>2</b>'; }",
            "markup in the meaning",
        ),
        (
            "(lab) => { lab.querySelector('.course-picture svg').append(new Image()); }",
            "a foreign element in the lab",
        ),
        ("(lab) => { lab.querySelector('.course-mistake').textContent = 'oops'; }", "no sentence: “oops”"),
        ("() => { window.wasHere = 1; }", "what was typed has run"),
        ("() => { console.error('a fault'); }", "a fault"),
        (
            "() => new Promise((done) => { setTimeout(() => { done(); throw Error('late'); }); })",
            "uncaught: late",
        ),
    ],
)
def test_what_a_page_could_show_of_a_fault_is_seen(room, fault, said):
    lab = browser.lab_of(room.page, "gradient")
    browser.press(lab, "when exactly 6?")
    browser.press(lab, "what do plain data save?")
    lab.evaluate(fault)
    with pytest.raises(AssertionError, match=re.escape(said)):
        wait_until(lambda: room.look(lab), "it is seen")
    room.page.evaluate("delete window.wasHere")
    for preset in ("when exactly 6?", "what do plain data save?"):
        browser.press(lab, preset)


def test_a_file_that_was_written_is_seen(room):
    written = Path(room.page.folder) / "was_here"
    written.touch()
    with pytest.raises(AssertionError, match="was_here"):
        room.look(browser.lab_of(room.page, "gradient"))
    written.unlink()
