"""What the contents page says of the reader's accountant, whose terms they may have edited."""

import os

import pytest

from course_utils.core.accountant_file import ADDED, TERMS
from course_utils.stage.workspace import copies, own_terms
from tests.core.test_keeping import DAYS, KEPT, Workspace, edit
from tests.helpers.waiting import wait_until

LINK = "/user/ada/lab/tree/my_notebooks/accountant.py"
BEING_CHECKED = "The file has changed, and is being checked."
WRONG = ("share / 86_400", "share / 24")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace in whose accountant `days` is the reader's."""
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(copies, "COURSE", tmp_path / "notebooks")
    workspace = Workspace(tmp_path, "course_utils.chapters.flops.check")
    workspace.start()
    monkeypatch.chdir(workspace.mine)
    assert KEPT in workspace.keep(DAYS, "days")
    return workspace


class Page:
    """The contents page of a server that has just started."""

    def __init__(self, workspace):
        self._mine = workspace.mine
        self._judge = own_terms.Judge(workspace.mine)

    def said(self):
        return own_terms.sentences(LINK, own_terms.own(self._mine, self._judge))

    def said_at_last(self):
        """What it says once the terms are checked; first it says that they are being checked."""
        assert BEING_CHECKED in self.said()
        wait_until(lambda: BEING_CHECKED not in self.said(), "the terms are checked")
        return self.said()


def test_a_term_that_was_kept_is_the_readers_at_once_and_the_file_can_be_opened(workspace):
    said = Page(workspace).said()
    assert f'<a href="{LINK}" target="accountant.py">accountant.py</a>' in said
    assert f"of {len(TERMS)} terms, and {len(ADDED)} that 2026 adds. Yours are: days." in said
    assert "not right" not in said


def test_an_edit_that_makes_a_term_wrong_is_noticed_and_so_is_one_that_mends_it(workspace):
    edit(workspace.file, WRONG)
    page = Page(workspace)
    said = page.said_at_last()
    assert "Yours are: none yet." in said
    assert "<b>days</b> is not right as it stands there, so the notebooks use the course" in said
    assert "days gave" in said, "the check's own words"
    assert Page(workspace).said() == said, "another server need not check it again"
    edit(workspace.file, WRONG[::-1])
    said = page.said_at_last()
    assert "Yours are: days." in said
    assert "not right" not in said


def test_another_process_than_the_servers_runs_the_file(workspace):
    edit(
        workspace.file,
        ("import math\n", "import math\nimport os\n\nos.mkdir(f'by {os.getpid()}')\n"),
    )
    assert "Yours are: days." in Page(workspace).said_at_last()
    (ran,) = {path.name for path in workspace.mine.glob("by *")}
    assert ran != f"by {os.getpid()}"


def test_a_file_that_stops_or_never_ends_is_not_used_and_the_page_says_why(workspace, monkeypatch):
    edit(workspace.file, ("import math\n", "import math\nimport no_such_module\n"))
    page = Page(workspace)
    assert page.said_at_last() == (
        "accountant.py is not used: the file stops with ModuleNotFoundError: No module named "
        "&#39;no_such_module&#39;. Mend it, or delete it to begin it anew."
    )
    monkeypatch.setattr(own_terms, "MOST_S", 1)
    edit(workspace.file, ("import no_such_module\n", "while True:\n    pass\n"))
    said = page.said_at_last()
    assert "accountant.py is not used: the file has not ended within 1 seconds." in said
