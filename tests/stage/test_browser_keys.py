"""Shift+Enter, the key that everybody presses, cell by cell through a notebook.

After each key the tests look at what is in the window.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from course_utils.stage.notebook.code import figure_in, is_guess
from course_utils.stage.notebook.files import Cell, Notebook, read, source, write
from course_utils.stage.notebook.outline import outline
from course_utils.stage.workspace.copies import as_handed_out
from course_utils.stage.workspace.folds import with_folds
from tests import NOTEBOOKS
from tests.helpers.browser import (
    HAS_KERNEL,
    jupyterlab,
    notebook_of,
    skip_without_browser,
    start_kernel,
)
from tests.helpers.thorough import SOME_NOTEBOOKS, few
from tests.helpers.waiting import wait_until

skip_without_browser()

LAPTOP = {"width": 1366, "height": 768}
HERE = ".jp-NotebookPanel:not(.lm-mod-hidden)"  # the notebook in front
# Notes each cell as soon as it is painted in the window. A moment is enough to read an answer.
WATCH = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const cells = notebook.widgets;
  const root = notebook.node.querySelector(".jp-WindowedPanel-outer");
  const numbers = new Map(cells.map(({ node }, at) => [node, at]));
  window.courseSeen = new Set();
  const note = (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) window.courseSeen.add(numbers.get(target));
    }
  };
  const watching = new IntersectionObserver(note, { root, rootMargin: "-2px" });
  for (const { node } of cells) watching.observe(node);
  notebook.activeCellIndex = 0;
  notebook.activate();
}"""
# Forgets what was seen so far. What was painted before may be noted a frame later.
FORGET = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let frames = 0; frames < 3; frames += 1) await frame();
  window.courseSeen.clear();
}"""
# When the kernel and the page have done what they had to do for that cell: what lies where.
LOOK = """async ([at, makesLab]) => {
  const frame = () => new Promise(requestAnimationFrame);
  const boxOf = (part) => part.getBoundingClientRect();
  const { content: notebook, sessionContext } = window.jupyterapp.shell.currentWidget;
  const { node } = notebook.widgets[at];
  await sessionContext.session.kernel.requestKernelInfo();

  // Until the lab is drawn, and nothing moves any more.
  const drawn = ".course-lab[aria-label] .course-picture svg, .course-ask-card";
  const end = performance.now() + 60_000;
  while (makesLab && !node.querySelector(drawn) && performance.now() < end) await frame();
  const place = () => {
    const parts = [node, ...node.querySelectorAll(".course-lab, .course-picture")];
    return JSON.stringify(parts.map(boxOf));
  };
  let last = "";
  let same = 0;
  while (same < (makesLab ? 6 : 2)) {
    same = place() === last ? same + 1 : 0;
    await frame();
    last = place();
  }

  const seen = boxOf(notebook.node.querySelector(".jp-WindowedPanel-outer"));
  const outside = (part) => Math.max(seen.top - boxOf(part).top, boxOf(part).bottom - seen.bottom);
  const kinds = "button, input, .noUi-handle, .course-meaning, .course-picture";
  const inLab = [...node.querySelectorAll(`:is(.course-lab, .course-ask) :is(${kinds})`)];
  const parts = inLab.filter((part) => part.checkVisibility());
  const lab = node.querySelector(".course-lab");
  const onScreen = [...node.querySelectorAll(".course-screen > *")];
  const bottom = Math.max(...onScreen.map((part) => boxOf(part).bottom));
  return {
    active: notebook.activeCellIndex,
    seen: [...window.courseSeen].sort((a, b) => a - b),
    outside: Math.max(0, ...parts.map(outside)),
    parts: parts.length,
    height: lab ? bottom - boxOf(lab).top : 0,
  };
}"""
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
REPLAY = """async (path) => {
  const code = `from tests.helpers import replay; replay.begin(${JSON.stringify(path)})`;
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  const { content } = await kernel.requestExecute({ code, silent: true }).done;
  if (content.status !== "ok") throw new Error(content.evalue);
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


def makes_lab(cell: Cell) -> bool:
    """Whether the cell shows a lab here. One that records a GPU and finds none shows words."""
    if cell["cell_type"] != "code" or "new_recording." in source(cell):
        return False
    return figure_in(source(cell)) is not None


def shows_something(cell: Cell) -> bool:
    """Whether the cell shows a lab or the field of a guess."""
    return makes_lab(cell) or is_guess(source(cell))


def press(page: Page, at: int, cell: Cell) -> dict[str, object]:
    """Press the key for that cell, and look.

    Returns how much of its lab is outside, and which cells below it were seen since the key.
    """
    page.evaluate(FORGET)
    page.keyboard.press("Shift+Enter")
    found = page.evaluate(LOOK, [at, shows_something(cell)])
    return found | {"below": [number for number in found["seen"] if number > at]}


def walk(page: Page, notebook: Notebook) -> list[str]:
    """Press the key for each cell, and Show in each picture that has it; returns what was wrong."""
    wrong = []
    page.evaluate(WATCH)
    parts = outline(notebook).parts
    for at, cell in enumerate(notebook["cells"]):
        asks = parts[at].waits_for_a_guess
        if not (asks or makes_lab(cell)):
            page.keyboard.press("Shift+Enter")
            continue
        page.evaluate(LOOK, [max(0, at - 1), False])  # until all before it has run
        found = press(page, at, cell)
        words = f"{at}: {source(cell)[:50]}"
        if not found["parts"] or found["outside"] > 1:
            wrong.append(f"{words}: {found['outside']:.0f} px of {found['height']:.0f} are outside")
        if asks and found["below"]:
            wrong.append(f"{words}: in the window were cells {found['below']}")
        if asks:
            wrong += [f"{words}: {fault}" for fault in show(page, at, cell)]
    return wrong


def show(page: Page, at: int, cell: Cell) -> Iterator[str]:
    """The answer is not seen when the next cell runs, but after Show; then the key goes on.

    Yields what was wrong with that.
    """
    found = press(page, at, cell)
    if found["below"]:
        yield f"after one more key, in the window were cells {found['below']}"
    if found["outside"] > 1:
        yield f"after one more key, {found['outside']:.0f} px are outside"
    waiting = page.locator(f"{HERE} .course-waits")
    waiting.get_by_role("button", name="Show", exact=True).click()
    waiting.wait_for(state="detached")
    shown = page.evaluate(LOOK, [at, makes_lab(cell)])
    if shown["outside"] > 1:
        yield f"when it is shown, {shown['outside']:.0f} px of {shown['height']:.0f} are outside"
    found = press(page, at, cell)
    if found["active"] != at + 1 or waiting.count():
        yield f"after Show, cell {found['active']} is chosen, and {waiting.count()} wait"


# The walk through a notebook takes half a minute of a browser. So one that asks in every way stands
# for all.
@pytest.mark.parametrize("path", few(NOTEBOOKS, SOME_NOTEBOOKS[:1]), ids=lambda path: path.stem)
def test_after_the_key_a_lab_is_in_the_window_and_no_answer_before_its_guess(
    students: Page, path: Path
):
    students.evaluate(OPEN, path.name)
    students.wait_for_function(IS_OPEN, arg=path.name)
    students.evaluate(REPLAY, str(path))
    assert walk(students, as_handed_out(read(path))) == []
    students.evaluate(CLOSE)


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
    students.evaluate(LOOK, [0, False])  # until the words are run, and what follows is in view
    return students


def code(page: Page, text: str) -> Locator:
    """The code with that text in the notebook in front."""
    return page.locator(f"{HERE} .jp-Cell .cm-content", has_text=text)


def after(page: Page, at: int, key: str = "Shift+Enter") -> dict[str, object]:
    """Press that key for that cell, and look."""
    page.evaluate(FORGET)
    page.keyboard.press(key)
    found = page.evaluate(LOOK, [at, False])
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
    assert after(short, 1)["active"] == 2, "from inside the field, the key goes on"
    assert short.locator(f"{HERE} .course-held").count() == 0


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


@pytest.mark.parametrize("short", [STILL], indirect=True)
def test_after_the_key_a_picture_is_whole_in_the_window(short: Page):
    after(short, 1)
    short.keyboard.press("Shift+Enter")
    picture = short.locator(f"{HERE} .jp-RenderedImage img")
    expect(picture).to_be_in_viewport(ratio=1)
    short.evaluate(LOOK, [2, False])
    expect(picture).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("short", [TABLE], indirect=True)
def test_after_the_key_a_table_is_whole_in_the_window(short: Page):
    after(short, 1)
    short.keyboard.press("Shift+Enter")
    rows = short.locator(f"{HERE} .jp-OutputArea-output table")
    expect(rows).to_be_in_viewport(ratio=1)
    short.evaluate(LOOK, [2, False])
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

    files = "**/api/contents/*.ipynb*"
    short.route(files, hold)
    with short.expect_request(lambda request: request.method == "PUT"):
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
    path = short.evaluate("() => window.jupyterapp.shell.currentWidget.context.path")
    ask = "(path) => window.jupyterapp.serviceManager.contents.get(path, { content: false })"
    short.evaluate(ask, path)  # answered after what a second save would have asked
    saves[0].fulfill(response=answer)
    assert short.evaluate("() => window.isDirtyAfterSaving")
    short.wait_for_function(f"() => !{dirty}")
    expect(short.locator(".jp-Dialog")).to_have_count(0)
    short.unroute(files, hold)


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
