"""One file, whole or not at all."""

import errno
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from course_utils.checkpoints import contents, fit

_LEFTOVER = re.compile(r"(?P<of>.+)\.(?P<pid>\d{1,9})-[0-9a-f]{8}\.tmp")


def save(path: str | os.PathLike, state: object) -> None:
    """Whole or not at all: written to a file beside it, flushed to the disk, renamed in one step, and that flushed too.

    A state is made of dict (keys: str or int), list, tuple, str, int, float, bool, None and dense tensors. A
    symbolic link stays, and its target is replaced; the permissions are those that `open` would give or leave.
    """
    header, tensors = contents.packed(state)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is there already, and is no file; give the path of a file.")
    temporary = target.with_name(f"{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        remove_leftovers(target.parent, re.escape(target.name))
        with temporary.open("xb") as file:
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            contents.write(file, header, tensors)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        flush_folder(target.parent)
    except BaseException as failure:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(failure, OSError):
            raise _explained(failure, target) from failure
        raise


def load(path: str | os.PathLike, *, like: object = None) -> object:
    """The state, bit for bit and on the CPU, or a sentence on what is wrong with the file; nothing in it is run.

    `like` is a state of the structure that is wanted: the same names, shapes and dtypes. Plain values may differ,
    and an empty dict or list stands for any contents, as of an optimizer before its first step.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, f"There is no checkpoint at {path}; nothing was saved there.")
    if not path.is_file():
        raise ValueError(f"{path} is no file; of a folder of steps, checkpoints.newest gives the newest.")
    with path.open("rb") as file:
        try:
            state = contents.read(file)
        except ValueError as reason:
            raise ValueError(f"{path} {reason}") from reason
    check_fit(path, state, like)
    return state


def check_fit(path: Path, state: object, like: object) -> None:
    """Nothing, or a sentence that names the first entry that differs."""
    if like is not None and (difference := fit.difference(state, like)):
        raise ValueError(f"{path} holds another state: {difference}")


def remove_leftovers(folder: Path, of: str) -> None:
    """Remove what processes that are gone were writing; a living one's file is left alone."""
    for path in folder.iterdir():
        match = _LEFTOVER.fullmatch(path.name)
        if match and re.fullmatch(of, match["of"]) and not _is_alive(int(match["pid"])):
            with suppress(OSError):  # another process may be clearing up too
                path.unlink()


def flush_folder(folder: Path) -> None:
    """Make new names in it survive a loss of power, where the system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # which only asks
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def _explained(error: OSError, target: Path) -> OSError:
    """The same error, with what became of the checkpoint and what to do."""
    before = f"What {target} holds is whole" if target.exists() else f"There is still nothing at {target}"
    advice = {
        **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, then save again"),
        **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "choose a folder that you may write to"),
        errno.ENOENT: "make the folder first",
    }.get(error.errno, "save again, or somewhere else")
    return OSError(error.errno, f"The state was not saved: {error.strerror or error}. {before}; {advice}.")
