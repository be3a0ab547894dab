"""Presenting: a copy, large, with working labs and one key to go on."""

import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from course_utils.stage.present.server import main, present
from course_utils.stage.workspace import spacers
from course_utils.stage.workspace.copies import named
from tests import NOTEBOOKS
from tests.engine.test_labs_contract import NAMES
from tests.helpers.browser import (
    EXPOSED,
    HAS_KERNEL,
    lab_of,
    launched,
    notebook_of,
    press,
    served,
    skip_without_browser,
)
from tests.helpers.key_walk import LAPTOP, REPLAY, walk
from tests.helpers.thorough import thorough
from tests.helpers.waiting import wait_until

skip_without_browser()
WIDTH = 1280
HEIGHT = 720
SOURCES = (
    "# A title\n\n" + "Some words.\n\n" * 12,
    "import time\n\nfrom course_utils import ask, labs",
    "time.sleep(1)\nprint('\\n'.join(map(str, range(20))))",
    "labs.float_lab()",
    'my_guess = ask("the end")',
    "'the end'",
)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_can_be_named_in_four_ways(path):
    number = path.stem[:2]
    assert {named(name) for name in (number, str(int(number)), path.stem, path.name)} == {path}


@pytest.mark.parametrize("name", ["", "9", "0", "floats", "../notebooks/01_floats.ipynb", "4; ls"])
def test_nonsense_gets_a_sentence_that_lists_what_there_is(name, capsys):
    assert main([name]) == 2
    said = capsys.readouterr().err
    assert all(path.stem in said for path in NOTEBOOKS)
    assert said.rstrip().endswith("make present NB=04")


@pytest.mark.parametrize("options", [[], ["--results"]])
def test_results_are_hidden_until_they_are_run_unless_asked_otherwise(
    tmp_path, monkeypatch, options
):
    (tmp_path / "notebooks").mkdir()
    path = Path(shutil.copy(NOTEBOOKS[0], tmp_path / "notebooks"))
    (path.parent / "Untitled.ipynb").write_text('{"cells": [{"source": "no id"}]}')
    stored = path.read_bytes()
    shows_results = []

    def serve(arguments):
        assert "--results" not in arguments
        (option,) = (argument for argument in arguments if "root_dir" in argument)
        _, _, root = option.partition("=")
        cells = nbformat.read(Path(root) / path.name, as_version=4).cells
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        texts = [output.get("data", {}).get("text/plain", "") for output in outputs]
        shows_results.append(any(spacers.WORDS not in text for text in texts))

    monkeypatch.setattr("jupyterlab.labapp.main", serve)
    monkeypatch.setattr("os.environ", dict(os.environ))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    present(path, options)
    assert shows_results == [bool(options)]
    assert path.read_bytes() == stored


PRESENT = """
import os, sys
from pathlib import Path
from course_utils.stage.present.server import present, room
with room(os.environ.get("ROOM", ""), shows=False):
    present(Path(sys.argv[1]), sys.argv[2:])
"""


@contextmanager
def presented(chosen: Path, **more: str) -> Iterator[tuple[str, str]]:
    """The address that a presentation answers at, and its token."""
    temporary = chosen.parent.parent / "temporary"
    temporary.mkdir()
    command = ["-c", PRESENT, str(chosen), EXPOSED]
    with served(command, temporary, TMPDIR=str(temporary), **more) as server:
        yield server
    assert list(temporary.glob("presenting-*")) == [], "the copy has to go with the server"


def top_of(page: Page, number: int) -> float:
    """How far below the window's upper edge a cell begins."""
    return page.locator(".jp-Cell").nth(number).bounding_box()["y"]


def stands_at(part: Locator, y: float) -> bool:
    return abs(part.bounding_box()["y"] - y) < 12


def drag(page: Page, handle: dict[str, float], by: float) -> None:
    """Drag what lies in that box to the right."""
    x = handle["x"] + handle["width"] / 2
    y = handle["y"] + handle["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by, y, steps=5)
    page.mouse.up()


# The name of each animation, and how many milliseconds it takes.
ANIMATIONS = """() => document.getAnimations().map(
  ({ animationName, effect }) => [animationName, effect.getTiming().duration]
)"""


def run_next(page: Page, ran: int, key: str = "Shift+Enter") -> None:
    """Go on, and wait until that cell has run."""
    page.keyboard.press(key)
    expect(page.locator(".jp-Cell").nth(ran + 1)).to_contain_class("jp-mod-active")
    if ran:  # the first is a text
        prompt = page.locator(".jp-Cell").nth(ran).locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))


