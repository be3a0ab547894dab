"""The files that were handed in: which notebook of the course each is, and whose; and why a file is not judged.

A notebook is known by the ids of its cells, whatever its name is; without ids, by the checks that its cells call. Moodle,
Canvas and nbgrader name files and folders each in its own way. A process of its own reads the files, with bounds, and
nothing but texts comes out of it: whatever is in a file, it costs its own line.
"""

import json
import multiprocessing
import os
import re
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

from course_utils.stage.notebook.code import CHECK
from course_utils.stage.notebook.files import Notebook, source
from course_utils.stage.notebook.outline import outline, turns

LARGEST_CODE = 1_000_000
LARGEST_BYTES, FEWEST_CELLS, FEWEST_CHECKS = (
    20_000_000,
    5,
    2,
)  # so many are the course's by no chance
LONGEST_ID, MEMORY_BYTES, LONGEST_S = 100, 2 << 30, 120.0
FORKING = multiprocessing.get_context("fork")
OUT_OF_SIGHT = re.compile(r"(^|/)(\.|__MACOSX/)")
# What course systems add: Moodle to a folder, Canvas to a file's name. The student's number stays, as names can be alike.
ADDED = re.compile(r"(?<=\d)_assignsubmission_.*|_LATE(?=_\d)|(?<=\d{3})_\d{3,}(_.*)?$")
NUMBER = re.compile(
    r"(?<=_)(\d+)(?=_assignsubmission_)|(?<=_)(\d{3,})(?=_\d{3,}_|$)|^(?:submission_)?(\d{3,})$"
)
UNREADABLE = "It cannot be read as a notebook. Save it in JupyterLab, and hand it in again."


@dataclass(frozen=True)
class HandedIn:
    file: str  # its path in the folder
    student: str
    number: str = ""  # by which the course system knows the student
    notebook: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # its cells' by their ids
    guesses: int = 0
    time: float = 0.0
    problem: str = ""  # why it is not judged


def handed_in(
    folder: Path, course: Mapping[str, Notebook], *, by_one: bool = False, only: Sequence[str] = ()
) -> list[HandedIn]:
    """Every file of that folder. Of two for one student and notebook, the later one is judged.

    With `by_one` all are one student's. `only` names the notebooks that are judged, if not all are.
    """
    names = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    names = {name: path for name, path in names.items() if not OUT_OF_SIGHT.search(name)}
    read = zip(names.items(), _read_apart([*names.values()]), strict=True)
    found = [_recognised(path, name, cells, course) for (name, path), cells in read]
    if by_one:
        found = [replace(one, student="") for one in found]
    found.sort(key=lambda one: (one.time, Path(one.file).stem))
    latest = {(one.student, one.notebook): one.file for one in found}

    def judged(one: HandedIn) -> HandedIn:
        later = latest[one.student, one.notebook]
        if one.notebook and only and one.notebook not in only:
            return replace(one, problem=f"It is {one.notebook}, which does not count.")
        if not one.notebook or later == one.file:
            return one
        return replace(one, problem=f"{later} is later, and is judged in its place.")

    return sorted(
        map(judged, found), key=lambda one: (one.student, one.notebook, one.problem, one.file)
    )


