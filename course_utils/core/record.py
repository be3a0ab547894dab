"""The reader's record: a text file with a line for each verdict and each guess.

The reader may read and delete it. Lines are only added, and each is written in one piece, so that
several kernels can write at once. Lines of another form are ignored.
"""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from course_utils.core.say import Guess, Number

# Names of files in the folder of the reader's copies, which is called the workspace.
RECORD = "record.txt"
HIDDEN = ".course"  # a folder with what only the workspace needs
PLACES = f"{HIDDEN}/places"  # for each notebook a file with the id of the cell that ran last
MARKS = f"{HIDDEN}/marks"  # for each notebook a file with the marks that the reader has drawn
OUTCOMES = ("tried", "right", "anew")  # "anew": the reader begins the exercise again
# Matches "2026-01-31 floats.encode right".
LINE = re.compile(rf"(\d{{4}}-\d\d-\d\d) (\w+\.\w+) ({'|'.join(OUTCOMES)})\b", re.ASCII)
# Matches "2026-01-31 floats guessed {...}".
GUESSED = re.compile(r"^\d{4}-\d\d-\d\d (\w+) guessed (\{.*\})$", re.ASCII | re.MULTILINE)
# Matches the same, and the lines on what else happened to the field of a guess: the reader typed
# into it ("said"), pressed Show ("shown"), saw the answer without a guess ("seen"), or began the
# notebook anew ("asked anew").
ASKED = re.compile(
    r"^\d{4}-\d\d-\d\d (\w+) (said|shown|seen|guessed|asked anew) (\{.*\})$",
    re.ASCII | re.MULTILINE,
)

# The name of the notebook that this kernel runs, such as "floats". The notebook's first cell sets
# it; before, it is empty.
notebook = ""
# The id of the cell that runs in this kernel, or ran last; empty if the front end sends no ids.
cell = ""


@dataclass(frozen=True)
class Done:
    """How far the reader is with one exercise: not attempted, tried, or right.

    An exercise that was right once stays right until the reader begins it again.
    """

    tries: int = 0
    first_right: str = ""  # the day of the first right answer

    @property
    def status(self) -> str:
        if self.first_right:
            return "right"
        if self.tries:
            return "tried"
        return "not attempted"


@dataclass(frozen=True)
class Said:
    """What the record has of a question: `said` is the reader's guess, or None if there is none.

    `has_gone_on` is True if the reader has pressed *Show*, and `is_closed` if that was so, or if
    they have seen the measured value: no later guess counts.
    """

    said: Number | str | None = None
    has_gone_on: bool = False
    is_closed: bool = False
    # The first answer, which `said` was before the reader changed it.
    first: Number | str | None = field(default=None, compare=False)


def workspace() -> Path | None:
    """Return the folder of the reader's copies; None if this kernel's notebook is not in it."""
    here = Path.cwd()  # Jupyter starts a kernel in the folder of its notebook
    return here if (here / HIDDEN).is_dir() else None


def note(folder: Path, check: str, outcome: str) -> None:
    """Add a line on the exercise of that check, such as "floats.encode", with the outcome.

    `outcome` is "tried" for a wrong answer, "right", or "anew" if the reader begins it again.
    """
    add(folder, f"{check} {outcome}")


def note_guess(folder: Path, notebook: str, guess: Guess) -> None:
    """Add a line with the question, the guess and the measured value.

    Fields of the guess without a value are left out: `guess_in` reads them as their defaults.
    Numbers of other types, such as NumPy's, are written as Python's.
    """
    fields = {name: value for name, value in vars(guess).items() if value not in (None, "")}
    as_json = json.dumps(fields, ensure_ascii=False, default=float)
    add(folder, f"{notebook} guessed {as_json}")


def note_said(folder: Path, notebook: str, name: str, said: Number | str) -> None:
    """Add a line with the answer that the reader has typed to the question of that name."""
    as_json = json.dumps({"asked": name, "said": said}, ensure_ascii=False)
    add(folder, f"{notebook} said {as_json}")


def note_shown(folder: Path, notebook: str, name: str) -> None:
    """Add a line: the reader has pressed *Show* below the question of that name."""
    add(folder, f"{notebook} shown {json.dumps({'asked': name}, ensure_ascii=False)}")


def note_seen(folder: Path, notebook: str, name: str) -> None:
    """Add a line: the reader has seen the answer to the question of that name without a guess."""
    add(folder, f"{notebook} seen {json.dumps({'asked': name}, ensure_ascii=False)}")


def note_asked_anew(folder: Path, notebook: str) -> None:
    """Add a line: all questions of that notebook begin anew, with empty fields."""
    add(folder, f"{notebook} asked anew {{}}")


