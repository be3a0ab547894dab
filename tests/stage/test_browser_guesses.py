"""When the cell of a guess is in the middle of a laptop's window, nothing of the answer is in view.

That holds for every guess: in a copy, before an audience, on a page and on a slide. On a page it
holds for a phone, too.
"""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page

from course_utils.stage.notebook.code import asks_in, figure_in
from course_utils.stage.notebook.files import Cell, Notebook, read, source, write
from course_utils.stage.notebook.outline import outline
from course_utils.stage.pages import render
from course_utils.stage.slides.deck import deck
from course_utils.stage.workspace.copies import as_handed_out
from tests import NOTEBOOKS
from tests.helpers.browser import jupyterlab, skip_without_browser
from tests.helpers.pages import served
from tests.helpers.thorough import SOME_NOTEBOOKS, few_notebooks, some_or_all_notebooks
from tests.stage.test_present import presented
from tests.tools.slide_sheets import blank_page, open_deck

skip_without_browser()

LAPTOP = {"width": 1366, "height": 768}
PHONE = {"width": 390, "height": 844}
LARGE = {"width": 2560, "height": 1440}
OPEN = """async (name) => {
  const options = { path: name, kernel: { shouldStart: false } };
  await window.jupyterapp.commands.execute('docmanager:open', options);
}"""
SHOWS = """([name, all]) => {
  const { context, content } = window.jupyterapp.shell.currentWidget ?? {};
  return context?.path === name && content?.widgets?.length === all;
}"""
# With the cell's input in the middle of JupyterLab's window, the numbers of the cells below it that
# show in the window.
BELOW_THE_CELL = """async (at) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const twoFrames = async () => { await frame(); await frame(); };
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const panel = notebook.node.querySelector(".jp-WindowedPanel-outer");
  notebook.scrollToItem(at, "start");
  while (!notebook.widgets[at].editorWidget?.node.isConnected) await twoFrames();
  for (let times = 0; times < 5; times++) { // what is drawn on the way may move it
    await twoFrames();
    const input = notebook.widgets[at].editorWidget.node.getBoundingClientRect();
    const seen = panel.getBoundingClientRect();
    panel.scrollTop += (input.top + input.bottom - seen.top - seen.bottom) / 2;
  }
  const end = panel.getBoundingClientRect().bottom;
  const shows = ({ node }) => node.isConnected && node.getBoundingClientRect().top < end;
  const numbers = [...notebook.widgets.keys()];
  return numbers.filter((number) => number > at && shows(notebook.widgets[number]));
}"""
# The same on a page, with each question in the middle. What unfolds the rest may show.
BELOW_THE_QUESTIONS = """() => {
const folds = [...document.querySelectorAll("main details.fold")];
return folds.flatMap((fold) => {
  const question = fold.previousElementSibling;
  question.scrollIntoView({ block: "center" });
  const isBelow = (node) =>
    fold.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING &&
    node.localName !== "summary";
  const shows = (node) =>
    node.checkVisibility({ contentVisibilityAuto: true }) &&
    !node.closest("details:not([open])") &&
    node.getBoundingClientRect().top < innerHeight;
  return [...document.querySelectorAll("main *, footer")]
    .filter((node) => isBelow(node) && shows(node))
    .map((node) => `${question.textContent}: ${node.textContent.slice(0, 60)}`);
});
}"""

# What is read in the window at each guess of a deck, while a presenter turns the slides.
ON_THE_SLIDES = """() => [...document.querySelectorAll(".slide")].flatMap((slide) => {
  const seen = document.body.innerText.replace(/\\d+ \\/ \\d+\\s*$/, "");  // without "63 / 72"
  const asked = slide.textContent.match(/Your guess/g) ?? [];
  dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  return asked.map(() => seen);
})"""


def guesses(notebook: Notebook) -> list[int]:
    """The numbers of the cells with a guess."""
    return [at for at, part in enumerate(outline(notebook).parts) if part.waits_for_a_guess]


def ways(path: Path) -> set[str]:
    """The ways in which the notebook asks for a guess."""
    waiting = [part for part in outline(read(path)).parts if part.waits_for_a_guess]
    found = set()
    for part in waiting:
        if part.is_drawn_guess:
            found.add("in a picture")
            continue
        (ask,) = asks_in(part.text)
        found.add("for a word" if ask.among else "for a number")
        if len(ask.questions) > 1:
            found.add("for several")
    return found


def test_the_notebooks_that_stand_for_all_ask_in_every_way_and_have_the_most_labs():
    asking, with_labs = SOME_NOTEBOOKS
    assert ways(asking) == {"in a picture", "for several", "for a word", "for a number"}
    labs = {path: number_of_labs(path) for path in NOTEBOOKS}
    assert labs[with_labs] == max(labs.values())


