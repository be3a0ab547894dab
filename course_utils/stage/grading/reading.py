"""The files that were handed in: whose each is, which notebook it is, and why one is not judged.

A notebook is known by the ids of its cells, whatever its file is called; without ids, by the
checks that its cells call. Moodle, Canvas and nbgrader name files and folders each in its own way.
A process of its own reads the files, within bounds, and returns texts only. So whatever is in a
file, it spoils its own line of the table and no other.
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

LARGEST_CODE = 1_000_000  # characters
LARGEST_BYTES = 20_000_000
FEWEST_CELLS = 5  # so many of the course's cells are in a file by no chance
FEWEST_CHECKS = 2  # and so many calls of its checks
LONGEST_ID = 100
MEMORY_BYTES = 2 << 30
LONGEST_S = 120.0
MORE_THAN_ANY_PROCESS_HAS = 1 << 23  # pages
FORKING = multiprocessing.get_context("fork")
OUT_OF_SIGHT = re.compile(r"(^|/)(\.|__MACOSX/)")
# What course systems add: Moodle to a folder, Canvas to a file's name. The student's number stays,
# because two students can have the same name.
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
    paths = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not OUT_OF_SIGHT.search(name):
            paths[name] = path
    files = []
    for name, cells in zip(paths, _read_apart(list(paths.values())), strict=True):
        file = _recognised(paths[name], name, cells, course)
        if by_one:
            file = replace(file, student="")
        files.append(file)
    files.sort(key=lambda file: (file.time, Path(file.file).stem))
    latest = {(file.student, file.notebook): file.file for file in files}
    files = [_unless_left_out(file, latest, only) for file in files]
    return sorted(files, key=lambda file: (file.student, file.notebook, file.problem, file.file))


def _unless_left_out(
    file: HandedIn, latest: Mapping[tuple[str, str], str], only: Sequence[str]
) -> HandedIn:
    """The file, with its problem if it does not count or if there is a later one."""
    if not file.notebook:
        return file
    if only and file.notebook not in only:
        return replace(file, problem=f"It is {file.notebook}, which does not count.")
    later = latest[file.student, file.notebook]
    if later == file.file:
        return file
    return replace(file, problem=f"{later} is later, and is judged in its place.")


def code_of(notebook: Notebook) -> dict[str, str]:
    """The text of each code cell by its id, in order; by its number if it has no id."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {_id(cell) or str(at): source(cell) for at, cell in enumerate(cells)}


def _id(cell: Mapping[str, object]) -> str:
    """The cell's id, which Colab keeps in the cell's metadata; an empty text if there is none."""
    name = cell.get("id")
    metadata = cell.get("metadata")
    if not name and isinstance(metadata, dict):
        name = metadata.get("id")
    return name if isinstance(name, str) and len(name) <= LONGEST_ID else ""


def _recognised(
    path: Path, file: str, read: "Mapping[str, str] | str", course: Mapping[str, Notebook]
) -> HandedIn:
    """The file with its student and its notebook, or with the problem why it is not judged."""
    notebook = ""
    code: Mapping[str, str] = {}
    problem = ""
    if isinstance(read, str):
        problem = read
    else:
        notebook, code = _as_the_course_has_it(read, course)
        if not notebook:
            problem = "It is none of the course's notebooks: their cells are not in it."
    return HandedIn(
        file,
        _student(file, path, notebook),
        _number(file, path),
        notebook,
        code,
        guesses=_guesses_made(code, course[notebook]) if notebook else 0,
        time=path.lstat().st_mtime,
        problem=problem,
    )


def _student(file: str, path: Path, notebook: str) -> str:
    """The student's name, from that of the first folder, or else from that of the file."""
    folder, slash, _ = file.partition("/")
    if slash:
        name = folder
    else:
        # A browser or Canvas gives a second copy a number.
        copied = rf"[\s_-]*{notebook}(-\d+|\s*\(\d+\))?" if notebook else "$"
        name = re.sub(copied, "", path.stem, flags=re.IGNORECASE)
    return ADDED.sub("", name).replace("_", " ").strip(" -") or path.stem


