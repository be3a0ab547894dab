"""Atomic writing of a file: judged by what the folder shows while the reader's function writes."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import fsync, replace
from pathlib import Path
from unittest import mock

from course_utils.engine.judging import NotYetError, call, objection
from course_utils.engine.judging.sentences import name_of, stopped

OLD, PIECES = b"the old contents", [b"the ", b"new ", b"contents"]
NEW = b"".join(PIECES)
TORN = "for a while, the file holds neither all of the old nor all of the new contents."
ELSEWHERE = "write in the same folder: from one disk to another, a rename is a copy."
HIDDEN = "raise the error again: the caller must not believe that all is saved. Let no second error hide it: use unlink(missing_ok=True)."
IN_PLACE = (
    "it writes into the file itself, and a crash leaves a part. Write another file, and rename it."
)
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
    "With and without old contents, with errors at the beginning, in the middle and at the end.",
    ours=ours,
)
def write_whole(answer: Callable[[Path, Iterator[bytes]], object]) -> None:
    """Write the pieces by way of another file; after an error the old contents stay, and no other file."""
    for old, fails_at in (
        (OLD, None),
        (None, None),
        (OLD, 2),
        (OLD, 0),
        (OLD, len(PIECES)),
        (None, 1),
    ):
        with tempfile.TemporaryDirectory() as folder:
            if words := next(_complaints(answer, Path(folder) / "run.bin", old, fails_at), ""):
                raise NotYetError(f"{name_of(answer)}: {words}")


def _complaints(
    answer: Callable[[Path, Iterator[bytes]], object],
    path: Path,
    old: bytes | None,
    fails_at: int | None,
) -> Iterator[str]:
    """What is wrong, by what the folder shows before, while and after the reader's function writes."""
    if old is not None:
        path.write_bytes(old)
    place = old and path.stat().st_ino
    full = None if fails_at is None else OSError(28, "No space left on device")
    seen: list[str] = []
    flushed_bytes: list[int] = []  # while the old contents stood

    def pieces() -> Iterator[bytes]:
        for number, piece in enumerate([*PIECES, b""]):
            seen.extend([TORN] * (_contents(path) != old))
            if number == fails_at:
                raise full
            yield piece

    with _watched(path, old, seen, flushed_bytes):
        _, error = call(lambda: answer(path, pieces()))
    if error and not full:
        yield f"it {stopped(answer, error)}"
    yield from seen
    when, wanted = ("after an error ", old) if full else ("", NEW)
    if _contents(path) != wanted:
        yield f"{when}the file holds {_contents(path)!r}, and should hold {wanted!r}."
    if error is not full:
        yield HIDDEN
    if not full and path.stat().st_ino == place:
        yield IN_PLACE
    if not full and len(NEW) not in flushed_bytes:
        yield NOT_FLUSHED
    yield from (
        f"{when}{other.name} is left beside the file."
        for other in path.parent.iterdir()
        if other != path
    )


@contextmanager
def _watched(
    path: Path, old: bytes | None, seen: list[str], flushed_bytes: list[int]
) -> Iterator[None]:
    """Note how each rename and each flush goes.

    `os` is patched for that. An audit hook would be plainer, but Python has no event for os.fsync, and a hook
    cannot be taken off again.
    """

    def renamed(source: Path, *arguments: object, **options: object) -> None:
        seen.extend([TORN] * (_contents(path) != old))
        seen.extend([ELSEWHERE] * (Path(source).resolve().parent != path.parent.resolve()))
        replace(source, *arguments, **options)

    def flushed(handle: object) -> None:
        if _contents(path) == old:
            flushed_bytes.append(
                os.stat(handle if isinstance(handle, int) else handle.fileno()).st_size
            )
        fsync(handle)

    watched = {"fsync": flushed, "fdatasync": flushed, "replace": renamed, "rename": renamed}
    with mock.patch.multiple(os, create=True, **watched):  # macOS has no fdatasync
        yield


def _contents(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None
