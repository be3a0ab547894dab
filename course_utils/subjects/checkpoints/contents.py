"""The contents of a checkpoint: what torch.save writes, and then a line with the SHA-256 of that.

`torch.load` reads such a file, too, but does not look for damage: if a bit of a weight is flipped,
it returns another weight. `head -c -73 run.ckpt | sha256sum` checks a file without Python.
"""

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import torch
from torch import Tensor, nn

from course_utils.core.say import Ledger

# The dtypes that are not saved: the elements of a quantised tensor do not show its scale, and there
# are integers of less than a byte. Matches torch.qint8, torch.quint4x2, torch.uint4 and torch.int7,
# for example.
NOT_SAVED = re.compile(r"torch\.(q.*|u?int[1-7])")
DTYPES = {  # all others that torch has
    dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not NOT_SAVED.fullmatch(str(dtype))
}
MOST_LEVELS = 64  # of containers in containers; one that holds itself has no end
MOST_BITS = 2000  # of an integer: torch.load reads no larger ones
ZIP_BEGINS = b"PK\3\4"  # as each file of torch.save does
FORMER_BEGINNING = b"course_utils checkpoint\n"  # of a file in an earlier format of this course
DIGEST_LINE = b"\nsha256 %s\n"
DIGEST_BYTES = len(DIGEST_LINE % bytes(64))  # a SHA-256 has 64 hexadecimal digits
PIECE_BYTES = 2**20  # read at a time


# A state as it is passed to torch.save. The `place` of a value is the path to it, by keys and
# numbers, such as optimizer.state.0.exp_avg.


def plain(state: object) -> object:
    """Return the state as the same tree of containers, with plain tensors in it.

    A plain tensor shares its memory with the state's tensor, but has no gradient, no class of its
    own and no attributes. If a value cannot be saved, a ValueError names its place.
    """
    return _plain(state, place=(), dtypes={})  # no storage has been seen yet


def _plain(value: object, place: tuple[object, ...], dtypes: dict[int, torch.dtype]) -> object:
    """Return the value as it is passed to torch.save.

    `place` has the keys and numbers that lead to the value, such as ("optimizer", "state", 0).
    `dtypes` has the dtype of each storage so far, by the storage's address. It grows, because
    tensors that share a storage have to agree on its dtype: see `_plain_tensor`.
    """
    if len(place) > MOST_LEVELS:
        beginning = place[:4]  # enough to find it
        raise _refusal(beginning, f"holds more than {MOST_LEVELS} levels, or itself")
    if isinstance(value, Tensor):
        return _plain_tensor(value, place, dtypes)
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        _check_bits(value, place)
        return value
    if kind in (list, tuple):
        items = [_plain(item, (*place, number), dtypes) for number, item in enumerate(value)]
        return kind(items)
    if kind in (dict, OrderedDict):
        _check_keys(value, place, dtypes)
        return {key: _plain(item, (*place, key), dtypes) for key, item in value.items()}
    raise _refusal(place, f"is of type {kind.__module__}.{kind.__qualname__}")


def _check_bits(value: object, place: Sequence[object]) -> None:
    """Raise a ValueError if the value is an integer that torch.load would not read."""
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise _refusal(place, f"is an integer of more than {MOST_BITS:,} bits")


def _check_keys(
    state: Mapping[object, object], place: tuple[object, ...], dtypes: dict[int, torch.dtype]
) -> None:
    """Raise a ValueError if a key is neither a str nor an int that can be saved."""
    for key in state:
        if type(key) not in (str, int):
            raise _refusal(place, f"has the key {key!r}, which is neither a str nor an int")
        # Only to raise its error: a key may be an integer of too many bits as well.
        _plain(key, (*place, key), dtypes)


def _plain_tensor(
    tensor: Tensor, place: Sequence[object], dtypes: dict[int, torch.dtype]
) -> Tensor:
    """Return a plain tensor; ValueError for a sparse, quantised, meta or subclassed one."""
    if type(tensor) not in (Tensor, nn.Parameter):
        raise _refusal(place, f"is a tensor of type {type(tensor).__qualname__}")
    is_dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    if not is_dense or tensor.dtype not in DTYPES:
        kind = f"{tensor.device.type}, {tensor.layout}, {tensor.dtype}"
        raise _refusal(place, f"is a tensor whose bytes are not all of it ({kind})")
    address = tensor.untyped_storage().data_ptr()
    if address:  # 0 is the address of all empty storages, which need not agree on a dtype
        # The first tensor of a storage puts its dtype into `dtypes`, and later ones look it up.
        first_dtype = dtypes.setdefault(address, tensor.dtype)
        if first_dtype != tensor.dtype:
            # torch.save writes a storage under one dtype only, so another dtype needs a copy.
            return tensor.detach().clone()
    return tensor.detach()


