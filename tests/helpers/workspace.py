"""A short course, a server over it, and what a reader does in the workspace, in a browser."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import nbformat
from playwright.sync_api import Page

from course_utils.core import record
from course_utils.stage.workspace import extension
from tests import ROOT
from tests.helpers.notebooks import short
from tests.helpers.waiting import wait_until

FLOPS = "04_flops.ipynb"


def course_with_a_short_notebook(folder: Path) -> None:
    """The course, but for a notebook 4 of a guess, one picture and two turns."""
    shutil.copytree(
        ROOT / "course_utils", folder / "course_utils", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / "README.md", folder)
    nbformat.write(short(), folder / "notebooks" / FLOPS)


def write(lab: Page, name: str, value: str, cells: int) -> None:
    """Write the value into the cell where that name stands, and run so many cells from there."""
    lab.bring_to_front()
    lab.locator(".jp-Cell .cm-content", has_text=f"{name} =").first.click()
    lab.keyboard.press("Control+a")
    lab.keyboard.type(f"{name} = {value}")
    for _ in range(cells):
        lab.keyboard.press("Shift+Enter")


def try_it(lab: Page, value: str, mine: Path, status: str) -> None:
    """Write the answer into the exercise's cell, run it and its check, and wait until the verdict is noted."""
    write(lab, "really", value, cells=2)
    wait_until(
        lambda: record.done(mine).get("flops.name_of_f32", record.Done()).status == status,
        f"it is {status}",
    )


def come_back(page: Page) -> None:
    """Look at that page once more; under test a page believes to be in front always, so it is told."""
    page.bring_to_front()
    page.evaluate("dispatchEvent(new Event('focus'))")


def started(root: Path) -> SimpleNamespace:
    """A server over that folder, as its extensions see it, with the workspace loaded; `said` is what its log says."""
    said = []
    settings = {"base_url": "/", "static_custom_path": []}
    app = SimpleNamespace(settings=settings, add_handlers=lambda _, handlers: None)
    server = SimpleNamespace(
        root_dir=str(root),
        web_app=app,
        log=SimpleNamespace(warning=said.append),
        said=said,
        contents_manager=SimpleNamespace(get=None),
        kernel_manager=SimpleNamespace(restart_kernel=None),
        session_manager=SimpleNamespace(list_sessions=None),
    )
    extension._load_jupyter_server_extension(server)
    return server
