"""A course with a short notebook, a server over it, and what a reader does there in a browser."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import nbformat
from playwright.sync_api import Page, expect

from course_utils.core import record
from course_utils.stage.workspace import extension
from tests import ROOT
from tests.helpers.notebooks import short
from tests.helpers.waiting import wait_until

FLOPS = "04_flops.ipynb"


def course_with_a_short_notebook(folder: Path) -> None:
    """Copy the course, with `short()` in place of notebook 4."""
    no_caches = shutil.ignore_patterns("__pycache__")
    no_hidden_files = shutil.ignore_patterns(".*")
    shutil.copytree(ROOT / "course_utils", folder / "course_utils", ignore=no_caches)
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=no_hidden_files)
    shutil.copy(ROOT / "README.md", folder)
    nbformat.write(short(), folder / "notebooks" / FLOPS)


def write(lab: Page, name: str, value: str, cells: int) -> None:
    """Write the value into the cell that assigns that name, and run so many cells from there."""
    lab.bring_to_front()
    lab.locator(".jp-Cell .cm-content", has_text=f"{name} =").first.click()
    lab.keyboard.press("Control+a")
    lab.keyboard.type(f"{name} = {value}")
    for _ in range(cells):
        lab.keyboard.press("Shift+Enter")


def guess(lab: Page, name: str, typed: str) -> None:
    """Ask for that guess, type into its field, press Show, and run the cell of the answer."""
    lab.bring_to_front()
    cell = lab.locator(".jp-Cell", has_text=f"{name} = ask(").first
    cell.locator(".cm-content").click()
    lab.keyboard.press("Shift+Enter")
    field = cell.locator(".course-ask input[type=text]")
    field.fill(typed)
    field.press("Enter")
    show = cell.get_by_role("button", name="Show", exact=True)
    expect(show).to_be_focused()
    show.press("Enter")
    expect(show).to_be_hidden()
    lab.keyboard.press("Shift+Enter")  # from inside the field, to the next cell
    lab.keyboard.press("Shift+Enter")


def try_it(lab: Page, value: str, mine: Path, status: str) -> None:
    """Answer the second turn, run its check, and wait until the reader's record has the verdict."""
    write(lab, "really", value, cells=2)

    def is_noted() -> bool:
        noted = record.done(mine).get("flops.name_of_f32", record.Done())
        return noted.status == status

    wait_until(is_noted, f"it is {status}")


def come_back(page: Page) -> None:
    """Bring that page to the front, and tell it so.

    A page under test always takes itself to be in front, so it would not notice by itself.
    """
    page.bring_to_front()
    page.evaluate("dispatchEvent(new Event('focus'))")


def started(root: Path) -> SimpleNamespace:
    """Return a stand-in for a Jupyter server over that folder, with the extension loaded.

    It has what an extension uses of a server. `said` holds the warnings in its log, and `pages` the
    handlers of its pages.
    """
    said = []
    pages = []
    settings = {"base_url": "/", "static_custom_path": []}
    app = SimpleNamespace(
        settings=settings, add_handlers=lambda _, handlers: pages.extend(handlers)
    )
    server = SimpleNamespace(
        root_dir=str(root),
        web_app=app,
        log=SimpleNamespace(warning=said.append),
        said=said,
        pages=pages,
        contents_manager=SimpleNamespace(get=None),
        kernel_manager=SimpleNamespace(restart_kernel=None),
        session_manager=SimpleNamespace(list_sessions=None),
    )
    extension._load_jupyter_server_extension(server)
    return server
