"""The files that were handed in: which notebook of the course each is, and whose; and why a file is not judged.

A notebook is known by the ids of its cells, whatever its name is. Moodle, Canvas and nbgrader name files and folders each
in its own way.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_utils.desk import stubs
from course_utils.desk.notebooks import Notebook, source

LARGEST_BYTES, FEWEST_CELLS = 20_000_000, 5  # so many cells are the course's by no chance
OUT_OF_SIGHT = re.compile(r"(^|/)(\.|__MACOSX/)")
# What course systems add: Moodle to a folder, Canvas to a file's name. The student's number stays, as names can be alike.
ADDED = re.compile(r"(?<=\d)_assignsubmission_.*|_LATE(?=_\d)|(?<=\d{3})_\d{3,}(_.*)?$")


@dataclass(frozen=True)
class HandedIn:
    file: str  # its path in the folder
    student: str
    notebook: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # its cells' by their ids
    time: float = 0.0
    problem: str = ""  # why it is not judged


def handed_in(folder: Path, course: Mapping[str, Notebook]) -> list[HandedIn]:
    """Every file of that folder. Of two for one student and notebook, the later one is judged."""
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found = [_read(path, name, course) for name, path in names.items() if not OUT_OF_SIGHT.search(name)]
    found.sort(key=lambda one: (one.time, Path(one.file).stem))
    latest = {(one.student, one.notebook): one.file for one in found}

    def judged(one: HandedIn) -> HandedIn:
        later = latest[one.student, one.notebook]
        if not one.notebook or later == one.file:
            return one
        return replace(one, problem=f"{later} is later, and is judged in its place.")

    return sorted(map(judged, found), key=lambda one: (one.student, one.notebook, one.problem, one.file))


def code_of(notebook: Notebook) -> dict[str, str]:
    """The text of each code cell by its id, in order. Colab keeps the ids elsewhere."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {
        cell.get("id") or cell["metadata"].get("id") or f"{at}": source(cell) for at, cell in enumerate(cells)
    }


def guesses_made(one: HandedIn, course: Notebook) -> int:
    cells = course["cells"]
    asked = (cell["id"] for at, cell in enumerate(cells) if stubs.is_guess(cell, cells[at + 1 :]))
    return sum(name in one.code and not stubs.is_open(one.code[name]) for name in asked)


def _read(path: Path, file: str, course: Mapping[str, Notebook]) -> HandedIn:
    notebook, code, problem, time = "", {}, "", path.lstat().st_mtime
    try:
        code = _parsed(path)
        shared = {name: len(code_of(one).keys() & code) for name, one in course.items()}
        notebook = max(shared, key=shared.get)
        if shared[notebook] < FEWEST_CELLS:
            notebook = ""
            raise ValueError("It is none of the course's notebooks: their cells are not in it.")
    except (ValueError, OSError) as error:
        problem = str(error)
    # A browser or Canvas gives a second copy a number.
    copied = rf"[\s_-]*{notebook}(-\d+|\s*\(\d+\))?" if notebook else "$"
    named = file.partition("/")[0] if "/" in file else re.sub(copied, "", path.stem, flags=re.IGNORECASE)
    student = ADDED.sub("", named).replace("_", " ").strip(" -") or path.stem
    return HandedIn(file, student, notebook, code, time, problem)


def _parsed(path: Path) -> dict[str, str]:
    """The code of the file's cells; ValueError with a sentence if it is no notebook that can be read."""
    if path.suffix != ".ipynb" or path.is_symlink():
        raise ValueError("It is no notebook. Hand in the .ipynb file itself, not packed.")
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError("It is larger than 20 MB. Clear its outputs, and hand it in again.")
    try:
        return code_of(json.loads(path.read_bytes()))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        words = "It cannot be read as a notebook. Save it in JupyterLab, and hand it in again."
        raise ValueError(words) from None
