"""Tries what the course does on Colab, without Colab: `make colab-proof`.

It makes an environment with the packages that colab.txt lists, kept in .versions/colab. Each copy
runs there in an empty folder, and its first cell brings the course by git and pip; a clone of what
is committed here stands for the public address. Before the next copy, the packages which that cell
has added are uninstalled. Then every lab is moved as ipywidgets' own script would move it. At last
each copy is read again without our metadata, which Colab may drop.

The status is 0 if no cell fails, no package is replaced, every lab answers, and each copy is still
known. torch brings CUDA along, which is several GB; PIP_EXTRA_INDEX_URL can name the index of its
builds for CPUs, as in the README.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import nbformat

from course_utils.chapters import labs
from course_utils.stage.colab import NEEDED
from course_utils.stage.grading.reading import handed_in
from course_utils.stage.notebook.about import about
from course_utils.stage.notebook.outline import outline
from tests import NOTEBOOKS, ROOT
from tests.helpers.kernels import kernel_in
from tests.helpers.notebooks import WIDGET, exercises, read
from tests.tools import colab, elsewhere, versions
from tests.tools.front_end import FrontEnd, outcomes
from tests.tools.shown_here import words_on

TOOLS = Path(__file__).parent
LIST = TOOLS / "colab.txt"
COURSE = {"repository": "course/course", "tag": "proof"}
# Colab has imported google.colab in its kernels.
KERNEL = """
import google.colab
from ipykernel.kernelapp import launch_new_instance

launch_new_instance()
"""
INSTALLED = """
import json
from importlib.metadata import distributions

