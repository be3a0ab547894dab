"""Every guess of every notebook, with its cell in the middle of a laptop's window: nothing that follows it is in view."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page

from course_utils.stage.notebook.code import figure_in
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
OPEN = """async (name) => {
  await window.jupyterapp.commands.execute('docmanager:open', { path: name, kernel: { shouldStart: false } });
}"""
SHOWS = """([name, all]) => {
  const { context, content } = window.jupyterapp.shell.currentWidget ?? {};
  return context?.path === name && content?.widgets?.length === all;
}"""
# The cells below it that show in JupyterLab's window, as numbers, with its input in the middle.
BELOW_THE_CELL = """async (at) => {
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const notebook = window.jupyterapp.shell.currentWidget.content, panel = notebook.node.querySelector(".jp-WindowedPanel-outer");
  notebook.scrollToItem(at, "start");
  while (!notebook.widgets[at].editorWidget?.node.isConnected) await frames();
  for (let times = 0; times < 5; times++) { // what is drawn on the way may move it
    await frames();
    const input = notebook.widgets[at].editorWidget.node.getBoundingClientRect(), seen = panel.getBoundingClientRect();
    panel.scrollTop += (input.top + input.bottom - seen.top - seen.bottom) / 2;
  }
  const end = panel.getBoundingClientRect().bottom, shows = ({ node }) => node.isConnected && node.getBoundingClientRect().top < end;
  return notebook.widgets.flatMap((cell, number) => (number > at && shows(cell) ? [number] : []));
}"""
# The same on a page: what stands below each question, beside what unfolds the rest.
BELOW_THE_QUESTIONS = """() => [...document.querySelectorAll("main details.fold")].flatMap((fold) => {
  const question = fold.previousElementSibling;
  question.scrollIntoView({ block: "center" });
  const after = (one) => fold.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING && one.localName !== "summary";
  return [...document.querySelectorAll("main *, footer")].filter((one) => after(one) && one.checkVisibility({ contentVisibilityAuto: true }))
    .filter((one) => !one.closest("details:not([open])") && one.getBoundingClientRect().top < innerHeight)
    .map((one) => `${question.textContent}: ${one.textContent.slice(0, 60)}`);
})"""

# What is read in the window at each guess of a deck, while a presenter turns the slides.
ON_THE_SLIDES = """() => [...document.querySelectorAll(".slide")].flatMap((slide) => {
  const seen = document.body.innerText, asked = slide.textContent.match(/Your guess/g) ?? [];
  dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  return asked.map(() => seen);
})"""


def guesses(notebook: Notebook) -> list[int]:
    """Where the cells with a guess stand."""
    return [at for at, part in enumerate(outline(notebook).parts) if part.waits_for_a_guess]


def ways(path: Path) -> set[str]:
    """The ways in which the notebook asks for a guess."""
    waiting = [part for part in outline(read(path)).parts if part.waits_for_a_guess]
    drawn = {"in a picture" for part in waiting if part.is_drawn_guess}
    typed = [part.text for part in waiting if not part.is_drawn_guess]
    several = {"for several" for text in typed if text.count("...") > 1}
    return drawn | several | {"for a word" if '"' in text else "for a number" for text in typed}


def test_the_notebooks_that_stand_for_all_ask_in_every_way_and_have_the_most_labs():
    asking, with_labs = SOME_NOTEBOOKS
    assert ways(asking) == {"in a picture", "for several", "for a word", "for a number"}
    labs = {
        path: sum("labs." in source(cell) for cell in read(path)["cells"]) for path in NOTEBOOKS
    }
    assert labs[with_labs] == max(labs.values())


def assert_nothing_follows(page: Page, paths: list[Path]) -> None:
    """In each of these notebooks, one after the other, in the JupyterLab of that page."""
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.content?.widgets?.length")
    for path in paths:
        notebook = read(path)
        cells = notebook["cells"]
        page.evaluate(OPEN, path.name)
        page.wait_for_function(SHOWS, arg=[path.name, len(cells)])
        for at in guesses(notebook):
            below = page.evaluate(BELOW_THE_CELL, at)
            assert not below, f"{source(cells[at])}: {[source(cells[one])[:60] for one in below]}"


@some_or_all_notebooks
def test_in_a_students_copy(tmp_path: Path, chromium: Browser, paths: list[Path]):
    for path in paths:
        write(tmp_path / path.name, as_handed_out(read(path)))
    page = chromium.new_page(viewport=LAPTOP)
    with jupyterlab(tmp_path) as address:
        page.goto(address.format(paths[0]))
        assert_nothing_follows(page, paths)
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
    page.close()


def revealed(guess: Cell, below: list[Cell]) -> set[str]:
    """What the table that the guess is set against says was measured.

    Left out is what may stand on a slide by chance: a single digit, and a time, which is another with each run.
    """
    if figure_in(source(guess)):
        return set()  # it is a picture, on the next slide
    named = re.compile(rf"guess=.*\b{source(guess).partition(' ')[0]}\b")
    table = next(
        cell for cell in below if cell["cell_type"] == "code" and named.search(source(cell))
    )
    if "nbval-ignore-output" in table["metadata"].get("tags", []):
        return set()
    lines = "".join(table["outputs"][-1]["data"]["text/plain"]).splitlines()[1:]
    return {re.split(r"\s{2,}", line.strip())[1:3][-1] for line in lines} - set("0123456789")


@few_notebooks
def test_on_a_slide(tmp_path: Path, chromium: Browser, path: Path):
    """What was measured is not there, but where the question itself has that number, or offers that word."""
    notebook, file = read(path), tmp_path / "deck.html"
    file.write_text(deck(path), encoding="utf-8")
    with blank_page(chromium) as page:
        open_deck(page, file, (LAPTOP["width"], LAPTOP["height"]))
        slides = page.evaluate(ON_THE_SLIDES)
    for at, slide in zip(guesses(notebook), slides, strict=True):
        cells = notebook["cells"]
        question = next(source(cell) for cell in cells[at::-1] if cell["cell_type"] == "markdown")
        offered = set(re.findall(r'"([^"]+)"', source(cells[at])))
        for answer in revealed(cells[at], cells[at + 1 :]) - offered:
            words = re.compile(rf"(?<![\w.,]){re.escape(answer)}(?![\w]|[.,]\d)")
            in_question = words.findall(f"{question} {source(cells[at])}")
            assert len(words.findall(slide)) <= len(in_question), f"{answer} stands on: {slide}"
