"""A process that is killed while it saves, and what can be loaded afterwards."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

_SAVES = 100  # how often a process saves, if it is not killed before
_LOOK_S = 0.0005  # the seconds between two looks at the folder
# A forked process begins at once, with the state and the reader's functions in its memory. Until it
# is killed, it only saves.
_FORKING = multiprocessing.get_context("fork")


def left_by_a_kill(
    save: Callable[[object, Path], object],
    load: Callable[[Path], object],
    state: object,
    *,
    attempts: int = 9,
) -> object | None:
    """Return what `load` finds after a process was killed while `save` overwrote a good file.

    The result is None if `load` fails. The process saves again and again, and is killed with
    SIGKILL as soon as its folder holds anything else than this file at its full length. If the kill
    comes too late, so that the file is whole again, all of this is done once more, up to `attempts`
    times in all.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        save(state, path)
        size = path.stat().st_size
        _kill_in_a_save(save, state, path, size)
        if _is_whole(path, size) and attempts > 1:  # the kill came too late
            return left_by_a_kill(save, load, state, attempts=attempts - 1)
        try:
            return load(path)
        except Exception:  # a torn file can make `load` fail in many ways
            return None


def _kill_in_a_save(
    save: Callable[[object, Path], object], state: object, path: Path, size: int
) -> None:
    """Start a process that saves, and kill it as soon as the file is not whole."""
    saver = _FORKING.Process(target=_save_again_and_again, args=(save, state, path))
    saver.start()
    try:
        while saver.is_alive() and _is_whole(path, size):
            time.sleep(_LOOK_S)
    finally:  # after an interrupt, too
        saver.kill()
        saver.join()


def _save_again_and_again(
    save: Callable[[object, Path], object], state: object, path: Path
) -> None:
    """Save until this process is killed, but at most _SAVES times."""
    for _ in range(_SAVES):
        save(state, path)


def _is_whole(path: Path, size: int) -> bool:
    """Whether the file is alone in its folder and has that size, as before and after a save.

    While a save goes on, the file is shorter, or another file lies beside it.
    """
    try:
        return os.listdir(path.parent) == [path.name] and path.stat().st_size == size
    except FileNotFoundError:  # removed after listdir had listed it
        return False
