"""The student's workspace.

Its copies follow the course, an exercise can begin anew, and a record keeps what is done.
"""

import asyncio
import errno
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import urllib.parse
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from datetime import date, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import nbformat
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from traitlets.config import Config

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.core.say.language import speak
from course_utils.engine.judging import after_cell
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.code import asks_in
from course_utils.stage.notebook.files import WIDGET, read, source, write
from course_utils.stage.notebook.outline import turns
from course_utils.stage.workspace import (
    commands,
    contents,
    copies,
    estimates,
    extension,
    progress,
    reopened,
    spacers,
    websocket,
)
from course_utils.stage.workspace.copies import as_handed_out
from course_utils.stage.workspace.merge import merged
from course_utils.stage.workspace.outputs import without_views
from course_utils.stage.workspace.place import Place, place
from course_utils.stage.workspace.place_in_lab import open_at_the_named_cell
from course_utils.stage.workspace.spacers import without_spacers
from tests import NOTEBOOKS, ROOT
from tests.helpers import notebooks
from tests.helpers.workspace import FLOPS, started

ANSWER = "alone_s = 2 * (2 * 1000 * 1000)"


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A course of one notebook, and a reader's copy of it, in place of the real ones."""
    course = tmp_path / "notebooks"
    mine = tmp_path / "my_notebooks"
    monkeypatch.setattr(copies, "COURSE", course)
    monkeypatch.setattr(copies, "MINE", mine)
    course.mkdir()
    nbformat.write(notebooks.short(), course / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    return course, mine


def shown(path: Path) -> list[str]:
    """What each cell of the file shows, if it shows anything but space for a guess."""
    cells = nbformat.read(path, as_version=4).cells
    texts = [output.data["text/plain"] for cell in cells for output in cell.get("outputs", [])]
    return [text for text in texts if spacers.WORDS not in text]


def with_spacers(path: Path) -> list[str]:
    """The cells below which there is space for a guess."""
    return [source(cell) for cell in read(path)["cells"] if spacers.has_spacer(cell)]


def edit(path: Path, old: str, new: str) -> None:
    """Write `new` into the one cell that is nothing but `old`."""
    notebook = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in notebook.cells if cell.source == old]
    cell.source = new
    nbformat.write(notebook, path)


def forget(path: Path, **kept: object) -> None:
    """Replace a notebook's metadata by what is kept."""
    notebook = read(path)
    write(path, {**notebook, "metadata": kept})


def sources(path: Path) -> list[str]:
    """Each cell's text, with links to the README, as the course's own notebook has them.

    A copy links to the contents page instead.
    """
    texts = [source(cell) for cell in read(path)["cells"]]
    return [text.replace("(/contents)", "(../README.md#the-notebooks)") for text in texts]


# Merging is held against the same rules, written in another way: cell by cell, from a log of who
# did what.

IDS = [f"c{number}" for number in range(6)]
edits = st.fixed_dictionaries(
    {id_: st.sampled_from(["keep", "run", "change", "delete"]) for id_ in IDS}
)
added = st.lists(st.sampled_from(["start", *IDS]), max_size=3, unique=True)


def cell(id_: str, text: str, shown: str = "") -> dict[str, object]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": shown}] if shown else []
    return {"cell_type": "code", "id": id_, "metadata": {}, "source": text, "outputs": outputs}


def edited(by: str, did: dict[str, str], new: list[str]) -> dict[str, object]:
    """The notebook of cells c0 to c5 after those edits, with new cells behind those named."""
    cells = [cell(f"{by}-start", f"{by}'s")] if "start" in new else []
    for id_ in IDS:
        text = f"{by}'s {id_}" if did[id_] == "change" else f"old {id_}"
        output = f"ran by {by}" if did[id_] == "run" else "as stored"
        if did[id_] != "delete":
            cells.append(cell(id_, text, shown=output))
        if id_ in new:
            cells.append(cell(f"{by}-{id_}", f"{by}'s"))
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@given(course_did=edits, reader_did=edits, course_new=added, reader_new=added)
def test_what_the_reader_changed_stays_and_all_else_follows_the_course(
    course_did, reader_did, course_new, reader_new
):
    base = edited("nobody", dict.fromkeys(IDS, "keep"), [])
    course = edited("course", course_did, course_new)
    own = edited("reader", reader_did, reader_new)
    both, conflicts = merged(base, course, own)
    cells = both["cells"]
    text = {each["id"]: source(each) for each in cells}
    assert len(text) == len(cells)
    for id_ in IDS:
        assert text.get(id_) == expected_text(id_, course_did[id_], reader_did[id_])
        assert (id_ in conflicts) == (course_did[id_] == reader_did[id_] == "change")
    for id_ in conflicts:  # the course's text is below, in a cell that does not run
        note = cells[list(text).index(id_) + 1]
        assert note["cell_type"] == "markdown"
        assert f"course's {id_}" in source(note)
    kept_running = [id_ for id_ in IDS if course_did[id_] in ("keep", "run")]
    ran = {each["id"] for each in cells if "ran by reader" in str(each.get("outputs"))}
    assert ran == {id_ for id_ in kept_running if reader_did[id_] == "run"}
    assert_keeps_new_cells_and_order(list(text), "course", course, course_new)
    assert_keeps_new_cells_and_order(list(text), "reader", own, reader_new)
    # An update that was interrupted between its two files can be done once more.
    assert merged(base, course, both)[0] == both
    assert merged(course, course, both) == (both, [])


def expected_text(id_: str, course_did: str, reader_did: str) -> str | None:
    if reader_did == "change":
        return f"reader's {id_}"
    if course_did == "change":
        return f"course's {id_}"
    if "delete" in (course_did, reader_did):
        return None
    return f"old {id_}"


def assert_keeps_new_cells_and_order(
    merged_ids: list[str], by: str, notebook: dict[str, object], new: list[str]
) -> None:
    assert {f"{by}-{id_}" for id_ in new} <= set(merged_ids)
    order = [each["id"] for each in notebook["cells"] if each["id"] in merged_ids]
    assert [id_ for id_ in merged_ids if id_ in order] == order, f"{by}'s order is kept"


line_edit = st.sampled_from(["keep", "keep", "change", "delete", "add"])
line_edits = st.lists(line_edit, min_size=5, max_size=5)


def lines(by: str, did: list[str]) -> list[str]:
    """The lines of a cell after these edits, behind a line that nobody touches."""
    found = ["top"]
    for number, what in enumerate(did):
        if what in ("keep", "add"):
            found.append(f"{number}")
        if what == "change":
            found.append(f"{by}'s {number}")
        if what == "add":
            found.append(f"{by}'s new {number}")
    return found


