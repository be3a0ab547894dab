"""The browser, the JupyterLab and the page of all labs that tests share, as fixtures of pytest."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from course_utils.chapters import labs
from tests import ROOT
from tests.helpers import browser

IMPORTS = """from course_utils import figures, floats, labs
from course_utils.engine.judging.verdict import NOT_ATTEMPTED, Verdict
from course_utils.core.say import Comparison, Ledger, Table"""
OUTPUTS = """figures.range_and_gap(floats.FORMATS)
Verdict("right", "Well.")
Verdict("not yet", "3 is not it.")
NOT_ATTEMPTED
Ledger({"weights": 96, "biases": 8}, unit="bytes")
Comparison({"weights": 96}, {"weights": 97}, guess=95)
Table([["", "bytes"], ["weights", "96"]])"""
LINKS = "A [stride](GLOSSARY.md#stride), and [AdamW](GLOSSARY.md#adamw)."


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A browser; whoever needs a page opens one."""
    with browser.chromium(browser.UNSEEN) as chromium:
        yield chromium


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a JupyterLab over it."""
    folder = tmp_path_factory.mktemp("jupyter")
    with browser.jupyterlab(folder) as address:
        yield folder, address


@pytest.fixture(scope="session")
def labs_page(chromium: Browser, jupyter: tuple[Path, str]) -> Page:
    """A page with all labs, each kind of output and two links to the glossary, after Run All.

    `saved` is its notebook as JupyterLab has saved it.
    """
    folder, address = jupyter
    shutil.copy(ROOT / "notebooks" / "GLOSSARY.md", folder)
    lab_cells = [f"labs.{name}()" for name in labs.__all__]
    sources = [IMPORTS, *OUTPUTS.splitlines(), *lab_cells]
    path = browser.notebook_of(folder / "labs.ipynb", sources, LINKS)
    page = browser.open_page(chromium.new_context(), address, path)
    page.folder = folder
    page.saved = browser.run_all(page, path)
    expect(page.locator(".course-lab[aria-label]")).to_have_count(len(labs.__all__))
    return page