print(json.dumps({package.name: package.version for package in distributions()}))
"""

Widget = Mapping[str, object]  # its state
Widgets = Mapping[str, Widget]


def python() -> Path:
    """Return the Python of an environment with the packages that Colab has."""
    made_by = sys.executable
    for suite in elsewhere.pythons():
        if " 3.13." in suite.name:  # Colab's version, if this machine has it
            made_by = suite.python
    listed = ["--no-deps", "--requirement", str(LIST)]
    torch = ["--constraint", str(LIST), "torch"]
    return versions.environment("colab", listed, torch, made_by=made_by)


@contextmanager
def machine(python: Path, address: Path) -> Iterator[FrontEnd]:
    """A machine like Colab's: a kernel in an empty folder; its git finds the course at the address.

    What the kernel before it has added to the environment is uninstalled first.
    """
    # What the course adds to Colab is what it needs and the list does not have.
    listed = LIST.read_text(encoding="utf-8").lower()
    needed = [pin.partition("==")[0] for pin in NEEDED]
    added = [name for name in needed if f"\n{name.lower()}==" not in listed]
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-q", "-y", *added], check=True)
    environment = versions.ALONE | {
        "PYTHONPATH": f"{TOOLS}/colab_modules",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{address.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://github.com/{COURSE['repository']}",
    }
    command = [python, "-Xfrozen_modules=off", "-c", KERNEL]
    with (
        tempfile.TemporaryDirectory() as empty,
        kernel_in(Path(empty), *command, **environment) as (_, client),
    ):
        yield FrontEnd(client)


def installed(python: Path) -> dict[str, str]:
    """Return the packages of that environment, and their versions."""
    run = subprocess.run([python, "-c", INSTALLED], capture_output=True, check=True)
    return json.loads(run.stdout)


def bad_in(path: Path, python: Path, address: Path) -> int:
    """Run a copy, print what came of it, and count the failed cells and the replaced packages."""
    with machine(python, address) as page:
        before = installed(python)
        copy = colab.made(read(path), **COURSE)
        first, *others = outcomes(page, copy.cells, path)
        after = installed(python)
    replaced = []
    for name, version in before.items():
        if after.get(name) != version:
            replaced.append(f"{name} was {version}")
    failed = [cell for cell in (first, *others) if cell.failure]
    differ = [cell for cell in others if not (cell.failure or cell.same or cell.may_differ)]
    lines = [
        f"{path.stem}: {len(others)} cells, {len(failed)} failed, "
        f"{len(differ)} show what is not stored, {len(replaced)} packages replaced, "
        f"first cell {first.seconds:.0f} s"
    ]
    lines += [words_on(cell) for cell in failed + differ]
    print(*lines, *replaced, sep="\n  ", flush=True)
    return len(failed) + len(replaced)


def moved(widget: Widget) -> dict[str, object]:
    """Return the state that a page sends when a reader moves a control to its end; else nothing."""
    labels = widget.get("_options_labels")
    if labels:
        is_first = widget["index"] == 0
        return {"index": len(labels) - 1 if is_first else 0}
    match widget["_model_name"]:
        case "IntSliderModel":
            is_at_end = widget["value"] == widget["max"]
            return {"value": widget["min"] if is_at_end else widget["max"]}
        case "FloatLogSliderModel":
            return {"value": widget["base"] ** widget["max"]}
        case "CheckboxModel" | "ToggleButtonModel":
            return {"value": not widget["value"]}
    return {}


def wrong_in(page: FrontEnd, lab: str) -> Iterator[str]:
    """Show a lab, run its jobs, move its controls, and say what is wrong with it."""
    shown = page.run(f"from course_utils import labs\nlabs.{lab}()")[-1]
    data = shown.get("data", {})
    if WIDGET not in data or "image/png" not in data or not shown.metadata.get(WIDGET):
        yield f"it shows no lab: {shown}"
        return
    widgets = {id_: page.widgets[id_] for id_ in page.inside(data[WIDGET]["model_id"])}
    (screen,) = (widget for widget in widgets.values() if "svg" in widget)
    for id_, widget in widgets.items():
        if widget.get("button_style") == "primary":  # it starts a job
            errors = page.tell(id_, method="custom", content={"event": "click"})
            print(f"{lab}, {widget['description']}: {screen['report']}", flush=True)
            if errors or not has_reported(screen):
                yield f"its job: {errors}"
    yield from wrong_when_moved(page, widgets, screen)


def wrong_when_moved(page: FrontEnd, widgets: Widgets, screen: Widget) -> Iterator[str]:
    """Move each control to its end; yield errors, and a sentence if the picture never changes."""
    pictures = {screen["svg"]}
    for id_, widget in widgets.items():
        state = moved(widget)
        if state:
            errors = page.tell(id_, method="update", state=state, buffer_paths=[])
            yield from (str(error) for error in errors)
            pictures.add(screen["svg"])
    if len(pictures) == 1:
        yield "its picture stays as it is"


def has_reported(screen: Widget) -> bool:
    """Whether a job has ended and reported, and the report is not that the lab failed."""
    report = screen["report"]
    return bool(report) and "itself failed" not in report and screen["progress"] == -1


def forgotten(path: Path) -> list[str]:
    """Return what the course cannot find in a copy in which Colab has kept only its own metadata.

    It should still find guesses, turns and figures, title and chapter, and which notebook it is.
    """
    copy = colab.made(read(path), **COURSE)
    bare = deepcopy(copy)
    bare.metadata = nbformat.from_dict(colab.METADATA)
    wrong = []
    if outline(bare) != outline(copy):
        wrong.append("its guesses, turns or figures")
    before = about(copy, path.name)
    after = about(bare, path.name)
    if (before.title, before.chapter) != (after.title, after.chapter):
        wrong.append(f"its title and chapter, {after.title} and {after.chapter}")
    with tempfile.TemporaryDirectory() as folder:
        for cell in bare.cells:
            cell.metadata = {"id": cell.pop("id")}  # Colab keeps a cell's id there
        Path(folder, "Untitled0.ipynb").write_text(json.dumps(bare), encoding="utf-8")
        (submission,) = handed_in(Path(folder), {each.stem: read(each) for each in NOTEBOOKS})
    if submission.notebook != path.stem:
        wrong.append(f"which notebook it is: {submission.problem or submission.notebook}")
    return [f"{path.stem}: {words}" for words in wrong]


def kept(page: FrontEnd) -> set[str]:
    """Solve a turn that the accountant keeps; return the names of the reader's files on the drive.

    The set is empty if the kernel does not work on the drive.
    """
    turn = next(exercise for exercise in exercises() if exercise.check.endswith(".kept"))
    solved = (turn.imports, turn.solution, turn.check)
    for code in ("colab.keep_on_drive()", *solved, "colab.download()"):
        for output in page.run(code):
            print(output.get("evalue", ""), end="")
    listing = page.run("import os\nprint(os.getcwd(), *os.listdir())")[-1]
    folder, *files = listing.text.split()
    if not folder.endswith("drive/MyDrive/my_notebooks"):
        return set()
    return set(files)


def main() -> int:
    """Run the proof, and print what came of it."""
    begun = time.monotonic()
    here = python()
    names = [name for name in labs.__all__ if name.endswith("_lab")]
    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder, "course.git")
        subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, address], check=True)
        subprocess.run(["git", "-C", address, "tag", COURSE["tag"]], check=True)
        bad = sum(bad_in(path, here, address) for path in NOTEBOOKS)
        unknown = [words for path in NOTEBOOKS for words in forgotten(path)]
        with machine(here, address) as page:
            page.run(colab.FIRST_CELL.format(**COURSE))
            wrong = {lab: list(wrong_in(page, lab)) for lab in names}
            lost = {"record.txt", "accountant.py"} - kept(page)
    silent = [f"{lab}: {words}" for lab, words in wrong.items() if words]
    print(f"{len(names) - len(silent)} of {len(names)} labs answered", *silent, sep="\n  ")
    print("Without our metadata, not known:", *(unknown or ["nothing"]), sep="\n  ")
    took_s = time.monotonic() - begun
    print(f"Not kept on the drive: {lost or 'nothing'}. The proof took {took_s:.0f} s.")
    return int(bool(bad or silent or unknown or lost))


if __name__ == "__main__":
    sys.exit(main())
