"""Whether a file is written whole or not at all: judged by what can be seen of its folder while it is written."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from course_utils.checks.judging import call, objection
from course_utils.checks.judging.sentences import name_of, stopped

OLD, PIECES = b"the old contents", [b"the ", b"new ", b"contents"]
NEW = b"".join(PIECES)
NOT_FLUSHED = (
    "the new file takes the old one's place before all of it is on the disk. After the last piece, file.flush() hands "
    "it to the system and os.fsync(file.fileno()), called so, to the disk."
)


@objection("With and without old contents, with errors at the beginning, in the middle and at the end.")
def write_whole(answer: Callable[[Path, Iterator[bytes]], object]) -> str:
    """The pieces in the file, by way of another file; after an error the old contents, and nothing beside."""
    for old, fails_at in ((OLD, None), (None, None), (OLD, 2), (OLD, 0), (OLD, len(PIECES)), (None, 1)):
        with tempfile.TemporaryDirectory() as folder:
            watch = _Watch(Path(folder) / "run.bin", old, fails_at)
            words = watch.complaint(answer)
            if words:
                return f"{name_of(answer)}: {words}"
    return ""


class _FullDiskError(OSError):
    pass


class _Watch:
    """A file, and what is seen of it while somebody writes it."""

    def __init__(self, path: Path, old: bytes | None, fails_at: int | None) -> None:
        self.path, self.old, self.fails_at = path, old, fails_at
        self.seen: list[str] = []
        self.flushed_bytes: list[int] = []
        if old is not None:
            path.write_bytes(old)
        self.place = path.stat().st_ino if old is not None else None

    def complaint(self, answer: Callable[[Path, Iterator[bytes]], object]) -> str:
        """What is wrong with that way to write it, or nothing."""
        flushed = self._flushed(os.fsync)
        with (
            mock.patch("os.fsync", flushed),
            mock.patch("os.fdatasync", flushed, create=True),  # which macOS lacks
            mock.patch("os.replace", self._renamed(os.replace)),
            mock.patch("os.rename", self._renamed(os.rename)),
        ):
            _, error = call(answer, self.path, self._pieces())
        if error and self.fails_at is None:
            return f"it {stopped(answer, error)}"
        if self.seen:
            return self.seen[0]
        words = self._after_all() if self.fails_at is None else self._after(error)
        beside = [other.name for other in self.path.parent.iterdir() if other != self.path]
        if beside and not words:
            when = "" if self.fails_at is None else "after an error "
            return f"{when}{beside[0]} is left beside the file."
        return words

    def _after_all(self) -> str:
        if self._contents() != NEW:
            return f"the file holds {self._contents()!r}, and should hold {NEW!r}."
        if self.path.stat().st_ino == self.place:
            return "it writes in place, and a crash there leaves a part. Write another file, and rename it."
        return "" if len(NEW) in self.flushed_bytes else NOT_FLUSHED

    def _after(self, error: BaseException | None) -> str:
        if self._contents() != self.old:
            held = f"{self._contents()!r}, and should hold what it held before: {self.old!r}"
            return f"after an error the file holds {held}."
        if not isinstance(error, _FullDiskError):
            return "an error has to go on to the caller, who must not believe that all is saved."
        return ""

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

    def _renamed(self, rename: Callable[..., object]) -> Callable[..., object]:
        def watching(source: Path, *arguments: object, **options: object) -> object:
            if self._contents() != self.old:
                self.seen.append(
                    "the old file is gone before the new one is there. os.replace does both in one."
                )
            if Path(source).resolve().parent != self.path.parent.resolve():
                self.seen.append("write in the same folder: from one disk to another, a rename is a copy.")
            if len(NEW) not in self.flushed_bytes:
                self.seen.append(NOT_FLUSHED)
            return rename(source, *arguments, **options)

        return watching

    def _flushed(self, flush: Callable[[object], None]) -> Callable[[object], None]:
        def watching(handle: object) -> None:
            number = handle if isinstance(handle, int) else handle.fileno()
            self.flushed_bytes.append(os.fstat(number).st_size)
            flush(handle)

        return watching
