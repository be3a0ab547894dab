"""A class on a real JupyterHub: students with a server, copies and a record of their own; three at once in `make thorough`."""

import json
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
from playwright.sync_api import BrowserContext, FrameLocator, Page, expect

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
from tests.helpers.workspace import FLOPS, come_back, course_with_a_short_notebook, try_it, write

skip_without_browser()
skip_without_hub()
STUDENTS = "ada", "ben", "cleo"
SESSION = json.dumps(
    {
        "path": f"my_notebooks/{FLOPS}",
        "name": FLOPS,
        "type": "notebook",
        "kernel": {"name": "python3"},
    }
)
# As the page's own request does: with the token that a hub asks for.
ASK = """async ([method, address, body]) => {
  const token = document.querySelector("[name=_xsrf]").value;
  const answer = await fetch(address, { method, body, headers: { "X-XSRFToken": token } });
  return answer.status;
}"""


def installed_course(folder: Path) -> Path:
    """A wheel of the course with a short notebook 4 and a lab in it, installed as for all; the folder to import it from."""
    source, target = folder / "source", folder / "installed"
    source.mkdir()
    course_with_a_short_notebook(source)
    for name in (".gitignore", "pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, source)
    path = source / "notebooks" / FLOPS
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(
        nbformat.v4.new_code_cell("from course_utils import labs\nlabs.float_lab()")
    )
    nbformat.write(notebook, path)
    install = "pip install --quiet --no-index --no-deps --find-links wheel course_utils --target"
    for command in (
        ["hatchling", "build", "--target", "wheel", "--directory", "wheel"],
        [*install.split(), str(target)],
    ):
        subprocess.run(
            [sys.executable, "-m", *command], cwd=source, check=True, capture_output=True
        )
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
    """Before its server starts: its JupyterLab tells a test what it has."""
    settings = home / ".jupyter" / "jupyter_lab_config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"LabApp": {"expose_app_in_browser": true}}')


def expect_contents(page: Page, address: str, name: str) -> None:
    """The contents page of that student's own server, which says nothing of `make`."""
    page.wait_for_url(f"{address}/user/{name}/contents")
    expect(page.locator(".said")).to_have_count(0)
    expect(page.locator("body")).to_contain_text(
        "the next start of your server (Hub Control Panel)"
    )
    expect(page.locator("body")).not_to_contain_text("make ")
    links = page.locator(".notebooks > li > h2 > a")
    hrefs = links.evaluate_all("(all) => all.map((each) => each.getAttribute('href'))")
    assert hrefs == [f"/user/{name}/lab/tree/my_notebooks/{path.name}" for path in NOTEBOOKS]
    accountant = page.get_by_role("link", name="accountant.py")
    expect(accountant).to_have_attribute(
        "href", f"/user/{name}/lab/tree/my_notebooks/accountant.py"
    )


def open_notebook(page: Page) -> Page:
    """The fourth of the contents page, by its link, with a kernel that waits for it."""
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
    """The instructor's server for notebook 4, as `make present` shows it; the wall below its first guess, in full view."""
    page.goto(f"{address}/hub/spawn/cleo/04", wait_until="commit")
    page.wait_for_url(f"{address}/user/cleo/04/doc/tree/{FLOPS}**")
    cells = page.locator(".jp-Cell")
    asking = cells.filter(has_text="my_product = ...").first
    expect(asking).to_be_attached()
    expect(page.locator(".jp-MarkdownOutput p").first).to_be_attached()
    letters = "(one) => parseFloat(getComputedStyle(one).fontSize)"
    assert page.locator(".jp-MarkdownOutput p").first.evaluate(letters) > 17, "large type"
    expect(page.locator(".jp-NotebookPanel-toolbar")).to_have_css("max-height", "0px")
    expect(page.locator(".jp-SideBar:visible")).to_have_count(0)
    # This page tells a test nothing of its kernel: a cell that it takes gets a number.
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
    """The instructor asks in her presentation, and whoever is logged in guesses once. The wall is hers alone."""
    room, frame = f"{address}/services/room/", presented(instructor, address)
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
    course, password = installed_course(tmp_path), secrets.token_hex(8)
    before = files(course)
    with running_hub(tmp_path, password, "cleo", PYTHONPATH=str(course)) as (address, homes):
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        home = homes() / "ada"
        let_tests_ask(home)
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
        expect(page.locator(".notebooks > li").nth(3)).to_contain_text("right since")
        assert context.request.get(f"{address}/user/cleo/contents", max_redirects=9).status in (
            403,
            404,
        )
        context.close()
    assert files(course) == before, "nobody writes into the course"
    assert list(tmp_path.glob("hub-*")) == [], "what was tried is gone"


@thorough
def test_three_students_at_once_have_each_a_server_copies_and_a_record_of_their_own(
    tmp_path, chromium
):
    course = installed_course(tmp_path)
    before = files(course)
    password = secrets.token_hex(8)
    with running_hub(tmp_path, password, "cleo", PYTHONPATH=str(course)) as (address, homes_of_all):
        wait_until(lambda: answers(f"{address}/hub/api"), "the hub answers")
        homes = homes_of_all()
        mine = {name: homes / name / "my_notebooks" for name in STUDENTS}
        for name in STUDENTS:
            let_tests_ask(homes / name)
        contexts = {name: chromium.new_context(viewport=VIEWPORT) for name in STUDENTS}
        pages = {name: context.new_page() for name, context in contexts.items()}
        for name, page in pages.items():
            page.set_default_timeout(120_000)
            log_in(page, address, name, password)
        for name, page in pages.items():
            expect_contents(page, address, name)

        labs = {name: open_notebook(pages[name]) for name in ("ada", "ben")}  # cleo only looks
        for lab in labs.values():
            lab.locator(".jp-CodeCell .cm-content").first.click()
            for _ in range(14):
                lab.keyboard.press("Shift+Enter")
        for lab in labs.values():
            float_lab = lab.locator(".course-lab")
            expect(float_lab.locator(".course-meaning")).to_contain_text("0.1 is")
            float_lab.get_by_role("button", name="1e-8?", exact=True).click()
            expect(float_lab.locator(".course-meaning")).to_contain_text("1e-8 is")
        try_it(labs["ada"], "'tf32'", mine["ada"], "right")
        try_it(labs["ben"], "'fp32'", mine["ben"], "tried")
        write(labs["ben"], "my_product", "21", cells=2)
        wait_until(lambda: record.guesses(mine["ben"]), "the guess is noted")
        shown = {
            "ada": ["right since"],
            "ben": ["tried 1 time", "1 guess: within 2 times"],
            "cleo": [],
        }
        pages["cleo"].reload()
        for name, page in pages.items():
            come_back(page)
            fourth = page.locator(".notebooks > li").nth(3)
            for words in shown[name]:
                expect(fourth).to_contain_text(words)
            for words in set().union(*shown.values()) - set(shown[name]):
                expect(fourth).not_to_contain_text(words)

        # Nobody sees another's, nor does anything to it.
        of_ada = f"{address}/user/ada"
        for path in (
            "/contents",
            "/lab",
            "/api/contents/my_notebooks/record.txt",
            "/files/my_notebooks/record.txt",
        ):
            assert contexts["ben"].request.get(of_ada + path, max_redirects=9).status in (
                403,
                404,
            ), path
        assert pages["ben"].evaluate(ASK, ["POST", f"{of_ada}/contents", "do=forget"]) in (403, 404)
        assert (
            contexts["ada"].request.post(f"{of_ada}/contents", form={"do": "forget"}).status == 403
        ), "no token"
        assert record.done(mine["ada"])["flops.name_of_f32"].status == "right"
        assert list(record.done(mine["ben"])) == ["flops.name_of_f32"]
        assert record.done(mine["cleo"]) == {}

        lab = contexts["cleo"].new_page()
        lab.set_default_timeout(120_000)
        all_guess(address, [contexts["ada"], contexts["ben"]], lab)
        assert record.guesses(mine["cleo"]) == {}
        lab.close()
        named = contexts["ben"].new_page()
        assert named.goto(f"{address}/hub/spawn/ben/04").status == 403
        expect(named.locator("body")).to_contain_text("Named servers present a notebook")
        named.close()

        # Anew, for one of them.
        for name in ("ada", "ben"):
            labs[name].bring_to_front()
            labs[name].keyboard.press("Control+s")
        wait_until(lambda: "really = 'tf32'" in (mine["ada"] / FLOPS).read_text(), "ada's is saved")
        wait_until(lambda: "really = 'fp32'" in (mine["ben"] / FLOPS).read_text(), "ben's is saved")
        labs["ben"].close()
        pages["ben"].bring_to_front()
        pages["ben"].get_by_role("button", name="Begin anew: your turn 2, The name_of_f32").click()
        expect(pages["ben"].get_by_role("status")).to_contain_text("begins anew")
        assert "really = 'fp32'" not in (mine["ben"] / FLOPS).read_text()
        assert "really = 'tf32'" in (mine["ada"] / FLOPS).read_text()

        # A server that is killed, as a container is that takes too much memory: all of it is there again.
        labs["ada"].close()
        for process in servers_of(homes / "ada"):
            process.kill()
        left_open, page = pages["ada"], contexts["ada"].new_page()
        page.goto(f"{address}/hub/home")
        start = page.get_by_role("button", name="Start My Server")
        wait_until(lambda: page.reload() and start.count(), "the hub has noticed")
        start.click()
        page.wait_for_url(f"{address}/user/ada/contents")
        expect(page.locator(".said")).to_have_count(0)
        expect(page.locator(".notebooks > li").nth(3)).to_contain_text("right since")
        assert "really = 'tf32'" in (mine["ada"] / FLOPS).read_text()
        left_open.evaluate("window.former = true")
        come_back(left_open)  # which is of the former server, and is made anew
        left_open.wait_for_function("!window.former")
        left_open.get_by_text("Delete the record", exact=True).click()
        left_open.get_by_role("button", name="Yes, delete the record").click()
        expect(left_open.get_by_role("status")).to_contain_text("The record begins anew")
        assert record.done(mine["ada"]) == {}
        for context in contexts.values():
            context.close()
    assert files(course) == before, "nobody writes into the course"
    assert list(tmp_path.glob("hub-*")) == [], "what was tried is gone"
