"""Shift+Enter, the key that everybody presses, cell by cell through a notebook.

After each key the tests look at what is in the window.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbformat.v4 import new_markdown_cell
from playwright.sync_api import Browser, Locator, Page, Route, expect

from course_utils.engine.guessing.field import CLOSED, NO_ANSWER
from course_utils.stage.notebook.files import read, source, write
from course_utils.stage.workspace.copies import as_handed_out
from course_utils.stage.workspace.folds import with_folds
from course_utils.stage.workspace.spacers import WORDS, with_spacers
from tests import NOTEBOOKS
from tests.helpers.browser import (
    HAS_KERNEL,
    jupyterlab,
    notebook_of,
    skip_without_browser,
    start_kernel,
)
from tests.helpers.key_walk import FORGET, HERE, LAPTOP, LOOK, REPLAY, WATCH, walk
from tests.helpers.thorough import SOME_NOTEBOOKS, few, thorough
from tests.helpers.waiting import wait_until

skip_without_browser()

OPEN = """async (name) => {
  const options = { path: name, kernel: { name: "python3" } };
  window.jupyterapp.commands.execute("docmanager:open", options);
}"""
IS_OPEN = f"""(name) => {{
  const panel = window.jupyterapp?.shell.currentWidget;
  const isThere = panel?.context?.path === name && ({HAS_KERNEL})();
  return isThere && panel.content.widgets.length > 1;
}}"""
CLOSE = """async () => {
  const { currentWidget } = window.jupyterapp.shell;
  await currentWidget.sessionContext.shutdown();
  currentWidget.dispose();
}"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a student's copies of the notebooks."""
    folder = tmp_path_factory.mktemp("copies")
    for path in NOTEBOOKS:
        write(folder / path.name, as_handed_out(read(path)))
    return folder


@pytest.fixture(scope="module")
def students(copies: Path, chromium: Browser) -> Iterator[Page]:
    """A page of a JupyterLab over that folder, with a blank notebook open."""
    blank = notebook_of(copies / "blank.ipynb", ["1", "2"])
    page = chromium.new_page(viewport=LAPTOP)
    page.set_default_timeout(120_000)
    with jupyterlab(copies) as address:
        start_kernel(address, blank)
        page.goto(address.format(blank))
        page.wait_for_function(IS_OPEN, arg=blank.name)
        yield page
        page.close()


# The walk through a notebook takes half a minute of a browser. So one that asks in every way stands
# for all.
@pytest.mark.parametrize("path", few(NOTEBOOKS, SOME_NOTEBOOKS[:1]), ids=lambda path: path.stem)
def test_after_the_key_a_lab_is_in_the_window_and_no_answer_before_its_guess(
    students: Page, path: Path
):
    students.evaluate(OPEN, path.name)
    students.wait_for_function(IS_OPEN, arg=path.name)
    students.evaluate(REPLAY, str(path))
    assert walk(students, path) == []
    students.evaluate(CLOSE)


@thorough
@pytest.mark.parametrize("size", [(1920, 1200), (2560, 1440)], ids=str)
def test_in_a_large_window_nothing_more_is_given_away(students: Page, size: tuple[int, int]):
    path = SOME_NOTEBOOKS[0]
    width, height = size
    students.set_viewport_size({"width": width, "height": height})
    students.evaluate(OPEN, path.name)
    students.wait_for_function(IS_OPEN, arg=path.name)
    students.evaluate(REPLAY, str(path))
    found = walk(students, path)
    students.set_viewport_size(LAPTOP)
    students.evaluate(CLOSE)
    assert found == []


