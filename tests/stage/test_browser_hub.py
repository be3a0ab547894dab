"""A class on a real JupyterHub: each student has a server, copies and a record of their own.

`make thorough` tries three students at once.
"""

import json
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from playwright.sync_api import Browser, BrowserContext, FrameLocator, Page, expect

from course_utils.core import record
from tests import NOTEBOOKS, ROOT
from tests.helpers.browser import (
    VIEWPORT,
    answer,
    answers,
    skip_without_browser,
    wait_for_its_kernel,
)
from tests.helpers.hub import running_hub, skip_without_hub
from tests.helpers.thorough import thorough
from tests.helpers.waiting import wait_until
from tests.helpers.workspace import FLOPS, come_back, course_with_a_short_notebook, guess, try_it

skip_without_browser()
skip_without_hub()
STUDENTS = ("ada", "ben", "cleo")
PROXY_GAVE_UP_S = 20  # on the page that waits for a server, which then stood there for ever
REFUSED = (403, 404)
SESSION = json.dumps(
    {
        "path": f"my_notebooks/{FLOPS}",
        "name": FLOPS,
        "type": "notebook",
        "kernel": {"name": "python3"},
    }
)
# A request as the page's own are, with the token that a hub asks for.
ASK = """async ([method, address, body]) => {
  const token = document.querySelector("[name=_xsrf]").value;
  const answer = await fetch(address, { method, body, headers: { "X-XSRFToken": token } });
  return answer.status;
}"""


