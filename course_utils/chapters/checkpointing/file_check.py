"""The exercise on atomic writing, judged by what the folder holds while a file is written."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import fsync, replace  # these stay the real ones while those of `os` are patched
from pathlib import Path
from unittest import mock

from course_utils.engine.judging import NotYetError, call, objection
from course_utils.engine.judging.errors import stopped
from course_utils.engine.judging.sentences import name_of

OLD = b"the old contents"
PIECES = [b"the ", b"new ", b"contents"]
NEW = b"".join(PIECES)
# Places of an error. The other places are the numbers of the pieces.
FLUSH = "flush"
RENAME = "rename"
# Complaints, each shown after the name of the function.
TORN = "for a while, the file holds neither all of the old nor all of the new contents."
ELSEWHERE = "write in the same folder: from one disk to another, a rename fails."
NOT_RAISED = (
    "raise the error again: the caller must not believe that all is saved. "
    "Let no second error hide it: use unlink(missing_ok=True)."
)
IN_PLACE = (
    "it writes into the file itself, and a crash leaves a part. Write another file, and rename it."
)
NOT_FLUSHED = (
    "the new file takes the old one's place before all of it is on the disk. "
    "After the last piece, call file.flush() and then os.fsync(file.fileno())."
)
# The reader's function: it takes the path to write to, and the pieces of the new contents.
Answer = Callable[[Path, Iterator[bytes]], object]


def ours(path: Path, pieces: Iterable[bytes]) -> None:
    """Write another file, flush it, and rename it to `path`; after an error, remove it.

    This is the right answer, which a notebook goes on with if the reader's is wrong.
    """
    beside = path.with_name(path.name + ".tmp")
    try:
        with open(beside, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:  # after an interrupt, too
        beside.unlink(missing_ok=True)
        raise


@objection(
    "With and without old contents, and with errors at a piece, at the flush and at the rename.",
    ours=ours,
)
def write_whole(answer: Answer) -> None:
    """The check of a reader's write_whole(path, pieces): the file is old or new, never torn."""
    for old, fails_at, error in _cases():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.bin"
            save = _Save(path, old, fails_at, error)
            # Only the first one is asked for; "" if there is none.
            complaint = next(_complaints(answer, save), "")
        if complaint:
            raise NotYetError(f"{name_of(answer)}: {complaint}")


def _cases() -> Iterator[tuple[bytes | None, int | str | None, Exception | None]]:
    """Yield cases (old contents, where an error is raised, the error), such as (OLD, FLUSH, error).

    The old contents are None if there is no file yet. The error is raised before the piece of that
    number, at FLUSH or at RENAME. In a case without an error, both are None.
    """
    yield OLD, None, None
    yield None, None, None
    # len(PIECES) is the place after the last piece.
    for old, fails_at in ((OLD, 2), (OLD, 0), (OLD, len(PIECES)), (None, 1)):
        yield old, fails_at, OSError(errno.ENOSPC, "No space left on device")
    yield OLD, FLUSH, OSError(errno.EIO, "Input/output error")
    yield OLD, RENAME, PermissionError(errno.EACCES, "Permission denied")
    yield OLD, 1, MemoryError("no memory for the next piece")


@dataclass
class _Save:
    """A save by the reader's function, and what its folder holds meanwhile.

    The methods `rename` and `flush` stand in for the functions of `os`.
    """

    path: Path
    old: bytes | None  # contents of the file before the save; None without a file
    fails_at: int | str | None  # where the error is raised: a piece's number, FLUSH or RENAME
    raised: Exception | None  # the error that is raised there
    complaints: list[str] = field(default_factory=list)
    # The size of the new file at each flush, as long as the old contents stand.
    flushed_bytes: list[int] = field(default_factory=list)

    @property
    def contents(self) -> bytes | None:
        """What the file holds now; None without a file."""
        return self.path.read_bytes() if self.path.exists() else None

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces. Before each, look at the file, and raise the error if it is due."""
        after_the_last = b""  # so that the error may come after the last piece, too
        for number, piece in enumerate([*PIECES, after_the_last]):
            self.look()
            self.fail_if_due(number)
            yield piece

    def fail_if_due(self, place: int | str) -> None:
        """Raise the error if this is its place: a piece's number, FLUSH or RENAME."""
        if place == self.fails_at:
            raise self.raised

    def look(self) -> None:
        """Note a complaint unless the file holds its old contents.

        This is called before each piece and before the rename, when nothing may have changed yet.
        """
        if self.contents != self.old:
            self.complaints.append(TORN)

    def rename(self, source: Path, *arguments: object, **options: object) -> None:
        """Rename as os.replace does, but look at the file and at the source's folder first."""
        self.look()
        if Path(source).resolve().parent != self.path.parent.resolve():
            self.complaints.append(ELSEWHERE)
        self.fail_if_due(RENAME)
        replace(source, *arguments, **options)  # the real os.replace; the arguments have the target

    def flush(self, handle: object) -> None:
        """Flush as os.fsync does; while the old contents stand, note the flushed file's size.

        By these sizes `_after_a_save` knows whether all was on the disk before the rename.
        """
        if self.contents == self.old:
            # os.fsync takes a file's number, or an object that has it.
            descriptor = handle if isinstance(handle, int) else handle.fileno()
            self.flushed_bytes.append(os.stat(descriptor).st_size)
        self.fail_if_due(FLUSH)
        fsync(handle)


