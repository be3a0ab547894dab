"""The field of a guess in JupyterLab: typed, shown and revealed by the keyboard alone.

Each test has questions of its own, in the cells of one notebook.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from course_utils.core import record
from course_utils.core.record import Said
from course_utils.core.say import Guess
from course_utils.engine.guessing.field import CLOSED, CLOSED_WITHOUT, NO_ANSWER
from tests.helpers.browser import (
    NEXT_FRAMES,
    assert_takes_no_key,
    jupyterlab,
    notebook_of,
    open_page,
    skip_without_browser,
    wait_for_kernel,
)
from tests.helpers.waiting import wait_until

skip_without_browser()

LAPTOP = {"width": 1366, "height": 768}
IMPORTS = "from course_utils import ask, reveal\nfrom course_utils.chapters.floats import check"
CELLS = [
    IMPORTS,
    'my_gb = ask("one matrix", "GB")',
    "reveal(my_gb, predicted=2, measured=2.416)",
    'my_days = ask(["products below the peak", "sending", "pauses"], "days")',
    'my_parts = ask(["products", "links"], "days", between={"at the peak": 80, "reported": 260})',
    'my_format = ask("format without a scale", among=("fp16", "bf16", "fp8"))',
    'my_early = ask("all cells have run", "share")',
    "reveal(my_early, predicted=0.5, measured=0.25)",
    'my_size = ask("one file", "bytes")',
    'my_other = ask("another file", "bytes")',
    'my_empty = ask("no file", "bytes")',
    'my_saved = ask("before saving", "bytes")',
    'my_last = ask("before leaving", "bytes")',
    'my_a = ask("a", "share")',
    'my_b = ask(["a long name, so that there is little room beside it", "b"], "of 200")',
    'my_c = ask("c", among=("clips before unscale_", "bf16 weights", "sums in bf16", "no scale"))',
    "reveal(my_a, predicted=0.5, measured=0.25)",
]
RUN = """async (at) => {
  const { content } = window.jupyterapp.shell.currentWidget;
  content.scrollToItem(at, "start");
  content.activeCellIndex = at;
  content.activate();
  await window.jupyterapp.commands.execute("notebook:run-cell");
}"""
KEEP_BUSY = """() => {
  const { sessionContext } = window.jupyterapp.shell.currentWidget;
  sessionContext.session.kernel.requestExecute({ code: "import time; time.sleep(2)" });
}"""
FOLD = "() => window.jupyterapp.commands.execute('application:toggle-left-area')"
THEME = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
COUNT_SAVES = """() => {
  window.courseSaves = 0;
  window.jupyterapp.commands.commandExecuted.connect((_, { id }) => {
    if (id === "docmanager:save") window.courseSaves += 1;
  });
}"""
# The parts of an output that stick out of it sideways, or are wider inside than they are seen.
CUT = """(output) => {
  const { left, right } = output.getBoundingClientRect();
  const sticksOut = (part) => {
    const box = part.getBoundingClientRect();
    return box.left < left - 1 || box.right > right + 1;
  };
  const isCut = (part) => part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1;
  return [...output.querySelectorAll("*")]
    .filter((part) => part.checkVisibility() && (sticksOut(part) || isCut(part)))
    .map((part) => part.outerHTML.slice(0, 100));
}"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / record.HIDDEN).mkdir()
    return folder


@pytest.fixture(scope="module")
def page(mine: Path, chromium: Browser) -> Iterator[Page]:
    """A notebook with these cells in that folder, of which none has run."""
    path = notebook_of(mine / "01_floats.ipynb", CELLS)
    with jupyterlab(mine) as address:
        page = open_page(chromium.new_context(), address, path, **LAPTOP)
        page.evaluate(FOLD)  # the list of files, which would leave no room on a phone
        yield page
        page.close()


def run(page: Page, code: str) -> Locator:
    """Run the cell whose code begins like that; returns the cell."""
    at = next(number for number, cell in enumerate(CELLS) if cell.startswith(code))
    page.evaluate(RUN, at)
    wait_for_kernel(page)
    return page.locator(".jp-CodeCell", has_text=CELLS[at].partition("\n")[0])