def number_of_labs(path: Path) -> int:
    return sum("labs." in source(cell) for cell in read(path)["cells"])


def assert_nothing_follows(page: Page, paths: list[Path]) -> None:
    """In the JupyterLab of that page, nothing follows a guess in any of these notebooks."""
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content?.widgets?.length")
    for path in paths:
        notebook = read(path)
        cells = notebook["cells"]
        page.evaluate(OPEN, path.name)
        page.wait_for_function(SHOWS, arg=[path.name, len(cells)])
        for at in guesses(notebook):
            below = page.evaluate(BELOW_THE_CELL, at)
            texts = [source(cells[number])[:60] for number in below]
            assert texts == [], source(cells[at])


@some_or_all_notebooks
def test_in_a_students_copy(tmp_path: Path, chromium: Browser, paths: list[Path]):
    for path in paths:
        write(tmp_path / path.name, as_handed_out(read(path)))
    page = chromium.new_page(viewport=LAPTOP)
    with jupyterlab(tmp_path) as address:
        page.goto(address.format(paths[0]))
        assert_nothing_follows(page, paths)
        page.set_viewport_size(LARGE)
        assert_nothing_follows(page, paths[:1])
        page.close()


@some_or_all_notebooks
def test_before_an_audience(tmp_path: Path, chromium: Browser, paths: list[Path]):
    (tmp_path / "notebooks").mkdir()
    for path in paths:
        write(tmp_path / "notebooks" / path.name, read(path))
    page = chromium.new_page(viewport=LAPTOP)
    with presented(tmp_path / "notebooks" / paths[0].name) as (address, token):
        page.goto(f"{address}/?token={token}")
        assert_nothing_follows(page, paths)
        page.close()


@few_notebooks
def test_on_a_page(tmp_path: Path, chromium: Browser, path: Path):
    (tmp_path / "page.html").write_text(render.notebook_page(path, {}), encoding="utf-8")
    # It leaves space below a question.
    (tmp_path / "style.css").write_text(render.style(), encoding="utf-8")
    page = chromium.new_page(viewport=LAPTOP)
    with served(tmp_path) as address:
        page.goto(f"{address}/page.html")
        assert page.locator("main details.fold").count() == len(guesses(read(path)))
        assert page.evaluate(BELOW_THE_QUESTIONS) == []
        page.set_viewport_size(PHONE)
        assert page.evaluate(BELOW_THE_QUESTIONS) == []
    page.close()


def revealed(guess: Cell, below: list[Cell]) -> set[str]:
    """What the table with this guess says was measured.

    It leaves out what may stand on a slide by chance: a single digit, and a time, which is another
    with each run.
    """
    if figure_in(source(guess)):
        return set()  # it is a picture, on the next slide
    name, _, _ = source(guess).partition(" ")
    reveals = re.compile(rf"(?:guess=|reveal\().*\b{name}\b", re.DOTALL)
    code = [cell for cell in below if cell["cell_type"] == "code"]
    table = next(cell for cell in code if reveals.search(source(cell)))
    if "nbval-ignore-output" in table["metadata"].get("tags", []):
        return set()
    _, *lines = "".join(table["outputs"][-1]["data"]["text/plain"]).splitlines()
    measured = set()
    for line in lines:
        _, *columns = re.split(r"\s{2,}", line.strip())
        measured.add(columns[:2][-1])  # behind the prediction, if there is one
    return measured - set("0123456789")


@few_notebooks
def test_on_a_slide(tmp_path: Path, chromium: Browser, path: Path):
    """What was measured is not there.

    The question itself may have that number, or offer that word.
    """
    notebook = read(path)
    cells = notebook["cells"]
    file = tmp_path / "deck.html"
    file.write_text(deck(path), encoding="utf-8")
    with blank_page(chromium) as page:
        open_deck(page, file, (LAPTOP["width"], LAPTOP["height"]))
        slides = page.evaluate(ON_THE_SLIDES)
    for at, slide in zip(guesses(notebook), slides, strict=True):
        guess = source(cells[at])
        question = next(source(cell) for cell in cells[at::-1] if cell["cell_type"] == "markdown")
        offered = set(re.findall(r'"([^"]+)"', guess))
        for answer in revealed(cells[at], cells[at + 1 :]) - offered:
            words = re.compile(rf"(?<![\w.,]){re.escape(answer)}(?![\w]|[.,]\d)")
            in_question = words.findall(f"{question} {guess}")
            assert len(words.findall(slide)) <= len(in_question), f"{answer} stands on: {slide}"