ASKED = [
    'from course_utils import ask\n\nmy_guess = ask("6 × 7")',
    "6 * 7",
    "'42, as was to be seen'",
]
DRAWN = [
    "from course_utils import labs",
    'labs.figure("sum", "fmt", "power", "shown")',
    "'it stops at 256'",
]
IN_CAPITALS = [
    "from course_utils import labs\n"
    "from course_utils.core.say.language import speak\n"
    'speak({"What follows comes up with Show.": "THE REST COMES UP WITH “SHOW”."})',
    'labs.figure("sum", "fmt", "power", "shown")',
]
TO_REVEAL = "from course_utils import ask, reveal"
REVEALED = [
    TO_REVEAL,
    'my_guess = ask(["6 × 7", "6 × 8", "6 × 9"])',
    "six = 6  # on the way",
    "# As long as some reveals are.\n" * 9
    + 'numbers = {f"6 × {n}": six * n for n in (7, 8, 9)}\n'
    + "reveal(my_guess, predicted=numbers, measured=numbers)",
    "# What comes next is as long as a picture.\n" * 30,
]
FAILING = [*REVEALED[:2], "six", *REVEALED[3:]]
LACKING = [
    TO_REVEAL,
    'my_guess = ask("6 × 7")',
    "reveal(my_guess, predicted=42, measured=6 * seven)",
    "'42, as was to be seen'",
]
FAR = [
    TO_REVEAL,
    'my_guess = ask("6 × 7")',
    "def my_six():\n    return ...",
    "reveal(my_guess, predicted=42, measured=6 * 7)",
    "'42, as was to be seen'",
]
LONG = [
    *REVEALED,
    *("'on the way to it'",) * 4,
    "'42, as was to be seen'",
    'my_next = ask("7 × 7")',
    "'no answer to the first'",
]
JUDGED = [
    "from course_utils.chapters.checkpointing import check",
    "def my_interval(save_s, failure_s):\n    return save_s",
    "interval = check.interval(my_interval).kept",
    "# What comes next is as long as a picture.\n" * 30,
]
STILL = [
    "from course_utils import figures, floats",
    'figures.range_and_gap({"bf16": floats.FORMATS["bf16"]})',
    "# What comes next is as long as a picture.\n" * 30,
]
TABLE = [
    "from course_utils import table",
    'table({f"{2**n} rows": 2**n for n in range(15)}, "rows")',
    "# What comes next is as long as a picture.\n" * 30,
]
IMPORTED = [
    "import math\nfrom fractions import Fraction",
    "math.factorial(5)",
    "Fraction(1, 3)",
]


@pytest.fixture
def short(students: Page, copies: Path, request: pytest.FixtureRequest) -> Page:
    """A page with a short notebook of these cells, below some lines of text. No code has run.

    Its imports are folded, as in a student's copy.
    """
    name = f"{request.node.originalname}.ipynb"
    path = notebook_of(copies / name, request.param, "Some words.\n\n" * 20)
    write(path, with_folds(read(path), read(path)))
    students.evaluate(OPEN, name)
    students.wait_for_function(IS_OPEN, arg=name)
    students.evaluate(WATCH)
    students.keyboard.press("Shift+Enter")
    students.evaluate(LOOK, [0, ""])  # until the words are run, and what follows is in view
    return students


def code(page: Page, text: str) -> Locator:
    """The code with that text in the notebook in front."""
    return page.locator(f"{HERE} .jp-Cell .cm-content", has_text=text)


def after(page: Page, at: int, key: str = "Shift+Enter") -> dict[str, object]:
    """Press that key for that cell, and look."""
    page.evaluate(FORGET)
    page.keyboard.press(key)
    found = page.evaluate(LOOK, [at, ""])
    return found | {"below": [number for number in found["seen"] if number > at]}


@pytest.mark.parametrize("short", [ASKED], indirect=True)
def test_what_follows_a_question_waits_for_show_whatever_runs(short: Page):
    field = short.locator(f"{HERE} .course-ask")
    assert after(short, 1, "Control+Enter")["below"] == []
    expect(field.get_by_role("textbox")).to_be_in_viewport(ratio=1)
    assert after(short, 1)["below"] == []
    assert after(short, 2)["below"] == [], "what was out of view ran, and stays there"
    cells = short.locator(f"{HERE} .jp-Cell").count()
    short.keyboard.press("Tab")
    short.keyboard.press("Space")
    assert short.locator(f"{HERE} .jp-Cell").count() == cells, "no button out of view is pressed"
    field.get_by_role("textbox").fill("six")
    field.get_by_role("textbox").press("Enter")
    expect(field).to_contain_text("'six' is not a number here.")
    assert after(short, 2)["below"] == []
    field.get_by_role("textbox").fill("42")
    field.get_by_role("textbox").press("Enter")
    show = field.get_by_role("button", name="Show", exact=True)
    expect(show).to_be_focused()
    assert 3 in after(short, 1, "Enter")["below"]
    expect(show).to_be_hidden()
    assert short.evaluate(ACTIVE) == 2
    assert after(short, 2)["active"] == 3, "the key runs what follows"
    assert short.locator(f"{HERE} .course-held").count() == 0