def test_a_presentation_is_a_copy_with_large_type_a_key_to_go_on_and_working_labs(
    tmp_path, chromium
):
    chosen = tmp_path / "notebooks" / "talk.ipynb"
    chosen.parent.mkdir()
    cells = [nbformat.v4.new_markdown_cell(SOURCES[0])]
    cells += [nbformat.v4.new_code_cell(source) for source in SOURCES[1:]]
    stored = nbformat.v4.new_output("execute_result", {"text/plain": "the stored end"})
    cells[-1].outputs = [stored]
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), chosen)
    before = chosen.read_bytes()

    with presented(chosen) as (address, token):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{address}/api/contents", timeout=10)
        seen = launched(chromium.browser_type)  # which scrolls by the wheel
        page = seen.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(HAS_KERNEL)  # a cell that is run before is lost

        # Only the notebook, and large; what it will show is still to come.
        expect(page.get_by_text("the stored end")).to_have_count(0)
        window = page.locator(".jp-WindowedPanel-outer").bounding_box()
        assert window["width"] == WIDTH
        assert window["height"] >= HEIGHT - 30
        size = "(node) => parseFloat(getComputedStyle(node).fontSize)"
        assert page.locator(".jp-MarkdownOutput p").first.evaluate(size) > 21
        assert page.locator(".cm-content").first.evaluate(size) > 17

        # The cell that ran comes to the top, or its lab, even if what it shows comes late.
        for ran, key in enumerate(["Shift+Enter", "PageDown", "Shift+Enter", "Shift+Enter"]):
            run_next(page, ran, key)
            if ran:
                cell = page.locator(".jp-Cell").nth(ran)
                shown = cell.locator(".jp-Cell-inputWrapper, .course-lab").last
                is_at_the_top = partial(stands_at, shown, window["y"])
                wait_until(is_at_the_top, f"cell {ran} stands at the top, after {key}")

        # A lab works by mouse; the page rests meanwhile.
        lab = lab_of(page, "float")
        rests = top_of(page, 3)
        meaning = lab.locator(".course-meaning")
        too_large = "65520 is too large for fp16, E4M3, E5M2 and E2M1"
        press(lab, "65520?")
        expect(meaning).to_contain_text(too_large)
        handle = lab.locator(".noUi-handle").bounding_box()
        drag(page, handle, 20)
        expect(meaning).not_to_contain_text(too_large)
        moved = lab.locator(".noUi-handle").bounding_box()
        assert abs(moved["x"] - handle["x"] - 20) < 4, "the handle has to stay under the pointer"
        assert top_of(page, 3) == rests

        # And one can scroll away. A click selects what was clicked, and moves nothing.
        page.mouse.wheel(0, -200)
        wait_until(lambda: top_of(page, 3) > rests + 150, "the page has moved")
        for _ in range(2):
            page.keyboard.press("ArrowUp")  # by key, so that the browser shows where it is
            page.wait_for_timeout(600)  # longer than it takes to arrive
            page.mouse.wheel(0, top_of(page, 3) - HEIGHT + 60)
            wait_until(lambda: HEIGHT - 90 < top_of(page, 3) < HEIGHT - 30, "two cells are in view")
            prompt = page.locator(".jp-Cell").nth(3).locator(".jp-InputPrompt")
            before_click = prompt.bounding_box()["y"]
            prompt.click()
            expect(page.locator(".jp-Cell").nth(3)).to_contain_class("jp-mod-active")
            page.wait_for_timeout(600)
            assert abs(prompt.bounding_box()["y"] - before_click) < 12

        # A lab says that its kernel was restarted. At a guess a minute can be started.
        session = "window.jupyterapp.shell.currentWidget.sessionContext.session"
        page.evaluate(f"() => {session}.kernel.restart()")
        said = "(one) => getComputedStyle(one, '::before').content"
        wait_until(lambda: "has been restarted" in lab.evaluate(said), "the lab says what to do")
        assert ["course-minute", 60_000] not in page.evaluate(ANIMATIONS)
        page.get_by_text("One minute").click()
        assert ["course-minute", 60_000] in page.evaluate(ANIMATIONS)
        seen.close()
    assert chosen.read_bytes() == before
    assert [path.name for path in chosen.parent.iterdir()] == [chosen.name]


QUESTION = "What is six times seven?"
ASKED = [
    "# A title\n\n" + "Some words.\n\n" * 12,
    "from course_utils import ask",
    QUESTION,
    'my_guess = ask("6 × 7", "apples")',
    "Let us see.",
    "from course_utils import reveal\n\nreveal(my_guess, predicted=42, measured=6 * 7)",
    "So it is 42.\n\n" * 20,
    "from matplotlib import pyplot as plt\n" + "x = 0\n" * 14 + "_ = plt.plot([1, 2])",
    "More words.\n\n" * 20,
]


