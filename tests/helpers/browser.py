"""A real JupyterLab and a real Chromium, for the tests in a browser and for benchmarks."""

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

# They are tried in this order, because on Ubuntu chromium-browser may be a script that only names a
# snap to install. `.ci/run` looks for the same names.
BROWSERS = ("chromium", "google-chrome", "google-chrome-stable", "chrome", "chromium-browser")
IDLE = ".jp-NotebookPanel-toolbar [data-status=idle]"  # the kernel is there, and has nothing to do
# The kernel answers this question after all that the page has sent it before.
ASK_KERNEL = (
    "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()"
)
HAS_KERNEL = """() => {
  const session = window.jupyterapp?.shell.currentWidget?.sessionContext?.session;
  return session?.kernel?.status === "idle";
}"""
ASKED_OR_CONNECTED = f"""() => {{
  if (document.querySelector("dialog.jp-Dialog")) return "asked";
  return ({HAS_KERNEL})() ? "connected" : null;
}}"""
NEXT_FRAMES = (
    "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
)
EXPOSED = "--LabApp.expose_app_in_browser=True"  # as `window.jupyterapp`, for the scripts above
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
# With this option the browser does not draw on its screen, which nobody sees: that saves a third of
# a page's time. Layout, styles, keys, clicks and printing work as usual; the mouse's wheel and
# screenshots do not.
UNSEEN = "--blink-settings=acceleratedCompositingEnabled=false"


def browser_path() -> str | None:
    """Return the Chromium or Chrome on this machine, if there is one."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    return None


def skip_without_browser() -> None:
    """Skip the module that calls this if there is no browser; in CI there has to be one."""
    if browser_path() is None:
        skip_module(f"no browser found (looked for {', '.join(BROWSERS)})")


def skip_module(reason: str) -> None:
    """Skip the module that calls this, because something is missing; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"In CI these tests must run, but {reason}.", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def free_port() -> int:
    """Return a port of this machine that is free now; the system chooses it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Run a JupyterLab over that folder, with settings of its own.

    Yields the address of a notebook in it, as a format string that takes the notebook's path.
    """
    options = [f"--ServerApp.root_dir={folder}", "--ip=127.0.0.1", EXPOSED, websocket.OPTION]
    with served(["-m", "jupyterlab", *options], folder) as (address, token):
        # Each notebook has a workspace: in a shared one a page would open what others have open.
        yield f"{address}/lab/workspaces/{{0.stem}}/tree/{{0.name}}?token={token}"


@contextmanager
def served(
    arguments: Sequence[str], folder: Path, cwd: Path = ROOT, **more: str
) -> Iterator[tuple[str, str]]:
    """Run Python with these arguments, which start a Jupyter server; yields its address and token.

    The server keeps its log and its settings in the folder. `more` are environment variables. In a
    test its kernels are forked from a warm process.
    """
    port = free_port()
    token = secrets.token_hex(16)
    settings = folder / ".jupyter"
    if warm.WHERE in os.environ:
        warm.configure_server(settings / "CONFIG")
    environment = os.environ | {"JUPYTER_TOKEN": token} | more
    for name in ("CONFIG", "DATA", "RUNTIME"):
        environment[f"JUPYTER_{name}_DIR"] = str(settings / name)
    for name in ("SETTINGS", "WORKSPACES"):
        environment[f"JUPYTERLAB_{name}_DIR"] = str(settings / name)
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
            # It lists its kernels at the first request for them, and a page that has to wait for
            # that list asks the reader to choose a kernel.
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
    """Whether the server answers a request with JSON that has this key."""
    try:
        reply = urllib.request.urlopen(address, timeout=5)
        return with_key in json.load(reply)
    except OSError:
        return False


def start_kernel(address: str, notebook: Path, folder: str = "") -> None:
    """Give the notebook its kernel before a page opens it.

    A JupyterLab that starts slowly would ask for a kernel, and at times get none.
    """
    server, _, _ = address.partition("/lab/")
    _, _, token = address.rpartition("token=")
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
    """A browser without a window. Playwright allows one at a time in a thread."""
    with sync_playwright() as playwright:
        browser = launched(playwright.chromium, *more)
        yield browser
        browser.close()


def launched(kind: BrowserType, *more: str) -> Browser:
    """Start this machine's browser with the usual arguments and these."""
    return kind.launch(executable_path=browser_path(), args=[*CHROMIUM_ARGUMENTS, *more])


def open_page(
    browser: Browser | BrowserContext, address: str, notebook: Path, **viewport: int
) -> Page:
    """Open the notebook, which lies in the folder of the JupyterLab at that address.

    A context that has shown a JupyterLab before need not compile its scripts again.
    """
    page = browser.new_page()
    page.set_viewport_size(VIEWPORT | viewport)
    page.set_default_timeout(120_000)
    page.on("dialog", lambda dialog: dialog.accept())  # "leave this page?"
    start_kernel(address, notebook)
    page.goto(address.format(notebook))
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    wait_for_its_kernel(page)
    question = page.locator("dialog.jp-Dialog")
    page.add_locator_handler(question, lambda: answer(question), no_wait_after=True)
    return page


@contextmanager
def opened(notebook: Path, **viewport: int) -> Iterator[Page]:
    """Open the notebook in a browser and a JupyterLab of its own."""
    with jupyterlab(notebook.parent) as address, chromium() as browser:
        yield open_page(browser, address, notebook, **viewport)


