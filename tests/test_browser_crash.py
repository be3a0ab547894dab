"""The crash lab as a reader meets it: killed and resumed by its buttons."""

import re
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Locator, Page, expect

from tests import browser
from tests.waiting import wait_until

browser.skip_without_browser()


@pytest.fixture
def lab(labs_page: Page) -> Locator:
    lab = browser.lab_of(labs_page, "crash")
    browser.press(lab, "all restored: same curve?")
    return lab


def meaning(lab: Locator) -> Locator:
    return lab.locator(".course-meaning")


def processes(page: Page) -> list[psutil.Process]:
    """Those that train where the page's notebook lies."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # gone meanwhile, or another's
            trains = "course_utils.training.long_run.train" in process.cmdline()
            if trains and Path(process.cwd()) == page.folder:
                found.append(process)
    return found


def test_a_run_is_killed_and_resumed_by_its_buttons(labs_page, lab):
    browser.press(lab, "Kill it")
    expect(lab.locator(".course-mistake")).to_contain_text("No process runs that could be killed")
    browser.press(lab, "Train")
    expect(meaning(lab)).to_contain_text(re.compile(r"Process 1 has made step (1[2-9]|[2-9]\d)"))
    expect(lab.locator(".course-mistake")).to_be_empty()
    (process,) = processes(labs_page)
    browser.press(lab, "Kill it")
    expect(meaning(lab)).to_contain_text("Press Resume.")
    wait_until(lambda: not process.is_running(), "the process is gone")
    browser.press(lab, "Resume")
    expect(meaning(lab)).to_contain_text("Process 2 has made step")
    browser.press(lab, "Kill it while it saves")
    expect(meaning(lab)).to_contain_text("Killed in a save after step")
    expect(lab.locator(".course-picture")).to_contain_text("not whole: never loaded")
    lab.get_by_role("slider", name="pause a step, ms").press("Home")  # the rest is quick
    browser.press(lab, "Resume")
    expect(lab.locator(".course-report")).to_have_text("Complete.")
    expect(meaning(lab)).to_contain_text(re.compile(r"on, (\d+) of \1 losses equal .*, to the last bit\."))
    assert processes(labs_page) == []
