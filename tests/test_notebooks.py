"""What every notebook promises its reader; nbval runs them, these tests read them."""

import ast
import base64
import errno
import io
import re
import statistics
import subprocess
import sys
from pathlib import Path
from unittest import mock

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from PIL import Image

from course_utils import labs
from tests import NOTEBOOKS, ROOT
from tests.notebooks import exercises, read
from tests.tools import outputs as outputs_of
from tests.tools.claims import numbers
from tests.tools.outputs import normalise, store
from tests.words import words_on

WIDGET = "application/vnd.jupyter.widget-view+json"
ALLOWED_TAGS = {"nbval-ignore-output"}
MACHINE_PATHS = re.compile(r"(?<![\w.])/(home|root|Users|tmp|work|usr|opt|private|var/folders)/|[A-Z]:\\")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def prose(path: Path) -> list[str]:
    return [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]


def outputs(path: Path) -> list[nbformat.NotebookNode]:
    return [output for cell in code(path) for output in cell.outputs]


@every_notebook
def test_stored_outputs_are_those_of_one_run_from_top_to_bottom(path):
    counts = [cell.execution_count for cell in code(path)]
    assert counts == list(range(1, len(counts) + 1))
    assert [o for o in outputs(path) if o.output_type == "error" or o.get("name") == "stderr"] == []


@every_notebook
def test_nothing_of_the_machine_it_ran_on_is_stored(path):
    notebook = read(path)
    for cell in notebook.cells:
        shown = [
            str(text)
            for output in cell.get("outputs", [])
            for kind, text in {"text": output.get("text", ""), **output.get("data", {})}.items()
            if not kind.startswith("image/")
        ]
        assert not MACHINE_PATHS.search("\n".join([cell.source, *shown])), cell.source
    assert "widgets" not in notebook.metadata
    unchanged = nbformat.from_dict(notebook)
    normalise(unchanged)
    assert unchanged == notebook


@every_notebook
def test_only_the_tags_that_mean_something_here(path):
    assert {tag for cell in read(path).cells for tag in cell.metadata.get("tags", [])} <= ALLOWED_TAGS


@every_notebook
def test_cells_are_short_and_the_file_is_small(path):
    lengths = [len(cell.source.splitlines()) for cell in code(path)]
    assert max(lengths) <= 15
    assert statistics.median(lengths) <= 6
    assert path.stat().st_size < 500_000


@every_notebook
def test_it_opens_with_its_number_and_ends_with_takeaways(path):
    cells = prose(path)
    assert cells[0].startswith(f"# {int(path.stem[:2])} · ")
    assert "**The question of this notebook.**" in cells[0]
    assert "## Takeaways" in cells[-1]
    assert "opening question" in cells[-1]
    assert sum(exercise.notebook == path for exercise in exercises()) >= 4


@every_notebook
def test_the_way_to_its_neighbours_stands_at_both_ends(path):
    here = NOTEBOOKS.index(path)
    neighbours = [NOTEBOOKS[n].name for n in (here - 1, here + 1) if 0 <= n < len(NOTEBOOKS)]
    for end in (prose(path)[0], prose(path)[-1]):
        assert "*The series: " in end
        assert [name for name in neighbours if f"]({name})" not in end] == []