def installed_course(folder: Path) -> Path:
    """Install a wheel of the course, as for all users of a hub; returns the folder to import from.

    Its notebook 4 is short, and has a lab.
    """
    source = folder / "source"
    target = folder / "installed"
    source.mkdir()
    course_with_a_short_notebook(source)
    for name in (".gitignore", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    path = source / "notebooks" / FLOPS
    notebook = nbformat.read(path, as_version=4)
    lab = "from course_utils import labs\nlabs.float_lab()"
    notebook.cells.append(nbformat.v4.new_code_cell(lab))
    nbformat.write(notebook, path)
    build = ["hatchling", "build", "--target", "wheel", "--directory", "wheel"]
    without_network = ["--no-index", "--no-deps", "--find-links", "wheel"]
    install = ["pip", "install", "--quiet", *without_network, "course_utils", "--target", target]
    for command in (build, install):
        python = [sys.executable, "-m", *command]
        subprocess.run(python, cwd=source, check=True, capture_output=True)
    return target


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file, and when it was last written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def log_in(page: Page, address: str, name: str, password: str) -> None:
    """Ask for a server; it has not started when this returns."""
    page.goto(f"{address}/hub/login")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click(no_wait_after=True)


def let_tests_ask(home: Path) -> None:
    """Let the JupyterLab of that home show a test its insides; before its server starts."""
    settings = home / ".jupyter" / "jupyter_lab_config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"LabApp": {"expose_app_in_browser": true}}')


def start_slowly(home: Path) -> None:
    """Let that student's server take its time to start, as on a busy machine."""
    config = home / ".jupyter" / "jupyter_server_config.py"
    config.write_text(f"import time\ntime.sleep({PROXY_GAVE_UP_S + 1})\n")


def expect_contents(page: Page, address: str, name: str) -> None:
    """The contents page of that student's own server, which says nothing of `make`."""
    page.wait_for_url(f"{address}/user/{name}/contents")
    expect(page.locator(".said")).to_have_count(0)
    body = page.locator("body")
    expect(body).to_contain_text("the next start of your server (Hub Control Panel)")
    expect(body).not_to_contain_text("make ")
    links = page.locator(".notebooks > li > h2 > a")
    hrefs = links.evaluate_all("(links) => links.map((link) => link.getAttribute('href'))")
    mine = f"/user/{name}/lab/tree/my_notebooks"
    assert hrefs == [f"{mine}/{path.name}" for path in NOTEBOOKS]
    accountant = page.get_by_role("link", name="accountant.py")
    expect(accountant).to_have_attribute("href", f"{mine}/accountant.py")


def open_notebook(page: Page) -> Page:
    """Open the fourth notebook by its link on the contents page. Its kernel runs before that."""
    assert page.evaluate(ASK, ["POST", "api/sessions", SESSION]) == 201
    with page.context.expect_page() as opened:
        page.locator(".notebooks > li > h2 > a").nth(3).click()
    lab = opened.value
    lab.on("dialog", lambda dialog: dialog.accept())
    question = lab.locator("dialog.jp-Dialog")
    lab.add_locator_handler(question, lambda: answer(question), no_wait_after=True)
    lab.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    wait_for_its_kernel(lab)
    return lab


def servers_of(home: Path) -> list[psutil.Process]:
    """What a container of that student's would hold: the server, and its kernels."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or another's
            if Path(process.cwd()).is_relative_to(home):
                found.append(process)
    return found


def presented(page: Page, address: str) -> FrameLocator:
    """Let the instructor present notebook 4, as `make present` does, up to its first guess.

    Returns the wall below that guess, which is in full view.
    """
    page.goto(f"{address}/hub/spawn/cleo/04", wait_until="commit")
    page.wait_for_url(f"{address}/user/cleo/04/doc/tree/{FLOPS}**")
    cells = page.locator(".jp-Cell")
    asking = cells.filter(has_text="my_product = ask(").first
    expect(asking).to_be_attached()
    expect(page.locator(".jp-MarkdownOutput p").first).to_be_attached()
    letters_px = "(text) => parseFloat(getComputedStyle(text).fontSize)"
    assert page.locator(".jp-MarkdownOutput p").first.evaluate(letters_px) > 17, "large type"
    expect(page.locator(".jp-NotebookPanel-toolbar")).to_have_css("max-height", "0px")
    expect(page.locator(".jp-SideBar:visible")).to_have_count(0)
    # This page tells a test nothing of its kernel. So wait, and see that the cell gets a number.
    asking.locator(".jp-InputPrompt").click()
    page.wait_for_timeout(5000)
    page.keyboard.press("Shift+Enter")
    expect(asking.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\d"))
    wall = page.locator("iframe.course-wall")
    frame = page.frame_locator("iframe.course-wall")
    expect(frame.locator("#count")).to_have_text("0")
    expect(wall).to_be_in_viewport(ratio=0.99)
    below = page.locator(".jp-Cell:has(iframe.course-wall) + .jp-Cell")
    expect(below).not_to_be_in_viewport()
    return frame


def all_guess(address: str, students: list[BrowserContext], instructor: Page) -> None:
    """The instructor asks in her presentation, and whoever is logged in has one guess.

    The wall is for her alone.
    """
    room = f"{address}/services/room/"
    frame = presented(instructor, address)
    for count, student in enumerate((students[0], students[1], students[0]), 1):
        phone = student.new_page()
        phone.goto(room)
        phone.locator("#number").fill("41")
        phone.locator("#send").click()
        expect(phone.locator("#said")).to_contain_text("Sent: 41")
        expect(frame.locator("#count")).to_have_text(str(min(count, 2)))
        phone.close()
    ask = {"headers": {"Accept": "text/html", "Content-Type": "application/json"}}
    for path in ("start.html", "wall.html", "all", "state?key=04.my_product"):
        assert students[0].request.get(f"{room}wall/{path}", **ask).status == 403, path
    move = '{"key": "04.my_product", "move": "show"}'
    assert students[0].request.post(f"{room}wall/move", data=move, **ask).status == 403
    frame.get_by_role("button", name="Show").click()
    expect(frame.locator("svg rect")).to_have_count(1)


def test_a_student_has_a_server_copies_and_a_record(tmp_path, chromium):
    course = installed_course(tmp_path)
    before = files(course)
    password = secrets.token_hex(8)
    with running_hub(tmp_path, password, "cleo", PYTHONPATH=str(course)) as (address, homes):
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        home = homes() / "ada"
        let_tests_ask(home)
        start_slowly(home)
        context = chromium.new_context(viewport=VIEWPORT)
        page = context.new_page()
        page.set_default_timeout(120_000)
        log_in(page, address, "ada", password)
        expect_contents(page, address, "ada")
        lab = open_notebook(page)
        lab.locator(".jp-CodeCell .cm-content").first.click()
        for _ in range(14):
            lab.keyboard.press("Shift+Enter")
        expect(lab.locator(".course-lab .course-meaning")).to_contain_text("0.1 is")
        try_it(lab, "'tf32'", home / "my_notebooks", "right")
        come_back(page)
        expect(page.locator(".each > li").nth(3)).to_contain_text("right since")
        of_cleo = context.request.get(f"{address}/user/cleo/contents", max_redirects=9)
        assert of_cleo.status in REFUSED
        context.close()
    assert files(course) == before, "nobody writes into the course"
    assert list(tmp_path.glob("hub-*")) == [], "what was tried is gone"


@dataclass
class Student:
    """A student with a browser of their own; `lab` is the page with the notebook, if it is open."""

    name: str
    home: Path
    context: BrowserContext
    page: Page
    lab: Page | None = None

    @property
    def mine(self) -> Path:
        return self.home / "my_notebooks"

    @property
    def saved(self) -> str:
        """The fourth notebook as it was last saved."""
        return (self.mine / FLOPS).read_text()


def student_of(name: str, homes: Path, chromium: Browser) -> Student:
    context = chromium.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.set_default_timeout(120_000)
    let_tests_ask(homes / name)
    return Student(name, homes / name, context, page)


@thorough
def test_three_students_at_once_have_each_a_server_copies_and_a_record_of_their_own(
    tmp_path, chromium
):
    course = installed_course(tmp_path)
    before = files(course)
    password = secrets.token_hex(8)
    with running_hub(tmp_path, password, "cleo", PYTHONPATH=str(course)) as (address, homes):
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        ada, ben, cleo = (student_of(name, homes(), chromium) for name in STUDENTS)
        for student in (ada, ben, cleo):
            log_in(student.page, address, student.name, password)
        for student in (ada, ben, cleo):
            expect_contents(student.page, address, student.name)
        two_work_at_once(ada, ben)
        cleo.page.reload()
        each_sees_what_they_did_themselves(ada, ben, cleo)
        nobody_reaches_what_is_anothers(address, ada, ben, cleo)
        the_instructor_asks_all(address, ada, ben, cleo)
        one_begins_anew(ada, ben)
        all_is_there_after_a_server_was_killed(address, ada)
        for student in (ada, ben, cleo):
            student.context.close()
    assert files(course) == before, "nobody writes into the course"
    assert list(tmp_path.glob("hub-*")) == [], "what was tried is gone"


def two_work_at_once(ada: Student, ben: Student) -> None:
    for student in (ada, ben):
        student.lab = open_notebook(student.page)
    for student in (ada, ben):
        student.lab.locator(".jp-CodeCell .cm-content").first.click()
        for _ in range(14):
            student.lab.keyboard.press("Shift+Enter")
    for student in (ada, ben):
        float_lab = student.lab.locator(".course-lab")
        expect(float_lab.locator(".course-meaning")).to_contain_text("0.1 is")
        float_lab.get_by_role("button", name="1e-8?", exact=True).click()
        expect(float_lab.locator(".course-meaning")).to_contain_text("1e-8 is")
    try_it(ada.lab, "'tf32'", ada.mine, "right")
    try_it(ben.lab, "'fp32'", ben.mine, "tried")
    guess(ben.lab, "my_product", "21")
    wait_until(lambda: record.guesses(ben.mine), "the guess is noted")


def each_sees_what_they_did_themselves(ada: Student, ben: Student, cleo: Student) -> None:
    of_ada = {"right since"}
    of_ben = {"tried 1 time", "1 guess: right power of ten"}
    for student, own in ((ada, of_ada), (ben, of_ben), (cleo, set())):
        come_back(student.page)
        fourth = student.page.locator(".notebooks > li").nth(3)
        for words in own:
            expect(fourth).to_contain_text(words)
        for words in (of_ada | of_ben) - own:
            expect(fourth).not_to_contain_text(words)


def nobody_reaches_what_is_anothers(
    address: str, ada: Student, ben: Student, cleo: Student
) -> None:
    """Nobody sees another student's work, nor does anything to it."""
    of_ada = f"{address}/user/ada"
    for path in (
        "/contents",
        "/lab",
        "/api/contents/my_notebooks/record.txt",
        "/files/my_notebooks/record.txt",
    ):
        seen = ben.context.request.get(of_ada + path, max_redirects=9)
        assert seen.status in REFUSED, path
    forget = ["POST", f"{of_ada}/contents", "do=forget"]
    assert ben.page.evaluate(ASK, forget) in REFUSED
    without_token = ada.context.request.post(f"{of_ada}/contents", form={"do": "forget"})
    assert without_token.status == 403
    assert record.done(ada.mine)["flops.name_of_f32"].status == "right"
    assert list(record.done(ben.mine)) == ["flops.name_of_f32"]
    assert record.done(cleo.mine) == {}


def the_instructor_asks_all(address: str, ada: Student, ben: Student, cleo: Student) -> None:
    """Cleo presents, and has no record of that. A student cannot present."""
    lab = cleo.context.new_page()
    lab.set_default_timeout(120_000)
    all_guess(address, [ada.context, ben.context], lab)
    assert record.guesses(cleo.mine) == {}
    lab.close()
    named = ben.context.new_page()
    assert named.goto(f"{address}/hub/spawn/ben/04").status == 403
    expect(named.locator("body")).to_contain_text("Named servers present a notebook")
    named.close()


def one_begins_anew(ada: Student, ben: Student) -> None:
    """An exercise begins anew for ben, and for him alone."""
    for student in (ada, ben):
        student.lab.bring_to_front()
        student.lab.keyboard.press("Control+s")
    wait_until(lambda: "really = 'tf32'" in ada.saved, "ada's is saved")
    wait_until(lambda: "really = 'fp32'" in ben.saved, "ben's is saved")
    ben.lab.close()
    ben.page.bring_to_front()
    ben.page.get_by_role("button", name="Begin anew: your turn 2, The name_of_f32").click()
    expect(ben.page.get_by_role("status")).to_contain_text("begins anew")
    assert "really = 'fp32'" not in ben.saved
    assert "really = 'tf32'" in ada.saved


def all_is_there_after_a_server_was_killed(address: str, ada: Student) -> None:
    """As the container is killed that takes too much memory."""
    ada.lab.close()
    for process in servers_of(ada.home):
        process.kill()
    page = ada.context.new_page()
    page.goto(f"{address}/hub/home")
    start = page.get_by_role("button", name="Start My Server")
    wait_until(lambda: page.reload() and start.count(), "the hub has noticed")
    start.click()
    page.wait_for_url(f"{address}/user/ada/contents")
    expect(page.locator(".said")).to_have_count(0)
    expect(page.locator(".each > li").nth(3)).to_contain_text("right since")
    assert "really = 'tf32'" in ada.saved

    left_open = ada.page
    left_open.evaluate("window.former = true")
    come_back(left_open)  # it is a page of the former server, and is loaded anew
    left_open.wait_for_function("!window.former")
    left_open.get_by_text("Delete the record", exact=True).click()
    left_open.get_by_role("button", name="Yes, delete the record").click()
    expect(left_open.get_by_role("status")).to_contain_text("The record begins anew")
    assert record.done(ada.mine) == {}
