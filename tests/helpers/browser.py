"""A real JupyterLab and a real Chromium, for the browser test and the benchmark."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    BrowserType,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from course_utils.stage.workspace import websocket
from tests import ROOT
from tests.helpers import warm
from tests.helpers.waiting import wait_until

expect.set_options(timeout=120_000)  # a busy machine takes its time

# In this order: on Ubuntu, chromium-browser may be but a hint at a snap. `.ci/run` looks for the same.
BROWSERS = ("chromium", "google-chrome", "google-chrome-stable", "chrome", "chromium-browser")
IDLE = ".jp-NotebookPanel-toolbar [data-status=idle]"  # the kernel is there, and has nothing to do
# The answer to a question that the kernel gets after all that the page has sent it.
ASK_KERNEL = (
    "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()"
)
HAS_KERNEL = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
ASKED_OR_CONNECTED = f"() => document.querySelector('dialog.jp-Dialog') ? 'asked' : ({HAS_KERNEL})() ? 'connected' : null"
NEXT_FRAMES = (
    "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
)
EXPOSED = "--LabApp.expose_app_in_browser=True"  # so that a test can ask
VIEWPORT = {"width": 1280, "height": 1000}
IMPORT = "from course_utils import labs"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Draws nothing on a screen that nobody sees, which takes a third of a page's time. Layout, styles, keys, clicks and
# printing are the same; not the mouse's wheel, nor photographs.
UNSEEN = "--blink-settings=acceleratedCompositingEnabled=false"


def browser_path() -> str | None:
    """The Chromium or Chrome on this machine, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def skip_without_browser() -> None:
    """Skip the module that calls this where there is no browser; in CI there must be one."""
    if browser_path() is None:
        skip_module(f"no browser found (looked for {', '.join(BROWSERS)})")


def skip_module(reason: str) -> None:
    """Skip the module that calls this, as something is missing; in CI nothing may be."""
    if os.environ.get("CI"):
        pytest.fail(f"In CI these tests must run, but {reason}.", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """A JupyterLab over that folder with settings of its own; yields the address of a notebook in it, less its name."""
    options = [f"--ServerApp.root_dir={folder}", "--ip=127.0.0.1", EXPOSED, websocket.OPTION]
    with served(["-m", "jupyterlab", *options], folder) as (address, token):
        # A workspace for each notebook, or a page would open again what another one has open.
        yield f"{address}/lab/workspaces/{{0.stem}}/tree/{{0.name}}?token={token}"


@contextmanager
def served(
    arguments: Sequence[str], folder: Path, cwd: Path = ROOT, **more: str
) -> Iterator[tuple[str, str]]:
    """A Jupyter server, started by Python with these arguments: its address, and its token.

    It keeps its log and its settings in the folder. In a test its kernels are warm, too.
    """
    port = free_port()
    token, own = secrets.token_hex(16), folder / ".jupyter"
    if warm.WHERE in os.environ:
        warm.configure_server(own / "CONFIG")
    environment = os.environ | {"JUPYTER_TOKEN": token} | more
    environment |= {
        f"JUPYTER_{name}_DIR": str(own / name) for name in ("CONFIG", "DATA", "RUNTIME")
    }
    environment |= {
        f"JUPYTERLAB_{name}_DIR": str(own / name) for name in ("SETTINGS", "WORKSPACES")
    }
    command = [
        sys.executable,
        *arguments,
        f"--ServerApp.port={port}",
        "--no-browser",
        "--allow-root",
    ]
    address = f"http://127.0.0.1:{port}"
    with (folder / "jupyterlab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=cwd, env=environment, stdout=log, stderr=log)
        try:
            wait_until(lambda: answers(f"{address}/api"), "Jupyter answers")
            # Its list of kernels too, which it makes at the first request: a page that has to wait for it asks for one.
            specs = f"{address}/api/kernelspecs?token={token}"
            wait_until(lambda: answers(specs, "kernelspecs"), "Jupyter lists its kernels")
            yield address, token
        finally:
            server.terminate()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:  # a busy machine
                server.kill()
                server.wait()


def answers(address: str, with_key: str = "version") -> bool:
    try:
        return with_key in json.load(urllib.request.urlopen(address, timeout=5))
    except OSError:
        return False


def start_kernel(address: str, notebook: Path, folder: str = "") -> None:
    """Give the notebook its kernel before a page opens it: a late JupyterLab would ask for one, at times in vain."""
    server, token = address.split("/lab/")[0], address.rpartition("token=")[2]
    session = {
        "path": folder + notebook.name,
        "name": notebook.name,
        "type": "notebook",
        "kernel": {"name": "python3"},
    }
    headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{server}/api/sessions", json.dumps(session).encode(), headers
    )
    urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """A browser without a window. In one thread there can be one at a time."""
    with sync_playwright() as playwright:
        browser = launched(playwright.chromium, *more)
        yield browser
        browser.close()


def launched(kind: BrowserType, *more: str) -> Browser:
    return kind.launch(executable_path=browser_path(), args=[*CHROMIUM_ARGUMENTS, *more])


def open_page(
    browser: Browser | BrowserContext, address: str, notebook: Path, **viewport: int
) -> Page:
    """The notebook, which lies in the folder of the JupyterLab at that address.

    A context that has shown a JupyterLab before need not compile its scripts anew.
    """
    page = browser.new_page()
    page.set_viewport_size(VIEWPORT | viewport)
    page.set_default_timeout(120_000)
    page.on("dialog", lambda dialog: dialog.accept())  # leaving a page that has something to say
    start_kernel(address, notebook)
    page.goto(address.format(notebook))
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    wait_for_its_kernel(page)
    question = page.locator("dialog.jp-Dialog")
    page.add_locator_handler(question, lambda: answer(question), no_wait_after=True)
    return page


@contextmanager
def opened(notebook: Path, **viewport: int) -> Iterator[Page]:
    """The notebook in a browser and a JupyterLab of its own."""
    with jupyterlab(notebook.parent) as address, chromium() as browser:
        yield open_page(browser, address, notebook, **viewport)


@contextmanager
def opened_labs(folder: Path, *names: str, figures: Sequence[str] = ()) -> Iterator[Page]:
    """A notebook that has these labs, then these cells, and nothing else; after Run All."""
    sources = [IMPORT, *(f"labs.{name}_lab()" for name in names), *figures]
    path = notebook_of(folder / "labs.ipynb", sources)
    with opened(path) as page:
        run_all(page, path)
        yield page


def notebook_of(path: Path, sources: Sequence[str], words: str = "") -> Path:
    """A notebook with these code cells, below some words."""
    cells = [nbformat.v4.new_markdown_cell(words)] if words else []
    cells += map(nbformat.v4.new_code_cell, sources)
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), path)
    return path


