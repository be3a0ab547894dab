"""Reads the files that were handed in: their students, their notebooks, or why not to judge one.

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
from course_utils.stage.notebook.outline import turns

LARGEST_CODE = 1_000_000  # characters
LARGEST_BYTES = 20_000_000
# A file is a notebook of the course if it has so many of its cells, or calls so many of its checks.
FEWEST_CELLS = 5
FEWEST_CHECKS = 2
LONGEST_ID = 100  # characters of a cell's id; a longer one counts as none
MEMORY_BYTES = 2 << 30  # that the process may take to read the files
LONGEST_S = 120.0  # to read one file
MORE_THAN_ANY_PROCESS_HAS = 1 << 23  # pages of memory: 32 GiB if one has 4 KiB
FORKING = multiprocessing.get_context("fork")
# As in .ipynb_checkpoints/a.ipynb, and in __MACOSX/a.ipynb, which macOS adds to an archive.
HIDDEN = re.compile(r"(^|/)(\.|__MACOSX/)")
# What course systems add: Moodle to a folder, as in Ada_123_assignsubmission_file_, and Canvas to a
# file's name, as in lovelaceada_LATE_1234_5678_04_flops. What stays is
# Ada_123 and lovelaceada_1234: with the number, because two students can have the same name.
ADDED = re.compile(r"(?<=\d)_assignsubmission_.*|_LATE(?=_\d)|(?<=\d{3})_\d{3,}(_.*)?$")
# The course system's number of a student, in names of Moodle and of Canvas as above, and of
# Gradescope, as in submission_1234. Each of the three has a group of its own.
NUMBER = re.compile(
    r"(?<=_)(\d+)(?=_assignsubmission_)|(?<=_)(\d{3,})(?=_\d{3,}_|$)|^(?:submission_)?(\d{3,})$"
)
UNREADABLE = "It cannot be read as a notebook. Save it in JupyterLab, and hand it in again."


@dataclass(frozen=True)
class HandedIn:
    """A file that was handed in."""

    file: str  # its path in the folder
    student: str
    number: str = ""  # the course system's number of the student
    notebook: str = ""
    code: Mapping[str, str] = field(default_factory=dict)  # its code cells by their ids
    guesses: int = 0  # that are shown beside what was measured
    time: float = 0.0  # when the file was last changed
    problem: str = ""  # why it is not judged


@dataclass(frozen=True)
class Contents:
    """The code cells of a file by their ids, and how many of its results show a guess."""

    code: Mapping[str, str]
    guesses: int = 0


def handed_in(
    folder: Path, course: Mapping[str, Notebook], *, by_one: bool = False, only: Sequence[str] = ()
) -> list[HandedIn]:
    """Return every file of the folder; of a student's files of a notebook, only the last counts.

    `course` has the course's notebooks by their names, such as "04_flops". With `by_one` all files
    are one student's. `only` names the notebooks that are judged; without names, all are.
    """
    paths = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not HIDDEN.search(name):
            paths[name] = path
    files = []
    for name, contents in zip(paths, _read_apart(list(paths.values())), strict=True):
        file = _recognised(paths[name], name, contents, course)
        if by_one:
            # One name for all: the files' names need not have the student's, and may differ.
            file = replace(file, student="")
        files.append(file)
    # Sorted by time, the last file of each student and notebook is the one that stays in the dict.
    # Files of the same time are sorted by their names.
    files.sort(key=lambda file: (file.time, Path(file.file).stem))
    latest = {(file.student, file.notebook): file.file for file in files}
    files = [_unless_left_out(file, latest, only) for file in files]
    return sorted(files, key=lambda file: (file.student, file.notebook, file.problem, file.file))


def _unless_left_out(
    file: HandedIn, latest: Mapping[tuple[str, str], str], only: Sequence[str]
) -> HandedIn:
    """Return the file; with a problem if its notebook does not count, or a later file does.

    `latest` has the path of the last file of each student and notebook.
    """
    if not file.notebook:
        return file
    if only and file.notebook not in only:
        return replace(file, problem=f"It is {file.notebook}, which does not count.")
    last = latest[file.student, file.notebook]
    if last == file.file:
        return file
    return replace(file, problem=f"{last} is later, and is judged in its place.")


def code_of(notebook: Notebook) -> dict[str, str]:
    """Return the text of each code cell in order, by the cell's id, or else by its number."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {_id(cell) or str(at): source(cell) for at, cell in enumerate(cells)}