@given(course_did=line_edits, reader_did=line_edits)
def test_in_a_cell_that_both_changed_both_changes_are_made_unless_they_touch_the_same_lines(
    course_did, reader_did
):
    base = lines("nobody", ["keep"] * 5)
    course = lines("course", course_did)
    own = lines("reader", reader_did)
    both, conflicts = merged(one_cell(base), one_cell(course), one_cell(own))
    text = source(both["cells"][0]).split("\n")
    by_course = touched(course_did)
    by_reader = touched(reader_did)
    if conflicts:
        adds_amid = adds_inside(reader_did, by_course) or adds_inside(course_did, by_reader)
        assert by_course & by_reader or adds_amid
        assert text == own
        assert "\n".join(course) in source(both["cells"][1])
    else:
        untouched = set(base) - {str(number) for number in by_course | by_reader}
        new = (set(course) | set(own)) - set(base)
        assert sorted(text) == sorted(untouched | new)
        for side in (course, own):
            common = set(text) & set(side)
            order = [line for line in text if line in common]
            assert order == [line for line in side if line in common]
    assert merged(one_cell(base), one_cell(course), both)[0] == both


def one_cell(text: list[str]) -> dict[str, object]:
    return {"cells": [cell("c0", "\n".join(text))]}


def touched(did: list[str]) -> set[int]:
    """The lines that are changed or deleted."""
    return {number for number, what in enumerate(did) if what in ("change", "delete")}


def adds_inside(did: list[str], touched_by_the_other: set[int]) -> bool:
    """Whether a line is added between two that the other has touched."""
    added = [number for number, what in enumerate(did) if what == "add"]
    return any({number, number + 1} <= touched_by_the_other for number in added)


def test_cells_that_the_course_has_moved_are_moved_in_the_copy_too():
    base = edited("nobody", dict.fromkeys(IDS, "keep"), [])
    own = edited("reader", dict.fromkeys(IDS, "change"), ["c0"])
    course = {**base, "cells": base["cells"][::-1]}
    order = [each["id"] for each in merged(base, course, own)[0]["cells"]]
    assert order == [*IDS[:0:-1], "c0", "reader-c0"]


# Copies, in folders.


def git(*arguments: str | Path, at: Path) -> str:
    who = ("-c", "user.name=Author", "-c", "user.email=author@example.org")
    command = ["git", *who, *arguments]
    run = subprocess.run(command, cwd=at, capture_output=True, text=True, check=True)
    return run.stdout


def course_before(author: Path, today: dict[str, str]) -> dict[str, str]:
    """Write the course as it was before its modules moved; returns each notebook's first code then.

    The line of imports has one module more, and the last line is not there yet. Nor does the
    metadata say what a notebook is about.
    """
    shutil.copytree(ROOT / "notebooks", author / "notebooks", ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / ".gitignore", author)
    former = {}
    for name, imports in today.items():
        first_lines, _, _ = imports.rpartition("\n")
        former[name] = re.sub("(from course_utils import .*)", r"\1, moved", first_lines)
        edit(author / "notebooks" / name, imports, former[name])
        forget(author / "notebooks" / name)
    return former


def test_answers_own_lines_and_the_record_survive_a_pull_of_a_course_whose_modules_have_moved(
    tmp_path,
):
    origin = tmp_path / "origin.git"
    author = tmp_path / "author"
    clone = tmp_path / "clone"
    git("init", "-q", "--bare", origin, at=tmp_path)
    git("clone", "-q", origin, author, at=tmp_path)
    today = {path.name: notebooks.code(path)[0].source for path in NOTEBOOKS}
    former = course_before(author, today)
    git("add", ".", at=author)
    git("commit", "-qm", "The course", at=author)
    git("push", "-q", "origin", "HEAD", at=author)
    git("clone", "-q", origin, clone, at=tmp_path)

    # The reader adds a line in one notebook, changes one in another, and answers in a third.
    course = clone / "notebooks"
    mine = clone / "my_notebooks"
    assert list(copies.bring_up_to_date(course, mine)) == []
    added = NOTEBOOKS[0].name
    changed = NOTEBOOKS[-1].name
    line = "\nimport statistics as my_own"
    in_conflict = former[changed].replace(", moved", ", moved  # mine")
    edit(mine / added, former[added], former[added] + line)
    edit(mine / changed, former[changed], in_conflict)
    stub = notebooks.exercises_of(ROOT / "notebooks" / FLOPS)[0].stub
    answer = stub.replace("...", "4_000_000")
    edit(mine / FLOPS, stub, answer)
    record.note(mine, "flops.square_alone", "right")
    noted = record.done(mine)
    worked_on = {name: sources(mine / name) for name in (added, FLOPS, changed)}

    shutil.copytree(ROOT / "notebooks", author / "notebooks", dirs_exist_ok=True)
    git("commit", "-qam", "Modules have moved", at=author)
    git("push", "-q", "origin", "HEAD", at=author)
    assert git("status", "--short", at=clone) == ""
    git("pull", "-q", "--ff-only", at=clone)
    said = list(copies.bring_up_to_date(course, mine))

    expected = {name: sources(course / name) for name in today}
    assert all(today[name] in expected[name] for name in today)
    expected[added][expected[added].index(today[added])] += line
    expected[FLOPS][expected[FLOPS].index(stub)] = answer
    at = expected[changed].index(today[changed])
    below = sources(mine / changed)[at + 1]
    assert today[changed] in below
    expected[changed][at : at + 1] = [in_conflict, below]
    assert {name: sources(mine / name) for name in today} == expected
    for name in today:
        assert about(read(mine / name), name) == about(read(course / name), name)
        assert about(read(mine / name), name).question
    exec(today[added] + line, {})  # so the copy's first cell runs

    assert record.done(mine) == noted
    kept = {}
    for path in (mine / "earlier").iterdir():
        stem, _, _ = path.name.partition(" ")
        kept[f"{stem}.ipynb"] = sources(path)
    assert kept == worked_on
    conflict = "both you and the course changed the same lines"
    assert sum("what you wrote is in it" in sentence for sentence in said) == 3
    assert sum(conflict in sentence for sentence in said) == 1
    assert git("status", "--short", at=clone) == ""
    assert list(copies.bring_up_to_date(course, mine)) == []
    nbformat.validate(nbformat.read(mine / changed, as_version=4))


