"""The workspace as a reader meets it, in a real JupyterLab.

The contents page opens first, and one exercise goes from wrong to right.
"""

import re
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Page, expect

from course_utils.core import record
from course_utils.core.accountant_file import MARK
from course_utils.core.say import Guess
from tests import NOTEBOOKS, ROOT
from tests.helpers.browser import (
    EXPOSED,
    HAS_KERNEL,
    NEXT_FRAMES,
    answer,
    run_all,
    served,
    skip_without_browser,
    start_kernel,
)
from tests.helpers.waiting import wait_until
from tests.helpers.workspace import FLOPS, come_back, course_with_a_short_notebook, guess, try_it
from tests.stage.test_browser_access import faults

skip_without_browser()

FORGET_AND_LOOK = """async () => {
  const form = document.querySelector(".record form");
  const body = new URLSearchParams(new FormData(form));
  body.set("do", "forget");
  await fetch(location.pathname, { method: "POST", body, redirect: "manual" });
  await fetch(location.pathname + "?look=1");
}"""
TO_THE_TOP = "(outer) => { outer.scrollTop = 0; }"
WRONG_DAYS = ('return course("days")(flops, gpus, peak, share)  ' + MARK, "return flops")


def test_the_contents_page_opens_first_and_shows_what_is_done_as_soon_as_one_comes_back(
    tmp_path, chromium
):
    folder = tmp_path / "ein Kurs für ünş"
    folder.mkdir()
    course_with_a_short_notebook(folder)
    mine = folder / "my_notebooks"
    mine.mkdir()
    (mine / "05_gradients.ipynb").write_text("<b>notes</b>")
    make_lab = ["-m", "course_utils.stage.workspace", "--ip=127.0.0.1", EXPOSED]
    with served(make_lab, tmp_path, cwd=folder, PYTHONPATH=str(folder)) as (address, token):
        with pytest.raises(urllib.error.HTTPError, match="403"):  # no token, no button
            urllib.request.urlopen(f"{address}/contents", b"do=forget", timeout=10)
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto(f"{address}/?token={token}")
        assert page.url.startswith(f"{address}/contents")
        expect(page.locator(".said")).to_contain_text("05_gradients.ipynb stays as it is")
        links = page.locator(".notebooks > li > h2 > a")
        hrefs = links.evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
        assert hrefs == [f"/lab/tree/my_notebooks/{path.name}" for path in NOTEBOOKS]
        assert page.locator(".question").all_inner_texts() == questions()
        card = page.locator(".notebooks > li").nth(3)
        begin = page.locator(".begin a")
        expect(begin).to_have_text("Start: 1, Floats")
        expect(begin).to_have_attribute("href", f"/lab/tree/my_notebooks/{NOTEBOOKS[0].name}")

        # All that changes something is behind one menu.
        expect(page.locator("button:visible")).to_have_text(["Pause"])
        menu = page.get_by_text("Turns one by one, results, your files and your record")
        menu.click()
        fourth = page.locator(".each > li").nth(3)
        turns = fourth.locator("summary").first
        expect(turns).to_have_text("Your turns: 0 of 2 right on the main path")
        expect(turns).to_be_visible()
        expect(page.get_by_role("link", name="Go on where you were")).to_have_count(0)
        colours = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert faults(page, "body") == [], scheme
        assert colours == ["rgb(255, 255, 255)", "rgb(20, 24, 28)"]

        # For somebody who only wants to read: results, and no kernel is needed for them.
        assert "iVBOR" not in (mine / FLOPS).read_text(encoding="utf-8")
        fourth.get_by_role("button", name="Show the results of notebook 4").click()
        status = page.get_by_role("status")
        expect(status).to_contain_text("04_flops shows the course's results")
        menu.click()

        # By keyboard into the notebook.
        start_kernel(f"{address}/lab/tree/{{}}?token={token}", mine / FLOPS, "my_notebooks/")
        links.nth(3).focus()
        with context.expect_page() as opened:
            page.keyboard.press("Enter")
        lab = opened.value
        lab.on("dialog", lambda dialog: dialog.accept())
        question = lab.locator("dialog.jp-Dialog")
        lab.add_locator_handler(question, lambda: answer(question), no_wait_after=True)
        lab.wait_for_selector(".jp-NotebookPanel .jp-Cell")
        figure = lab.locator(".jp-OutputArea-output img")
        expect(figure).to_be_visible()
        lab.evaluate("document.body.dataset.jpThemeLight = false")  # as its dark theme does
        expect(figure).to_have_css("filter", re.compile("invert"))  # no white on the dark page
        expect(lab.get_by_text("Error displaying widget")).to_have_count(0)
        lab.wait_for_function(HAS_KERNEL)  # it has told its language by now, and nothing is unsaved
        tab = lab.locator(".lm-TabBar-tab.jp-mod-current")
        expect(tab).not_to_have_class(re.compile("jp-mod-dirty"))
        run_all(lab, mine / FLOPS)
        assert record.done(mine) == {}, "what is not attempted is not noted"
        guess(lab, "my_product", "21")
        wait_until(lambda: record.guesses(mine), "the guess is noted")
        assert record.guesses(mine) == {"flops": [Guess("6 × 7", 21, 42)]}
        come_back(page)
        expect(fourth).to_contain_text("1 guess: right power of ten")
        expect(page.locator(".guesses-so-far circle")).to_have_count(1)
        expect(card.locator(".ring.guesses")).to_contain_text("1 of 1")
        try_it(lab, "'fp32'", mine, "tried")
        come_back(page)
        expect(fourth.locator(".exercises")).to_contain_text("tried 1 time")
        try_it(lab, "'tf32'", mine, "right")
        come_back(page)
        expect(fourth.locator(".exercises")).to_contain_text("right since")
        expect(turns).to_have_text("Your turns: 1 of 2 right on the main path")
        check = id_of(mine / FLOPS, "check.name_of_f32(")
        expect(card.locator(".ring.turns")).to_contain_text("1 of 2")
        where = card.get_by_role("link", name="Go on where you were")
        address_of_check = f"/lab/tree/my_notebooks/{FLOPS}#cell-id={check}"
        expect(where).to_have_attribute("href", address_of_check)
        expect(begin).to_have_attribute("href", address_of_check)
        expect(begin).to_contain_text("Continue: 4, ")

        # A turn begins anew, and the record is deleted.
        lab.bring_to_front()
        lab.keyboard.press("Control+s")
        own = mine / FLOPS
        wait_until(lambda: "really = 'tf32'" in own.read_text(encoding="utf-8"), "it is saved")
        lab.close()
        page.bring_to_front()
        fourth.get_by_role("button", name="Begin anew: your turn 2, The name_of_f32").click()
        kept = "As it was when last saved: my_notebooks/earlier/04_flops"
        expect(status).to_contain_text(f"begins anew. {kept}")
        assert "really = 'tf32'" not in own.read_text(encoding="utf-8")
        expect(fourth.locator(".exercises")).to_contain_text("not attempted")
        menu.click()
        delete = page.get_by_role("button", name="Yes, delete the record")
        expect(delete).to_be_hidden()  # it asks first
        page.get_by_text("Delete the record", exact=True).click()
        delete.click()
        kept = "As it was: my_notebooks/earlier/record"
        expect(status).to_contain_text(f"The record begins anew. {kept}")
        assert not (mine / "record.txt").exists()
        (kept,) = (mine / "earlier").glob("record*.txt")
        assert "flops.name_of_f32 right" in kept.read_text(encoding="utf-8")

        # What was done is said to the reader, though the page's script has looked meanwhile.
        page.evaluate(FORGET_AND_LOOK)
        page.reload()
        expect(status).to_contain_text("There is no record")

        # The accountant, in an editor.
        with context.expect_page() as opened:
            page.get_by_role("link", name="accountant.py").click()
        expect(opened.value.locator(".jp-FileEditor")).to_contain_text("An accountant of training")

        # A term that is written there by hand, and wrong, is noticed on the page.
        file = mine / "accountant.py"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(*WRONG_DAYS), encoding="utf-8")
        come_back(page)
        expect(page.get_by_text("You wrote: days.")).to_contain_text("is being checked")
        expect(page.get_by_text("days is not right as it stands there")).to_be_visible()
        context.close()


