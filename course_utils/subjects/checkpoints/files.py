"""Save a state to a file, whole or not at all, and load it again."""

import errno
import fcntl
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from course_utils.subjects.checkpoints import contents


def save(path: str | os.PathLike, state: object) -> None:
    """Save the state whole or not at all.

    torch.save writes the state to a file beside the target, which is flushed to the disk. Then that
    file gets the target's name in one step, and the folder is flushed, too.

    A state is made of dict (keys: str or int), list, tuple, str, int, float, bool, None and dense
    tensors. Tensors that share memory share it again when they are loaded, and with a view, the
    whole storage of the view is saved. A symbolic link stays, and the file that it points to is
    replaced; the permissions are those that `open` would give or leave. A process that is killed
    while it saves leaves a part of a file behind, under a name that ends in .tmp.
    """
    state = contents.plain(state)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is there already, and is no file; give the path of a file.")
    temporary = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:  # x: it must not be there already
            if target.exists():  # then the new file gets the old one's permissions
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            contents.write(file, state)
            file.flush()
            _flush(file.fileno())
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, _not_saved(target, error)) from error
    finally:  # after Ctrl-C, too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _not_saved(target: Path, error: OSError) -> str:
    """Return the sentences on a save that failed, and on what is at the target now.

    The target holds the old state, or the new one if only the last flush failed: whole in any case.
    """
    if target.exists():
        at_target = f"What {target} holds is whole"
    else:
        at_target = f"There is still nothing at {target}"
    return (
        f"The state is not safely saved: {error.strerror or error}. {at_target}; make room, or "
        "take a folder that is there and yours to write to, then save again."
    )


def load(path: str | os.PathLike) -> object:
    """Return the state that was saved, bit for bit and on the CPU.

    FileNotFoundError if there is no file; ValueError, with the reason, if the file is damaged or is
    no checkpoint of this course. No code in the file is run.
    """
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
    """Flush the folder, if the system can, so that the new name survives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        _flush(handle)
    except OSError as error:
        cannot_flush_folders = error.errno in (errno.EINVAL, errno.ENOTSUP)
        if not cannot_flush_folders:
            raise
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    """Flush the file or folder with that file descriptor to the disk.

    macOS needs another call than other systems: its fsync leaves data in the disk's cache.
    """
    try:
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    except (AttributeError, OSError):  # another system, or a disk that cannot
        os.fsync(handle)