def lab_of(page: Page, name: str) -> Locator:
    """The lab of that name, scrolled into view. By its label: to look through all roles of a page takes long."""
    lab = page.locator(f".course-lab[aria-label='{name.capitalize()} lab']").first
    lab.scroll_into_view_if_needed()
    return lab


def rows_of(lab: Locator) -> Locator:
    """The rows of its table, which is folded until then, and empty."""
    lab.locator(".course-numbers").evaluate("(fold) => { fold.open = true; }")
    return lab.locator(".course-table tr")


def press(lab: Locator, name: str) -> None:
    """Click the button of that name, and let the kernel answer: it would take back what is typed meanwhile."""
    lab.get_by_role("button", name=name, exact=True).click()
    wait_for_kernel(lab.page)


def wait_for_kernel(page: Page) -> None:
    """Until the kernel has done all that the page has asked of it."""
    page.evaluate(ASK_KERNEL)
    page.wait_for_selector(IDLE)


def assert_takes_no_key(page: Page, focused: Locator) -> None:
    """Letters that are JupyterLab's commands ("dd" deletes the cell) do nothing where the focus is there."""
    cells = page.locator(".jp-Cell").count()
    focused.focus()
    for key in "ddb":
        page.keyboard.press(key)
    page.evaluate(NEXT_FRAMES)  # a cell that goes or comes does so at once
    assert page.locator(".jp-Cell").count() == cells


def answer(question: Locator) -> None:
    """Answer JupyterLab's question for a kernel with the first Python that it offers; it proposes none at times."""
    choose = """(dialog) => {
      const select = dialog.querySelector("select");
      const python = [...(select?.options ?? [])].find((option) => option.text.startsWith("Python"));
      if (!python) return;
      select.value = python.value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
    }"""
    question.first.evaluate(choose)
    question.first.locator(".jp-mod-accept").click()


def wait_for_its_kernel(page: Page) -> None:
    """Until the page is connected to its kernel. If JupyterLab asks for one, or waits in vain, it is opened again.

    What its toolbar shows is not enough: that is idle before there is a kernel, and who runs cells then gets another.
    """
    for _ in range(6):
        with suppress(PlaywrightTimeoutError):
            if (
                page.wait_for_function(ASKED_OR_CONNECTED, timeout=30_000).json_value()
                == "connected"
            ):
                return
        page.goto(page.url)
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    page.wait_for_function(HAS_KERNEL)


def run_all(page: Page, notebook: Path) -> nbformat.NotebookNode:
    """Run all cells, as from the menu, and save; the notebook as saved. Its copy must have no outputs yet."""
    started = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[(\*|1)\]"))
    while not started.count():
        wait_for_its_kernel(page)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator("[data-command='runmenu:run-all']").click()
        # A click before the kernel is ready can be lost, and one too many runs everything once more.
        with suppress(TimeoutError):
            wait_until(started.count, "the first cell is marked", seconds=15)
    page.wait_for_selector(IDLE)

    def saved() -> nbformat.NotebookNode | None:
        page.keyboard.press("Control+s")
        page.wait_for_timeout(300)
        try:
            copy = nbformat.read(notebook, as_version=4)
        except nbformat.reader.NotJSONError:  # JupyterLab empties the file before it writes it
            return None
        return copy if all(cell.execution_count for cell in code_cells(copy)) else None

    try:
        return wait_until(saved, "all cells have run and are saved")
    except TimeoutError as error:
        raise TimeoutError(f"{error} {_what_is_seen(page, notebook)}") from None


def _what_is_seen(page: Page, notebook: Path) -> str:
    """Why a notebook may have stopped: cells that never ran, errors, and what lies over the page."""
    cells = code_cells(nbformat.read(notebook, as_version=4))
    waiting = [cell.source[:60] for cell in cells if not cell.execution_count]
    errors = [
        out.evalue[:200] for cell in cells for out in cell.outputs if out.output_type == "error"
    ]
    dialogs = page.locator(".jp-Dialog").all_inner_texts()
    prompts = page.locator(".jp-InputPrompt").all_inner_texts()
    return f"Not run: {waiting}. Errors: {errors}. Dialogs: {dialogs}. Prompts: {prompts}."


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def assert_no_errors(notebook: nbformat.NotebookNode) -> None:
    """It has outputs, and none is an error or words for stderr."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert outputs
    assert [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"] == []


def without_outputs(source: Path, target: Path) -> Path:
    """A copy without outputs and counts."""
    notebook = nbformat.read(source, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, target)
    return target
