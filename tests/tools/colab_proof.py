"""The course on Colab, proven without it: the copies run with Colab's versions, from an empty folder, by git and pip.

`make colab-proof` makes an environment of what colab.txt lists, kept in .versions/colab. Before each copy it takes out
again what the copy's first cell adds. A clone of what is committed here stands for the public address. Then every lab is
moved as ipywidgets' own script would move it. Each copy is looked at once more without our metadata, which Colab may
drop. 0 if no cell fails, no package is replaced, every lab answers, and each copy is known.
torch brings CUDA along, several GB: PIP_EXTRA_INDEX_URL names the index of its builds for CPUs, as in the README.
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
KERNEL = (
    "import google.colab; from ipykernel.kernelapp import launch_new_instance as launch; launch()"
)
INSTALLED = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"


def python() -> Path:
    """The Python of an environment with what Colab has."""
    like_colabs = [one.python for one in elsewhere.pythons() if " 3.13." in one.name]
    lists = ["--no-deps", "--requirement", str(LIST)], ["--constraint", str(LIST), "torch"]
    return versions.environment("colab", *lists, made_by=(like_colabs or [sys.executable])[0])


@contextmanager
def machine(python: Path, address: Path) -> Iterator[FrontEnd]:
    """A new one, whose git finds the course at this address, without what an earlier one has added."""
    listed, needed = (
        LIST.read_text(encoding="utf-8").lower(),
        [pin.partition("==")[0] for pin in NEEDED],
    )
    added = [name for name in needed if f"\n{name.lower()}==" not in listed]
    subprocess.run([python, "-m", "pip", "uninstall", "-q", "-q", "-y", *added], check=True)
    environment = versions.ALONE | {
        "PYTHONPATH": f"{TOOLS}/colab_modules",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{address.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://github.com/{COURSE['repository']}",
    }
    with (
        tempfile.TemporaryDirectory() as empty,
        kernel_in(Path(empty), python, "-Xfrozen_modules=off", "-c", KERNEL, **environment) as (
            _,
            client,
        ),
    ):
        yield FrontEnd(client)


def installed(python: Path) -> dict[str, str]:
    """The packages of that environment, and their versions."""
    return json.loads(
        subprocess.run([python, "-c", INSTALLED], capture_output=True, check=True).stdout
    )


def bad_in(path: Path, python: Path, address: Path) -> int:
    """Run a copy and print what came of it; how many cells failed and packages were replaced."""
    with machine(python, address) as page:
        before = installed(python)
        first, *found = outcomes(page, colab.made(read(path), **COURSE).cells, path)
        after = installed(python)
    replaced = [f"{name} was {before[name]}" for name in before if after.get(name) != before[name]]
    failed = [one for one in (first, *found) if one.failure]
    differ = [one for one in found if not (one.failure or one.same or one.may_differ)]
    counts = f"{len(failed)} failed, {len(differ)} show what is not stored, {len(replaced)} packages replaced"
    said = f"{path.stem}: {len(found)} cells, {counts}, first cell {first.seconds:.0f} s"
    print(said, *map(words_on, [*failed, *differ]), *replaced, sep="\n  ", flush=True)
    return len(failed) + len(replaced)


def moved(widget: Mapping[str, object]) -> dict[str, object]:
    """What a page says when a reader moves a control to its end; nothing of what is no control."""
    if labels := widget.get("_options_labels"):
        return {"index": 0 if widget["index"] else len(labels) - 1}
    match widget["_model_name"]:
        case "IntSliderModel":
            return {"value": widget["min" if widget["value"] == widget["max"] else "max"]}
        case "FloatLogSliderModel":
            return {"value": widget["base"] ** widget["max"]}
        case "CheckboxModel" | "ToggleButtonModel":
            return {"value": not widget["value"]}
    return {}


def wrong_in(page: FrontEnd, lab: str) -> Iterator[str]:
    """What is wrong with a lab whose first job is run and whose controls are moved; nothing if it answers."""
    shown = page.run(f"from course_utils import labs\nlabs.{lab}()")[-1]
    if not (
        WIDGET in shown.get("data", {}) and "image/png" in shown.data and shown.metadata.get(WIDGET)
    ):
        yield f"it shows no lab: {shown}"
        return
    inside = {one: page.widgets[one] for one in page.inside(shown.data[WIDGET]["model_id"])}
    (screen,) = (widget for widget in inside.values() if "svg" in widget)
    for one, widget in inside.items():
        if widget.get("button_style") == "primary":
            errors = page.tell(one, method="custom", content={"event": "click"})
            print(f"{lab}, {widget['description']}: {screen['report']}", flush=True)
            if (
                errors
                or not screen["report"]
                or "itself failed" in screen["report"]
                or screen["progress"] != -1
            ):
                yield f"its job: {errors}"
    pictures = {screen["svg"]}
    for one, widget in inside.items():
        if said := moved(widget):
            yield from map(str, page.tell(one, method="update", state=said, buffer_paths=[]))
            pictures.add(screen["svg"])
    if len(pictures) == 1:
        yield "its picture stays as it is"


def forgotten(path: Path) -> list[str]:
    """What is no longer known of a notebook in which Colab has kept only its own metadata."""
    copy = colab.made(read(path), **COURSE)
    bare = deepcopy(copy)
    bare.metadata = nbformat.from_dict(colab.METADATA)
    wrong = [] if outline(bare) == outline(copy) else ["its guesses, turns or figures"]
    before, after = about(copy, path.name), about(bare, path.name)
    if (before.title, before.chapter) != (after.title, after.chapter):
        wrong.append(f"its title and chapter, {after.title} and {after.chapter}")
    with tempfile.TemporaryDirectory() as folder:
        for cell in bare.cells:
            cell.metadata = {"id": cell.pop("id")}  # where Colab keeps it
        Path(folder, "Untitled0.ipynb").write_text(json.dumps(bare), encoding="utf-8")
        (one,) = handed_in(Path(folder), {each.stem: read(each) for each in NOTEBOOKS})
    if one.notebook != path.stem:
        wrong.append(f"which notebook it is: {one.problem or one.notebook}")
    return [f"{path.stem}: {words}" for words in wrong]


def kept(page: FrontEnd) -> set[str]:
    """The reader's files on the drive, when the first turn that goes into the accountant has been solved."""
    turn = next(one for one in exercises() if one.check.endswith(".kept"))
    for code in (
        "colab.keep_on_drive()",
        turn.imports,
        turn.solution,
        turn.check,
        "colab.download()",
    ):
        print(*(one.get("evalue", "") for one in page.run(code)), end="")
    said = page.run("import os\nprint(os.getcwd(), *os.listdir())")[-1].text.split()
    return set(said[1:]) if said[0].endswith("drive/MyDrive/my_notebooks") else set()


def main() -> int:
    """Run the proof, and print what came of it."""
    begun, here, names = (
        time.monotonic(),
        python(),
        [name for name in labs.__all__ if name.endswith("_lab")],
    )
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
    print(
        f"Not kept on the drive: {lost or 'nothing'}. The proof took {time.monotonic() - begun:.0f} s."
    )
    return int(bad + len(silent) + len(unknown) + len(lost) > 0)


if __name__ == "__main__":
    sys.exit(main())