def test_go_on_where_you_were_opens_the_notebook_at_the_cell_that_ran_last(tmp_path, chromium):
    course_with_a_short_notebook(tmp_path)
    mine = tmp_path / "my_notebooks"
    make_lab = ["-m", "course_utils.stage.workspace", "--ip=127.0.0.1", EXPOSED]
    with served(make_lab, tmp_path, cwd=tmp_path, PYTHONPATH=str(tmp_path)) as (address, token):
        context = chromium.new_context(viewport={"width": 1366, "height": 768})
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto(f"{address}/?token={token}")
        name = "01_floats.ipynb"
        start_kernel(f"{address}/lab/tree/{{}}?token={token}", mine / name, "my_notebooks/")
        far = id_of(mine / name, "check.scale_for_e4m3(")
        middle = id_of(mine / name, "check.ends(")
        first = page.locator(".notebooks > li").first
        link = first.get_by_role("link", name="Go on where you were")
        record.note_place(mine, "floats", far)
        come_back(page)
        with context.expect_page() as opened:
            link.click()
        lab = opened.value
        lab.on("dialog", lambda dialog: dialog.accept())
        assert_stands_at(lab, far, "check.scale_for_e4m3(")

        # The link leads to the same tab, which is open and has been scrolled away since.
        window = lab.locator(".jp-WindowedPanel-outer")
        lab.keyboard.press("Escape")  # a key ends the scrolling to the cell
        window.evaluate(TO_THE_TOP)
        expect(lab.get_by_role("heading", name="1 · Floats")).to_be_in_viewport()
        record.note_place(mine, "floats", middle)
        page.bring_to_front()
        come_back(page)
        expect(link).to_have_attribute("href", re.compile(middle))
        link.click()
        assert_stands_at(lab, middle, "check.ends(")
        assert len(context.pages) == 2

        # An output's text breaks between words, such as the text in the space below a guess.
        lab.keyboard.press("Escape")
        window.evaluate(TO_THE_TOP)
        said = lab.locator(".jp-OutputArea-output pre", has_text="Your guess comes first").first
        expect(said).to_have_css("word-break", "normal")
        context.close()


def id_of(notebook: Path, words: str) -> str:
    (cell,) = (cell for cell in nbformat.read(notebook, 4).cells if words in cell.source)
    return cell.id


def assert_stands_at(lab: Page, cell: str, words: str) -> None:
    """That cell is active and in view, and the notebook's top is not.

    It stays so when all pictures are there.
    """
    active = "window.jupyterapp?.shell.currentWidget?.content?.activeCell?.model.id"
    lab.wait_for_function(f"{active} === '{cell}'")
    code = lab.locator(".jp-CodeCell.jp-mod-active .cm-content")
    for _ in range(2):
        expect(code).to_contain_text(words)
        expect(code).to_be_in_viewport(ratio=1)
        expect(lab.get_by_role("heading", name="1 · Floats")).not_to_be_in_viewport()
        lab.wait_for_load_state("networkidle")
        lab.evaluate(NEXT_FRAMES)


def questions() -> list[str]:
    """The questions as the README has them: in the third column of its table."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    return [line.split(" | ")[2] for line in lines if re.match(r"\| \d ", line)]
