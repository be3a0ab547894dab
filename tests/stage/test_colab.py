"""The copies for Colab, and what their first cell does.

`make colab-proof` says whether they run with Colab's versions.
"""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course_utils.stage import colab
from course_utils.stage.workspace import contents
from tests import NOTEBOOKS, ROOT
from tests.helpers.notebooks import read
from tests.project.test_house import MAY_IMPORT
from tests.project.test_project import CONSTRAINTS
from tests.tools import colab as tool
from tests.tools import colab_proof


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_copy_holds_the_notebooks_cells_behind_one_that_brings_the_course_and_nothing_else(path):
    copy = tool.made(read(path), "owner/name", "v1.0")
    nbformat.validate(copy)
    first, *cells = copy.cells
    assert "clone -q --depth 1 -b v1.0 https://github.com/owner/name course\n" in first.source
    for cell, own in zip(cells, read(path).cells, strict=True):
        without = {"outputs": [], "execution_count": None} if own.cell_type == "code" else {}
        assert cell == own | without
    assert any(cell.get("outputs") for cell in read(path).cells)  # the course's own keep theirs


def test_the_first_cell_imports_and_calls_what_is_there():
    lines = tool.FIRST_CELL.splitlines()
    imports = [line for line in lines if line.startswith("from course_utils")]
    names: dict[str, object] = {}
    exec("\n".join(imports), names)
    called = re.findall(r"\bcolab\.(\w+)\(", tool.FIRST_CELL)
    assert called == ["settle", "keep_on_drive", "download"]
    assert [name for name in called if not callable(getattr(names["colab"], name, None))] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_copy_says_what_it_is_about_and_is_known_without_that(path):
    copy = tool.made(read(path), "owner/name", "v1.0")
    assert copy.metadata.course == read(path).metadata.course
    assert colab_proof.forgotten(path) == []


def test_copies_and_links_are_the_same_each_time_and_only_for_who_has_an_address(
    tmp_path, monkeypatch
):
    readme = tmp_path / "README.md"
    before = tool.with_links((ROOT / "README.md").read_text("utf-8"), "")
    assert contents.ONE_CLICK.findall(before) == []
    readme.write_text(before, "utf-8")
    monkeypatch.setattr(tool, "FOLDER", tmp_path / "colab")
    monkeypatch.setattr(tool, "README", readme)
    for remote in ("/somewhere/else", "", "https://gitlab.com/owner/name"):
        monkeypatch.setattr(tool, "git", git_with(remote))
        assert tool.main("", "") == 2
        assert list(tmp_path.iterdir()) == [readme]
    written = []
    for remote in ("https://github.com/owner/name", "git@github.com:owner/name.git"):
        monkeypatch.setattr(tool, "git", git_with(remote))
        assert tool.main("", "") == 0
        assert readme.read_text("utf-8") == before, "copies alone change nothing that git looks at"
        assert tool.main("", "", "1") == 0
        written.append({path.name: path.read_bytes() for path in tmp_path.rglob("*.*")})
        readme.write_text(before, "utf-8")
    assert written[0] == written[1]
    assert written[0].keys() == {path.name for path in NOTEBOOKS} | {"README.md"}
    text = written[0]["README.md"].decode()
    links = dict(contents.ONE_CLICK.findall(text))  # as the contents page reads them
    assert [*links] == ["Colab", "Codespaces", "Binder"]
    assert all("/owner/name" in address for address in links.values())
    assert tool.with_links(text, "") == before


def git_with(remote: str) -> Callable[..., str]:
    """A git in a repository on branch main, with that remote."""
    return lambda *asked: remote if "remote" in asked else "main"


def test_the_first_cell_adds_what_is_missing_and_asks_for_nothing_that_is_there(
    tmp_path, monkeypatch, capsys
):
    asked = []
    missing = ["jaxtyping", "resvg_py"]
    answer = SimpleNamespace(returncode=0, stderr="no route")

    def run(command, **_):
        asked.append(command[1:])
        return answer

    def installed(name):
        return iter([] if name in missing else [name])

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(colab, "distributions", installed)
    monkeypatch.setattr(sys, "path", ["course"])
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.chdir(tmp_path)
    colab.settle()
    added = ["jaxtyping==0.3.11", "resvg_py==0.5.0"]
    assert asked == [["-m", "pip", "install", "--quiet", "--no-deps", *added]]
    assert capsys.readouterr().out.endswith(f"Added: {', '.join(added)}. Replaced: nothing.\n")
    assert (sys.path[0], (tmp_path / ".course").is_dir()) == (str(ROOT), True)
    answer.returncode = 1
    with pytest.raises(ValueError, match="Is there a network"):
        colab.settle()


def test_what_the_course_imports_is_there_or_added_as_it_is_pinned():
    there = (ROOT / "tests/tools/colab.txt").read_text("utf-8").splitlines()
    known = names_of(colab.NEEDED) | names_of(there[3:])
    packages = importlib.metadata.packages_distributions()
    imported = set()
    for part, used in MAY_IMPORT.items():
        if not part.startswith("stage.") or part == "stage.colab":
            imported |= used
    outside = imported - MAY_IMPORT.keys() - {"google"}
    assert {canonicalize_name(packages[name][0]) for name in outside} - known == set()
    pinned = {canonicalize_name(pin.name): str(pin.specifier) for pin in CONSTRAINTS}
    for pin in map(Requirement, colab.NEEDED):
        assert str(pin.specifier) == pinned[canonicalize_name(pin.name)], pin.name


def names_of(pins: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(pin).name) for pin in pins}