def _id(cell: Mapping[str, object]) -> str:
    """Return the cell's id, which Colab keeps in the metadata; an empty text if it has none."""
    name = cell.get("id")
    metadata = cell.get("metadata")
    if not name and isinstance(metadata, dict):
        name = metadata.get("id")
    return name if isinstance(name, str) and len(name) <= LONGEST_ID else ""


def _recognised(
    path: Path, file: str, contents: Contents | str, course: Mapping[str, Notebook]
) -> HandedIn:
    """Return the file with its student and notebook, or with the reason why it is not judged.

    `file` is its path in the folder. `contents` is a sentence if the file could not be read.
    """
    notebook = ""
    code: Mapping[str, str] = {}
    problem = ""
    guesses = 0
    if isinstance(contents, str):
        problem = contents
    else:
        notebook, code = _as_the_course_has_it(contents.code, course)
        guesses = contents.guesses if notebook else 0
        if not notebook:
            problem = "It is none of the course's notebooks: their cells are not in it."
    return HandedIn(
        file,
        _student(file, path, notebook),
        _number(file, path),
        notebook,
        code,
        guesses=guesses,
        time=path.lstat().st_mtime,  # a link's own time, as it may lead nowhere
        problem=problem,
    )


def _student(file: str, path: Path, notebook: str) -> str:
    """Return the student's name, found in the name of the first folder, or else of the file."""
    folder, slash, _ = file.partition("/")
    if slash:
        name = folder
    else:
        name = path.stem
        if notebook:
            # Cut off the notebook's name, and the number that a browser or Canvas gives to a second
            # copy, as in "ada_04_flops-1" and "ada_04_flops (1)".
            ending = rf"[\s_-]*{notebook}(-\d+|\s*\(\d+\))?"
            name = re.sub(ending, "", name, flags=re.IGNORECASE)
    student = ADDED.sub("", name).replace("_", " ").strip(" -")
    return student or path.stem  # a file that is called only 04_flops.ipynb leaves no name


def _number(file: str, path: Path) -> str:
    """Return the student's number, from the name of a folder or a file; "" if there is none."""
    folder, slash, _ = file.partition("/")
    for groups in NUMBER.findall(folder if slash else path.stem):
        for number in groups:
            if number:  # the groups of the other kinds are empty
                return number
    return ""


def _as_the_course_has_it(
    code: Mapping[str, str], course: Mapping[str, Notebook]
) -> tuple[str, Mapping[str, str]]:
    """Return the name of the course's notebook with this code, and the code by the course's ids.

    The name is empty if the code is of none of the course's notebooks.
    """
    # How many cells, by their ids, the file shares with each of the course's notebooks.
    shared = {}
    for name, notebook in course.items():
        ids = code_of(notebook).keys()
        shared[name] = len(ids & code.keys())
    nearest = max(shared, key=shared.get)
    if shared[nearest] >= FEWEST_CELLS:
        return nearest, code
    # The ids do not tell. So it is the notebook of whose checks the file calls the most.
    called = set()  # names of checks, such as "days"
    for text in code.values():
        called.update(CHECK.findall(text))
    checks = {}
    for name, notebook in course.items():
        exercises = {turn.exercise for turn in turns(notebook)}
        checks[name] = len(called & exercises)
    nearest = max(checks, key=checks.get)
    if checks[nearest] < FEWEST_CHECKS:
        return "", {}
    return nearest, _with_ids(code, course[nearest])


def _with_ids(code: Mapping[str, str], course: Notebook) -> dict[str, str]:
    """Return the cells in their order, each by the id of the course's cell that has the same text.

    A cell that the course does not have gets an id of its own.
    """
    ids_by_text: dict[str, list[str]] = {}  # several cells may have the same text
    for name, text in code_of(course).items():
        ids_by_text.setdefault(text.strip(), []).append(name)
    named = {}
    for at, text in enumerate(code.values()):
        same = ids_by_text.get(text.strip(), [])
        name = same.pop(0) if same else f"own-{at}"  # each id is given once
        named[name] = text
    return named


