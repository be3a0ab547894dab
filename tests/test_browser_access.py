"""What is ours on a page can be used by everybody: axe-core finds no fault, and the keyboard reaches every control."""

import math
import re
import shutil
from pathlib import Path

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from course_utils import floats, labs
from course_utils.figures import reach_and_step
from course_utils.labs.draw.lettering import USUAL_SIZE, width_of
from course_utils.labs.lab import View
from course_utils.room.slides.deck import deck
from tests import NOTEBOOKS, ROOT, browser
from tests.test_labs_contract import NAMES, states, views

browser.skip_without_browser()

OUTPUTS = """from course_utils import figures, floats, labs
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict
from course_utils.quantities import Comparison, Ledger, Table
figures.reach_and_step(floats.FORMATS)
Verdict("right", "Well.")
Verdict("not yet", "3 is not it.")
NOT_ATTEMPTED
Ledger({"weights": 96, "biases": 8}, unit="bytes")
Comparison({"weights": 96}, {"weights": 97}, guess=95)
Table([["", "bytes"], ["weights", "96"]])"""
LINK = "A [stride](GLOSSARY.md#stride), and [AdamW](GLOSSARY.md#adamw)."
# What the Tab key comes to in a lab, and how it looks, its own parts included.
REACHABLE = """(lab) => [...lab.querySelectorAll("button, input, select, summary, .widget-readout, [tabindex='0']")].filter(
  (node) => (node.tabIndex >= 0 || node.isContentEditable) && !node.disabled && node.checkVisibility({ visibilityProperty: true }))"""
LOOK = """(node) => [node, ...node.querySelectorAll("rect")].map((part) => {
  const { outline, stroke, strokeWidth } = getComputedStyle(part);
  return `${outline} ${stroke} ${strokeWidth}`;
}).join()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """All labs, each kind of output, and two links to the glossary, after Run All."""
    path = tmp_path_factory.mktemp("jupyter") / "everything.ipynb"
    shutil.copy(ROOT / "notebooks" / "GLOSSARY.md", path.parent)
    cells = [*OUTPUTS.splitlines(), *(f"labs.{name}()" for name in labs.__all__)]
    first = "\n".join(cells[:3])
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(LINK), *map(nbformat.v4.new_code_cell, [first, *cells[3:]])],
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    )
    nbformat.write(notebook, path)
    with browser.opened(path) as page:
        browser.run_all(page, path)
        expect(page.locator(".course-lab[aria-label]")).to_have_count(len(labs.__all__))
        yield page


def faults(page: Page, *parts: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong in these parts of the page, and where."""
    found = Axe().run(page, {"include": [[part] for part in parts]}).response
    return [(fault["id"], [node["html"][:100] for node in fault["nodes"]]) for fault in found["violations"]]


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_axe_finds_no_fault_in_labs_and_outputs(page, theme):
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-item[data-type=submenu]", has_text="Theme").first.hover()
    page.locator("[data-command='apputils:change-theme']", has_text=f"JupyterLab {theme}").first.click()
    page.wait_for_selector(f"body[data-jp-theme-name='JupyterLab {theme}']", state="attached")
    assert faults(page, ".course-lab", ".jp-OutputArea-output") == []


def test_a_picture_of_an_output_has_its_words(page):
    (picture,) = page.locator(".jp-RenderedImage img").all()
    expect(picture).to_have_attribute("alt", reach_and_step(floats.FORMATS).words)


def test_the_tab_key_comes_to_every_control_shows_where_it_is_and_leaves_the_lab(page):
    for lab in page.locator(".course-lab").all():
        name = lab.get_attribute("aria-label")
        page.evaluate("document.activeElement.blur()")
        looks = lab.evaluate(f"(lab) => ({REACHABLE})(lab).map({LOOK})")
        lab.evaluate(f"(lab) => ({REACHABLE})(lab)[0].focus()")
        for number, look in enumerate(looks):
            at, now = lab.evaluate(
                f"(lab) => [({REACHABLE})(lab).indexOf(document.activeElement), ({LOOK})(document.activeElement)]"
            )
            assert at == number, f"{name}: the Tab key comes to {at} in place of {number}"
            assert now != look or not number, f"{name}: nothing shows that the focus is at {number}"
            page.keyboard.press("Tab")
        assert not lab.evaluate("(lab) => lab.contains(document.activeElement)"), name


LAPTOP, SEEN_AT_ONCE_PX, LINE_PX = {"width": 1366, "height": 768}, 640, 22.5


def picture_and_meaning_px(view: View, width_px: float) -> float:
    """How tall they are together; the meaning has room for two lines, and wraps."""
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', view.picture).groups())
    lines = math.ceil(width_of(view.meaning) * 15 / USUAL_SIZE / width_px)
    return height * width_px / width + LINE_PX * max(2, lines)


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_is_seen_at_once_on_a_laptop_in_every_preset_and_every_drawn_state(page, name):
    page.set_viewport_size(LAPTOP)
    lab, panel, heights = browser.lab_of(page, name), getattr(labs, f"{name}_lab")(), {}
    for preset in panel.lab.presets:
        browser.press(lab, preset)
        heights[preset] = lab.bounding_box()["height"]
    assert {preset: px for preset, px in heights.items() if px > SEEN_AT_ONCE_PX} == {}
    width_px = lab.locator(".course-picture").bounding_box()["width"]
    panel.preset(preset)
    around_px = heights[preset] - picture_and_meaning_px(panel._show(**panel.values), width_px)
    drawn_px = [around_px + picture_and_meaning_px(view, width_px) for view in views(panel, states(name))]
    panel.close()
    assert max(drawn_px) <= SEEN_AT_ONCE_PX


def test_on_a_phone_pictures_keep_their_letters_and_are_moved_sideways(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for name in NAMES:
        picture = browser.lab_of(page, name).locator(".course-picture")
        shown, whole = picture.evaluate("(part) => [part.clientWidth, part.scrollWidth]")
        assert shown < whole >= 720, name
    page.set_viewport_size(LAPTOP)


def test_jupyterlab_takes_no_letter_from_a_number_that_is_typed_beside_its_slider(page):
    browser.assert_takes_no_key(
        page, browser.lab_of(page, "float").get_by_role("textbox", name="times 2^k, typed")
    )


def test_a_link_to_the_glossary_shows_its_word_in_jupyterlab(page):
    for name in ("stride", "AdamW"):
        page.get_by_role("link", name=name, exact=True).first.click()
        word = page.locator(".jp-MarkdownViewer h2", has_text=name).first
        expect(word).to_be_in_viewport()
        page.locator(".lm-TabBar-tab", has_text="everything.ipynb").first.click()


def test_axe_finds_no_fault_in_a_deck(page, tmp_path: Path):
    path = tmp_path / "deck.html"
    path.write_text(deck(NOTEBOOKS[0]), encoding="utf-8")
    sheet = page.context.browser.new_page()
    sheet.goto(path.as_uri())
    sheet.emulate_media(media="print")  # on paper all slides are there at once
    assert faults(sheet, "main") == []
    sheet.close()
