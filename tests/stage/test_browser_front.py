"""The contents page and the site's front page, by keyboard, on each screen and in each theme."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.engine.labs.powers import PowerOfTwo
from course_utils.stage.front import drawing
from course_utils.stage.pages import render
from course_utils.stage.workspace import progress
from tests import NOTEBOOKS
from tests.helpers import pages
from tests.helpers.browser import EXPOSED, served, skip_without_browser
from tests.helpers.workspace import come_back, course_with_a_short_notebook
from tests.stage.test_browser_access import faults

skip_without_browser()

SCREENS = [(1920, 1080), (1366, 768), (1024, 768), (390, 844)]

SLIDER = "Moment of the step"
# What has the keyboard's focus, and whether it shows: the element, or the card around it.
FOCUSED = """() => {
  const node = document.activeElement;
  const shown = [node, node.closest(".card")].filter(Boolean);
  const hasOutline = ({ outlineStyle, outlineWidth }) =>
    outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
  return [node.tagName + node.textContent.trim(), shown.map(getComputedStyle).some(hasOutline)];
}"""
NOT_IN_VIEW = """() => {
  const wide = document.querySelector(".wide");
  const isOut = (node) => node.getBoundingClientRect().right > innerWidth + 1;
  const all = [...document.querySelectorAll("main :not(svg *)")];
  return all.filter((node) => isOut(node) && !wide?.contains(node)).map((node) => node.outerHTML);
}"""
# Puts a control of these parts onto the page, and returns how wide its field is, and its text.
FIELD_BESIDE_A_SLIDER = """async (parts) => {
  const { control } = await import("./controls.js");
  const [node] = control(parts, "", () => {});
  const lab = document.createElement("div");
  lab.className = "course-lab";
  lab.append(node);
  document.querySelector("main").prepend(lab);
  const { clientWidth, scrollWidth, value } = lab.querySelector(".readout");
  return [clientWidth, scrollWidth, value, node.scrollWidth];
}"""


@dataclass(frozen=True)
class Server:
    """A contents page, and the folder of the copies behind it."""

    address: str
    mine: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("course")
    course_with_a_short_notebook(folder)
    make_lab = ["-m", "course_utils.stage.workspace", "--ip=127.0.0.1", EXPOSED]
    with served(make_lab, folder, cwd=folder, PYTHONPATH=str(folder)) as (address, token):
        yield Server(f"{address}/contents?token={token}", folder / "my_notebooks")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    """The site's front page, and one of a notebook without what its labs need."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(render.contents_page(), encoding="utf-8")
    (folder / "style.css").write_text(render.style(), encoding="utf-8")
    (folder / "front.js").write_text(drawing.SCRIPT, encoding="utf-8")
    (folder / "page.js").write_text("", encoding="utf-8")
    for script in ("controls.js", "words.js"):
        text = (Path(render.__file__).parent / script).read_text(encoding="utf-8")
        (folder / script).write_text(text, encoding="utf-8")
    of_notebook = render.notebook_page(NOTEBOOKS[5], dict.fromkeys(pages.ALIVE))
    (folder / "06.html").write_text(of_notebook, encoding="utf-8")
    with pages.served(folder) as address:
        yield f"{address}/index.html"


@pytest.fixture(params=["contents", "site"])
def front(request) -> str:
    """The address of each of the two front pages."""
    if request.param == "contents":
        return request.getfixturevalue("server").address
    return request.getfixturevalue("site")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1366, "height": 768})
    page = context.new_page()
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    context.close()
    assert wrong == []


# A reader's record.


def nothing(mine: Path) -> None:
    """Leave no record."""


def damaged(mine: Path) -> None:
    """Leave files of which nothing can be read."""
    (mine / record.RECORD).write_bytes(b"\x00\xff{ 2026-13-45 flops.days right\nfloats guessed {")
    (mine / record.PLACES).write_bytes(b"in the way")
    (mine / "accountant.py").write_bytes(b"\xff no Python")