PANEL = "window.jupyterapp.shell.currentWidget"
SESSION = f"{PANEL}.sessionContext.session"
DIES = f"""() => {{
  const code = "import os; os._exit(1)";
  {SESSION}.kernel.requestExecute({{ code }}).done.catch(() => {{}});
}}"""


@pytest.mark.parametrize("short", [ASKED], indirect=True)
def test_a_field_without_its_kernel_says_so_takes_nothing_and_is_made_anew_by_the_key(short: Page):
    field = short.locator(f"{HERE} .course-ask")
    box = field.get_by_role("textbox")
    show = field.get_by_role("button", name="Show", exact=True)
    notebook = "window.jupyterapp.shell.currentWidget.content"
    after(short, 1)
    for loses in (f"() => {SESSION}.kernel.restart()", DIES):
        box.fill("41")
        box.press("Enter")
        expect(show).to_be_focused()
        short.evaluate(loses)
        expect(field).to_contain_text("The kernel has been restarted. Run this cell again.")
        expect(box).to_be_disabled()
        expect(show).to_be_hidden()
        short.wait_for_function(f"() => ({HAS_KERNEL})()")
        for ok in short.locator("dialog.jp-Dialog button").all():  # "The kernel has died."
            ok.click()
        # The next cell is out of view: the key doesn't run it, but the one that asks.
        short.evaluate(f"() => {{ {notebook}.activeCellIndex = 2; {notebook}.activate(); }}")
        assert after(short, 1)["below"] == []
        expect(box).to_be_enabled()
        expect(field).not_to_contain_text("restarted")
        expect(short.locator(f"{HERE} .jp-Cell").nth(2)).not_to_contain_text("42")


KEEP_BUSY = """() => {
  const { sessionContext } = window.jupyterapp.shell.currentWidget;
  sessionContext.session.kernel.requestExecute({ code: "import time; time.sleep(2)" });
}"""
ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"


def guessed(page: Page) -> Locator:
    """Run the first cells and type a guess; returns the field, in which Show is not pressed yet."""
    after(page, 1)
    after(page, 2)
    field = page.locator(f"{HERE} .course-ask")
    field.get_by_role("textbox").first.fill("41")
    return field


def press_show(field: Locator) -> None:
    field.get_by_role("button", name="Show", exact=True).click()


@pytest.mark.parametrize("short", [REVEALED], indirect=True)
def test_show_settles_the_guess_and_the_reveal_is_run_and_whole_in_the_window(short: Page):
    field = guessed(short)
    short.evaluate(KEEP_BUSY)  # Python hears of it later
    press_show(field)
    for box in field.get_by_role("textbox").all():
        assert box.is_disabled(), "at once"
    assert field.get_by_role("textbox").first.input_value() == "41"
    reveal = short.locator(f"{HERE} .jp-RenderedHTML:has([role=img])")
    expect(reveal).to_contain_text("your guess 41")
    expect(field).to_contain_text(CLOSED)
    expect(reveal).to_be_in_viewport(ratio=1)
    assert short.evaluate(ACTIVE) == 5

    # The next key goes on; and the reveal is whole in the window again when it is run by the key.
    after(short, 5)
    notebook = "window.jupyterapp.shell.currentWidget.content"
    short.evaluate(f"() => {{ {notebook}.activeCellIndex = 4; {notebook}.activate(); }}")
    assert after(short, 4)["active"] == 5
    expect(reveal).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("short", [REVEALED], indirect=True)
def test_show_with_a_text_that_is_no_answer_reveals_nothing_until_it_is_pressed_again(short: Page):
    field = guessed(short)
    lots = field.get_by_role("textbox").nth(1)
    reveal = short.locator(f"{HERE} .jp-RenderedHTML:has([role=img])")
    lots.fill("lots")
    active = short.evaluate(ACTIVE)
    short.evaluate(KEEP_BUSY)
    press_show(field)
    expect(field).to_contain_text("'lots' is not a number here. Write it as 1500,")
    expect(field).to_contain_text("Change it, or press Show again")
    expect(lots).to_have_value("lots")
    expect(lots).to_be_focused()
    expect(reveal).to_have_count(0)
    expect(field).to_have_class(re.compile("course-waits"))
    assert short.evaluate(ACTIVE) == active
    press_show(field)
    expect(reveal).to_contain_text("your guess 41")
    expect(field).to_contain_text(NO_ANSWER)
    expect(field).to_contain_text(CLOSED)
    expect(lots).to_have_value("lots")
    assert short.evaluate(ACTIVE) == 5