def _complaints(answer: Answer, save: _Save) -> Iterator[str]:
    """Yield what is wrong, by what the folder holds before, while and after the function writes.

    A complaint is shown after the function's name and a colon.
    """
    inode = None  # the file's number on the disk, which a file that replaces it does not have
    if save.old is not None:
        save.path.write_bytes(save.old)
        inode = save.path.stat().st_ino
    with _watched(save, answer):
        _, error = call(lambda: answer(save.path, save.pieces()))
    if error and not save.raised:
        yield f"it {stopped(answer, error)}"
    yield from save.complaints
    if save.raised:
        yield from _after_an_error(save, error)
        yield from _left_beside(save.path, f"after an error ({type(save.raised).__name__}) ")
    else:
        yield from _after_a_save(save, inode)
        yield from _left_beside(save.path, "")


def _after_an_error(save: _Save, error: BaseException | None) -> Iterator[str]:
    """Yield what is wrong after an error; `error` is what the function raised."""
    if save.contents != save.old:
        yield f"after an error the file holds {save.contents!r}, and should hold {save.old!r}."
    if error is not save.raised:
        yield NOT_RAISED


def _after_a_save(save: _Save, inode: int | None) -> Iterator[str]:
    """Yield what is wrong after a save on a disk with space; the old file had this inode."""
    if save.contents != NEW:
        yield f"the file holds {save.contents!r}, and should hold {NEW!r}."
    if save.path.stat().st_ino == inode:  # it is still the old file
        yield IN_PLACE
    if len(NEW) not in save.flushed_bytes:  # no flush before the rename had the whole file
        yield NOT_FLUSHED


def _left_beside(path: Path, when: str) -> Iterator[str]:
    """Yield a sentence for each other file in the folder.

    `when` is the sentence's beginning, such as "after an error (OSError) ", or empty.
    """
    for other in path.parent.iterdir():
        if other != path:
            yield f"{when}{other.name} is left beside the file."


@contextmanager
def _watched(save: _Save, answer: Answer) -> Iterator[None]:
    """Let `save` see each rename and each flush inside the `with` block.

    For this, `os` is patched, and also the names that the answer's module has of these functions,
    as after `from os import fsync`. An audit hook would be plainer, but Python has no event for
    os.fsync, and a hook cannot be taken off again.
    """
    watched = {
        "fsync": save.flush,
        "fdatasync": save.flush,
        "replace": save.rename,
        "rename": save.rename,
    }
    names = getattr(answer, "__globals__", {})  # the global names of the answer's module
    # Our own right answer stands in this module. It calls os.fsync, which is patched below. This
    # module's own names stay as they are, because `save` calls the real functions by them.
    if names is globals():
        names = {}
    # By the name in that module: the function of `os` and its stand-in, such as
    # {"sync": (os.fsync, save.flush)} after `from os import fsync as sync`.
    imported = {}
    for name, function in list(names.items()):
        for of_os, stand_in in watched.items():
            real = getattr(os, of_os, None)  # macOS has no fdatasync
            if real is not None and function is real:
                imported[name] = function, stand_in
    names.update({name: stand_in for name, (_, stand_in) in imported.items()})
    try:
        with mock.patch.multiple(os, create=True, **watched):  # macOS has no fdatasync
            yield
    finally:
        names.update({name: function for name, (function, _) in imported.items()})
