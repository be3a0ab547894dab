"""Whether a file is written whole or not at all: judged by what can be seen of its folder while it is written."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from course_utils.checks.sentences import name_of, stopped
from course_utils.checks.verdict import NOT_ATTEMPTED, Verdict, call, no_function

OLD, NEW = b"the old contents", [b"the ", b"new ", b"contents"]
NOT_FLUSHED = (
    "the new file takes the old one's place before all of it is on the disk. After the last piece, file.flush() hands "
    "it to the system and os.fsync(file.fileno()), called so, to the disk."
)


def write_whole(answer: object) -> Verdict:
    """The pieces in the file, by way of another file; after an error the old contents, and nothing beside."""
    if not callable(answer):
        return no_function(answer)
    name = name_of(answer)
    for old, fails_at in ((OLD, None), (None, None), (OLD, 2), (OLD, 0), (OLD, len(NEW)), (None, 1)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.bin"
            if old is not None:
                path.write_bytes(old)
            words = _watched(answer, path, old, fails_at)
            if words is None:
                return NOT_ATTEMPTED
            if words:
                return Verdict("not yet", f"{name}: {words}")
    return Verdict(
        "right", "With and without old contents, with errors at the beginning, in the middle and at the end."
    )


class _FullDiskError(OSError):
    pass


def _watched(
    answer: Callable[[Path, Iterator[bytes]], object], path: Path, old: bytes | None, fails_at: int | None
) -> str | None:
    """What is wrong, or nothing; None if the stub is still there."""
    seen: list[str] = []

    def contents() -> bytes | None:
        return path.read_bytes() if path.exists() else None

    def pieces() -> Iterator[bytes]:
        for number, piece in enumerate([*NEW, b""]):
            if contents() != old:
                seen.append(
                    "while it writes, the file holds neither all of the old nor all of the new contents."
                )
            if number == fails_at:
                raise _FullDiskError(28, "No space left on device")
            yield piece

    def renamed(function: Callable[..., object]) -> Callable[..., object]:
        def watching(source: Path, *arguments: object, **options: object) -> object:
            if contents() != old:
                seen.append("the old file is gone before the new one is there. os.replace does both in one.")
            if Path(source).resolve().parent != path.parent.resolve():
                seen.append("write in the same folder: from one disk to another, a rename is a copy.")
            if whole not in flushed_bytes:
                seen.append(NOT_FLUSHED)
            return function(source, *arguments, **options)

        return watching

    def flushed(handle: object) -> None:
        flushed_bytes.append(os.fstat(handle if isinstance(handle, int) else handle.fileno()).st_size)
        flush(handle)

    flush, whole = os.fsync, len(b"".join(NEW))
    flushed_bytes: list[int] = []
    place = path.stat().st_ino if old is not None else None
    with (
        mock.patch("os.fsync", flushed),
        mock.patch("os.fdatasync", flushed, create=True),  # which macOS lacks
        mock.patch("os.replace", renamed(os.replace)),
        mock.patch("os.rename", renamed(os.rename)),
    ):
        came, error = call(answer, path, pieces())
    if came is ...:
        return None
    if fails_at is None and error:
        return f"it {stopped(answer, error)}"
    if seen:
        return seen[0]
    beside = [other.name for other in path.parent.iterdir() if other != path]
    if fails_at is None:
        if contents() != b"".join(NEW):
            return f"the file holds {contents()!r}, and should hold {b''.join(NEW)!r}."
        if path.stat().st_ino == place:
            return "it writes in place, and a crash there leaves a part. Write another file, and rename it."
        if whole not in flushed_bytes:
            return NOT_FLUSHED
        return f"{beside[0]} is left beside the file." if beside else ""
    if contents() != old:
        return f"after an error the file holds {contents()!r}, and should hold what it held before: {old!r}."
    if not isinstance(error, _FullDiskError):
        return "an error has to go on to the caller, who must not believe that all is saved."
    return f"after an error {beside[0]} is left beside the file." if beside else ""