BEHIND = f"{HERE} .jp-Cell.course-behind"
COVER = f"{HERE} .course-cover"


def is_covered(page: Page, cells: int, told: Locator) -> bool:
    """Whether so many cells are covered, so that this one of their texts cannot be read."""
    expect(page.locator(BEHIND)).to_have_count(cells)
    expect(page.locator(COVER)).to_have_count(1)
    return told.is_hidden()


@pytest.mark.parametrize("short", [REVEALED], indirect=True)
def test_whatever_key_leads_past_a_guess_what_tells_the_answer_is_covered(short: Page):
    guessed(short)
    told = code(short, "numbers = ")
    assert is_covered(short, 3, told)
    notebook = "window.jupyterapp.shell.currentWidget.content"
    short.evaluate(f"() => {notebook}.activate()")
    for key in ("ArrowDown", "ArrowDown", "End", "PageDown", "Enter", "Escape"):
        short.keyboard.press(key)
        assert is_covered(short, 3, told), key
    short.evaluate(f"() => {notebook}.scrollToItem(4, 'center')")
    assert is_covered(short, 3, told)

    # After a restart, the cell of the guess is to be run again, and until then there is no button.
    short.evaluate(f"() => {SESSION}.kernel.restart()")
    expect(short.locator(COVER).get_by_role("button")).to_have_count(0)
    assert is_covered(short, 3, told)
    # Without a kernel no guess is taken, so nothing is covered.
    short.evaluate(f"() => {SESSION}.shutdown()")
    expect(short.locator(BEHIND)).to_have_count(0)
    expect(told).to_be_visible()
    short.evaluate(f"() => {PANEL}.sessionContext.changeKernel({{ name: 'python3' }})")
    assert is_covered(short, 3, told)
    short.wait_for_function(f"() => ({HAS_KERNEL})()")
    short.evaluate(f"() => {{ {notebook}.activeCellIndex = 1; {notebook}.activate(); }}")
    field = guessed(short)
    assert is_covered(short, 3, told)

    cover = short.locator(COVER)
    expect(cover).to_contain_text("Your guess above comes first.")
    cover.get_by_role("button", name="Show", exact=True).click()
    reveal = short.locator(f"{HERE} .jp-RenderedHTML:has([role=img])")
    expect(reveal).to_contain_text("your guess 41")
    expect(reveal).to_be_in_viewport(ratio=1)
    expect(told).to_be_visible()
    expect(field).to_contain_text(CLOSED)
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)


# In each frame, notes whether the cell with that number is covered.
SEE_COVERS = f"""(at) => {{
  const {{ node }} = {PANEL}.content.widgets[at];
  window.courseCovers = new Set();
  const look = () => {{
    window.courseCovers.add(node.classList.contains("course-behind"));
    requestAnimationFrame(look);
  }};
  look();
}}"""
RESTART_AND_RUN_ALL = f"""async () => {{
  const {{ kernel }} = {SESSION};
  await kernel.restart();
  kernel.requestExecute({{ code: "import time; time.sleep(3)" }});
  window.jupyterapp.commands.execute("notebook:run-all-cells");
}}"""


@pytest.mark.parametrize("short", [REVEALED], indirect=True)
def test_while_the_cell_of_a_guess_waits_to_be_run_again_what_tells_the_answer_stays_covered(
    short: Page,
):
    """It has no field then, because JupyterLab empties a cell that is to run."""
    guessed(short)
    told = code(short, "numbers = ")
    assert is_covered(short, 3, told)
    short.evaluate(SEE_COVERS, 4)
    short.evaluate(RESTART_AND_RUN_ALL)
    expect(short.locator(f"{HERE} .course-ask")).to_have_count(0)
    expect(short.locator(COVER).get_by_role("button")).to_have_count(0)
    assert is_covered(short, 3, told)
    show = short.locator(COVER).get_by_role("button", name="Show", exact=True)
    expect(show).to_be_visible()
    assert short.evaluate("() => [...window.courseCovers]") == [True], "in each frame"
    show.click()
    expect(told).to_be_visible()
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)