def _number(file: str, path: Path) -> str:
    """The number that the course system gives to the student, from a folder's or a file's name."""
    folder, slash, _ = file.partition("/")
    for groups in NUMBER.findall(folder if slash else path.stem):
        for number in groups:
            if number:
                return number
    return ""


def _as_the_course_has_it(
    code: Mapping[str, str], course: Mapping[str, Notebook]
) -> tuple[str, Mapping[str, str]]:
    """Which notebook it is, and its cells by the course's ids; an empty name if it is none."""
    shared = {name: len(code_of(notebook).keys() & code) for name, notebook in course.items()}
    name = max(shared, key=shared.get)
    if shared[name] >= FEWEST_CELLS:
        return name, code
    called = set()
    for text in code.values():
        called.update(CHECK.findall(text))
    checks = {}
    for name, notebook in course.items():
        exercises = {turn.exercise for turn in turns(notebook)}
        checks[name] = len(called & exercises)
    name = max(checks, key=checks.get)
    if checks[name] < FEWEST_CHECKS:
        return "", {}
    return name, _with_ids(code, course[name])


def _with_ids(code: Mapping[str, str], course: Notebook) -> dict[str, str]:
    """The cells in their order, by the ids of the course's cells that have the same text."""
    ids: dict[str, list[str]] = {}
    for name, text in code_of(course).items():
        ids.setdefault(text.strip(), []).append(name)
    named = {}
    for at, text in enumerate(code.values()):
        same = ids.get(text.strip(), [])
        name = same.pop(0) if same else f"own-{at}"
        named[name] = text
    return named


def _guesses_made(code: Mapping[str, str], course: Notebook) -> int:
    """How many cells with a guess are there and no longer as they were handed out."""
    made = 0
    for guess in outline(course).guesses:
        if guess.id in code and code[guess.id].strip() != guess.text.strip():
            made += 1
    return made


def _read_apart(paths: Sequence[Path]) -> Iterator[Mapping[str, str] | str]:
    """Of each file its cells, or why there are none.

    Another process reads them. If it ends at a file, the next process goes on behind that file.
    """
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
                if isinstance(read, str):
                    yield read
                else:
                    yield {str(name): str(text) for name, text in read.items()}
        process.kill()
        process.join()
        if at < len(paths):  # at this file it ended, or took too long
            at += 1
            yield UNREADABLE


def _read_all(paths: Sequence[Path], mouth: Connection) -> None:
    """What the reading process does."""
    _bound_memory()
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


def _bound_memory() -> None:
    """Let this process take MEMORY_BYTES more than it has."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # macOS has no bound of memory
        has_bytes = os.sysconf("SC_PAGE_SIZE") * _pages()
        resource.setrlimit(resource.RLIMIT_AS, (has_bytes + MEMORY_BYTES, hard))


def _pages() -> int:
    """How many pages of memory this process has; where nothing tells it, more than it ever has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError):
        return MORE_THAN_ANY_PROCESS_HAS


def _parsed(path: Path) -> dict[str, str]:
    """The code of the file's cells; ValueError with a sentence if it cannot be read."""
    if path.suffix != ".ipynb" or path.is_symlink():
        raise ValueError("It is no notebook. Hand in the .ipynb file itself, not packed.")
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError("It is larger than 20 MB. Clear its outputs, and hand it in again.")
    try:
        code = code_of(json.loads(path.read_bytes()))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, MemoryError):
        raise ValueError(UNREADABLE) from None
    if sum(len(text) for text in code.values()) > LARGEST_CODE:
        raise ValueError(
            "Its code is longer than a million characters. Hand in code without data in it."
        )
    return {name: text.replace("\r\n", "\n") for name, text in code.items()}