def a_year_old(mine: Path) -> None:
    """Leave what a reader of an older version had: lines, and the places of cells."""
    first = progress.known(NOTEBOOKS[0])
    lines = [f"2025-11-{day:02} {turn.check} right" for day, turn in enumerate(first.turns, 1)]
    (mine / record.RECORD).write_text("\n".join(lines), encoding="utf-8")
    for asked in sorted(first.asked):
        record.note_guess(mine, "floats", Guess(asked, 2, 3))
    turn = progress.known(NOTEBOOKS[2]).turns[0]
    a_year_ago = time.time() - 365 * 86_400
    record.note_place(mine, "einsum", turn.cells[2])
    os.utime(mine / record.PLACES / "einsum", (a_year_ago, a_year_ago))


@pytest.fixture
def mine(server) -> Iterator[Path]:
    """The folder of the copies; afterwards nothing is noted in it."""
    original = (server.mine / "accountant.py").read_bytes()
    yield server.mine
    (server.mine / record.RECORD).unlink(missing_ok=True)
    places = server.mine / record.PLACES
    if places.is_dir():
        for path in places.iterdir():
            path.unlink()
    else:
        places.unlink(missing_ok=True)
    (server.mine / "accountant.py").write_bytes(original)


@pytest.mark.parametrize(
    ("write", "begin"),
    [(nothing, "Start: 1, Floats"), (damaged, "Start: 1, Floats"), (a_year_old, "Continue: 3, ")],
)
def test_with_any_record_the_page_is_whole_and_axe_finds_no_fault(page, server, mine, write, begin):
    write(mine)
    page.goto(server.address)
    expect(page.locator(".begin a")).to_contain_text(begin)
    expect(page.locator(".card .art svg > svg")).to_have_count(len(NOTEBOOKS))
    expect(page.locator(".brick")).to_have_count(13)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert faults(page, "body") == [], scheme
    page.locator(".more > summary").click()
    assert faults(page, "body") == []


def test_a_record_that_is_a_year_old_is_shown_in_full(page, server, mine):
    a_year_old(mine)
    page.goto(server.address)
    first = progress.known(NOTEBOOKS[0])
    turns = len([turn for turn in first.turns if not turn.is_beyond])
    ring = page.locator(".card").first.locator(".ring.turns")
    expect(ring).to_contain_text(f"{turns} of {turns}")
    expect(ring.locator("circle.path:not(.all)")).to_have_attribute("stroke-dasharray", "100.0 100")
    expect(page.locator(".card .ring.guesses").first).to_contain_text(f"{len(first.asked)} of ")
    expect(page.locator(".guesses-so-far circle")).to_have_count(len(first.asked))
    turn = progress.known(NOTEBOOKS[2]).turns[0]
    begin = page.locator(".begin a")
    expect(begin).to_have_text(f"Continue: 3, {turn.title}")
    address = f"/lab/tree/my_notebooks/{NOTEBOOKS[2].name}#cell-id={turn.cells[2]}"
    expect(begin).to_have_attribute("href", address)


def test_what_is_done_meanwhile_is_seen_as_soon_as_one_comes_back(page, server, mine):
    page.goto(server.address)
    expect(page.locator(".ring.turns circle.path:not(.all)")).to_have_count(0)
    page.get_by_role("slider", name=SLIDER).press("Home")
    a_year_old(mine)
    come_back(page)
    expect(page.locator(".begin a")).to_contain_text("Continue: 3, ")
    expect(page.locator(".ring.turns circle.path:not(.all)")).to_have_count(1)
    expect(page.locator(".guesses-so-far svg")).to_be_visible()
    expect(page.get_by_role("slider", name=SLIDER)).to_have_value("0")  # it has not begun anew


# Both pages.


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_on_every_screen_all_is_in_view_and_axe_finds_no_fault(page, front, width, height):
    page.set_viewport_size({"width": width, "height": height})
    page.goto(front)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(NOT_IN_VIEW) == []
    expect(page.locator(".begin a").first).to_be_in_viewport(ratio=1)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert faults(page, "body") == [], scheme