def test_also_before_the_cell_of_a_guess_has_run_what_tells_the_answer_is_covered(
    students: Page, copies: Path
):
    """Page Down leads there, for example, past the space below the cell."""
    path = notebook_of(copies / "ahead.ipynb", LONG)
    write(path, with_spacers(read(path)))
    students.evaluate(OPEN, path.name)
    students.wait_for_function(IS_OPEN, arg=path.name)
    cover = students.locator(COVER)
    told = code(students, "42, as was to be seen")
    expect(cover).to_have_text(WORDS)
    assert is_covered(students, 8, told)
    expect(code(students, "my_next = ask")).to_be_visible()

    # Without a kernel no field comes up, so nothing is covered.
    students.evaluate(f"() => {SESSION}.shutdown()")
    expect(students.locator(BEHIND)).to_have_count(0)
    expect(told).to_be_visible()
    students.evaluate(f"() => {PANEL}.sessionContext.changeKernel({{ name: 'python3' }})")
    expect(cover).to_have_text(WORDS)
    students.wait_for_function(f"() => ({HAS_KERNEL})()")

    for number in (0, 1):
        students.evaluate(f"() => {{ {PANEL}.content.activeCellIndex = {number}; }}")
        students.evaluate(f"() => {PANEL}.content.activate()")
        students.keyboard.press("Control+Enter")
    expect(cover).to_contain_text("Your guess above comes first.")
    assert is_covered(students, 8, told)
    cover.get_by_role("button", name="Show", exact=True).click()
    expect(told).to_be_visible()
    expect(students.locator(f"{COVER}, {BEHIND}")).to_have_count(0)
    students.evaluate(CLOSE)


def test_the_question_above_the_next_guess_can_be_read_while_the_answer_above_it_is_covered(
    students: Page, copies: Path
):
    path = notebook_of(copies / "question.ipynb", LONG)
    notebook = read(path)
    texts = ["It was 42.", "And what is 7 × 7?"]
    cells = notebook["cells"]
    at_the_next = next(at for at, cell in enumerate(cells) if "my_next" in source(cell))
    cells[at_the_next:at_the_next] = [new_markdown_cell(text) for text in texts]
    write(path, with_spacers(notebook))
    students.evaluate(OPEN, path.name)
    students.wait_for_function(IS_OPEN, arg=path.name)
    answer, question = (students.locator(f"{HERE} .jp-Cell", has_text=text) for text in texts)
    assert is_covered(students, 9, answer.locator("p"))
    expect(question.locator("p")).to_be_visible()
    students.evaluate(CLOSE)


@pytest.mark.parametrize("short", [LONG], indirect=True)
def test_what_follows_a_reveal_is_covered_as_far_as_the_next_guess(short: Page):
    guessed(short)
    assert is_covered(short, 8, code(short, "42, as was to be seen"))
    expect(code(short, "my_next = ask")).to_be_visible()
    expect(code(short, "no answer to the first")).to_be_visible()
    short.locator(COVER).get_by_role("button", name="Show", exact=True).click()
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)


@pytest.mark.parametrize("short", [DRAWN], indirect=True)
def test_what_follows_a_figure_that_asks_is_covered_until_show(short: Page):
    after(short, 1)
    after(short, 2)
    told = code(short, "it stops at 256")
    assert is_covered(short, 1, told)
    short.locator(COVER).get_by_role("button", name="Show", exact=True).click()
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)
    expect(told).to_be_visible()
    # Not all of it: whoever goes to the button below may have to scroll by a line.
    expect(short.locator(f"{HERE} .course-lab .course-picture svg")).to_be_in_viewport(ratio=0.9)


@pytest.mark.parametrize("short", [FAR], indirect=True)
def test_what_the_reader_does_before_the_reveal_is_not_covered_but_what_follows_is_until_it_has_run(
    short: Page,
):
    field = guessed(short)
    told = code(short, "42, as was to be seen")
    assert is_covered(short, 2, told), "the reveal, and what follows it"
    expect(code(short, "def my_six")).to_be_visible()
    press_show(field)
    expect(short.locator(COVER)).to_have_text(
        "The answer to your guess comes first: run the cell above."
    )
    assert is_covered(short, 1, told), "what follows the reveal"
    expect(code(short, "measured=6 * 7")).to_be_visible()
    assert short.evaluate(ACTIVE) == 3
    after(short, 3)
    after(short, 4)
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)
    expect(told).to_be_visible()


