"""One file, whole or not at all."""

import errno
import fcntl
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from course_utils.subjects.checkpoints import contents


def save(path: str | os.PathLike, state: object) -> None:
    """Whole or not at all: torch.save to a file beside it, flush to the disk, rename in one step, flush that too.

    A state is made of dict (keys: str or int), list, tuple, str, int, float, bool, None and dense tensors. A
    symbolic link stays, and its target is replaced; the permissions are those that `open` would give or leave.
    Tensors that share memory share it again when they come back, and a view brings all that it is a view of.
    A process that is killed while it saves leaves its half of a file behind, under a name that ends in .tmp.
    """
    state = contents.plain(state)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is there already, and is no file; give the path of a file.")
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            contents.write(file, state)
            file.flush()
            _flush(file.fileno())
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except OSError as error:
        before = (
            f"What {target} holds is whole"
            if target.exists()
            else f"There is still nothing at {target}"
        )
        words = f"The state is not safely saved: {error.strerror or error}. {before}; make room, or take a"
        raise OSError(
            error.errno, f"{words} folder that is there and yours to write to, then save again."
        ) from error
    finally:  # after Ctrl-C, too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike) -> object:
    """The state, bit for bit and on the CPU, by torch.load; or a sentence on what is wrong. Nothing in a file is run."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            errno.ENOENT, f"There is no checkpoint at {path}; nothing was saved there."
        )
    if not path.is_file():
        raise ValueError(f"{path} is no file; give the path of one that checkpoints.save wrote.")
    with path.open("rb") as file:
        try:
            return contents.read(file)
        except ValueError as reason:
            raise ValueError(f"{path} {reason}") from reason


def _flush_folder(folder: Path) -> None:
    """Flush the folder, so that the new name survives a loss of power, where the system can do that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        _flush(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Flush the file to the disk. On macOS this takes a call of its own: fsync leaves data in the disk's cache."""
    try:
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    except (AttributeError, OSError):  # another system, or a disk that cannot
        os.fsync(handle)
