"""A guess is drawn in a real JupyterLab, by a stroke, by keys and by a finger.

That works while the kernel is busy, too.
"""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests import ROOT
from tests.helpers import browser

browser.skip_without_browser()
SOURCES = [
    f"import sys, time\nsys.path.insert(0, {str(ROOT)!r})",
    "from course_utils.engine.labs.panel import Panel\n"
    "from tests.helpers.small_lab import DrawingLab",
    "Panel(DrawingLab())",
    "time.sleep(0)",
]


@pytest.fixture(scope="module")
def page(chromium, jupyter):
    folder, address = jupyter
    path = browser.notebook_of(folder / "drawn.ipynb", SOURCES)
    # With a window, since a browser without one takes a moving finger for scrolling.
    seen = browser.launched(chromium.browser_type)
    page = browser.open_page(seen.new_context(has_touch=True), address, path)
    browser.run_all(page, path)
    yield page
    seen.close()


@pytest.fixture
def marks(page: Page) -> Locator:
    """The marks of a lab in which nothing is set."""
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    browser.wait_for_kernel(page)
    marks = page.locator("[data-mark]")
    expect(marks).to_have_count(3)
    expect(marks.first).to_have_attribute("aria-valuetext", "not set")
    marks.first.evaluate("(mark) => mark.scrollIntoView({ block: 'center' })")
    return marks


def expect_marks(marks: Locator, *words: str) -> None:
    """The marks stand at these values, as Python says it.

    That takes a while: the last of several moves reaches Python when the first has been answered.
    """
    for mark, said in zip(marks.all(), words, strict=True):
        expect(mark).to_have_attribute("aria-valuetext", said, timeout=10_000)


def place(marks: Locator, number: int, share: float) -> tuple[float, float]:
    """Where on the page a level of that mark lies, from 0, the lowest, to 1, the highest."""
    box = marks.nth(number).locator(".track").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + (1 - share) * box["height"]


def test_a_stroke_sets_all_marks_that_it_passes(marks):
    mouse = marks.page.mouse
    begin = place(marks, 0, 0.1)
    end = place(marks, 2, 0.9)  # now: from the press on, the marks are drawn anew
    mouse.move(*begin)
    mouse.down()
    mouse.move(*end)  # in one leap
    mouse.up()
    expect_marks(marks, "2 cm²", "10 cm²", "18 cm²")


def test_keys_move_the_mark_that_has_the_focus_and_lead_to_the_next(marks):
    page = marks.page
    marks.first.focus()
    for key in ("ArrowUp", "PageUp", "ArrowRight", "Home", "ArrowRight", "End", "ArrowDown"):
        page.keyboard.press(key)
    expect_marks(marks, "13 cm²", "0 cm²", "19 cm²")
    browser.assert_takes_no_key(page, marks.first)


def test_a_finger_draws_and_the_page_stays_where_it_is(marks):
    page = marks.page
    devtools = page.context.new_cdp_session(page)
    top = marks.first.bounding_box()["y"]
    shares = {0.2: "touchStart", 0.5: "touchMove", 0.8: "touchMove"}
    points = {place(marks, 1, share): kind for share, kind in shares.items()}
    for (x, y), kind in points.items():
        touch = {"type": kind, "touchPoints": [{"x": x, "y": y}]}
        devtools.send("Input.dispatchTouchEvent", touch)
    devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect_marks(marks, "not set", "16 cm²", "not set")
    assert marks.first.bounding_box()["y"] == top


def test_marks_move_while_the_kernel_is_busy_and_it_gets_the_last_place(marks):
    page = marks.page
    page.evaluate("""() => {
      const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
      kernel.requestExecute({ code: "time.sleep(2)" });
    }""")
    marks.first.focus()
    for _ in range(6):
        page.keyboard.press("PageUp")
    expect(marks.first).to_have_attribute("aria-valuenow", "20", timeout=1000)
    expect_marks(marks, "20 cm²", "not set", "not set")


def test_what_is_shown_stays_and_its_marks_do_not_move(marks):
    page = marks.page
    marks.first.focus()
    page.keyboard.press("Home")
    browser.press(page.locator(".course-lab"), "Show")
    expect(page.locator(".course-picture .line.measured")).to_have_count(1)
    marks.first.focus()
    page.keyboard.press("End")
    expect_marks(marks, "0 cm²")  # those that were not set are gone