def test_a_field_has_its_question_above_it_large_type_and_nothing_of_what_follows(
    tmp_path, chromium
):
    (tmp_path / "notebooks").mkdir()
    chosen = notebook_of(tmp_path / "notebooks" / "talk.ipynb", [])
    notebook = nbformat.read(chosen, as_version=4)
    for at, text in enumerate(ASKED):
        kind = nbformat.v4.new_code_cell if at % 2 else nbformat.v4.new_markdown_cell
        notebook.cells.append(kind(text))
    nbformat.write(notebook, chosen)
    with presented(chosen) as (address, token):
        page = chromium.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(HAS_KERNEL)
        for _ in ASKED[:4]:
            page.keyboard.press("PageDown")
        field = page.get_by_role("textbox", name="6 × 7")
        question = page.locator("p", has_text=QUESTION)
        follows = page.locator("p", has_text="Let us see.")
        active = page.locator(".jp-Cell.jp-mod-active")
        for key in ("", "PageDown", "PageDown"):
            if key:
                page.keyboard.press(key)
            expect(field).to_be_in_viewport(ratio=1)
            expect(question).to_be_in_viewport(ratio=1)
            expect(follows).not_to_be_in_viewport()
        assert field.bounding_box()["height"] > 40, "letters as large as those of the text"

        # After Show, the keys of a presenter's remote go on from what follows, and back.
        field.fill("40")
        field.press("Enter")
        page.locator(".course-ask-show").click()
        expect(follows).to_be_in_viewport()
        page.keyboard.press("PageUp")
        page.keyboard.press("PageUp")
        expect(active).to_contain_text(QUESTION)
        notebook = "window.jupyterapp.shell.currentWidget.content"
        page.evaluate(f"() => {{ {notebook}.activeCellIndex = 4; {notebook}.activate(); }}")
        expect(active).to_contain_text("Let us see.")

        # A reveal's picture is as wide as the text, and its words are as large.
        for _ in ASKED[4:6]:
            page.keyboard.press("PageDown")
        reveal = page.locator(".jp-RenderedHTML svg[role=img]")
        expect(reveal).to_be_in_viewport(ratio=1)
        assert reveal.bounding_box()["width"] > 1100
        words = reveal.locator("text", has_text="your guess")
        assert words.bounding_box()["height"] > 20

        # A figure is seen whole, below however much code.
        for _ in ASKED[6:8]:
            page.keyboard.press("PageDown")
        expect(page.locator(".jp-RenderedImage img")).to_be_in_viewport(ratio=0.99)
        page.close()


# In JupyterLab, tests/stage/test_browser_keys.py walks so. Here a walk takes a minute.
@thorough
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_after_the_key_a_lab_or_figure_is_in_the_window_and_no_answer_before_its_guess(
    tmp_path, chromium, path
):
    (tmp_path / "notebooks").mkdir()
    chosen = Path(shutil.copy(path, tmp_path / "notebooks"))
    with presented(chosen) as (address, token):
        page = chromium.new_page(viewport=LAPTOP)
        page.set_default_timeout(120_000)
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(HAS_KERNEL)
        page.evaluate(REPLAY, str(path))
        assert walk(page, path) == []
        page.close()


SMALLEST_PX = """(lab) => {
  const svg = lab.querySelector(".course-picture svg");
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const words = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
  return Math.min(...words.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
}"""

SMALLEST_CONTROL_PX = """(lab) => {
  const controls = [...lab.querySelectorAll(".widget-label, button")];
  const isShown = (control) =>
    control.offsetParent && control.textContent.trim() && !control.closest(".course-screen");
  const size = (control) => parseFloat(getComputedStyle(control).fontSize) * control.currentCSSZoom;
  return Math.min(...controls.filter(isShown).map(size));
}"""

# Whether no scroll bar takes space from it, and nothing lies over its left edge.
FREE = """(lab) => {
  const around = [lab, lab.parentElement, lab.closest(".jp-Cell-outputArea")];
  const { left, top } = lab.getBoundingClientRect();
  const hasNoBar = around.every((part) => getComputedStyle(part).overflowY === "visible");
  return hasNoBar && lab.contains(document.elementFromPoint(left + 20, top + 20));
}"""


# One has the most words in its picture, one the most controls, and in one a guess is drawn.
SOME_LABS = ["float", "timeline", "sum"]


@pytest.mark.parametrize(
    "names", [SOME_LABS, pytest.param(NAMES, marks=thorough)], ids=["some", "all"]
)
def test_each_lab_fits_on_one_screen_and_the_last_row_reads_its_letters(tmp_path, chromium, names):
    (tmp_path / "notebooks").mkdir()
    sources = ["from course_utils import labs", *(f"labs.{name}_lab()" for name in names)]
    chosen = notebook_of(tmp_path / "notebooks" / "talk.ipynb", sources)
    with presented(chosen) as (address, token):
        page = chromium.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{address}/?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function(HAS_KERNEL)
        for _ in sources:
            page.keyboard.press("Shift+Enter")
        for width, height, letters_px in ((1366, 768, 15.5), (1920, 1080, 19)):
            page.set_viewport_size({"width": width, "height": height})
            window = page.locator(".jp-WindowedPanel-outer").bounding_box()["height"]
            for name in names:
                case = f"{name} at {width} × {height}"
                lab = lab_of(page, name)
                expect(lab.locator("svg").first).to_be_visible()
                assert lab.bounding_box()["height"] <= window, case
                assert lab.evaluate(FREE), case
                assert lab.evaluate(SMALLEST_PX) >= 16 * width / 1366, case
                assert lab.evaluate(SMALLEST_CONTROL_PX) >= letters_px, case

        # Though it is enlarged, a slider's handle stays under the pointer.
        handle = lab_of(page, "float").locator(".noUi-handle").first
        begins = handle.bounding_box()
        drag(page, begins, 60)
        end = begins["x"] + 60
        wait_until(lambda: abs(handle.bounding_box()["x"] - end) < 8, "the handle has followed")
        page.close()
