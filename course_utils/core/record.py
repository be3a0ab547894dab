"""The reader's record: a text file with a line for each verdict and each guess. The reader may read and delete it.

Lines are only added, each in one piece, so several kernels can write at once. Other lines are ignored.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from course_utils.core.say import Guess

# Both lie in the folder of the reader's copies. The hidden folder holds what only the workspace needs.
RECORD, HIDDEN = "record.txt", ".course"
PLACES = f"{HIDDEN}/places"
SAID = ("tried", "right", "anew")
LINE = re.compile(rf"(\d{{4}}-\d\d-\d\d) (\w+\.\w+) ({'|'.join(SAID)})\b", re.ASCII)
GUESSED = re.compile(r"^\d{4}-\d\d-\d\d (\w+) guessed (\{.*\})$", re.ASCII | re.MULTILINE)

notebook = ""  # of this kernel, as its checks are called; known after its first cell


@dataclass(frozen=True)
class Done:
    """How far the reader is with one exercise: how often it was tried, and the day when it first was right."""

    tries: int = 0
    first_right: str = ""

    @property
    def status(self) -> str:
        return "right" if self.first_right else "tried" if self.tries else "not attempted"


def workspace() -> Path | None:
    """The folder of the reader's copies, if this kernel's notebook is one of them."""
    here = Path.cwd()
    return here if (here / HIDDEN).is_dir() else None


def note(folder: Path, check: str, said: str) -> None:
    """Add a line on that exercise."""
    _add(folder, f"{check} {said}")


def note_guess(folder: Path, notebook: str, guess: Guess) -> None:
    """Add a line with the question, the guess and the measured value. Numbers of any type become Python's."""
    said = {name: value for name, value in vars(guess).items() if value is not None}
    _add(folder, f"{notebook} guessed {json.dumps(said, ensure_ascii=False, default=float)}")


def note_drawn(guesses: Sequence[Guess]) -> None:
    """Add a line on the guess in a picture that was farthest off, if this kernel's notebook is a reader's copy."""
    if (folder := workspace()) and notebook and guesses:
        note_guess(folder, notebook, max(guesses, key=lambda one: one.off))


def note_place(folder: Path, notebook: str, cell: str) -> None:
    """Remember the cell that ran last in that notebook."""
    with suppress(OSError):
        (folder / PLACES).mkdir(parents=True, exist_ok=True)
        (folder / PLACES / notebook).write_text(cell, encoding="utf-8")


def place(folder: Path, notebook: str) -> str:
    """The id of the cell that ran last there, or nothing."""
    try:
        cell = (folder / PLACES / notebook).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    return cell if re.fullmatch(r"[\w-]{1,64}", cell, re.ASCII) else ""


def done(folder: Path) -> dict[str, Done]:
    """Each exercise that was attempted, by the name of its check; empty if no record can be read."""
    found: dict[str, Done] = {}
    for day, check, said in LINE.findall(_text(folder)):
        former = found.get(check, Done())
        right = former.first_right or (day if said == "right" else "")
        found[check] = Done() if said == "anew" else Done(former.tries + 1, right)
    return found


def guesses(folder: Path) -> dict[str, list[Guess]]:
    """The first guess at each question, by notebook. Later guesses have seen the answer."""
    found: dict[str, dict[str, Guess]] = {}
    for notebook, line in GUESSED.findall(_text(folder)):
        with suppress(ValueError, TypeError, RecursionError):  # a line that somebody has edited
            guess = Guess(**json.loads(line))
            f"{guess.asked}{guess.said}{guess.measured}{guess.words}".encode()  # half of a character cannot be shown
            if all(isinstance(one, int | float | str) for one in (guess.said, guess.measured)):
                found.setdefault(notebook, {}).setdefault(str(guess.asked), guess)
    return {notebook: list(asked.values()) for notebook, asked in found.items()}


def write_whole(path: Path, contents: bytes) -> None:
    """All of the contents under that name, or what was there before."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():  # what nobody else may read stays so
            beside.chmod(path.stat().st_mode & 0o777)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _add(folder: Path, words: str) -> None:
    """Add a line with today's date; do nothing if the file cannot be written."""
    line = f"{date.today().isoformat()} {words}\n".encode()
    # A full disk or a read-only folder must not change a verdict.
    with suppress(OSError), (folder / RECORD).open("a+b", buffering=0) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = (
                line if file.read(1) == b"\n" else b"\n" + line
            )  # behind one that a full disk cut off
        file.write(line)


def _text(folder: Path) -> str:
    try:
        return (folder / RECORD).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