@pytest.mark.parametrize("short", [FAILING], indirect=True)
def test_if_the_way_to_the_reveal_fails_the_guess_is_settled_and_the_key_runs_the_reveal(
    short: Page,
):
    field = guessed(short)
    press_show(field)
    expect(field).to_contain_text(CLOSED)
    reveal = short.locator(f"{HERE} .jp-CodeCell", has_text="numbers = ")
    expect(reveal).to_be_in_viewport(ratio=1)
    short.wait_for_function(f"() => ({ACTIVE})() === 4")


@pytest.mark.parametrize("short", [LACKING], indirect=True)
def test_what_follows_a_reveal_that_stops_with_an_error_stays_covered(short: Page):
    """A kernel that was restarted lacks a name, for example: no answer was seen."""
    press_show(guessed(short))
    told = code(short, "42, as was to be seen")
    error = short.locator(f"{HERE} .jp-OutputArea-output", has_text="NameError")
    expect(error).to_be_visible()
    assert is_covered(short, 1, told)
    short.evaluate(f"() => {SESSION}.kernel.requestExecute({{ code: 'seven = 7' }}).done")
    after(short, 2)
    expect(short.locator(f"{HERE} .jp-RenderedHTML:has([role=img])")).to_be_visible()
    expect(short.locator(f"{COVER}, {BEHIND}")).to_have_count(0)
    expect(told).to_be_visible()


@pytest.mark.parametrize("short", [FAR], indirect=True)
def test_where_the_reader_has_to_do_something_before_the_reveal_show_leads_there(short: Page):
    field = guessed(short)
    press_show(field)
    expect(field).to_contain_text(CLOSED)
    expect(code(short, "my_six")).to_be_in_viewport(ratio=1)
    assert short.evaluate(ACTIVE) == 3
    assert after(short, 3)["active"] == 4, "the key runs it"
    expect(short.locator(f"{HERE} .jp-RenderedHTML:has([role=img])")).to_have_count(0)


@pytest.mark.parametrize("short", [DRAWN], indirect=True)
def test_the_key_goes_on_from_a_button_that_was_disabled_when_it_was_pressed(short: Page):
    """As *Measure* is, while its job runs: the browser takes the focus from it."""
    after(short, 1)
    after(short, 2)
    button = short.locator(f"{HERE} .course-lab button:visible").first
    button.evaluate("(button) => { button.focus(); button.disabled = true; }")
    short.wait_for_function("document.activeElement === document.body")
    assert after(short, 2)["active"] == 3


@pytest.mark.parametrize("short", [DRAWN], indirect=True)
def test_from_inside_a_lab_the_key_goes_on_and_marks_stay_and_a_lab_without_its_kernel_is_made_anew(
    short: Page,
):
    after(short, 1)
    after(short, 2)
    marks = short.locator(f"{HERE} [data-mark]")
    marks.first.focus()
    short.keyboard.press("Home")
    expect(marks.first).not_to_have_attribute("aria-valuetext", "not set")
    found = after(short, 2)
    assert (found["active"], found["below"]) == (3, [])
    expect(marks.first).not_to_have_attribute("aria-valuetext", "not set")
    session = "window.jupyterapp.shell.currentWidget.sessionContext.session"
    short.evaluate(f"() => {session}.kernel.restart()")
    expect(short.locator(f"{HERE} .course-lab.jupyter-widgets-disconnected")).to_have_count(1)
    notebook = "window.jupyterapp.shell.currentWidget.content"
    short.evaluate(f"() => {{ {notebook}.activeCellIndex = 1; {notebook}.activate(); }}")
    after(short, 1)
    after(short, 2)
    expect(marks.first).to_have_attribute("aria-valuetext", "not set")


