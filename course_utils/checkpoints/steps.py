"""A folder of steps, which keeps the last few and finds the newest good one."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course_utils.checkpoints import contents, files

_STEP_FILE = r"step-(\d+)\.ckpt"


@dataclass(frozen=True)
class Newest:
    """The newest good checkpoint of a folder, and the newer files that were passed over, each with the reason."""

    step: int
    path: Path
    state: object
    passed_over: tuple[tuple[Path, str], ...] = ()


def save_step(folder: str | os.PathLike, step: int, state: object, *, keep: int = 3) -> Path:
    """Save step-00000123.ckpt, and only then remove all but the newest `keep`: the disk needs room for one more.

    What dead processes left half written goes first. Files that are torn, or not of this course, do not count
    as kept, and stay. Only the length is looked at: a file that is damaged at its full length counts as kept, so
    keep 2 or more.
    """
    if step < 0 or keep < 1:
        raise ValueError(f"Steps count from 0, and 1 or more are kept; got step {step} and keep {keep}.")
    folder = Path(folder)
    _steps(folder)  # or a sentence on what is there
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}.ckpt"
    files.save(path, state)
    good = [file for _, file in _steps(folder) if _is_full_length(file)]
    for old in set(good[keep:]) - {path}:
        with suppress(OSError):  # the state is saved, whatever becomes of an old one
            old.unlink()
    return path


def newest(folder: str | os.PathLike, *, like: object = None) -> Newest | None:
    """The good file with the highest step, or None where there are no files; what is torn or foreign is passed over.

    If none is good, or a good one does not fit `like`, or the memory, or cannot be read, that is an error: to begin
    anew, or to go on from an older one, would hide it.
    """
    passed_over = []
    for step, path in _steps(Path(folder)):
        try:
            state = files.load(path)
        except FileNotFoundError:  # another process has saved a newer one since, and removed this
            return newest(folder, like=like)
        except ValueError as error:
            passed_over.append((path, str(error)))
        else:
            files.check_fit(path, state, like)
            return Newest(step, path, state, tuple(passed_over))
    if passed_over:
        words = f"{folder} has checkpoints, and none of them can be used. {passed_over[0][1]}"
        raise ValueError(f"{words} To begin anew, take another folder.")
    return None


def _steps(folder: Path) -> list[tuple[int, Path]]:
    """The files of steps, newest first. A path that is no folder raises a sentence, as it may hide them."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise ValueError(f"{folder} is no folder: it is a file, or a link to a disk that is not there now.")
    entries = folder.iterdir() if folder.is_dir() else ()
    found = [(re.fullmatch(_STEP_FILE, path.name), path) for path in entries if path.is_file()]
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def _is_full_length(path: Path) -> bool:
    """Whether the file is ours and has the length that it states. This is quick; the checksum would need a full read."""
    with suppress(OSError, ValueError), path.open("rb") as file:
        contents.framed(file)
        return True
    return False