def code_of(notebook: Notebook) -> dict[str, str]:
    """The text of each code cell by its id, in order. Colab keeps the ids elsewhere."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {_id(cell) or f"{at}": source(cell) for at, cell in enumerate(cells)}


def _id(cell: Mapping[str, object]) -> str:
    metadata = cell.get("metadata")
    named = cell.get("id") or (metadata.get("id") if isinstance(metadata, dict) else None)
    return named if isinstance(named, str) and len(named) <= LONGEST_ID else ""


def _recognised(
    path: Path, file: str, read: "Mapping[str, str] | str", course: Mapping[str, Notebook]
) -> HandedIn:
    """Whose it is, and which notebook."""
    notebook, code, problem = "", {}, ""
    if isinstance(read, str):
        problem = read
    else:
        notebook, code = _as_the_course_has_it(read, course)
        if not notebook:
            problem = "It is none of the course's notebooks: their cells are not in it."
    # A browser or Canvas gives a second copy a number.
    copied = rf"[\s_-]*{notebook}(-\d+|\s*\(\d+\))?" if notebook else "$"
    named = (
        file.partition("/")[0]
        if "/" in file
        else re.sub(copied, "", path.stem, flags=re.IGNORECASE)
    )
    student = ADDED.sub("", named).replace("_", " ").strip(" -") or path.stem
    number = next(
        (one for found in NUMBER.findall(_by_system(file, path)) for one in found if one), ""
    )
    guesses = _guesses_made(code, course[notebook]) if notebook else 0
    return HandedIn(file, student, number, notebook, code, guesses, path.lstat().st_mtime, problem)


def _by_system(file: str, path: Path) -> str:
    """The part of the path to which a course system gives a number."""
    return file.partition("/")[0] if "/" in file else path.stem


def _as_the_course_has_it(
    code: Mapping[str, str], course: Mapping[str, Notebook]
) -> tuple[str, Mapping[str, str]]:
    """Which notebook it is, and its cells by the course's ids; an empty name if it is none."""
    shared = {name: len(code_of(one).keys() & code) for name, one in course.items()}
    notebook = max(shared, key=shared.get)
    if shared[notebook] >= FEWEST_CELLS:
        return notebook, code
    called = {name for text in code.values() for name in CHECK.findall(text)}
    exercises = {
        name: {turn.exercise for turn in turns(notebook)} for name, notebook in course.items()
    }
    checks = {name: len(called & there_are) for name, there_are in exercises.items()}
    notebook = max(checks, key=checks.get)
    if checks[notebook] < FEWEST_CHECKS:
        return "", {}
    return notebook, _with_ids(code, course[notebook])


def _with_ids(code: Mapping[str, str], course: Notebook) -> dict[str, str]:
    """The cells in their order; each whose text is one of the course's, by the id that it has there."""
    ids: dict[str, list[str]] = {}
    for name, text in code_of(course).items():
        ids.setdefault(text.strip(), []).append(name)
    named = {}
    for at, text in enumerate(code.values()):
        same = ids.get(text.strip(), [])
        named[same.pop(0) if same else f"own-{at}"] = text
    return named


def _guesses_made(code: Mapping[str, str], course: Notebook) -> int:
    guesses = outline(course).guesses
    return sum(one.id in code and code[one.id].strip() != one.text.strip() for one in guesses)


def _read_apart(paths: Sequence[Path]) -> Iterator[Mapping[str, str] | str]:
    """Of each file its cells, or why there are none; read in a process of its own, and in another one if that ends."""
    at = 0
    while at < len(paths):
        ear, mouth = FORKING.Pipe(duplex=False)
        process = FORKING.Process(target=_read_all, args=(paths[at:], mouth))
        process.start()
        mouth.close()
        with ear, suppress(EOFError, OSError, ValueError):
            while at < len(paths):
                if not ear.poll(LONGEST_S):
                    break
                read = json.loads(ear.recv_bytes())
                at += 1
                yield read if isinstance(read, str) else {str(k): str(v) for k, v in read.items()}
        process.kill()
        process.join()
        if at < len(paths):  # at this one it ended
            at += 1
            yield UNREADABLE


def _read_all(paths: Sequence[Path], mouth: Connection) -> None:
    """What the reading process does."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # macOS has no bound of memory
        resource.setrlimit(
            resource.RLIMIT_AS, (os.sysconf("SC_PAGE_SIZE") * _pages() + MEMORY_BYTES, most)
        )
    for path in paths:
        try:
            said: object = _parsed(path)
        except OSError as error:
            said = f"It cannot be opened: {error.strerror}."
        except ValueError as error:
            said = str(error)
        except MemoryError:
            said = UNREADABLE
        mouth.send_bytes(json.dumps(said).encode())
    os._exit(0)


def _pages() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return 1 << 23


def _parsed(path: Path) -> dict[str, str]:
    """The code of the file's cells; ValueError with a sentence if it is no notebook that can be read."""
    if path.suffix != ".ipynb" or path.is_symlink():
        raise ValueError("It is no notebook. Hand in the .ipynb file itself, not packed.")
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError("It is larger than 20 MB. Clear its outputs, and hand it in again.")
    try:
        code = code_of(json.loads(path.read_bytes()))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, MemoryError):
        raise ValueError(UNREADABLE) from None
    if sum(map(len, code.values())) > LARGEST_CODE:
        raise ValueError(
            "Its code is longer than a million characters. Hand in code without data in it."
        )
    return {name: text.replace("\r\n", "\n") for name, text in code.items()}
