"""Answers to the exercises of notebook 08."""

import functools
import math
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from course_utils import predict
from course_utils.checks import checkpointing as check
from tests.tried import Check, Tried


def overwrite(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def beside_and_rename(
    path, pieces, *, flush=True, clear=True, rename=os.replace, swallow=False, sync="fsync"
):
    beside = path.with_name("beside")
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            file.flush()
            if flush:
                getattr(os, sync)(file.fileno())
        rename(beside, path)
    except BaseException:
        if clear:
            beside.unlink()
        if not swallow:
            raise


def gone_before_it_is_there(path, pieces):
    beside_and_rename(path, pieces, rename=lambda new, old: (old.unlink(missing_ok=True), new.rename(old)))


def by_way_of_another_folder(path, pieces):
    with tempfile.TemporaryDirectory() as elsewhere:
        beside = Path(elsewhere) / "new"
        with open(beside, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        shutil.move(beside, path)


def flushed_to_nowhere(path, pieces):
    """What Python has not handed to the system yet, the system cannot hand to the disk."""
    beside = path.with_name("beside")
    try:
        with open(beside, "wb") as file:
            file.writelines(pieces)
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink()
        raise


def in_memory_first(path, pieces):
    """Nothing is written before all is there, and then in place."""
    whole = b"".join(pieces)
    with open(path, "wb") as file:
        file.write(whole)


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


def peak(layers, inputs, block, segment):
    lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
    return max(number * inputs + length * block for number, length in enumerate(lengths))


TRIED: dict[Check, Tried] = {
    check.checkpoint_bytes: Tried(wrong=((95e9, "close, but"), (95, "too small"))),
    check.interval: Tried(right=(lambda c, n, days: math.sqrt(172_800 * c * days / n),)),
    check.write_whole: Tried(
        right=(with_path_methods, functools.partial(beside_and_rename, sync="fdatasync")),
        wrong=(
            (overwrite, "neither all of the old"),
            (gone_before_it_is_there, "the old file is gone before"),
            (by_way_of_another_folder, "write in the same folder"),
            (flushed_to_nowhere, "file.flush() hands it to the system"),
            (in_memory_first, "it writes in place"),
            (functools.partial(beside_and_rename, flush=False), "os.fsync(file.fileno()), called so"),
            (functools.partial(beside_and_rename, clear=False), "is left beside"),
            (functools.partial(beside_and_rename, swallow=True), "go on to the caller"),
            (lambda p, b: beside_and_rename(p, list(b)[:-2]), "b'the new ', and should hold"),
            (lambda path, pieces: path.write_bytes(pieces), "TypeError"),
        ),
    ),
    check.flops_ratio: Tried(right=(lambda products, segment: 4 / 3 - 1 / (3 * products * segment),)),
    check.best_segment: Tried(
        right=(
            lambda *stack: predict.BlockStack(*stack, 0, 0, 0).best_segment or stack[0],
            lambda n, i, b: np.argmin([peak(n, i, b, s) for s in range(1, n + 1)]) + 1,
        ),
        wrong=((lambda *stack: [][1], "IndexError"),),
    ),
}