@pytest.mark.parametrize("short", [IN_CAPITALS], indirect=True)
def test_the_line_below_a_lab_that_waits_is_in_the_readers_language(short: Page):
    after(short, 1)
    after(short, 2)
    waits = short.locator(f"{HERE} .course-lab.course-waits")
    expect(waits.locator(".course-picture svg")).to_be_visible()
    content = waits.evaluate("(lab) => getComputedStyle(lab, '::after').content")
    assert content == '"THE REST COMES UP WITH “SHOW”."'


@pytest.mark.parametrize("short", [STILL], indirect=True)
def test_after_the_key_a_picture_is_whole_in_the_window(short: Page):
    after(short, 1)
    short.keyboard.press("Shift+Enter")
    picture = short.locator(f"{HERE} .jp-RenderedImage img")
    expect(picture).to_be_in_viewport(ratio=1)
    short.evaluate(LOOK, [2, ""])
    expect(picture).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("short", [JUDGED], indirect=True)
def test_while_a_function_is_judged_again_and_again_it_stays_where_it_is(short: Page):
    notebook = "window.jupyterapp.shell.currentWidget.content"
    function = short.locator(f"{HERE} .jp-Cell").nth(2)
    judged = short.locator(f"{HERE} .jp-Cell").nth(3)
    after(short, 1)
    tops = []
    for _ in range(4):
        short.evaluate(f"() => {{ {notebook}.activeCellIndex = 2; {notebook}.activate(); }}")
        after(short, 2)
        after(short, 3)
        expect(judged.locator(".jp-OutputArea-output").first).to_be_in_viewport(ratio=1)
        expect(function).to_be_in_viewport(ratio=1)
        tops.append(function.bounding_box()["y"])
    assert max(tops[1:]) - min(tops[1:]) < 2, tops


@pytest.mark.parametrize("short", [TABLE], indirect=True)
def test_after_the_key_a_table_is_whole_in_the_window(short: Page):
    after(short, 1)
    short.keyboard.press("Shift+Enter")
    rows = short.locator(f"{HERE} .jp-OutputArea-output table")
    expect(rows).to_be_in_viewport(ratio=1)
    short.evaluate(LOOK, [2, ""])
    expect(rows).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("short", [IMPORTED], indirect=True)
def test_folded_imports_run_before_what_is_below_them_say_so_and_stay_as_the_reader_has_them(
    short: Page, copies: Path
):
    folded = short.locator(f"{HERE} .jp-InputPlaceholder")
    number = folded.locator(".jp-InputPrompt")
    outputs = short.locator(f"{HERE} .jp-OutputArea-executeResult")
    expect(folded).to_contain_text("import math")
    expect(number).to_have_text("[ ]:")

    # Who begins with the first code that is to be seen misses nothing.
    code(short, "factorial").click()
    short.locator(f"{HERE} .jp-NotebookPanel-toolbar [data-jp-item-name=run] button").click()
    expect(outputs).to_contain_text(["120"])
    expect(number).to_have_text("[1]:")
    after(short, 3)
    expect(outputs).to_contain_text(["120", "Fraction(1, 3)"])
    expect(number).to_have_text("[1]:")

    # The key runs them like any other cell, and goes on.
    notebook = "window.jupyterapp.shell.currentWidget.content"
    short.evaluate(f"() => {{ {notebook}.activeCellIndex = 1; {notebook}.activate(); }}")
    assert after(short, 1)["active"] == 2
    expect(folded).to_be_in_viewport(ratio=1)
    expect(outputs.first).to_be_in_viewport(ratio=1)
    expect(number).to_have_text("[4]:")
    assert after(short, 2)["active"] == 3

    # A kernel that was restarted has not run them, whatever number stands beside them.
    session = "window.jupyterapp.shell.currentWidget.sessionContext.session"
    short.evaluate(f"() => {session}.kernel.restart()")
    code(short, "Fraction(1").click()
    short.locator(f"{HERE} .jp-NotebookPanel-toolbar [data-jp-item-name=run] button").click()
    expect(number).to_have_text("[1]:")
    last = short.locator(f"{HERE} .jp-CodeCell", has_text="Fraction(1")
    expect(last.locator(".jp-InputPrompt")).to_have_text("[2]:")
    expect(last.locator(".jp-OutputArea-executeResult")).to_contain_text("Fraction(1, 3)")

    number.click()
    expect(folded).to_have_count(0)
    expect(code(short, "from fractions import Fraction")).to_be_visible()
    short.keyboard.press("Control+s")
    own = copies / short.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    wait_until(lambda: "source_hidden" not in own.read_text(encoding="utf-8"), "it is saved")