def test_a_copy_has_its_results_to_come_and_those_of_the_course_are_brought_where_there_are_none(
    workspace,
):
    course, mine = workspace
    assert sources(mine / FLOPS) == sources(course / FLOPS)
    assert shown(mine / FLOPS) == []
    edit(mine / FLOPS, "6 * 7", "6 * 8")
    assert "read again as soon as you look" in copies.show_results(course / FLOPS, mine)
    assert shown(mine / FLOPS) == ["Your guess: 6 × 7?", "A lab."]
    assert WIDGET not in (mine / FLOPS).read_text(encoding="utf-8")
    edit(mine / FLOPS, "6 * 8", "6 * 7")
    copies.show_results(course / FLOPS, mine)
    assert shown(mine / FLOPS) == ["42", "Your guess: 6 × 7?", "A lab."]
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    assert list(copies.bring_up_to_date(course, mine)) == [f"{FLOPS} is brought up to date."]
    assert shown(mine / FLOPS) == ["42", "Your guess: 6 × 7?", "A lab."], (
        "who only reads goes on reading"
    )
    copies.begin_anew(course / FLOPS, mine=mine)
    assert shown(mine / FLOPS) == []


def test_below_a_guess_there_is_space_until_it_has_run_or_its_answer_is_shown(workspace):
    course, mine = workspace
    guess = 'my_product = ask("6 × 7")'
    assert with_spacers(mine / FLOPS) == [guess]
    lines = read(mine / FLOPS)["cells"][3]["outputs"][0]["data"]["text/plain"]
    line_px = 17
    window_px = 647  # of a notebook at 1366 × 768
    assert len("".join(lines).splitlines()) * line_px > window_px
    ran = nbformat.read(mine / FLOPS, as_version=4)
    ran.cells[3].outputs = []  # as JupyterLab leaves it
    ran.cells[3].execution_count = 1
    nbformat.write(ran, mine / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert with_spacers(mine / FLOPS) == []
    ran.cells[3].execution_count = None  # Clear Outputs of All Cells
    nbformat.write(ran, mine / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert with_spacers(mine / FLOPS) == [guess]
    copies.show_results(course / FLOPS, mine)
    assert with_spacers(mine / FLOPS) == []
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert with_spacers(mine / FLOPS) == [], "who only reads goes on reading"
    copies.begin_anew(course / FLOPS, mine=mine)
    assert with_spacers(mine / FLOPS) == [guess]
    edit(course / FLOPS, "6 * 7", "7 * 6")
    list(copies.bring_up_to_date(course, mine))
    assert with_spacers(mine / FLOPS) == [guess]
    assert with_spacers(course / FLOPS) == []


IMPORTS = "from course_utils import ask, reveal\nfrom course_utils.chapters.flops import check"


def folded(path: Path) -> list[str]:
    """The cells that JupyterLab shows folded."""
    cells = read(path)["cells"]
    return [
        source(cell) for cell in cells if "source_hidden" in cell["metadata"].get("jupyter", {})
    ]


def unfold(path: Path, *, is_old: bool = False) -> None:
    """Unfold each cell, as JupyterLab stores it; or as in an old copy, which came unfolded."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("jupyter", None)
        if is_old:
            cell.metadata.clear()
    nbformat.write(notebook, path)


def test_in_a_copy_the_imports_are_folded_and_what_the_reader_unfolds_stays_so(workspace):
    course, mine = workspace
    assert folded(mine / FLOPS) == [IMPORTS]
    assert folded(course / FLOPS) == []
    copies.show_results(course / FLOPS, mine)
    assert folded(mine / FLOPS) == [IMPORTS]
    unfold(mine / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert folded(mine / FLOPS) == []
    copies.begin_anew(course / FLOPS, mine=mine)
    assert folded(mine / FLOPS) == [IMPORTS]


@pytest.mark.parametrize(
    ("own", "is_folded"),
    [(IMPORTS, True), (f"{IMPORTS}\nimport os", False)],
    ids=["old", "changed"],
)
def test_an_update_folds_the_imports_of_an_older_copy_unless_the_reader_changed_them(
    workspace, own, is_folded
):
    course, mine = workspace
    unfold(mine / FLOPS, is_old=True)
    edit(mine / FLOPS, IMPORTS, own)
    edit(mine / FLOPS, "6 * 7", "6 * 8")
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    (said,) = copies.bring_up_to_date(course, mine)
    assert "what you wrote is in it" in said
    assert folded(mine / FLOPS) == ([own] if is_folded else [])


def test_what_the_reader_unfolds_stays_so_when_the_course_has_changed(workspace):
    course, mine = workspace
    unfold(mine / FLOPS)
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    said = list(copies.bring_up_to_date(course, mine))
    assert said == [f"{FLOPS} is brought up to date."], "nothing has to be kept in `earlier`"
    assert folded(mine / FLOPS) == []

    # The imports themselves may be what is new, beside what the reader wrote.
    edit(mine / FLOPS, "6 * 7", "6 * 8")
    edit(course / FLOPS, IMPORTS, f"import math\n{IMPORTS}")
    (said,) = copies.bring_up_to_date(course, mine)
    assert "what you wrote is in it" in said
    assert "import math" in str(read(mine / FLOPS))
    assert folded(mine / FLOPS) == []


@pytest.mark.parametrize("is_old", [False, True], ids=["folded", "old"])
def test_a_copy_that_nobody_has_written_in_is_folded_by_an_update(workspace, is_old):
    course, mine = workspace
    if is_old:
        unfold(mine / FLOPS, is_old=True)
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    said = list(copies.bring_up_to_date(course, mine))
    assert said == [f"{FLOPS} is brought up to date."], "nothing has to be kept in `earlier`"
    assert folded(mine / FLOPS) == [IMPORTS]


def test_a_copy_that_is_renamed_while_a_server_runs_is_made_anew_and_its_contents_stay(workspace):
    course, mine = workspace
    edit(mine / FLOPS, "6 * 7", "6 * 8")
    (mine / FLOPS).rename(mine / "mine.ipynb")
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    copies.make_missing(mine, course)
    assert sources(mine / FLOPS) == sources(course / FLOPS)
    assert "6 * 8" in sources(mine / "mine.ipynb")


def test_a_copy_leads_back_to_the_contents_page_of_its_own_server(tmp_path, workspace):
    course, mine = workspace
    assert "[contents](/contents)" in (mine / FLOPS).read_text(encoding="utf-8")
    on_a_hub = tmp_path / "ada"
    list(copies.bring_up_to_date(course, on_a_hub, contents="/user/ada/contents"))
    assert "[contents](/user/ada/contents)" in (on_a_hub / FLOPS).read_text(encoding="utf-8")
    assert list(copies.bring_up_to_date(course, on_a_hub, contents="/user/ada/contents")) == []
    assert "(/contents)" not in (course / FLOPS).read_text(encoding="utf-8")


def test_a_copy_that_lost_what_it_says_of_itself_has_it_again_and_the_readers_own_metadata_stays(
    workspace,
):
    course, mine = workspace
    edit(mine / FLOPS, "alone_s = ...", ANSWER)
    forget(mine / FLOPS, mine="stays")
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert about(read(mine / FLOPS), FLOPS) == about(read(course / FLOPS), FLOPS)
    assert read(mine / FLOPS)["metadata"]["mine"] == "stays"
    assert ANSWER in sources(mine / FLOPS)
    assert not (mine / copies.EARLIER).exists(), "nothing that the reader wrote has changed"


def test_a_copy_that_nobody_else_may_read_stays_so(workspace):
    course, mine = workspace
    (mine / FLOPS).chmod(0o600)
    copies.show_results(course / FLOPS, mine)
    assert (mine / FLOPS).stat().st_mode & 0o777 == 0o600


def test_an_update_leaves_what_the_reader_has_run_and_shows_nothing_else(workspace):
    course, mine = workspace
    ran = nbformat.read(mine / FLOPS, as_version=4)
    for number in (2, 5):
        output = nbformat.v4.new_output("display_data", {"text/plain": "my run"})
        ran.cells[number].outputs = [output]
    nbformat.write(ran, mine / FLOPS)
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    (said,) = copies.bring_up_to_date(course, mine)
    assert "what you wrote is in it" in said
    assert sources(mine / FLOPS) == sources(course / FLOPS)
    assert shown(mine / FLOPS) == ["my run"], "the other cell is another now"


def test_a_copy_that_was_only_run_is_no_change_and_shows_its_labs_as_pictures_again(workspace):
    course, mine = workspace
    shutil.copy(course / FLOPS, mine)  # its live views are those of a kernel that has gone
    before = sources(mine / FLOPS)
    assert WIDGET in (mine / FLOPS).read_text(encoding="utf-8")
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert WIDGET not in (mine / FLOPS).read_text(encoding="utf-8")
    assert sources(mine / FLOPS) == before
    assert "image/png" in (mine / FLOPS).read_text(encoding="utf-8")


FOREIGN = [
    b"",
    b"my shopping list",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"cells": 3}',
    b'{"cells": ["a cell"]}',
    b'{"cells": [{"source": "no id"}]}',
    b'{"cells": [{"id": ["a"], "source": "", "cell_type": "raw"}]}',
    b'{"cells": [{"id": "a", "source": "", "cell_type": "code", "outputs": ["b"]}]}',
    b'{"cells": [%b, %b]}' % ((b'{"id": "a", "source": "", "cell_type": "raw"}',) * 2),
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=range(len(FOREIGN)))
def test_a_broken_or_foreign_file_gets_a_sentence_and_stays(workspace, foreign):
    course, mine = workspace
    (mine / FLOPS).write_bytes(foreign)
    (said,) = copies.bring_up_to_date(course, mine)
    assert said.startswith(f"my_notebooks/{FLOPS} stays as it is")
    assert "rename it" in said
    assert (mine / FLOPS).read_bytes() == foreign
    with pytest.raises(ValueError, match="only begin anew as a whole"):
        copies.begin_anew(course / FLOPS, 2, mine)
    with pytest.raises(ValueError, match=f"my_notebooks/{FLOPS} stays as it is"):
        copies.show_results(course / FLOPS, mine)
    (mine / FLOPS).rename(mine / "my own.ipynb")
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert sources(mine / FLOPS) == sources(course / FLOPS)


def test_a_course_in_conflict_is_named_and_the_other_notebooks_follow(workspace):
    course, mine = workspace
    edit(mine / FLOPS, "alone_s = ...", ANSWER)
    (course / FLOPS).write_bytes(b"<<<<<<< HEAD\n" + (course / FLOPS).read_bytes())
    (course / "03_einsum.ipynb").write_text("<<<<<<< HEAD")
    shutil.copy(ROOT / "notebooks" / "05_gradients.ipynb", course)
    said = list(copies.bring_up_to_date(course, mine))
    names = [words.split(",")[0] for words in said]
    assert names == ["notebooks/03_einsum.ipynb", f"notebooks/{FLOPS}"]
    why = "it cannot be read as a notebook whose cells have ids, each its own"
    assert f"is broken: {why}. Your copy stays as it is." in said[1]
    assert ANSWER in sources(mine / FLOPS)
    assert sources(mine / "05_gradients.ipynb") == sources(course / "05_gradients.ipynb")
    broken = progress.known(course / FLOPS)
    assert broken.about.title == "Flops"
    assert broken.turns == ()


def test_what_the_system_cannot_write_is_no_reason_to_stop(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["commands", "anew", "04", "2"])
    monkeypatch.setattr(copies, "begin_anew", lambda *_: "Übung →")
    with suppress(SystemExit), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # Python warns, because the module is imported already.
        runpy.run_module("course_utils.stage.workspace.commands", run_name="__main__")
    out.seek(0)
    assert out.read().strip() == "Übung ?"


def test_a_link_is_not_followed_and_a_notebook_from_elsewhere_is_not_mended(workspace):
    course, mine = workspace
    (mine / FLOPS).unlink()
    (mine / FLOPS).symlink_to(course / FLOPS)
    assert "no file of its own" in next(copies.bring_up_to_date(course, mine))
    (mine / FLOPS).unlink()
    (mine / ".course" / FLOPS).unlink()
    shutil.copy(course / FLOPS, mine)
    edit(mine / FLOPS, "really = ...", "really = 1")
    assert "not copied from here" in next(copies.bring_up_to_date(course, mine))


def test_every_file_that_a_notebook_links_to_lies_beside_the_readers_copy_too(tmp_path):
    mine = tmp_path / "my_notebooks"
    assert list(copies.bring_up_to_date(ROOT / "notebooks", mine)) == []
    for path in (*mine.glob("*.ipynb"), *mine.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        linked = set(re.findall(r"\]\(([\w/-]+\.(?:md|ipynb|png))\b", text))
        assert linked, path.name
        assert [name for name in linked if not (mine / name).is_file()] == [], path.name


def test_the_readers_glossary_follows_the_course_and_what_is_written_into_it_is_kept(tmp_path):
    course = tmp_path / "notebooks"
    mine = tmp_path / "my_notebooks"
    course.mkdir()
    own = mine / "GLOSSARY.md"

    def start(text: str, *, in_use: bool = False) -> list[str]:
        (course / own.name).write_text(text)
        return list(copies.bring_up_to_date(course, mine, in_use=in_use))

    assert (start("one"), own.read_text()) == ([], "one")
    assert (start("two", in_use=True), own.read_text()) == ([], "one")
    assert (start("two"), own.read_text()) == ([], "two")
    own.write_text("two, and a note")
    assert (start("two"), own.read_text()) == ([], "two, and a note")
    (said,) = start("three")
    (kept,) = (mine / "earlier").iterdir()
    assert kept.name in said
    assert (kept.read_text(), own.read_text()) == ("two, and a note", "three")


HELD = """
import sys
from tests.helpers.workspace import started
server = started(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""


def test_copies_follow_the_course_at_a_start_but_not_while_another_server_is_open_over_them(
    workspace,
):
    course, mine = workspace
    first = started(mine.parent)
    before = (mine / FLOPS).read_bytes()
    assert first.said == []
    edit(course / FLOPS, "6 * 7", "7 * 6")
    second = started(mine.parent)  # it uses the copies, too, after the first has ended
    assert "when no JupyterLab is open" in second.said[0]
    first.web_app.settings["course_lock"].close()
    assert "when no JupyterLab is open" in started(mine.parent).said[0]
    assert (mine / FLOPS).read_bytes() == before
    second.web_app.settings["course_lock"].close()
    assert started(mine.parent).said == [f"{FLOPS} is brought up to date."]
    assert sources(mine / FLOPS) == sources(course / FLOPS)
    assert not (mine / "earlier").exists()  # nothing of the reader's was in it


def test_what_is_said_of_the_copies_is_in_the_language_of_the_course(workspace, monkeypatch):
    course, mine = workspace
    started(mine.parent).web_app.settings["course_lock"].close()
    english = "{file} is brought up to date; what you wrote is in it. As it was: {former}"
    spoken = {english: "Neu ist {file}, vorher {former}"}
    monkeypatch.setattr(extension, "sentences_in", lambda language: spoken)
    edit(mine / FLOPS, "6 * 7", "6 * 8")
    edit(course / FLOPS, "'this was a lab'", "'this is a lab'")
    server = started(mine.parent)
    speak({})
    (said,) = server.said
    assert said.startswith(f"Neu ist {FLOPS}, vorher {mine.name}/earlier/")


def test_a_server_that_was_killed_is_not_open_any_more(workspace):
    course, mine = workspace
    command = [sys.executable, "-c", HELD, str(mine.parent)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as other:
        assert other.stdout.readline() == b"ready\n"
        edit(course / FLOPS, "6 * 7", "7 * 6")
        assert "when no JupyterLab is open" in started(mine.parent).said[0]
        other.kill()
    assert started(mine.parent).said == [f"{FLOPS} is brought up to date."]


def test_on_a_file_system_without_locks_copies_follow_the_course_too(workspace, monkeypatch):
    course, mine = workspace
    edit(course / FLOPS, "6 * 7", "7 * 6")
    no_locks = Mock(side_effect=OSError(errno.ENOLCK, "no locks"))
    monkeypatch.setattr(extension.fcntl, "flock", no_locks)
    assert started(mine.parent).said == [f"{FLOPS} is brought up to date."]


@pytest.mark.parametrize(
    ("hub", "told"),
    [
        (None, "clone the course into a folder of your own"),
        ("/", "stop and start your server in the Hub Control"),
    ],
)
def test_where_no_copies_can_be_made_it_says_what_to_do_and_opens_the_courses_own_if_it_can(
    tmp_path, monkeypatch, hub, told
):
    if hub:
        monkeypatch.setenv("JUPYTERHUB_BASE_URL", hub)
    mine = tmp_path / "my_notebooks"
    mine.write_text("a file in the way")
    (said,) = started(tmp_path).said
    assert "cannot be made in my_notebooks: " in said
    assert told in said
    assert contents.where_it_opens(FLOPS, mine) == "", "the course lies elsewhere"
    assert contents.where_it_opens(FLOPS, ROOT / "none") == f"notebooks/{FLOPS}"


def page_at(where: Place) -> str:
    """The contents page as it is at that place, with nothing done yet."""
    return contents.PAGE.render(place=where)


def test_what_the_page_says_on_a_hub_is_of_the_hub(monkeypatch):
    assert "the next <code>make lab</code> brings them up to date" in page_at(place())
    monkeypatch.setenv("JUPYTERHUB_BASE_URL", "/class/")
    assert 'href="/class/hub/home"' in page_at(place())
    # Where each student has a subdomain, the hub names its own.
    monkeypatch.setenv("JUPYTERHUB_HOST", "https://hub.example.org")
    assert 'href="https://hub.example.org/class/hub/home"' in page_at(place())
    of_a_clone = re.compile("make |git |clone")
    assert not of_a_clone.search(page_at(place()) + place().remedy)
    monkeypatch.delenv("JUPYTERHUB_BASE_URL")
    monkeypatch.setattr(copies, "INSTALLED", copies.COURSE)  # from a wheel, and no hub
    assert "the next start brings them up to date" in page_at(place())
    assert not of_a_clone.search(page_at(place()) + place().remedy)


def test_a_full_disk_leaves_the_copy_as_it_was(workspace, monkeypatch):
    course, mine = workspace
    edit(mine / FLOPS, "really = ...", "really = 1")
    edit(course / FLOPS, "6 * 7", "7 * 6")
    before = (mine / FLOPS).read_bytes()

    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        (said,) = copies.bring_up_to_date(course, mine)
    assert "No space left on device" in said
    assert (mine / FLOPS).read_bytes() == before
    assert [path.name for path in mine.rglob("*.tmp")] == []
    assert list((mine / "earlier").iterdir()) == []


def test_what_was_kept_is_never_written_over_though_it_is_kept_at_one_moment(
    workspace, monkeypatch
):
    _, mine = workspace
    monkeypatch.setattr(copies, "datetime", SimpleNamespace(now=lambda: datetime(2026, 1, 31)))
    for text in ("one", "two", "three"):
        (mine / FLOPS).write_text(text)
        assert copies.keep_earlier(mine / FLOPS).read_text() == text
    assert {path.read_text() for path in (mine / "earlier").iterdir()} == {"one", "two", "three"}


# One exercise anew.


def test_one_exercise_begins_anew_and_the_rest_of_the_notebook_stays(workspace):
    course, mine = workspace
    edit(mine / FLOPS, "alone_s = ...", ANSWER)
    edit(mine / FLOPS, "really = ...", "really = 1")
    notebook = nbformat.read(mine / FLOPS, as_version=4)
    check = "check.square_alone(alone_s)"
    notebook.cells = [each for each in notebook.cells if each.source != check]
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell("My own note"))
    nbformat.write(notebook, mine / FLOPS)
    record.note(mine, "flops.square_alone", "right")
    record.note(mine, "flops.name_of_f32", "tried")
    marks = mine / record.MARKS
    marks.mkdir()
    for name in ("flops", "gradients"):
        (marks / f"{name}.json").touch()
    # Its first turn, by the name of its check, as the page asks for it.
    said = copies.begin_anew(course / FLOPS, "flops.square_alone", mine)
    first, *rest = [text.replace("really = ...", "really = 1") for text in sources(course / FLOPS)]
    assert sources(mine / FLOPS) == [first, "My own note", *rest]
    statuses = {name: done.status for name, done in record.done(mine).items()}
    assert statuses == {"flops.square_alone": "not attempted", "flops.name_of_f32": "tried"}
    (earlier,) = (mine / "earlier").iterdir()
    assert ANSWER in sources(earlier)
    assert earlier.name in said
    assert len(list(marks.iterdir())) == 2, "a turn has no marks"

    copies.begin_anew(course / FLOPS, mine=mine)
    assert [path.name for path in marks.iterdir()] == ["gradients.json"]
    assert sources(mine / FLOPS) == sources(course / FLOPS)
    assert len(list((mine / "earlier").iterdir())) == 2
    assert {each.status for each in record.done(mine).values()} == {"not attempted"}


@pytest.mark.parametrize(
    ("name", "number", "told"),
    [
        ("", "", "Which notebook? There are: 01_floats"),
        ("9", "1", "There is no notebook '9'. There are: 01_floats"),
        ("04", "two", "named by its number, not 'two'"),
        ("04", "9", "has no turn 9. It has: 1 to 2."),
        ("05", "1", "There is no copy of 05_gradients.ipynb"),
    ],
)
def test_nonsense_gets_a_sentence_that_says_how_to_name_an_exercise(
    workspace, capsys, name, number, told
):
    before = (workspace[1] / FLOPS).read_bytes()
    assert commands.main("anew", name, number) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "make anew NB=04 EXERCISE=2" in said
    assert (workspace[1] / FLOPS).read_bytes() == before


def test_make_results_brings_them_and_names_what_there_is(workspace, capsys):
    assert commands.main("results", "4") == 0
    assert "04_flops shows the course's results" in capsys.readouterr().out
    assert shown(workspace[1] / FLOPS) == ["42", "Your guess: 6 × 7?", "A lab."]
    assert commands.main("results", "fourth") == 2
    said = capsys.readouterr().err
    assert "There are: 01_floats" in said
    assert "make results NB=04" in said


# The record.


def test_the_exercises_that_the_workspace_finds_are_those_that_are_tested():
    found = [(path, each) for path in NOTEBOOKS for each in turns(read(path))]
    tested = notebooks.exercises()
    titles = [(path, turn.title) for path, turn in found]
    assert titles == [(exercise.notebook, exercise.title) for exercise in tested]
    for (path, each), known in zip(found, tested, strict=True):
        module, function = each.check.split(".")
        imports = rf"from course_utils\.chapters\.{module} import (\w+, )*check\b"
        assert re.search(imports, known.imports)
        assert known.call.startswith(f"check.{function}(")
        assert known.judge(...).exercise == function, "the record knows a turn by it"
        by_id = {c["id"]: c["source"] for c in read(path)["cells"]}
        assert source({"source": by_id[each.cells[1]]}) == known.stub
    assert len({each.check for _, each in found}) == len(found)


def test_many_kernels_write_the_record_at_once_and_no_line_is_lost(tmp_path):
    command = [sys.executable, "-c", NOTE_200_TIMES, str(tmp_path)]
    names = [f"flops.number{number}" for number in range(4)]
    kernels = [subprocess.Popen([*command, name], cwd=ROOT) for name in names]
    assert [kernel.wait() for kernel in kernels] == [0, 0, 0, 0]
    tries = {name: done.tries for name, done in record.done(tmp_path).items()}
    assert tries == dict.fromkeys(names, 200)


NOTE_200_TIMES = """
import sys
from pathlib import Path
from course_utils.core import record
for _ in range(200):
    record.note(Path(sys.argv[1]), sys.argv[2], "tried")
"""


def test_the_first_right_answer_counts_and_what_is_no_line_is_passed_over(tmp_path):
    lines = [
        b"\x00\xff{ 2026-01-02 flops.name_of_f32 tried",
        b"2026-01-03 flops.name_of_f32 right",
        b"nonsense",
        b"",
        b"2026-01-04 flops.name_of_f32 tried",
        b"2026-01-05 flops.name_of_f32 right",
        b"2026-01-06 fl",
    ]
    (tmp_path / "record.txt").write_bytes(b"\n".join(lines))
    expected = record.Done(tries=4, first_right="2026-01-03")
    assert record.done(tmp_path) == {"flops.name_of_f32": expected}
    (tmp_path / "record.txt").unlink()
    assert record.done(tmp_path) == {}
    (tmp_path / "record.txt").mkdir()  # in the way: no error, and no record
    record.note(tmp_path, "flops.name_of_f32", "right")
    assert record.done(tmp_path) == {}


def test_a_guess_beside_a_number_of_torch_or_numpy_is_noted_as_pythons(tmp_path):
    for asked, measured in (("a", np.int64(3)), ("b", torch.tensor(3)), ("c", Fraction(3))):
        record.note_guess(tmp_path, "flops", Guess(asked, 1, measured))
    assert record.guesses(tmp_path) == {"flops": [Guess(asked, 1, 3.0) for asked in "abc"]}


def test_a_line_has_the_unit_and_one_of_before_there_were_units_is_read(tmp_path):
    record.note_guess(tmp_path, "flops", Guess("MFU", 11, 2, unit="percent"))
    record.note_guess(tmp_path, "flops", Guess("factor", 9, 10))
    with_unit, without = (tmp_path / record.RECORD).read_text("utf-8").splitlines()
    assert '"unit": "percent"' in with_unit
    assert "unit" not in without
    assert [guess.word for guess in record.guesses(tmp_path)["flops"]] == ["close", "close"]


def test_a_line_of_a_guess_that_somebody_has_edited_is_passed_over(tmp_path):
    path = tmp_path / record.RECORD
    guess = Guess("days", 1e9, 144)
    for line in (
        "2026-11-",
        '2026-11-23 flops guessed {"asked": "\\ud800", "said": 1, "measured": 2}',
        '2026-11-23 flops guessed {"asked": "x", "said": 1, "measured": 2, "kind": "\\ud800"}',
        "\ufeff2026",
    ):
        # Torn, or saved by an editor, it has no end; the next entry begins a line of its own.
        path.write_text(line, encoding="utf-8")
        record.note_guess(tmp_path, "flops", guess)
        assert record.guesses(tmp_path) == {"flops": [guess]}
    deep = "[" * 100_000
    path.write_text(f'2026-11-23 flops guessed {{"asked": {deep}}}\n', encoding="utf-8")
    record.note_guess(tmp_path, "flops", guess)
    with path.open("a", encoding="utf-8") as file:
        for edited_line in (
            '{"asked": 3}',
            "{nonsense}",
            '{"asked": "x", "said": [1], "measured": 2}',
            '{"asked": "y", "said": 1, "measured": 2, "digits": "many"}',
            '{"asked": "z", "said": 1, "measured": 2, "unit": [1]}',
        ):
            file.write(f"2026-01-02 flops guessed {edited_line}\n")
    assert record.guesses(tmp_path) == {"flops": [guess]}


# What the page says of the guesses.


def page_of(guesses: dict[int, list[Guess]]) -> str:
    return contents.PAGE.render(guesses=estimates.picture(guesses), place=place())


def test_the_page_says_whether_guesses_get_better():
    near = Guess("a", 20, 10)
    far = Guess("<b>", 1, 50)
    wrong = Guess("c", "x", "y")
    assert "<svg" not in page_of({1: [], 2: []})
    few = page_of({1: [near], 2: [far]})
    assert "2 guesses: 1 right power of ten, 1 far. From 8 on" in few
    drawn = page_of({1: [far, wrong, far, near], 2: [near, near, Guess("d", 3, 3), near]})
    assert "Of your first 4 guesses, 1 right power of ten, 2 far, 1 missed" in drawn
    assert "of the next 4, 1 spot on, 3 right power of ten" in drawn
    heights = [float(y) for y in re.findall(r'cy="([\d.]+)"', drawn)]
    # The further off, the higher: y goes down.
    assert heights[1] < heights[0] == heights[2] < heights[3] < heights[6]
    assert "&lt;b&gt;" in drawn
    assert "<b>" not in drawn
    nearly = Guess("e", 0.333, 1 / 3, digits=3)  # what a notebook calls right, the page does, too
    assert estimates.summary([nearly, wrong, nearly]) == "3 guesses: 2 spot on, 1 missed"
    assert estimates.summary([nearly]) == "1 guess: spot on"
    assert estimates.summary([wrong]) == "1 guess: missed"


def heights_of(*guesses: Guess) -> list[float]:
    return [height for height, _ in estimates.picture({1: guesses})["dots"]]


def test_a_share_is_drawn_by_its_points_and_a_size_by_its_factor():
    """11 % for 2 % is 5.5 times too large, and only 9 points."""
    share = partial(Guess, "share of the peak", measured=2, unit="percent")
    size = partial(Guess, "days", measured=2.2, unit="days")
    spot_on, close, far, too = heights_of(
        share(said=2.4), share(said=11), share(said=40), share(said=90)
    )
    assert spot_on == 0 < close < far == too
    close_size, other_size = heights_of(size(said=3.3), size(said=11))
    assert close == pytest.approx(close_size)
    assert close < other_size < far
    (small_share,) = heights_of(Guess("share of the peak", 0.6, 0.2, unit="percent"))
    (three_times,) = heights_of(size(said=6.6))
    assert small_share == pytest.approx(three_times), "a share below 2 % is a size"


GUESSED = "Comparison({'bytes of ünë': 10}, {'bytes of ünë': 10}, guess=9)"
REPORTED = "Comparison({'hours': 1}, {'hours': 4}, heads=('predicted', 'reported'), guess=2)"
CHOSEN = "Choice('the larger one', among=('a', 'b'), measured='b', guess='A')"
TWO_CHECKS = "check.name_of_f32('fp32').or_ours; check.square_alone(4e6).or_ours"
VERDICTS = [  # cells, in their order
    "from course_utils.chapters.flops import check",
    "check.name_of_f32(...)",
    "check.name_of_f32('fp32')",
    "really = 'tf32'\ncheck.name_of_f32(really)",
    "check.name_of_f32('bf16');\n3",
    "ours = check.name_of_f32('fp32').or_ours",
    f"{TWO_CHECKS}\nnone = check.name_of_f32('bf16')",
    "none",
    "from course_utils.core.say import Choice, Comparison",
    GUESSED,
    GUESSED.replace("9", "10"),
    "Comparison({'days': 3}, {'days': 4})",
    CHOSEN,
    REPORTED,
    "check = 3\n3",
    GUESSED,
    "1 / 0",
]


@pytest.mark.parametrize(
    ("in_a_workspace", "cell_id"), [(True, "c1"), (True, "colab"), (True, None), (False, "c1")]
)
def test_a_verdict_is_noted_only_in_a_workspace_and_only_if_a_reader_ran_the_cell(
    workspace, monkeypatch, in_a_workspace, cell_id
):
    course, mine = workspace
    quiet = Config(HistoryManager={"enabled": False})
    shell = InteractiveShell(config=quiet, ipython_dir=str(course.parent / "ipython"))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.chdir(mine if in_a_workspace else course)
    after_cell.note_what_is_shown()
    header = {}
    if cell_id == "colab":
        header = {"metadata": {"colab": {"cell_id": cell_id}}}  # Colab names the cell there alone
    monkeypatch.setattr(shell, "parent_header", header, raising=False)
    with redirect_stdout(io.StringIO()) as said:
        for text in VERDICTS:
            # In a test or an export, the id is None.
            shell.run_cell(text, cell_id=None if cell_id == "colab" else cell_id)
    assert "Not yet. 'fp32'" in said.getvalue()
    assert "Right. tf32" in said.getvalue()
    is_noted = in_a_workspace and cell_id
    today = date.today().isoformat()
    noted = {"flops.name_of_f32": record.Done(5, today), "flops.square_alone": record.Done(1)}
    assert record.done(mine) == (noted if is_noted else {})
    guesses = [
        Guess("bytes of ünë", 9, 10),
        Guess("the larger one", "a", "b"),
        Guess("hours", 2, 4, "reported"),
    ]
    assert record.guesses(mine) == ({"flops": guesses} if is_noted else {})
    assert not (course / "record.txt").exists()


@pytest.mark.parametrize("base_url", ["/", "/user/zoe/"])
def test_every_page_of_jupyterlab_loads_what_opens_a_notebook_at_its_cell_from_an_address_there_is(
    base_url,
):
    added = []
    earlier = {"name": "another", "load": "x.js"}

    def hook_of_another(_, config):
        return config | {"said": "by another"}

    settings = {"base_url": base_url, "page_config_hook": hook_of_another}
    app = SimpleNamespace(settings=settings, add_handlers=lambda _, more: added.extend(more))
    open_at_the_named_cell(SimpleNamespace(web_app=app))
    page = {"fullLabextensionsUrl": f"{base_url}lab/extensions", "federated_extensions": [earlier]}
    config = settings["page_config_hook"](None, page)
    assert config["said"] == "by another"
    first, ours = config["federated_extensions"]
    assert first == earlier
    asked_for = urllib.parse.urljoin(f"{base_url}lab/extensions/{ours['name']}/", ours["load"])
    ((address, _, options),) = added
    file = re.fullmatch(address, asked_for)[1]
    script = (Path(options["path"][0]) / file).read_text(encoding="utf-8")
    assert f'NAME = "{ours["name"]}"' in script


def test_what_a_kernel_says_reaches_the_page_at_once(monkeypatch):
    seen = []
    handler = KernelWebsocketHandler.__new__(KernelWebsocketHandler)
    handler.ws_connection = SimpleNamespace(set_nodelay=seen.append)
    connection = websocket.ZMQChannelsWebsocketConnection
    monkeypatch.setattr(connection, "connect", lambda self: seen.append("open"))
    websocket.AtOnce(websocket_handler=handler).connect()
    assert seen == [True, "open"]


# What is opened again.


@pytest.mark.parametrize(
    ("running", "restarts", "live"),
    [
        ([], [], False),
        (["a"], [], False),
        ([FLOPS], [], True),
        ([FLOPS], ["a"], True),
        ([FLOPS], ["k"], False),
    ],
)
def test_a_lab_opens_live_only_where_its_kernel_still_runs_and_else_as_a_picture(
    running, restarts, live
):
    asked = []
    sessions = [{"path": path, "kernel": {"id": "k"}} for path in running]

    def get(_, content=True):
        return {"type": "notebook", "content": notebooks.short() if content else None}

    server = SimpleNamespace(
        contents_manager=SimpleNamespace(get=get, root_dir="."),
        kernel_manager=SimpleNamespace(restart_kernel=asked.append),
        session_manager=SimpleNamespace(list_sessions=lambda: sessions),
    )
    reopened.show_pictures_of_gone_labs(server)

    async def opened():
        for kernel in restarts:
            await server.kernel_manager.restart_kernel(kernel)
        assert (await server.contents_manager.get(FLOPS, content=False))["content"] is None
        return await server.contents_manager.get(FLOPS)

    with ThreadPoolExecutor(1) as aside:  # in this thread, a test of a notebook leaves a loop
        model = aside.submit(asyncio.run, opened()).result()
    shown = json.dumps(model["content"])
    assert (WIDGET in shown) == live
    assert '"image/png"' in shown
    assert asked == restarts


def test_what_follows_a_guess_that_was_left_open_stays_out_of_view_when_opened_again(tmp_path):
    (tmp_path / record.HIDDEN).mkdir()
    notebook = as_handed_out(read(NOTEBOOKS[3]))
    cells = notebook["cells"]
    (at,) = (n for n, cell in enumerate(cells) if source(cell).startswith("my_backward = ask("))
    asking = cells[at]
    (name,) = asks_in(source(asking))[0].questions
    said = {"text/plain": "Your guess: 2 times. (To type it, run this cell.)"}
    ran = {"output_type": "display_data", "metadata": {}, "data": said}
    asking["outputs"] = [ran]
    asking["execution_count"] = 1

    def kept_away() -> int:
        """How many spacers stand below the field's text, once the notebook is opened."""
        opened = reopened.with_guesses(notebook, tmp_path)["cells"][at]
        own, *spacers = opened["outputs"]
        assert "".join(own["data"]["text/plain"]).startswith("Your guess: ")
        return len(spacers)

    assert kept_away() == 1
    record.note_said(tmp_path, "flops", name, 1.5)
    again = reopened.with_guesses(reopened.with_guesses(notebook, tmp_path), tmp_path)
    assert len(again["cells"][at]["outputs"]) == 2, "not one more each time"
    (own,) = without_spacers(again)["cells"][at]["outputs"]
    assert "1.5 times" in own["data"]["text/plain"]

    # Its field is alive, and keeps the rest away by itself.
    ran["data"] = {**said, WIDGET: {}}
    assert kept_away() == 0
    ran["data"] = said
    # The reader ran all cells, so the answer is shown.
    reveal = next(cell for cell in cells[at + 1 :] if "my_backward" in source(cell))
    reveal["outputs"] = [ran]
    assert kept_away() == 0
    reveal["outputs"] = []
    assert kept_away() == 1
    record.note_shown(tmp_path, "flops", name)
    assert kept_away() == 0


def test_a_guess_that_show_has_settled_is_said_in_place_of_its_field_when_opened_again(tmp_path):
    (tmp_path / record.HIDDEN).mkdir()
    notebook = read(NOTEBOOKS[3])
    (cell,) = (cell for cell in notebook["cells"] if source(cell).startswith("my_backward = ask("))
    (name,) = asks_in(source(cell))[0].questions

    def text() -> str:
        opened = reopened.with_guesses(notebook, tmp_path)["cells"]
        (again,) = (one for one in opened if one["id"] == cell["id"])
        return "".join(again["outputs"][0]["data"]["text/plain"])

    assert text().endswith("(To type it, run this cell.)")
    record.note_said(tmp_path, "flops", name, 1.5)
    assert text() == (
        f"Your guess: {name}: 1.5 times. To change it, or to see the answer, run this cell."
    )
    record.note_shown(tmp_path, "flops", name)
    assert text() == (
        f"Your guess: {name}: 1.5 times. Your guess stays as it was when Show was pressed."
    )


def test_the_picture_of_a_lab_is_followed_by_a_sentence_on_what_was_drawn_when_opened_again(
    tmp_path,
):
    (tmp_path / record.HIDDEN).mkdir()
    notebook = without_views(read(NOTEBOOKS[4]))
    cells = notebook["cells"]
    (at,) = (n for n, cell in enumerate(cells) if '"ask": "held"' in source(cell))
    of_lab = cells[at]
    for cell in cells[at + 1 :]:
        cell["outputs"] = []  # the reader has gone no further

    def below() -> list[str]:
        """What follows the picture, once the notebook is opened."""
        opened = reopened.with_guesses(notebook, tmp_path)["cells"][at]
        picture, *rest = opened["outputs"]
        assert "image/png" in picture["data"]
        return ["".join(one["data"]["text/plain"]) for one in rest]

    (spacer,) = below()
    assert not spacer.startswith("What you drew")
    guess = Guess("after 3/8 of the step, in % of the most", 40, 62.5, cell=of_lab["id"])
    record.note_guess(tmp_path, "gradients", guess)
    kept = (
        "What you drew is kept as it was when Show was pressed. "
        "Run this cell, and its picture shows that again."
    )
    assert below() == [kept], "and no spacer, since the answer was shown"
    again = reopened.with_guesses(reopened.with_guesses(notebook, tmp_path), tmp_path)
    assert len(again["cells"][at]["outputs"]) == 2, "not one more each time"

    of_lab["outputs"][0]["data"][WIDGET] = {}  # the lab is alive, and shows its marks itself
    assert below() == []
    del of_lab["outputs"][0]["data"][WIDGET]
    record.note_asked_anew(tmp_path, "gradients")
    assert below() == [spacer]
    record.note_seen(tmp_path, "gradients", of_lab["id"])
    assert below() == [
        "Show was pressed before there was a guess. Run this cell, and the lab is as you left it."
    ]
    record.note_guess(tmp_path, "gradients", guess)  # drawn for the next question of the picture
    assert below() == [kept]