def _guesses_shown(notebook: Notebook) -> int:
    """Return how many cells show a table with a column for the guess, beside what was measured."""
    shown = 0
    for cell in notebook["cells"]:
        heads = [_first_line(output) for output in cell.get("outputs", [])]
        if any("your guess" in head for head in heads):  # so the notebook calls this column
            shown += 1
    return shown


def _first_line(output: Mapping[str, object]) -> str:
    """Return the first line of an output's text; empty if it has no text."""
    text = output.get("data", {}).get("text/plain", "")
    first, _, _ = "".join(text).partition("\n")  # `text` is a string, or a list of its lines
    return first


def _read_apart(paths: Sequence[Path]) -> Iterator[Contents | str]:
    """Yield each file's contents, or a sentence on why the file cannot be read.

    Another process reads the files. If it ends at a file, or takes too long, a new process goes on
    with the next file.
    """
    at = 0  # how many files are done, and so the place of the next one
    while at < len(paths):
        receiving_end, sending_end = FORKING.Pipe(duplex=False)
        process = FORKING.Process(target=_send_all, args=(paths[at:], sending_end))
        process.start()
        sending_end.close()
        # EOFError: the process has ended. ValueError: what it has sent is no JSON.
        with receiving_end, suppress(EOFError, OSError, ValueError):
            while at < len(paths):
                if not receiving_end.poll(LONGEST_S):
                    break
                sent = json.loads(receiving_end.recv_bytes())
                at += 1
                if isinstance(sent, str):
                    yield sent
                else:
                    code = {str(name): str(text) for name, text in sent["code"].items()}
                    yield Contents(code, int(sent["guesses"]))
        process.kill()
        process.join()
        if at < len(paths):  # the process ended at this file, or took too long
            at += 1
            yield UNREADABLE


def _send_all(paths: Sequence[Path], sending_end: Connection) -> None:
    """In the reading process: send each file's contents, or why it cannot be read."""
    _bound_memory()
    for path in paths:
        try:
            contents = _parsed(path)
            sent: object = {"code": contents.code, "guesses": contents.guesses}
        except OSError as error:
            sent = f"It cannot be opened: {error.strerror}."
        except ValueError as error:
            sent = str(error)
        except MemoryError:
            sent = UNREADABLE
        sending_end.send_bytes(json.dumps(sent).encode())
    os._exit(0)  # the cleanup at exit is the parent process's


def _bound_memory() -> None:
    """Let this process take MEMORY_BYTES more than it has."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # macOS has no bound of memory
        has_bytes = os.sysconf("SC_PAGE_SIZE") * _pages()
        resource.setrlimit(resource.RLIMIT_AS, (has_bytes + MEMORY_BYTES, hard))


def _pages() -> int:
    """Return this process's pages of memory; if unknown, more than any process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0])  # the size in all
    except (OSError, ValueError):
        return MORE_THAN_ANY_PROCESS_HAS


def _parsed(path: Path) -> Contents:
    """Return the file's contents; ValueError, with a sentence for the student, if it has none."""
    if path.suffix != ".ipynb" or path.is_symlink():
        raise ValueError("It is no notebook. Hand in the .ipynb file itself, not packed.")
    if path.stat().st_size > LARGEST_BYTES:
        raise ValueError("It is larger than 20 MB. Clear its outputs, and hand it in again.")
    try:
        notebook = json.loads(path.read_bytes())
        code = code_of(notebook)
        guesses = _guesses_shown(notebook)
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, MemoryError):
        raise ValueError(UNREADABLE) from None
    if sum(len(text) for text in code.values()) > LARGEST_CODE:
        raise ValueError(
            "Its code is longer than a million characters. Hand in code without data in it."
        )
    # The course's cells, with which the texts are compared, have "\n" at the ends of their lines.
    same_line_ends = {name: text.replace("\r\n", "\n") for name, text in code.items()}
    return Contents(same_line_ends, guesses)
