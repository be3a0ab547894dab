"""Does to the judge's file, which a check watches, what an answer did to its own file."""

import os
import tempfile
from pathlib import Path

from course_utils.stage.grading.channel import AnswerProcessError

MOST_FILE_BYTES = 1_000_000
RENAME = os.replace  # the real one: a check replaces os.replace by a function that watches it


def hold(path: Path, contents: object) -> None:
    """Give the file these contents; remove the file if they are None.

    They come from the answer's process, so they may be anything.
    """
    if contents is None:
        path.unlink(missing_ok=True)
        return
    if type(contents) is not bytes:
        raise AnswerProcessError("It says nonsense.")
    if not path.exists() or path.read_bytes() != contents:
        path.write_bytes(contents)


def rename(path: Path, contents: object, *, from_same_folder: bool) -> None:
    """Rename a file with these contents to `path`, from the folder of `path` or from another.

    The contents come from the answer's process. What cannot be a file's contents, such as None for
    no file, is put right after the rename.
    """
    # The other folder is on the same disk: a file cannot be renamed to another disk.
    with tempfile.TemporaryDirectory(dir=path.parent.parent) as elsewhere:
        folder = path.parent if from_same_folder else Path(elsewhere)
        beside = folder / "beside"
        beside.write_bytes(contents if type(contents) is bytes else b"")
        try:
            os.replace(beside, path)  # which the check watches, and may let fail
        finally:
            beside.unlink(missing_ok=True)  # still there if the rename failed
    hold(path, contents)  # also if the check let the rename fail, or if there is to be no file


def replace_unseen(path: Path, contents: object) -> None:
    """Replace the file by a new one with these contents.

    os.replace would show the check a call that the answer never made.
    """
    anew = path.with_name("anew")
    # What is no bytes is refused right afterwards, when `hold` gets it.
    anew.write_bytes(contents if type(contents) is bytes else b"")
    RENAME(anew, path)


def flush(nbytes: int) -> None:
    """Flush a temporary file of `nbytes` bytes, at most MOST_FILE_BYTES, as the answer flushed one.

    The check replaces os.fsync by a function that notes the size of the file, by which it sees
    whether all pieces were written before. The contents do not matter to it, so they are zeros.
    """
    # The number comes from the answer's process, and may be anything.
    bounded = min(max(nbytes, 0), MOST_FILE_BYTES)
    with tempfile.TemporaryFile() as file:
        file.truncate(bounded)
        os.fsync(file.fileno())  # which the check watches
