"""Atomic writing of a file: judged by what the folder shows while the reader's function writes."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from os import fsync, replace
from pathlib import Path
from unittest import mock

from course_utils.checks.judging import NotYetError, call, objection
from course_utils.checks.judging.sentences import name_of, stopped

OLD, PIECES = b"the old contents", [b"the ", b"new ", b"contents"]
NEW = b"".join(PIECES)
NOT_FLUSHED = (
    "the new file takes the old one's place before all of it is on the disk. After the last piece, call "
    "file.flush() and then os.fsync(file.fileno()), with `os.` in front."
)


def ours(path: Path, pieces: Iterable[bytes]) -> None:
    """Write another file, flush it, rename it; after an error remove it."""
    beside = path.with_name(path.name + ".tmp")
    try:
        with open(beside, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@objection(
    "With and without old contents, with errors at the beginning, in the middle and at the end.", ours=ours
)
def write_whole(answer: Callable[[Path, Iterator[bytes]], object]) -> None:
    """Write the pieces by way of another file; after an error the old contents stay, and no other file."""
    for old, fails_at in ((OLD, None), (None, None), (OLD, 2), (OLD, 0), (OLD, len(PIECES)), (None, 1)):
        with tempfile.TemporaryDirectory() as folder:
            watch = _Watch(Path(folder) / "run.bin", old, fails_at)
            words = watch.complaint(answer)
            if words:
                raise NotYetError(f"{name_of(answer)}: {words}")


class _FullDiskError(OSError):
    pass


class _Watch:
    """Watches a file's folder while the reader's function writes."""

    def __init__(self, path: Path, old: bytes | None, fails_at: int | None) -> None:
        self.path, self.old, self.fails_at = path, old, fails_at
        self.seen: list[str] = []
        self.flushed_bytes: list[int] = []
        if old is not None:
            path.write_bytes(old)
        self.place = path.stat().st_ino if old is not None else None

    def complaint(self, answer: Callable[[Path, Iterator[bytes]], object]) -> str:
        """What is wrong with the reader's function, or an empty string."""
        watched = {"fsync": self._flushed, "fdatasync": self._flushed}
        watched |= {"replace": self._renamed, "rename": self._renamed}
        with mock.patch.multiple(os, create=True, **watched):  # macOS has no fdatasync
            _, error = call(lambda: answer(self.path, self._pieces()))
        fails, contents = self.fails_at is not None, self._contents()
        if error and not fails:
            return f"it {stopped(answer, error)}"
        if self.seen:
            return self.seen[0]
        when = "after an error " if fails else ""
        if contents != (self.old if fails else NEW):
            wanted = f"what it held before: {self.old!r}" if fails else repr(NEW)
            return f"{when}the file holds {contents!r}, and should hold {wanted}."
        if fails and isinstance(error, FileNotFoundError):
            return "a second error hid the first: there may be no new file yet. Use unlink(missing_ok=True)."
        if fails and not isinstance(error, _FullDiskError):
            return "raise the error again: the caller must not believe that all is saved."
        if not fails and self.path.stat().st_ino == self.place:
            return "it writes into the file itself, and a crash leaves a part. Write another file, and rename it."
        if not fails and len(NEW) not in self.flushed_bytes:
            return NOT_FLUSHED
        beside = [other.name for other in self.path.parent.iterdir() if other != self.path]
        return f"{when}{beside[0]} is left beside the file." if beside else ""

    def _contents(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def _pieces(self) -> Iterator[bytes]:
        for number, piece in enumerate([*PIECES, b""]):
            if self._contents() != self.old:
                self.seen.append(
                    "while it writes, the file holds neither all of the old nor all of the new contents."
                )
            if number == self.fails_at:
                raise _FullDiskError(28, "No space left on device")
            yield piece

    def _renamed(self, source: Path, *arguments: object, **options: object) -> None:
        if self._contents() != self.old:
            self.seen.append("the old file is gone before the new one is there. os.replace does both in one.")
        if Path(source).resolve().parent != self.path.parent.resolve():
            self.seen.append("write in the same folder: from one disk to another, a rename is a copy.")
        if len(NEW) not in self.flushed_bytes:
            self.seen.append(NOT_FLUSHED)
        replace(source, *arguments, **options)

    def _flushed(self, handle: object) -> None:
        number = handle if isinstance(handle, int) else handle.fileno()
        self.flushed_bytes.append(os.fstat(number).st_size)
        fsync(number)