def _refusal(place: Sequence[object], why: str) -> ValueError:
    """Return the error for a value that cannot be saved.

    `why` goes on from the value's place, as in "optimizer.state.0 is of type numpy.ndarray".
    """
    where = ".".join(str(step) for step in place) or "The state itself"
    return ValueError(
        f"{where} {why}. A checkpoint holds dict (keys: str or int), list, tuple, str, int, float, "
        "bool, None and dense tensors: save what it is made of, such as a module's state_dict()."
    )


# Writing.


def write(file: BinaryIO, state: object) -> int:
    """Write what torch.save writes, and the line with its digest. Return the number of bytes.

    The digest is computed while torch.save writes, so the state is never copied.
    """
    digested = _Digested(file)
    try:
        torch.save(state, digested)
    except RuntimeError as error:
        # After an error torch still closes its archive. That fails, too, and its error hides the
        # first one, which Python keeps as the context of the second.
        raise (error.__context__ or error) from None
    file.write(DIGEST_LINE % digested.sha256.hexdigest().encode())
    return digested.size + DIGEST_BYTES


class _Digested:
    """A file for torch.save that computes the SHA-256 and the size of what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.flush = file.flush  # which torch.save calls, too
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, piece: memoryview) -> int:
        """Write the piece, and return how many bytes were written, as torch.save expects it."""
        self.sha256.update(piece)
        self.size += len(piece)
        return self.file.write(piece)


def file_bytes(state: object) -> Ledger:
    """Return the bytes of a checkpoint by part: storages, the archive around them, and the digest.

    The archive has the names and the shapes. A storage counts once and whole, however many tensors
    are views of it, and however few of its numbers they have.

    >>> file_bytes({"row": torch.zeros(1000, 1000)[0]})["storages"]
    4000000
    """
    state = plain(state)
    with open(os.devnull, "wb") as nowhere:
        total = write(nowhere, state)
    storages = {}  # bytes by address, so that a storage of several tensors counts once
    for tensor in _tensors(state):
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    stored = sum(storages.values())
    items = {
        "storages": stored,
        "names, shapes, archive": total - stored - DIGEST_BYTES,
        "digest": DIGEST_BYTES,
    }
    return Ledger(items, unit="bytes")


def _tensors(state: object) -> Iterator[Tensor]:
    """Yield all tensors of a plain state."""
    if isinstance(state, Tensor):
        yield state
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, list | tuple):
        for item in state:
            yield from _tensors(item)


# Reading.


def read(file: BinaryIO) -> object:
    """Return the state that the file has, on the CPU.

    ValueError if the file cannot be trusted. The error's sentence lacks its subject, the file's
    name, which `load` puts in front.
    """
    _check_digest(file)
    file.seek(0)
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        # torch reports a lack of memory by a RuntimeError that names its allocator.
        is_out_of_memory = isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error)
        if is_out_of_memory or isinstance(error, OSError):
            raise  # the file itself may be in order
        raise ValueError(
            "has the right SHA-256, but holds something that checkpoints.save does not write. "
            "Nothing of it was run. Do not use it."
        ) from error


def _check_digest(file: BinaryIO) -> None:
    """Raise a ValueError if the file is not whole, or was not saved by this course."""
    beginning = file.read(len(FORMER_BEGINNING))
    if beginning == FORMER_BEGINNING:
        raise ValueError(
            "has the former format of this course, which is not read any more. Load it with the "
            "version of the course that saved it, save it there with torch.save, and here again "
            "with checkpoints.save."
        )
    # A file of less than 4 bytes may be the beginning of a checkpoint: below it is refused as torn.
    if not (beginning.startswith(ZIP_BEGINS) or ZIP_BEGINS.startswith(beginning)):
        raise ValueError(
            "is no checkpoint of this course. Other files can carry code and are not opened here; "
            "save the state with checkpoints.save."
        )
    file_size = file.seek(0, os.SEEK_END)
    state_size = max(0, file_size - DIGEST_BYTES)
    file.seek(state_size)
    # The file's last line, such as b"\nsha256 9f86…0f00a08\n".
    written = re.fullmatch(DIGEST_LINE % b"([0-9a-f]{64})", file.read())
    if not written:
        raise ValueError(
            "is torn, was added to, or was not saved by checkpoints.save: it does not end with its "
            "SHA-256. Use an older one."
        )
    file.seek(0)
    if _hex_digest(file, state_size) != written[1]:
        raise ValueError(
            "is damaged, or changed after it was saved: its SHA-256 is another. Use an older one."
        )


def _hex_digest(file: BinaryIO, size: int) -> bytes:
    """Return the SHA-256 of the file's next `size` bytes, read piece by piece."""
    sha256 = hashlib.sha256()
    left = size
    while left:
        piece = file.read(min(left, PIECE_BYTES))
        if not piece:  # something else has cut the file off meanwhile
            break
        sha256.update(piece)
        left -= len(piece)
    return sha256.hexdigest().encode()