@pytest.mark.parametrize(
    "path",
    [*NOTEBOOKS, *sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("notebooks/*.md"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_every_link_within_the_project_leads_somewhere(path):
    text = "\n".join(prose(path)) if path.suffix == ".ipynb" else path.read_text(encoding="utf-8")
    targets = [target for target in LINK.findall(text) if not target.startswith(("http:", "https:"))]
    targets += re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)  # pictures are never another server's
    for target in targets:
        file, _, anchor = target.partition("#")
        assert (path.parent / file).exists(), target
        if anchor and not file:
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target


@every_notebook
def test_every_lab_leaves_a_picture_where_no_kernel_runs(path):
    labs = [output.data for output in outputs(path) if WIDGET in output.get("data", {})]
    assert labs
    assert all({"image/png", "text/plain"} <= set(data) and "text/html" not in data for data in labs)
    page, _ = HTMLExporter().from_filename(str(path))
    assert all(data["image/png"].replace("\n", "") in page.replace("\n", "") for data in labs)


@every_notebook
def test_every_picture_carries_its_description_inside_and_beside(path):
    pictures = [output for output in outputs(path) if "image/png" in output.get("data", {})]
    assert pictures
    for output in pictures:
        words = output.metadata["image/png"]["alt"]
        assert len(words.split()) > 8
        assert output.data["text/plain"].startswith(words)
        png = io.BytesIO(base64.b64decode(output.data["image/png"]))
        assert Image.open(png).text["Description"] == words


def first_cells(path: Path, count: int) -> nbformat.NotebookNode:
    """The notebook's beginning, up to so many code cells."""
    notebook = read(path)
    ends = [number for number, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    notebook.cells = notebook.cells[: ends[count - 1] + 1]
    return notebook


def passes_strict_nbval(path: Path) -> bool:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbval",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        str(path),
    ]
    return subprocess.run(command, cwd=path.parent, capture_output=True, check=False).returncode == 0


def test_strict_nbval_fails_when_one_stored_number_is_altered(tmp_path):
    copy = tmp_path / "copy.ipynb"
    notebook = first_cells(NOTEBOOKS[0], 4)
    nbformat.write(notebook, copy)
    assert passes_strict_nbval(copy)
    stored = copy.read_text(encoding="utf-8")
    assert stored.count("      128       128") == 1
    copy.write_text(stored.replace("      128       128", "      128       129"), encoding="utf-8")
    assert not passes_strict_nbval(copy)


def test_storing_outputs_keeps_the_cells_and_is_the_same_the_second_time(tmp_path):
    copy = tmp_path / "copy.ipynb"
    notebook = first_cells(NOTEBOOKS[0], 2)
    notebook.cells[-1].source = "my_guess = 128  # the reader's own answer\nmy_guess"
    nbformat.write(notebook, copy)
    sources = [cell.source for cell in notebook.cells]
    assert store(copy)
    assert [cell.source for cell in read(copy).cells] == sources
    assert read(copy).cells[-1].outputs[0].data["text/plain"] == "128"
    assert not store(copy)


def test_a_notebook_that_fails_is_left_as_it_was(tmp_path):
    copy = tmp_path / "copy.ipynb"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    nbformat.write(notebook, copy)
    before = copy.read_bytes()
    with pytest.raises(CellExecutionError):
        store(copy)
    assert copy.read_bytes() == before


def test_where_nothing_can_be_written_storing_says_so_in_a_sentence(monkeypatch, capsys):
    no_room = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "write_text", mock.Mock(side_effect=no_room))
    monkeypatch.setattr(outputs_of, "run", lambda notebook: notebook.cells.clear())
    assert outputs_of.main([NOTEBOOKS[0].name]) == 1
    assert f"{NOTEBOOKS[0].name} is left as it was: No space left on device" in capsys.readouterr().out


def lab_cells(path: Path) -> list[tuple[str, str, str]]:
    """Each lab of a notebook: its name, the text that invites to explore it, and all code from its cell on."""
    cells = read(path).cells
    found = []
    for number, cell in enumerate(cells):
        made = re.search(r"labs\.(\w+_lab)\(\)", cell.source) if cell.cell_type == "code" else None
        if made:
            rest = "\n".join(c.source for c in cells[number : number + 4] if c.cell_type == "code")
            found.append((made[1], cells[number - 1].source, rest))
    return found


@every_notebook
def test_the_buttons_that_the_text_names_are_there(path):
    for name, invitation, code_ in lab_cells(path):
        buttons = words_on(labs.lab_named(name.removesuffix("_lab")))
        explore = invitation[invitation.rindex("## Explore") :]
        named = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", explore)
        assert [words for words in named if words not in buttons] == [], name
        pressed = re.findall(r"\.(?:preset|start|act)\(\"([^\"]+)\"\)", code_)
        assert [words for words in pressed if words not in buttons] == [], name


def test_no_two_stored_rates_of_one_machine_and_dtype_contradict_each_other():
    """Two CPUs of one name once differed 491-fold: notebook 4 shows this machine's rates and a recorded core's."""
    rate = re.compile(r"'(fp32|bf16|fp16|fp64)': '([\d.]+ [kMGTP]FLOP/s)'")
    for path in NOTEBOOKS:
        found: dict[tuple[str, str], set[float]] = {}
        for cell in code(path):
            said = "\n".join(o.get("data", {}).get("text/plain", "") for o in cell.outputs)
            for machine in re.findall(r"'(one core of [^']*?)(?:, recorded [^']*)?'", said):
                for dtype, per_sec in rate.findall(said):
                    (_, number), *_ = numbers(per_sec)
                    found.setdefault((machine, dtype), set()).add(max(number.values))
        assert [key for key, rates in found.items() if max(rates) > 1.5 * min(rates)] == []
        assert found or path.stem != "04_flops"


def called(tree: ast.AST) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@every_notebook
def test_no_figure_is_rounded_before_it_is_compared(path):
    """Rounded beforehand, two figures that differ can be "1 exactly"."""
    trees = [ast.parse(cell.source) for cell in code(path)]
    functions = {
        node.name: called(node)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    rounding = {"round"} | {name for name, calls in functions.items() if "round" in calls}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Comparison":
                assert not called(node) & rounding, ast.unparse(node)