def test_the_tab_key_comes_to_every_link_and_shows_where_it_is(page, front):
    page.goto(front)
    page.get_by_role("slider", name=SLIDER).press("Home")  # which pauses, so that nothing moves
    page.evaluate("document.activeElement.blur()")
    page.locator("body").click(position={"x": 1, "y": 1})
    kinds = "main :is(a[href], button, input, summary, [tabindex='0'])"
    reachable = page.locator(kinds).evaluate_all(
        "(nodes) => nodes.filter((node) => node.checkVisibility()).length"
    )
    reached = []
    for _ in range(reachable + 4):
        page.keyboard.press("Tab")
        what, is_shown = page.evaluate(FOCUSED)
        if what.startswith("BODY"):
            break
        assert is_shown, what
        reached.append(what)
    assert len(reached) >= reachable >= 20
    assert any(what.startswith(("AStart", "AContinue")) for what in reached)


def test_the_step_plays_until_it_is_paused_and_the_slider_leads_to_any_moment(page, front):
    page.goto(front)
    slider = page.get_by_role("slider", name=SLIDER)
    said = page.locator(".player p")
    pause = page.get_by_role("button", name="Pause")
    expect(said).to_contain_text("forward, layer 3")
    pause.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Play")).to_be_focused()
    value = slider.input_value()
    page.wait_for_timeout(300)
    assert slider.input_value() == value
    slider.press("Home")
    expect(said).to_have_text("1.6 GB forward, layer 1")
    expect(page.locator(".peak")).to_be_hidden()
    slider.press("End")
    expect(said).to_contain_text("2.0 GB optimizer")
    expect(slider).to_have_attribute("aria-valuetext", "2.0 GB, optimizer")
    expect(page.locator(".peak")).to_be_visible()
    page.get_by_role("button", name="Play").press("Enter")
    expect(said).to_contain_text("forward, layer")


def test_whoever_wants_less_motion_sees_the_whole_step_and_can_play_it(page, front):
    page.emulate_media(reduced_motion="reduce")
    page.goto(front)
    slider = page.get_by_role("slider", name=SLIDER)
    expect(slider).to_have_value("199")
    expect(page.locator(".ahead")).to_have_attribute("width", "0")
    expect(page.locator(".peak")).to_be_visible()
    page.wait_for_timeout(300)
    expect(slider).to_have_value("199")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".player p")).to_contain_text("forward, layer")


def test_without_scripts_the_picture_is_whole_and_the_links_lead_on(chromium, front):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(front)
    expect(page.locator(".peak")).to_be_visible()
    expect(page.locator(".player")).to_be_hidden()
    expect(page.locator(".ahead")).to_have_attribute("width", "0")
    expect(page.locator(".begin a").first).to_have_attribute("href", re.compile("01_floats"))
    context.close()


def test_an_ordered_list_in_a_text_has_its_numbers_and_the_lists_of_cards_have_none(chromium, site):
    page = chromium.new_page(java_script_enabled=False)
    page.goto(site.replace("index", "06"))
    repairs = page.locator("ol", has_text="The buffer becomes an average").last
    expect(repairs).to_have_css("list-style-type", "decimal")
    expect(repairs).to_have_css("padding-left", "40px")  # space for the numbers
    expect(page.locator(".outline ol")).to_have_css("list-style-type", "none")
    page.goto(site)
    for lists in (".notebooks", ".wall"):
        expect(page.locator(lists)).to_have_css("list-style-type", "none")
    page.close()


@pytest.mark.parametrize("width", [1366, 390])
def test_the_field_beside_a_slider_of_powers_has_room_for_its_longest_number(page, site, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(site)
    power = PowerOfTwo(label="ones added", default=26, most=30, width_px=400)
    parts = [part._asdict() for part in power.parts(30, {})]
    shown, needed, text, whole = page.evaluate(FIELD_BESIDE_A_SLIDER, parts)
    assert text == "2^30 = 1,073,741,824"
    assert needed <= shown
    assert whole <= width
