"""Answers to the exercises of notebook 08."""

import functools
import math
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch

from course_utils import predict
from course_utils.checks import checkpointing as check
from tests.tried import Check, Tried


def young(save_s, machines, days, *, seconds=86_400, twice=2):
    return math.sqrt(twice * save_s * days * seconds / machines)


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


def least(layers, cost):
    return min(range(1, layers + 1), key=cost)


TRIED: dict[Check, Tried] = {
    check.checkpoint_bytes: Tried(
        right=[96_000_000_000, 96e9, torch.tensor(96e9, dtype=torch.float64)],
        wrong=[
            (16 * 8e9, "Gradients are made anew"),
            (14 * 8e9, "can be had from the master"),
            (2 * 8e9, "the model in bf16"),
            (8 * 8e9, "The master is needed too"),
            (10 * 8e9, "have lost the master's digits"),
            (4 * 8e9, "two averages are needed"),
            (96, "in GB"),
            (12, "there are 8 billion"),
        ],
    ),
    check.interval: Tried(
        right=[
            lambda c, n, d: torch.tensor(young(c, n, d), dtype=torch.float64),
            lambda save_s, machines, days_of_one: np.sqrt(172_800 * save_s * days_of_one / machines),
        ],
        wrong=[
            (lambda c, n, d: young(c, 1, d), "one of them fails sooner."),
            (lambda c, n, d: young(c, 1 / n, d), "not later"),
            (functools.partial(young, twice=1), "a 2 under the root"),
            (functools.partial(young, seconds=1), "86,400"),
            (functools.partial(young, seconds=24), "hours under the root"),
            (lambda c, n, d: young(c, n, d) ** 2, "Take the root"),
            (lambda c, n, d: young(c, 1, d) / n, "under the root"),
        ],
    ),
    check.write_whole: Tried(
        right=[with_path_methods, functools.partial(beside_and_rename, sync="fdatasync")],
        wrong=[
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
        ],
    ),
    check.flops_ratio: Tried(
        right=[
            lambda products, segment: 4 / 3 - 1 / (3 * products * segment),
            lambda products, segment: torch.tensor(8 - 2 / (products * segment), dtype=torch.float64) / 6,
        ],
        wrong=[
            (lambda p, s: 8 / 6, "without early stop"),
            (lambda p, s: (8 - 2 / p) / 6, "Only the last block"),
            (lambda p, s: (8 - 1 / s) / 6, "blocks of two products"),
            (lambda p, s: (8 - 2 / s) / 6, "one product is left out, not all"),
            (lambda p, s: (8 - 1 / (p * s)) / 6, "The forward pass is 2 of the 6"),
            (lambda p, s: (2 - 2 / (p * s)) / 6, "what comes on top"),
        ],
    ),
    check.best_segment: Tried(
        right=[
            lambda layers, input, block: (
                predict.BlockStack(layers, input, block, 0, 0, 0).best_segment or layers
            ),
            lambda layers, input, block: (
                np.argmin([peak(layers, input, block, s) for s in range(1, layers + 1)]) + 1
            ),
        ],
        wrong=[
            (lambda n, i, b: round(math.sqrt(n)), "√L is for blocks"),
            (lambda n, i, b: max(1, round(math.sqrt(n * i / b))), "no segment is a part of one"),
            (lambda n, i, b: 1, "much more than their input"),
            (lambda n, i, b: least(n, lambda s: (peak(n, i, b, s), -s)), "Of equals the shortest"),
            (lambda n, i, b: least(n, lambda s: -(-n // s) * i + s * b), "With ⌈L / s⌉"),
            (lambda n, i, b: least(n, lambda s: (n / s - 1) * i + s * b), "no segment is a part of one"),
            (lambda n, i, b: [][1], "IndexError"),
        ],
    ),
}