@contextmanager
def opened_labs(folder: Path, *names: str, figures: Sequence[str] = ()) -> Iterator[Page]:
    """Open a notebook that has these labs and then these cells of figures, after Run All."""
    sources = [IMPORT, *(f"labs.{name}_lab()" for name in names), *figures]
    path = notebook_of(folder / "labs.ipynb", sources)
    with opened(path) as page:
        run_all(page, path)
        yield page


def notebook_of(path: Path, sources: Sequence[str], words: str = "") -> Path:
    """Write a notebook with these code cells, below the words if there are any."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if words:
        cells.insert(0, nbformat.v4.new_markdown_cell(words))
    python = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=python), path)
    return path


def lab_of(page: Page, name: str) -> Locator:
    """Return the lab of that name, scrolled into view.

    It is found by its label, because searching all roles of a page takes long.
    """
    lab = page.locator(f".course-lab[aria-label='{name.capitalize()} lab']").first
    lab.scroll_into_view_if_needed()
    return lab


def rows_of(lab: Locator) -> Locator:
    """Unfold the lab's table, which is empty while it is folded, and return its rows."""
    lab.locator(".course-numbers").evaluate("(fold) => { fold.open = true; }")
    return lab.locator(".course-table tr")


def press(lab: Locator, name: str) -> None:
    """Click the button of that name, and wait for the kernel.

    Its answer would overwrite what is typed meanwhile.
    """
    lab.get_by_role("button", name=name, exact=True).click()
    wait_for_kernel(lab.page)


def wait_for_kernel(page: Page) -> None:
    """Wait until the kernel has done all that the page has asked of it."""
    page.evaluate(ASK_KERNEL)
    page.wait_for_selector(IDLE)


def assert_takes_no_key(page: Page, focused: Locator) -> None:
    """Check that JupyterLab's one-letter commands do nothing while that element has the focus.

    For example, "dd" deletes a cell elsewhere.
    """
    cells = page.locator(".jp-Cell").count()
    focused.focus()
    for key in "ddb":
        page.keyboard.press(key)
    page.evaluate(NEXT_FRAMES)  # a command would have added or deleted a cell by then
    assert page.locator(".jp-Cell").count() == cells


def answer(question: Locator) -> None:
    """Answer JupyterLab's question for a kernel with the first Python in its list.

    The answer is chosen here because the question at times comes with none chosen.
    """
    choose = """(dialog) => {
      const select = dialog.querySelector("select");
      const options = [...(select?.options ?? [])];
      const python = options.find((option) => option.text.startsWith("Python"));
      if (!python) return;
      select.value = python.value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
    }"""
    question.first.evaluate(choose)
    question.first.locator(".jp-mod-accept").click()


def wait_for_its_kernel(page: Page) -> None:
    """Wait until the page is connected to its kernel.

    If JupyterLab asks for a kernel, or waits in vain, the page is opened again. Its toolbar is no
    sign: it says "idle" before there is a kernel, and cells that are run then get another kernel.
    """
    for _ in range(6):
        with suppress(PlaywrightTimeoutError):
            state = page.wait_for_function(ASKED_OR_CONNECTED, timeout=30_000).json_value()
            if state == "connected":
                return
        page.goto(page.url)
        page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
    page.wait_for_function(HAS_KERNEL)


def run_all(page: Page, notebook: Path) -> nbformat.NotebookNode:
    """Run all cells from the menu, save, and return the notebook as it is saved.

    The notebook must have no outputs before, because the first cell's mark shows that it runs.
    """
    started = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[(\*|1)\]"))
    while not started.count():
        wait_for_its_kernel(page)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.locator("[data-command='runmenu:run-all']").click()
        # A click can be lost if the kernel is not ready. A second one too soon would run all cells
        # twice, so we wait for the first cell's mark.
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
        all_have_run = all(cell.execution_count for cell in code_cells(copy))
        return copy if all_have_run else None

    try:
        return wait_until(saved, "all cells have run and are saved")
    except TimeoutError as error:
        raise TimeoutError(f"{error} {_what_is_seen(page, notebook)}") from None


def _what_is_seen(page: Page, notebook: Path) -> str:
    """Return in words what may show why a notebook stopped: cells not run, errors, open dialogs."""
    cells = code_cells(nbformat.read(notebook, as_version=4))
    waiting = [cell.source[:60] for cell in cells if not cell.execution_count]
    errors = []
    for cell in cells:
        for output in cell.outputs:
            if output.output_type == "error":
                errors.append(output.evalue[:200])
    dialogs = page.locator(".jp-Dialog").all_inner_texts()
    prompts = page.locator(".jp-InputPrompt").all_inner_texts()
    return f"Not run: {waiting}. Errors: {errors}. Dialogs: {dialogs}. Prompts: {prompts}."


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def assert_no_errors(notebook: nbformat.NotebookNode) -> None:
    """Check that the notebook has outputs, and that none is an error or came by stderr."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert outputs
    for output in outputs:
        assert output.output_type != "error", output
        assert output.get("name") != "stderr", output


def without_outputs(source: Path, target: Path) -> Path:
    """Write a copy that has no outputs and no execution counts."""
    notebook = nbformat.read(source, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs = []
        cell.execution_count = None
    nbformat.write(notebook, target)
    return target
