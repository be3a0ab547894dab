"""Answers to the exercises of notebook 08."""

import os
import uuid
from functools import partial
from pathlib import Path

from course_utils.chapters.checkpointing import check, file_check
from course_utils.core import accountant
from tests.engine.tried import Check, Tried


def overwrite(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def write(
    path,
    pieces,
    *,
    beside="beside",
    flush=True,
    sync="fsync",
    rename=Path.replace,
    clear=True,
    swallow=False,
):
    """Right, or wrong in one way, by one of the options."""
    beside = path.parent.joinpath(beside).resolve()
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            if flush:
                file.flush()
            if sync:
                getattr(os, sync)(file.fileno())
        rename(beside, path)
    except BaseException:
        if clear:
            beside.unlink()
        if not swallow:
            raise


def gone_before_it_is_there(new, old):
    old.unlink(missing_ok=True)
    new.rename(old)


def joined_first(path, pieces):
    """An error can come before there is a file to remove, and then `unlink` hides it."""
    beside = path.with_name("beside")
    try:
        joined = b"".join(pieces)
        with open(beside, "wb") as file:
            file.write(joined)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink()
        raise


def in_memory_first(path, pieces):
    """Nothing is written before all pieces are there, but then the old file is overwritten."""
    overwrite(path, [b"".join(pieces)])


def with_path_methods(path, pieces):
    """Another right way: a file with a name of its own, renamed by the path's own method."""
    beside = path.parent / "0.part"
    try:
        with beside.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file)
        beside.replace(path)
    except OSError:
        beside.unlink()
        raise


def in_reverse(path, pieces):
    write(path, list(pieces)[::-1])


def all_at_once(path, pieces):
    path.write_bytes(pieces)


def interval_by_a_power(save_s, failure_s):
    return (2 * failure_s * save_s) ** 0.5


def layers_alone(m, batch, sequence, dtype, recomputed):
    """What the layers keep, without the last normalisation and the loss."""
    layer = accountant.layer_bytes(m, batch, sequence, dtype)
    hidden = accountant.tensor_bytes((batch, sequence, m.width), dtype)
    return (m.layers - recomputed) * layer + recomputed * hidden


def all_lost_work(interval_s, save_s, failure_s, restart_s):
    return save_s / interval_s + 3 * interval_s / (2 * failure_s) + restart_s / failure_s


TRIED: dict[Check, Tried] = {
    check.step_bytes: Tried(
        wrong=((layers_alone, "Layers kept whole ✓, last normalisation and loss left out: "),),
    ),
    check.lost_share: Tried(
        wrong=(
            (all_lost_work, "Saves ✓, restarts ✓, lost work counted 3 times: 0.103792 too much."),
        ),
    ),
    check.interval: Tried(right=(interval_by_a_power,)),
    check.write_whole: Tried(
        right=(with_path_methods, partial(write, sync="fdatasync"), file_check.ours),
        wrong=(
            (overwrite, "neither all of the old"),
            (partial(write, rename=gone_before_it_is_there), "neither all of the old"),
            (partial(write, beside=f"../{uuid.uuid4()}"), "write in the same folder"),
            (partial(write, flush=False), "call file.flush() and then os.fsync"),
            (in_memory_first, "it writes into the file itself"),
            (partial(write, sync=None), "os.fsync(file.fileno()), with `os.` in front"),
            (partial(write, clear=False), "is left beside"),
            (partial(write, swallow=True), "raise the error again"),
            (joined_first, "use unlink(missing_ok=True)"),
            (in_reverse, "b'contentsnew the ', and should hold"),
            (all_at_once, "TypeError"),
        ),
    ),
}
