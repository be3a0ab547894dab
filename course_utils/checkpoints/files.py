"""One file, whole or not at all."""

import errno
import fcntl
import hashlib
import os
import platform
import re
import secrets
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from course_utils.checkpoints import contents, fit

_LEFTOVER = re.compile(r".+\.(?P<host>[0-9a-f]{8})-(?P<pid>\d{1,9})-[0-9a-f]{8}\.tmp")
_HAS_NO_SUCH_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.ENOTTY)


def save(path: str | os.PathLike, state: object) -> None:
    """Whole or not at all: written to a file beside it, flushed to the disk, renamed in one step, and that flushed too.

    A state is made of dict (keys: str or int), list, tuple, str, int, float, bool, None and dense tensors. A
    symbolic link stays, and its target is replaced; the permissions are those that `open` would give or leave.
    A tensor under two names is written twice, and comes back as two. What dead processes left half written in the
    folder goes first.
    """
    header, tensors = contents.packed(state)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is there already, and is no file; give the path of a file.")
    temporary = target.with_name(f"{target.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        _remove_leftovers(target.parent)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode)
        with open(handle, "wb") as file:
            if mode is not None:
                os.chmod(temporary, mode)  # and what the umask took from it
            contents.write(file, header, tensors)
            file.flush()
            _flush(handle)
        os.replace(temporary, target)
    except BaseException as failure:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(failure, OSError):
            raise _explained(failure, target) from failure
        raise
    try:
        flush_folder(target.parent)
    except OSError as failure:
        words = (
            f"The new state is in place at {target}, and may not survive a loss of power: {_why(failure)}."
        )
        raise OSError(failure.errno, f"{words} Save again, or somewhere else.") from failure


def load(path: str | os.PathLike, *, like: object = None) -> object:
    """The state, bit for bit and on the CPU, or a sentence on what is wrong with the file; nothing in it is run.

    `like` is a state of the structure that is wanted: the same names, shapes and dtypes. Plain values may differ,
    and an empty dict or list stands for any contents, as of an optimizer before its first step.
    """
    path = Path(path)
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError) as error:
        words = f"There is no checkpoint at {path}; nothing was saved there."
        raise FileNotFoundError(errno.ENOENT, words) from error
    if not is_file:
        raise ValueError(f"{path} is no file; of a folder of steps, checkpoints.newest gives the newest.")
    with path.open("rb") as file:
        try:
            state = contents.read(file)
        except ValueError as reason:
            raise ValueError(f"{path} {reason}") from reason
        except MemoryError as error:
            words = f"{path} may be good, but there is no memory left for {str(error) or 'its header'}."
            raise MemoryError(f"{words} Load it where there is more.") from error
    check_fit(path, state, like)
    return state


def check_fit(path: Path, state: object, like: object) -> None:
    """Nothing, or a sentence that names the first entry that differs."""
    if like is not None and (difference := fit.difference(state, like)):
        raise ValueError(f"{path} holds another state: {difference}")


def flush_folder(folder: Path) -> None:
    """Make new names in it survive a loss of power, where the system can."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        _flush(handle)
    except OSError as error:
        if error.errno not in _HAS_NO_SUCH_FLUSH:
            raise
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Onto the disk itself, which on macOS keeps some in a memory of its own unless it is told not to."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        try:
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
        except OSError as error:
            if error.errno not in _HAS_NO_SUCH_FLUSH:
                raise
    os.fsync(handle)


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes of this host that are gone were writing; a living one's file is left alone."""
    for path in folder.iterdir():
        match = _LEFTOVER.fullmatch(path.name)
        if match and match["host"] == _host() and not _is_alive(int(match["pid"])):
            with suppress(OSError):  # another process may be clearing up too
                path.unlink()


@cache
def _host() -> str:
    """Eight letters for the machine, and the container on it: only among its processes is a number one process.

    The id of a boot is not in it, so that what a loss of power left is removed after it.
    """
    names = [platform.node()]
    with suppress(OSError):
        names.append(Path("/etc/machine-id").read_text(encoding="utf-8"))
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


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
    }.get(error.errno, "save again, or somewhere else")
    if error.errno == errno.ENOENT and not target.parent.exists():
        advice = "make the folder first"
    return OSError(error.errno, f"The state was not saved: {_why(error)}. {before}; {advice}.")


def _why(error: OSError) -> str:
    return error.strerror or str(error)
