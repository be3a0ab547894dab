"""JupyterLab trusts the copies that the course wrote, and leaves their pictures as they are."""

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from course_utils.stage.notebook.files import read, source
from course_utils.stage.workspace import copies, spacers
from tests.helpers import notebooks
from tests.helpers.workspace import FLOPS

DRAWING = {"text/html": "<svg><circle r='1' /></svg>", "text/plain": "a picture"}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A course of one notebook, a reader's copy of it, and no signature yet."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "fresh home" / "jupyter"))
    course = tmp_path / "notebooks"
    mine = tmp_path / "my_notebooks"
    monkeypatch.setattr(copies, "COURSE", course)
    course.mkdir()
    nbformat.write(notebooks.short(), course / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    return course, mine


def notary() -> NotebookNotary:
    """The one of a JupyterLab that is started here."""
    return NotebookNotary(data_dir=os.environ["JUPYTER_DATA_DIR"])


def is_signed(path: Path) -> bool:
    return notary().check_signature(nbformat.read(path, as_version=4))


def run(path: Path, old: str, new: str, *, in_jupyterlab: bool = True) -> None:
    """Write `new` in place of a cell, and give it a drawing for an output.

    JupyterLab signs what it saves if all cells that it has not run itself were trusted.
    """
    notebook = nbformat.read(path, as_version=4)
    was_trusted = notary().check_signature(notebook)
    (cell,) = [cell for cell in notebook.cells if cell.source == old]
    cell.source = new
    cell.outputs = [nbformat.v4.new_output("display_data", DRAWING)]
    nbformat.write(notebook, path)
    if in_jupyterlab and was_trusted:
        notary().sign(nbformat.read(path, as_version=4))


def change_course(course: Path) -> None:
    path = course / FLOPS
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("this was a lab", "this is a lab"), encoding="utf-8")


def drop_signatures() -> None:
    """Make this a machine on which nothing was signed, as before the course signed its copies."""
    (Path(os.environ["JUPYTER_DATA_DIR"]) / "nbsignatures.db").unlink()


def test_a_copy_that_the_course_writes_is_trusted_and_stays_so_through_updates(workspace):
    course, mine = workspace
    assert is_signed(mine / FLOPS)

    run(mine / FLOPS, "6 * 7", "6 * 8")
    assert is_signed(mine / FLOPS)
    change_course(course)
    (said,) = copies.bring_up_to_date(course, mine)
    assert "what you wrote is in it" in said
    assert is_signed(mine / FLOPS)

    copies.show_results(course / FLOPS, mine)
    assert is_signed(mine / FLOPS)
    copies.begin_anew(course / FLOPS, 1, mine)
    assert is_signed(mine / FLOPS)


def test_an_untouched_copy_is_trusted_after_an_update(workspace):
    course, mine = workspace
    change_course(course)
    assert list(copies.bring_up_to_date(course, mine)) == [f"{FLOPS} is brought up to date."]
    assert is_signed(mine / FLOPS)


def test_a_copy_of_before_is_trusted_if_its_only_outputs_are_the_courses_space(workspace):
    course, mine = workspace
    assert any(spacers.has_spacer(cell) for cell in read(mine / FLOPS)["cells"])
    drop_signatures()
    assert not is_signed(mine / FLOPS)
    assert list(copies.bring_up_to_date(course, mine)) == []
    assert is_signed(mine / FLOPS)


@pytest.mark.parametrize("disguise", ["none", "marked as trusted", "as a spacer"])
def test_a_copy_with_outputs_from_elsewhere_is_not_trusted_until_it_begins_anew(
    workspace, disguise
):
    course, mine = workspace
    drop_signatures()
    run(mine / FLOPS, "6 * 7", "6 * 8", in_jupyterlab=False)
    notebook = nbformat.read(mine / FLOPS, as_version=4)
    for cell in notebook.cells:
        if source(cell) == "6 * 8" and disguise == "marked as trusted":
            cell.metadata.trusted = True
        elif source(cell) == "6 * 8" and disguise == "as a spacer":
            cell.outputs[0].metadata[spacers.MARK] = True
            cell.outputs[0].data["text/plain"] = spacers.WORDS
    nbformat.write(notebook, mine / FLOPS)

    assert list(copies.bring_up_to_date(course, mine)) == []
    assert not is_signed(mine / FLOPS)
    change_course(course)
    list(copies.bring_up_to_date(course, mine))
    assert not is_signed(mine / FLOPS)
    copies.show_results(course / FLOPS, mine)
    assert not is_signed(mine / FLOPS)
    copies.begin_anew(course / FLOPS, 2, mine)
    assert not is_signed(mine / FLOPS)
    copies.begin_anew(course / FLOPS, None, mine)
    assert is_signed(mine / FLOPS)


def test_where_nothing_can_be_signed_the_copies_are_made_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "a file"))
    course = tmp_path / "notebooks"
    course.mkdir()
    nbformat.write(notebooks.short(), course / FLOPS)
    for _ in range(2):
        assert list(copies.bring_up_to_date(course, tmp_path / "mine")) == []
    assert (tmp_path / "mine" / FLOPS).is_file()
