"""What is in a checkpoint's file, and how it is read without trusting any of it.

A line says what the file is; three numbers follow (version, header bytes, tensor bytes), then a header in JSON,
the tensors' bytes one after the other (little-endian), and the SHA-256 of all that. The header is the state's own
tree, with a dtype and a shape in the place of each tensor. Reading builds plain values and tensors and runs nothing.
"""

import hashlib
import json
import math
import os
import struct
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import BinaryIO

import torch
from torch import Tensor, nn

from course_utils.core.say import Ledger

MAGIC = b"course_utils checkpoint\n"
VERSION = 1
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
    and not str(dtype).startswith("torch.q")  # quantised: a scale belongs to it
}
PIECE_BYTES = 16 * 2**20  # no more than this is copied at a time
MOST_LEVELS = 64
_AS_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
_BEGINNING = struct.Struct(f"<{len(MAGIC)}sQQQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
FRAME_BYTES = _BEGINNING.size + _DIGEST_BYTES  # of every file


# A state as a header and tensors.


def packed(state: object) -> tuple[bytes, list[Tensor]]:
    """The header, and the tensors in its order. A ValueError names the place of what cannot be saved."""
    tensors: list[Tensor] = []
    tree = _node(state, (), tensors)
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(), tensors


def _node(value: object, place: tuple[object, ...], tensors: list[Tensor]) -> object:
    """A value as JSON. A tensor becomes its dtype and shape, and is added to the list."""
    if len(place) > MOST_LEVELS:
        raise _refusal(place[:4], f"holds more than {MOST_LEVELS} levels, or itself")
    if isinstance(value, Tensor):
        tensors.append(_dense(value, place))
        return {"tensor": [dtype_name(value.dtype), *value.shape]}
    kind = type(value)
    if kind is float and not math.isfinite(value):
        return {"float": struct.pack("<d", value).hex()}  # there is more than one NaN
    if kind in (str, int, float, bool, type(None)):
        return value
    if kind in (list, tuple):
        items = [_node(item, (*place, number), tensors) for number, item in enumerate(value)]
        return items if kind is list else {"tuple": items}
    if kind not in (dict, OrderedDict):
        raise _refusal(place, f"is of type {kind.__module__}.{kind.__qualname__}")
    for key in value:
        if type(key) not in (str, int):
            raise _refusal(place, f"has the key {key!r}, which is neither a str nor an int")
    return {"dict": [[key, _node(item, (*place, key), tensors)] for key, item in value.items()]}


def file_bytes(state: object) -> Ledger:
    """What the file will take: the tensors, the header that names them, and a frame that is the same for all.

    A view counts what it shows, and not the storage behind it.

    >>> file_bytes({"row": torch.zeros(1000, 1000)[0]}).total
    4126
    """
    header, tensors = packed(state)
    items = {"tensors": sum(tensor.nbytes for tensor in tensors), "header": len(header), "frame": FRAME_BYTES}
    return Ledger(items, unit="bytes")


def dtype_name(dtype: torch.dtype) -> str:
    """The name that torch gives it, without "torch."."""
    return str(dtype).removeprefix("torch.")


def _refusal(place: Sequence[object], why: str) -> ValueError:
    where = ".".join(map(str, place)) or "The state itself"  # such as optimizer.state.0.exp_avg
    return ValueError(
        f"{where} {why}. A checkpoint holds dict (keys: str or int), list, tuple, str, int, float, bool, "
        "None and dense tensors: save what it is made of, such as a module's state_dict()."
    )


def _dense(tensor: Tensor, place: Sequence[object]) -> Tensor:
    """The tensor, if its elements and dtype describe it fully; else a ValueError."""
    if type(tensor) not in (Tensor, nn.Parameter):
        raise _refusal(place, f"is a tensor of type {type(tensor).__qualname__}")
    is_dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    if not (is_dense and dtype_name(tensor.dtype) in DTYPES):
        kind = f"{tensor.device.type}, {tensor.layout}, {tensor.dtype}"
        raise _refusal(place, f"is a tensor whose bytes are not all of it ({kind})")
    return tensor


# Writing.


def write(file: BinaryIO, header: bytes, tensors: Sequence[Tensor]) -> None:
    """Write the whole file, in pieces: the state is never in memory twice."""
    digest = hashlib.sha256()
    beginning = _BEGINNING.pack(MAGIC, VERSION, len(header), sum(tensor.nbytes for tensor in tensors))
    for block in chain((beginning, header), chain.from_iterable(map(_blocks, tensors))):
        digest.update(block)
        file.write(block)
    file.write(digest.digest())


def _blocks(tensor: Tensor) -> Iterator[memoryview]:
    """The elements' bytes in order, whatever the tensor's strides and device."""
    if tensor.nbytes > PIECE_BYTES:
        for part in tensor.tensor_split(2) if len(tensor) > 1 else tensor:
            yield from _blocks(part)
    else:
        plain = tensor.detach().resolve_conj().resolve_neg()
        bits = plain.view(_AS_BITS[plain.itemsize])  # torch can't copy every dtype, but these
        yield _memory(bits.cpu().contiguous())


def _memory(tensor: Tensor) -> memoryview:
    """The memory of a dense CPU tensor."""
    flat = tensor.view(_AS_BITS[tensor.itemsize]).as_strided((tensor.numel(),), (1,))
    return memoryview(flat.view(torch.uint8).numpy())


# Reading.


def framed(file: BinaryIO) -> tuple[bytes, int, int]:
    """The first bytes, and the lengths of header and tensors. A ValueError says why the file is not whole, or not ours."""
    size = os.fstat(file.fileno()).st_size
    beginning = file.read(_BEGINNING.size)
    if not (beginning.startswith(MAGIC) or MAGIC.startswith(beginning)):
        raise ValueError(
            "is no checkpoint of this course. Files of torch.save and pickle can carry code and are not opened "
            "here; save the state with checkpoints.save."
        )
    if len(beginning) < _BEGINNING.size:
        raise ValueError(f"is torn: it ends after {size:,} bytes. Use an older one.")
    _, version, header, payload = _BEGINNING.unpack(beginning)
    if version != VERSION:
        raise ValueError(
            f"has version {version}, and this course reads version {VERSION}: update the course, or the file is damaged."
        )
    if size != FRAME_BYTES + header + payload:
        raise ValueError(
            f"is torn or was added to: it promises {FRAME_BYTES + header + payload:,} bytes and has {size:,}. "
            "Use an older one."
        )
    return beginning, header, payload


def read(file: BinaryIO) -> object:
    """The state; or a ValueError whose text goes on from the file's name."""
    beginning, header_bytes, payload_bytes = framed(file)
    header = file.read(header_bytes)
    payload = _Payload(file, beginning + header, payload_bytes)
    damage = "is damaged, or changed after it was saved"
    try:
        state = _unpacked(json.loads(header), payload)
        if payload.unread:
            raise ValueError(f"{payload.unread:,} bytes that belong to no tensor")
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise ValueError(f"{damage}: its header is impossible ({error}). Use an older one.") from error
    if file.read(_DIGEST_BYTES) != payload.digest.digest():
        raise ValueError(f"{damage}: its SHA-256 is another. Use an older one.")
    return state


def _unpacked(node: object, payload: "_Payload", level: int = 0) -> object:
    if level > MOST_LEVELS:
        raise ValueError(f"more than {MOST_LEVELS} levels")
    match node:
        case None | bool() | int() | float() | str():
            return node
        case list():
            return [_unpacked(item, payload, level + 1) for item in node]
        case {"tensor": [str(name), *shape]}:
            return payload.tensor(name, shape)
        case {"tuple": list(items)}:
            return tuple(_unpacked(item, payload, level + 1) for item in items)
        case {"dict": list(pairs)}:
            if {type(key) for key, _ in pairs} <= {str, int}:
                return {key: _unpacked(item, payload, level + 1) for key, item in pairs}
        case {"float": str(bits)} if len(bits) == 16:
            return struct.unpack("<d", bytes.fromhex(bits))[0]
    raise ValueError(f"{str(node)[:40]} is nothing that is saved here")


class _Payload:
    """Reads the tensors' bytes in the header's order. It never allocates more than the bytes that are left."""

    def __init__(self, file: BinaryIO, before: bytes, size: int) -> None:
        self.file, self.unread = file, size
        self.digest = hashlib.sha256(before)

    def tensor(self, name: str, shape: list[object]) -> Tensor:
        possible = all(type(n) is int and n >= 0 for n in shape) and math.prod(n or 1 for n in shape) < 2**60
        if name not in DTYPES or not possible:
            raise ValueError(f"a tensor of dtype {name[:40]} and shape {str(shape)[:40]}")
        size = math.prod(shape) * DTYPES[name].itemsize
        if size > self.unread:
            raise ValueError(f"a tensor of shape {str(shape)[:40]}, where {self.unread:,} bytes are left")
        self.unread -= size
        # On the CPU, whatever the default is.
        bits = torch.empty(shape, dtype=_AS_BITS[DTYPES[name].itemsize], device="cpu")
        self.file.readinto(_memory(bits))
        self.digest.update(_memory(bits))
        return bits.view(DTYPES[name])