@pytest.mark.parametrize("short", [ASKED], indirect=True)
def test_a_notebook_that_changed_on_disk_is_read_again_and_never_over_unsaved_changes(
    short: Page, copies: Path
):
    open_path = "() => window.jupyterapp.shell.currentWidget.context.path"
    path = copies / short.evaluate(open_path)
    short.keyboard.press("Control+s")
    dirty = "window.jupyterapp.shell.currentWidget.context.model.dirty"
    short.wait_for_function(f"() => !{dirty}")
    # Times of a file that are nearer than half a second are one.
    wait_until(lambda: time.time() - path.stat().st_mtime > 1, "a second has gone by")
    path.write_text(path.read_text(encoding="utf-8").replace("6 * 7", "6 * 8"), encoding="utf-8")
    short.evaluate("dispatchEvent(new Event('focus'))")
    expect(code(short, "6 * 8")).to_have_count(1)
    code(short, "6 * 8").click()
    short.keyboard.type("# mine")
    short.wait_for_function(f"() => {dirty}")
    wait_until(lambda: time.time() - path.stat().st_mtime > 1, "a second has gone by")
    path.write_text(path.read_text(encoding="utf-8").replace("6 * 8", "6 * 9"), encoding="utf-8")
    short.evaluate("dispatchEvent(new Event('focus'))")
    ask = "(path) => window.jupyterapp.serviceManager.contents.get(path, { content: false })"
    short.evaluate(ask, path.name)  # answered after what the page has asked
    expect(code(short, "mine")).to_have_count(1)
    short.evaluate("() => window.jupyterapp.shell.currentWidget.context.revert()")


@pytest.mark.parametrize("short", [ASKED], indirect=True)
def test_what_ends_while_a_notebook_is_being_saved_is_saved_next_without_a_question(short: Page):
    saves = []

    def hold(route: Route) -> None:
        if route.request.method == "PUT" and not saves:
            saves.append(route)
        else:
            route.continue_()

    path = short.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    # The notebooks of the tests before are open too, and JupyterLab saves them by its own clock.
    its_file = f"**/api/contents/{path}*"
    short.route(its_file, hold)
    with short.expect_request(lambda request: request.method == "PUT" and path in request.url):
        short.keyboard.press("Control+s")
    code(short, "6 * 7").click()
    short.keyboard.press("Control+Enter")
    expect(short.locator(f"{HERE} .jp-OutputArea-output", has_text="42")).to_have_count(1)
    dirty = "window.jupyterapp.shell.currentWidget.context.model.dirty"
    short.evaluate(f"""() => {{
      const {{ saveState }} = window.jupyterapp.shell.currentWidget.context;
      window.isDirtyAfterSaving = new Promise((done) => {{
        saveState.connect((_, state) => state === "completed" && done({dirty}));
      }});
    }}""")
    answer = saves[0].fetch()  # the file is written, and the page doesn't know it yet
    # The clock of JupyterLab's own saving goes on meanwhile.
    short.evaluate("() => void window.jupyterapp.shell.currentWidget.context.save()")
    ask = "(path) => window.jupyterapp.serviceManager.contents.get(path, { content: false })"
    short.evaluate(ask, path)  # answered after what a second save would have asked
    saves[0].fulfill(response=answer)
    assert short.evaluate("() => window.isDirtyAfterSaving")
    short.wait_for_function(f"() => !{dirty}")
    expect(short.locator(".jp-Dialog")).to_have_count(0)
    short.unroute(its_file, hold)


@pytest.mark.parametrize("short", [ASKED], indirect=True)
def test_the_contents_page_can_have_an_open_notebook_saved_before_it_changes_the_file(short: Page):
    code(short, "6 * 7").click()
    short.keyboard.type("# mine")
    dirty = "window.jupyterapp.shell.currentWidget.context.model.dirty"
    short.wait_for_function(f"() => {dirty}")
    short.evaluate("""() => new Promise((done) => {
      const contents = new BroadcastChannel("course-workspace");
      contents.onmessage = ({ data }) => data === "saved" && done();
      contents.postMessage("save");
    })""")
    assert short.evaluate(f"() => {dirty}") is False