def said_so_far(folder: Path, notebook: str) -> dict[str, Said]:
    """Return what the reader has said in that notebook, by the names of the questions.

    What was drawn in a picture, or seen there, is found by the id of the picture's cell.
    The lines are read in their order, and each changes what those before it say of its question.
    """
    so_far: dict[str, Said] = {}
    # Such as ("floats", "said", '{"asked": "one matrix", "said": 2.4}').
    for of_notebook, what, as_json in ASKED.findall(text(folder)):
        if of_notebook != notebook:
            continue
        if what == "asked anew":
            so_far.clear()
            continue
        # A line that somebody has edited raises one of these.
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            line = json.loads(as_json)
            name = line.get("cell") or line["asked"]
            former = so_far.get(name, Said())
            if what == "shown":
                so_far[name] = replace(former, has_gone_on=True, is_closed=True)
            elif what == "seen":
                so_far[name] = replace(former, is_closed=True)
            # "said" or "guessed". Later guesses knew the answer. But a picture asks several
            # questions: whoever has seen the answer to one may still draw for another.
            elif not former.is_closed or (line.get("cell") and former.said is None):
                said = line["said"]
                first = said if former.first is None else former.first
                is_closed = what == "guessed"  # this line is written once the answer is shown
                so_far[name] = replace(former, said=said, first=first, is_closed=is_closed)
    return so_far


def note_place(folder: Path, notebook: str, cell: str) -> None:
    """Remember the id of the cell that ran last in that notebook.

    The contents page leads the reader back to that cell.
    """
    with suppress(OSError):
        (folder / PLACES).mkdir(parents=True, exist_ok=True)
        (folder / PLACES / notebook).write_text(cell, encoding="utf-8")


def place(folder: Path, notebook: str) -> str:
    """Return the id of the cell that ran last in that notebook; empty if it is not known."""
    try:
        cell = (folder / PLACES / notebook).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    # Jupyter's cell ids have this form; anything else was written by hand.
    return cell if re.fullmatch(r"[\w-]{1,64}", cell, re.ASCII) else ""


def done(folder: Path) -> dict[str, Done]:
    """Return how far the reader is with each attempted exercise, by the name of its check.

    Without a record that can be read, nothing was attempted.
    """
    done_by_check: dict[str, Done] = {}
    # Such as ("2026-01-31", "floats.encode", "right"); after a wrong answer, "tried".
    for day, check, outcome in LINE.findall(text(folder)):
        if outcome == "anew":
            done_by_check[check] = Done()  # as if it had never been attempted
            continue
        former = done_by_check.get(check, Done())
        first_right = former.first_right
        if outcome == "right" and not first_right:
            first_right = day
        done_by_check[check] = Done(former.tries + 1, first_right)
    return done_by_check


def guesses(folder: Path) -> dict[str, list[Guess]]:
    """Return the reader's first guess at each question, by notebook.

    Later guesses are left out, because the reader knew the answer by then.
    """
    # By the notebook, then by the question and the picture's cell, which is empty for most.
    first_guesses: dict[str, dict[tuple[str, str], Guess]] = {}
    # Such as ("floats", '{"asked": "one matrix", "said": 2.4, "measured": 2.416, …}').
    for notebook, guess_json in GUESSED.findall(text(folder)):
        with suppress(ValueError, TypeError, RecursionError):  # a line that somebody has edited
            guess = guess_in(guess_json)
            by_question = first_guesses.setdefault(notebook, {})
            # An earlier guess stays. In an edited line, `asked` may be a list, which is no key.
            by_question.setdefault((str(guess.asked), guess.cell), guess)
    return {notebook: list(of_one.values()) for notebook, of_one in first_guesses.items()}


def guess_in(guess_json: str) -> Guess:
    """Return the guess that a line has as JSON. ValueError or TypeError if it cannot be shown.

    The reader may have edited the line, so each field may be anything that JSON can say.
    """
    guess = Guess(**json.loads(guess_json))
    if not (isinstance(guess.unit, str) and isinstance(guess.cell, str)):
        raise TypeError(f"{guess.unit!r} is no unit, or {guess.cell!r} no cell's id.")
    # All that a page would show. The words alone raise a TypeError for many wrong fields.
    shown = f"{guess.asked}{guess.said}{guess.measured}{guess.unit}{guess.kind}{guess.words}"
    # JSON may have half of a character, such as "\ud83d", for which this raises a ValueError.
    shown.encode()
    for value in (guess.said, guess.measured):
        if not isinstance(value, int | float | str):
            raise TypeError(f"{value!r} is neither a number nor a text.")
    return guess


def write_whole(path: Path, contents: bytes) -> None:
    """Write the file whole: after an error, the former contents of `path` are still there.

    The contents go to a file beside it, which then takes the name `path` in one step.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())  # on the disk before it takes the name
        if path.exists():  # keep the permissions: what others could not read stays so
            temporary.chmod(path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)  # it is there only after an error


def add(folder: Path, words: str) -> None:
    """Add a line with today's date; do nothing if the file cannot be written."""
    line = f"{date.today().isoformat()} {words}\n".encode()
    # A full disk or a read-only folder must not change a verdict, so an OSError is ignored. Without
    # a buffer, the line is written in one piece.
    with suppress(OSError), (folder / RECORD).open("a+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a full disk has cut off the last line
                line = b"\n" + line
        file.write(line)


def text(folder: Path) -> str:
    """Return the text of the record; empty if it cannot be read."""
    try:
        # utf-8-sig also reads a file that an editor has begun with a byte order mark.
        return (folder / RECORD).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""