def asked(page: Page, name: str) -> Locator:
    """Run the first cell and the one that asks for that guess; returns its field."""
    run(page, IMPORTS)
    cell = run(page, f"{name} = ask(")
    field = cell.locator(".course-ask")
    expect(field).to_have_count(1)
    return field


def button(field: Locator) -> Locator:
    return field.get_by_role("button", name="Show", exact=True)


def type_into(field: Locator, number: int, typed: str) -> None:
    box = field.get_by_role("textbox").nth(number)
    box.fill(typed)
    box.press("Enter")


def stays_in_view(page: Page, node: Locator) -> bool:
    """Scroll to the node; return whether it is in the window and does not move any more."""
    node.evaluate("(node) => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = node.bounding_box()
    page.evaluate(NEXT_FRAMES)
    return box == node.bounding_box() and 0 < box["y"] < LAPTOP["height"] - box["height"]


def test_a_guess_is_typed_shown_revealed_and_there_after_a_restart(page: Page, mine: Path):
    field = asked(page, "my_gb")
    box = field.get_by_role("textbox", name="Your guess, one matrix, GB")
    before = [part.bounding_box() for part in (box, button(field))]
    type_into(field, 0, "two or so")
    note = field.get_by_role("status")
    expect(note).to_contain_text("'two or so' is not a number here.")
    expect(box).to_have_attribute("aria-invalid", "true")
    assert box.bounding_box() == before[0]
    expect(box).to_be_focused()
    expect(box).to_have_value("two or so")
    type_into(field, 0, "2,400 MB")
    expect(note).to_have_text("= 2.4 GB")
    expect(box).to_have_attribute("aria-invalid", "false")
    expect(button(field)).to_be_focused()
    # What is about to be pressed stays in its place.
    assert [part.bounding_box() for part in (box, button(field))] == before
    page.keyboard.press("Enter")
    expect(button(field)).to_be_hidden()
    expect(box).to_be_disabled()
    expect(field).to_contain_text(CLOSED)
    # Show has run the reveal.
    shown = page.locator(".jp-CodeCell", has_text="reveal(my_gb")
    expect(shown.locator("svg[role=img]")).to_contain_text("your guess 2.4 GB")
    said = record.said_so_far(mine, "floats")["one matrix"]
    assert said == Said(2.4, has_gone_on=True, is_closed=True)
    revealed = [Guess("one matrix", 2.4, 2.416, unit="GB")]
    wait_until(lambda: record.guesses(mine).get("floats", [])[:1] == revealed, "it is recorded")

    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    again = asked(page, "my_gb")
    expect(again.get_by_role("textbox")).to_have_value("2.4")
    expect(again.get_by_role("textbox")).to_be_disabled()
    expect(button(again)).to_be_hidden()
    expect(again).to_contain_text(CLOSED)


def test_several_guesses_are_typed_line_by_line_and_nonsense_stays_in_its_own(page: Page):
    field = asked(page, "my_days")
    boxes = field.get_by_role("textbox")
    notes = field.get_by_role("status")
    boxes.first.focus()
    page.keyboard.type("1 week")
    page.keyboard.press("Enter")
    expect(boxes.nth(1)).to_be_focused()
    page.keyboard.type("some")
    page.keyboard.press("Tab")
    expect(boxes.nth(2)).to_be_focused()
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    expect(boxes.nth(1)).to_be_focused()  # the only one that is left
    expect(notes.nth(0)).to_have_text("= 7 days")
    expect(notes.nth(1)).to_contain_text("'some' is not a number here.")
    expect(notes.nth(2)).to_have_text("")
    boxes.first.fill("")
    boxes.first.press("Enter")
    expect(notes.nth(0)).to_contain_text("Type a number.")
    expect(notes.nth(0)).to_contain_text("Your last guess is kept: 7 days.")
    boxes.first.fill("1 week")
    boxes.first.press("Enter")
    expect(notes.nth(0)).to_have_text("= 7 days")
    expect(boxes.nth(1)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(button(field)).to_be_focused()
    assert_takes_no_key(page, button(field))
    assert_takes_no_key(page, field)
    # With a modifier, a key is a command as everywhere.
    page.evaluate(COUNT_SAVES)
    for number, focused in enumerate((button(field), boxes.first), start=1):
        focused.press("Control+s")
        page.wait_for_function("(number) => window.courseSaves === number", arg=number)


def test_parts_of_a_sum_are_dragged_typed_and_moved_by_keys(page: Page, mine: Path):
    field = asked(page, "my_parts")
    sliders = field.get_by_role("slider")
    boxes = field.get_by_role("textbox")
    total = field.locator(".course-ask-sum")
    expect(total).to_have_text("So far 80 of 260 days (reported), and 180 are left.")
    products = field.get_by_role("slider", name="products, bar, days")
    expect(products).to_have_attribute("aria-valuetext", "no guess")

    # The middle of the handle goes from the bar's begin to the end of the axis, 312 - 80 days.
    wait_until(lambda: stays_in_view(page, products), "the bar is in the window")
    box = products.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 10, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    expect(boxes.first).to_have_value("116")  # while the bar is being dragged
    expect(total).to_have_text("So far 196 of 260 days (reported), and 64 are left.")
    page.mouse.up()
    second = sliders.nth(1).bounding_box()
    assert second["x"] == pytest.approx(box["x"] + box["width"] / 2 - 10, abs=2)

    sliders.nth(1).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(boxes.nth(1)).to_have_value("3")
    assert_takes_no_key(page, sliders.nth(1))
    type_into(field, 0, "30 weeks")
    expect(total).to_have_text("So far 293 of 260 days (reported): 33 too many.")
    expect(products).to_have_attribute("aria-valuetext", "210 days")
    wait_for_kernel(page)
    said = record.said_so_far(mine, "floats")
    assert (said["products"].said, said["links"].said) == (210, 3)

    # A part can be below 0: its bar then goes back from where it begins.
    type_into(field, 1, "-40")
    expect(total).to_have_text("So far 250 of 260 days (reported), and 10 are left.")
    bars = field.locator(".course-ask-bar")
    first = bars.nth(1).bounding_box()
    back = bars.nth(2).bounding_box()
    assert back["x"] + back["width"] == pytest.approx(first["x"] + first["width"], abs=2)
    assert back["width"] == pytest.approx(first["width"] * 40 / 210, abs=2)
    type_into(field, 1, "3")
    expect(total).to_have_text("So far 293 of 260 days (reported): 33 too many.")

    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    again = asked(page, "my_parts")
    expect(again.get_by_role("textbox").first).to_have_value("210")
    expect(again.locator(".course-ask-sum")).to_have_text(
        "So far 293 of 260 days (reported): 33 too many."
    )


def test_show_with_a_text_that_is_no_answer_is_noted_when_it_is_pressed_again(
    page: Page, mine: Path
):
    field = asked(page, "my_size")
    box = field.get_by_role("textbox")
    note = field.get_by_role("status")
    unit = field.locator(".course-ask-unit")
    box.fill("16 M")
    button(field).click()
    expect(note).to_contain_text("'M' is no unit here. Do you mean 16 MB?")
    expect(box).to_have_value("16 M")
    expect(box).to_be_focused()
    expect(field).to_contain_text("press Show again")
    box.press("End")
    page.keyboard.type("B")
    expect(field).not_to_contain_text("press Show again")
    page.keyboard.press("Enter")
    expect(button(field)).to_be_focused()
    expect(note).to_have_text("")
    expect(unit).to_be_hidden()  # it would be read as "16 MB bytes"
    box.fill("lots")
    expect(unit).to_be_visible()
    button(field).click()
    expect(note).to_contain_text("'lots' is not a number here.")
    expect(note).to_contain_text("Your last guess is kept: 16 MB.")
    assert record.said_so_far(mine, "floats")["one file"] == Said(16_000_000)
    button(field).click()
    expect(field).to_contain_text(CLOSED)
    expect(box).to_have_value("16 MB")
    expect(note).to_have_text("Your last guess is kept: 16 MB.")

    other = asked(page, "my_other")
    other.get_by_role("textbox").fill("lots")
    button(other).click()
    expect(other).to_contain_text("'lots' is not a number here.")
    wait_for_kernel(page)
    assert "another file" not in record.said_so_far(mine, "floats")
    button(other).click()
    expect(other.get_by_role("status")).to_have_text(NO_ANSWER)
    expect(other.get_by_role("textbox")).to_have_value("lots")
    expect(other).not_to_contain_text(CLOSED_WITHOUT)

    empty = asked(page, "my_empty")
    button(empty).click()
    expect(empty).to_contain_text(CLOSED_WITHOUT)
    closed = Said(is_closed=True, has_gone_on=True)
    wait_until(lambda: record.said_so_far(mine, "floats").get("no file") == closed, "it is seen")


def test_an_option_is_chosen_by_the_keyboard(page: Page, mine: Path):
    other = asked(page, "my_c").get_by_role("radio")
    other.first.check()
    field = asked(page, "my_format")
    options = field.get_by_role("radio")
    page.evaluate(KEEP_BUSY)  # Python reads the answers later than they are made
    options.first.focus()
    page.keyboard.press("ArrowRight")
    expect(options.nth(1)).to_be_checked()
    page.keyboard.press("ArrowDown")
    expect(options.nth(2)).to_be_checked()
    expect(other.first).to_be_checked()
    page.keyboard.press("Enter")
    expect(button(field)).to_be_focused()
    page.keyboard.press("Space")
    expect(button(field)).to_be_hidden()
    wait_for_kernel(page)
    said = record.said_so_far(mine, "floats")["format without a scale"]
    assert said == Said("fp8", has_gone_on=True, is_closed=True)


def test_a_guess_after_all_cells_have_run_is_in_its_reveal_once_show_is_pressed(
    page: Page, mine: Path
):
    field = asked(page, "my_early")
    shown = run(page, "reveal(my_early")
    expect(shown.locator("table")).to_have_count(1)
    expect(shown.locator("svg[role=img]")).to_have_count(0)
    type_into(field, 0, "30 %")
    expect(button(field)).to_be_focused()
    page.keyboard.press("Enter")
    expect(field).to_contain_text(CLOSED)
    expect(shown.locator("svg[role=img]")).to_contain_text("your guess 30 %")
    revealed = Guess("all cells have run", 0.3, 0.25, unit="share")
    wait_until(lambda: revealed in record.guesses(mine).get("floats", []), "it is recorded")
    expect(shown.locator("svg[role=img]")).to_be_in_viewport(ratio=1)


def test_axe_finds_no_fault_in_a_field_or_a_reveal_and_nothing_is_cut_on_a_phone(page: Page):
    fields = [asked(page, name) for name in ("my_a", "my_b", "my_c")]
    type_into(fields[0], 0, "12 %")
    type_into(fields[1], 0, "250")
    expect(fields[1].get_by_role("status").first).to_have_text(
        "250 is more than there are. Write a whole number from 0 to 200."
    )
    fields[2].get_by_role("radio").first.check()
    for field in fields:
        button(field).click()
    expect(fields[1]).to_contain_text("press Show again")
    shown = run(page, "reveal(my_a")
    expect(shown.locator("svg[role=img]")).to_contain_text("your guess 12 %")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate(THEME, theme)
        page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        found = Axe().run(page, {"include": [[".course-ask"], [".jp-OutputArea-output"]]}).response
        faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"]]
        assert faults == [], theme
    page.set_viewport_size({"width": 390, "height": 844})
    outputs = page.locator(".jp-OutputArea-output:has(.course-ask, svg)")
    for output in outputs.all():
        assert output.evaluate(CUT) == []
    page.set_viewport_size(LAPTOP)


def test_what_was_typed_and_not_left_counts_when_the_notebook_is_saved_or_the_page_reloaded(
    page: Page, mine: Path
):
    """This test comes last, because it reloads the page that all of them share."""
    asked(page, "my_saved").get_by_role("textbox").fill("16 MB")
    assert "before saving" not in record.said_so_far(mine, "floats")
    page.keyboard.press("Control+s")
    wait_until(
        lambda: record.said_so_far(mine, "floats").get("before saving") == Said(16_000_000),
        "it is kept when the notebook is saved",
    )
    asked(page, "my_last").get_by_role("textbox").fill("32 MB")
    page.reload()
    wait_until(
        lambda: record.said_so_far(mine, "floats").get("before leaving") == Said(32_000_000),
        "it is kept when the page is reloaded",
    )
