"""Answers to the exercises of notebook 08."""

import math
import os
import uuid
from functools import partial
from pathlib import Path

import numpy as np

from course_utils import predict
from course_utils.checks import checkpointing as check
from course_utils.checks import whole_file
from tests.tried import Check, Tried


def overwrite(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def write(
    path, pieces, *, beside="beside", flush=True, sync="fsync", rename=Path.replace, clear=True, swallow=False
):
    """Right, or with one thing done wrongly."""
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
    """Where an error comes before there is anything to remove."""
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
    """Nothing is written before all is there, and then in place."""
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


def peak(layers, inputs, block, segment):
    lengths = [min(segment, layers - begin) for begin in range(0, layers, segment)]
    return max(number * inputs + length * block for number, length in enumerate(lengths))


TRIED: dict[Check, Tried] = {
    check.interval: Tried(right=(lambda c, n, days: math.sqrt(172_800 * c * days / n),)),
    check.write_whole: Tried(
        right=(with_path_methods, partial(write, sync="fdatasync"), whole_file.ours),
        wrong=(
            (overwrite, "neither all of the old"),
            (partial(write, rename=gone_before_it_is_there), "the old file is gone before"),
            (partial(write, beside=f"../{uuid.uuid4()}"), "write in the same folder"),
            (partial(write, flush=False), "call file.flush() and then os.fsync"),
            (in_memory_first, "it writes into the file itself"),
            (partial(write, sync=None), "os.fsync(file.fileno()), with `os.` in front"),
            (partial(write, clear=False), "is left beside"),
            (partial(write, swallow=True), "raise the error again"),
            (joined_first, "Use unlink(missing_ok=True)"),
            (lambda p, b: write(p, list(b)[::-1]), "b'contentsnew the ', and should hold"),
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
