"""What a checkpoint holds: what torch.save writes of the state, and behind it a line with the SHA-256 of that.

`torch.load` reads such a file, too, but it does not look for damage: it takes one flipped bit of a weight for
another weight. `head -c -73 run.ckpt | sha256sum` checks a file without Python.
"""

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import torch
from torch import Tensor, nn

from course_utils.core.say import Ledger

DTYPES = {  # without the quantised, whose scale is no part of the elements, and integers of under a byte
    dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not re.fullmatch(r"torch\.(q.*|u?int[1-7])", str(dtype))
}
MOST_LEVELS = 64
MOST_BITS = 2000  # of an integer: torch.load reads no larger ones
ZIP_BEGINS = b"PK\3\4"
FORMER_BEGINNING = b"course_utils checkpoint\n"
DIGEST_LINE = b"\nsha256 %s\n"
DIGEST_BYTES = len(DIGEST_LINE % bytes(64))
PIECE_BYTES = 2**20  # read at a time


# A state as torch.save gets it.


def plain(state: object) -> object:
    """The same tree with plain tensors in it. A ValueError names the place of what cannot be saved.

    A tensor shares its memory with the state's own, but has no gradient, no class and no attributes.
    """
    return _node(state, (), {})


def _node(value: object, place: tuple[object, ...], dtypes: dict[int, torch.dtype]) -> object:
    if len(place) > MOST_LEVELS:
        raise _refusal(place[:4], f"holds more than {MOST_LEVELS} levels, or itself")
    if isinstance(value, Tensor):
        return _tensor(value, place, dtypes)
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        if kind is int and value.bit_length() > MOST_BITS:
            raise _refusal(place, f"is an integer of more than {MOST_BITS:,} bits")
        return value
    if kind in (list, tuple):
        return kind(_node(item, (*place, number), dtypes) for number, item in enumerate(value))
    if kind not in (dict, OrderedDict):
        raise _refusal(place, f"is of type {kind.__module__}.{kind.__qualname__}")
    for key in value:
        if type(key) not in (str, int):
            raise _refusal(place, f"has the key {key!r}, which is neither a str nor an int")
        _node(key, (*place, key), dtypes)  # a key may be too large as well
    return {key: _node(item, (*place, key), dtypes) for key, item in value.items()}


def _tensor(tensor: Tensor, place: Sequence[object], dtypes: dict[int, torch.dtype]) -> Tensor:
    """A plain one, if elements and dtype describe it fully; else a ValueError."""
    if type(tensor) not in (Tensor, nn.Parameter):
        raise _refusal(place, f"is a tensor of type {type(tensor).__qualname__}")
    is_dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    if not (is_dense and tensor.dtype in DTYPES):
        kind = f"{tensor.device.type}, {tensor.layout}, {tensor.dtype}"
        raise _refusal(place, f"is a tensor whose bytes are not all of it ({kind})")
    memory = tensor.untyped_storage().data_ptr()
    if memory and dtypes.setdefault(memory, tensor.dtype) != tensor.dtype:
        return tensor.detach().clone()  # torch.save writes the same memory under one dtype only
    return tensor.detach()


def _refusal(place: Sequence[object], why: str) -> ValueError:
    where = ".".join(map(str, place)) or "The state itself"  # such as optimizer.state.0.exp_avg
    return ValueError(
        f"{where} {why}. A checkpoint holds dict (keys: str or int), list, tuple, str, int, float, bool, "
        "None and dense tensors: save what it is made of, such as a module's state_dict()."
    )


# Writing.


def write(file: BinaryIO, state: object) -> int:
    """Write what torch.save does, and the line with its digest; return how many bytes. Nothing is copied."""
    digested = _Digested(file)
    try:
        torch.save(state, digested)
    except RuntimeError as error:
        # torch closes its archive on the way out, which fails, too, and hides what went wrong.
        raise (error.__context__ or error) from None
    file.write(DIGEST_LINE % digested.sha256.hexdigest().encode())
    return digested.size + DIGEST_BYTES


class _Digested:
    """Hands to a file what torch.save writes, and digests it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.flush = file.flush
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, piece: memoryview) -> int:
        self.sha256.update(piece)
        self.size += len(piece)
        return self.file.write(piece)


def file_bytes(state: object) -> Ledger:
    """What the file will take: the tensors' storages, the archive around them with their names and shapes, and the digest.

    A storage counts once and whole, however many tensors show it, and however little of it.

    >>> file_bytes({"row": torch.zeros(1000, 1000)[0]})["storages"]
    4000000
    """
    state = plain(state)
    with open(os.devnull, "wb") as nowhere:
        total = write(nowhere, state)
    storages = [tensor.untyped_storage() for tensor in _tensors(state)]
    stored = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    items = {
        "storages": stored,
        "names, shapes, archive": total - stored - DIGEST_BYTES,
        "digest": DIGEST_BYTES,
    }
    return Ledger(items, unit="bytes")


def _tensors(state: object) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list | tuple):
        for item in state:
            yield from _tensors(item)


# Reading.


def read(file: BinaryIO) -> object:
    """The state, on the CPU; or a ValueError whose text goes on from the file's name."""
    _check_digest(file)
    file.seek(0)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        not_its_fault = isinstance(error, OSError | MemoryError) or "DefaultCPUAllocator" in str(
            error
        )
        if not_its_fault:
            raise
        raise ValueError(
            "has the right SHA-256, but holds something that checkpoints.save does not write. Nothing of it "
            "was run. Do not use it."
        ) from error


def _check_digest(file: BinaryIO) -> None:
    """A ValueError says why the file is not whole, or not ours."""
    beginning = file.read(len(FORMER_BEGINNING))
    if beginning == FORMER_BEGINNING:
        raise ValueError(
            "has the former format of this course, which is not read any more. Load it with the version of the "
            "course that saved it, save it there with torch.save, and here again with checkpoints.save."
        )
    if not (beginning.startswith(ZIP_BEGINS) or ZIP_BEGINS.startswith(beginning)):
        raise ValueError(
            "is no checkpoint of this course. Other files can carry code and are not opened here; save the state "
            "with checkpoints.save."
        )
    left = max(0, file.seek(0, os.SEEK_END) - DIGEST_BYTES)
    file.seek(left)
    promised = re.fullmatch(DIGEST_LINE % b"([0-9a-f]{64})", file.read())
    if not promised:
        raise ValueError(
            "is torn, was added to, or was not saved by checkpoints.save: it does not end with its SHA-256. Use an "
            "older one."
        )
    file.seek(0)
    sha256 = hashlib.sha256()
    while piece := file.read(min(left, PIECE_BYTES)):
        sha256.update(piece)
        left -= len(piece)
    if sha256.hexdigest().encode() != promised[1]:
        raise ValueError(
            "is damaged, or changed after it was saved: its SHA-256 is another. Use an older one."
        )
