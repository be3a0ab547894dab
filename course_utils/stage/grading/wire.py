"""Plain values as bytes, and back: what the process of an answer and the judge say to each other.

Nothing but None, truth values, numbers, strings, bytes, lists, tuples, dicts, tensors and arrays comes out of `decoded`,
each of exactly that type, so no method of a student's runs in the judge. A function, an iterator or any other object comes
out as a stand-in that says what it was. It is no pickle, since reading a pickle runs what is in it.
"""

import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
import torch

MOST_BYTES = 16_000_000  # the largest right answer has 131,072 numbers
DEEPEST, LONGEST_NAME, MOST_BITS = 20, 60, 100_000
EXACT = 2**53  # up to here JSON's integers are those of every reader
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not str(dtype).startswith(("torch.q", "torch.bits"))
}
ARRAYS = ("b", "i", "u", "f", "c")  # the kinds of NumPy's numbers


class WireError(Exception):
    """These bytes are not a value."""


class Other:
    """It stands for an object that is no plain value; a class of its own has that object's name."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def encoded(value: object) -> bytes:
    """The length of a JSON text, the text, and behind it the tensors' numbers as they are in memory."""
    pieces: list[bytes] = []
    tree = _Writer(pieces).tree(value, DEEPEST)
    text = json.dumps(tree).encode()
    whole = b"".join([len(text).to_bytes(8, "big"), text, *pieces])
    if len(whole) > MOST_BYTES:
        raise WireError(f"It is larger than {MOST_BYTES:,} bytes.")
    return whole


def decoded(data: bytes, *, kinds: Mapping[str, Callable[..., object]]) -> object:
    """The value; WireError if the bytes are none. `kinds` makes further objects out of the fields that were written."""
    try:
        if len(data) > MOST_BYTES:
            raise WireError("It is too large.")
        end = 8 + int.from_bytes(data[:8], "big")
        tree = json.loads(data[8:end].decode())
        return _Reader(data[end:], kinds).value(tree, DEEPEST)
    except WireError:
        raise
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        RecursionError,
        OverflowError,
        RuntimeError,
    ) as error:
        raise WireError(f"It is no value: {error}") from None


class _Writer:
    """Writes a value as JSON can hold it. Tensors that share their memory share it still."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.length = 0
        self.storages: dict[int, int] = {}
        self.alive: list[object] = []  # so that no address is used twice

    def tree(self, x: object, depth: int) -> object:
        if depth == 0:
            raise WireError("It is nested too deeply.")
        if isinstance(x, np.generic):
            x = x.item()
        if x is None or isinstance(x, bool):
            return x
        if x is ...:
            return {"kind": "ellipsis"}
        if isinstance(x, int):
            x = int(x)
            if x.bit_length() > MOST_BITS:
                raise WireError("It has too many digits.")
            return x if abs(x) < EXACT else {"kind": "int", "hex": hex(x)}
        if isinstance(x, float):
            return float(x)
        if isinstance(x, str):
            return str(x)
        if isinstance(x, list):
            return [self.tree(part, depth - 1) for part in x]
        if isinstance(x, tuple):
            return {"kind": "tuple", "parts": [self.tree(part, depth - 1) for part in x]}
        if isinstance(x, Mapping):
            pairs = [
                [self.tree(key, depth - 1), self.tree(part, depth - 1)] for key, part in x.items()
            ]
            return {"kind": "dict", "pairs": pairs}
        if isinstance(x, set | frozenset):
            return {"kind": "set", "parts": [self.tree(part, depth - 1) for part in x]}
        return self._rare(x, depth)

    def _rare(self, x: object, depth: int) -> object:
        if isinstance(x, bytes | bytearray):
            return {"kind": "bytes", **self._piece(bytes(x))}
        if isinstance(x, complex):
            return {"kind": "complex", "parts": [x.real, x.imag]}
        if isinstance(x, Fraction):
            return {"kind": "fraction", "parts": [hex(x.numerator), hex(x.denominator)]}
        if isinstance(x, torch.Tensor):
            return self._tensor(x)
        if isinstance(x, np.ndarray) and x.dtype.kind in ARRAYS:
            data = np.ascontiguousarray(x).tobytes()
            return {
                "kind": "array",
                "dtype": x.dtype.str,
                "shape": list(x.shape),
                **self._piece(data),
            }
        name = type(x).__name__[:LONGEST_NAME]
        if is_dataclass(x) and not isinstance(x, type):
            fields = self.tree(asdict(x), depth - 1)
            return {"kind": "object", "name": name, "fields": fields}
        if inspect.isroutine(x):
            return {"kind": "function"}
        return {"kind": "iterator" if isinstance(x, Iterator) else "other", "name": name}

    def _piece(self, data: bytes) -> dict[str, int]:
        begin = self.length
        self.length += len(data)
        if self.length > MOST_BYTES:
            raise WireError(f"It is larger than {MOST_BYTES:,} bytes.")
        self.pieces.append(data)
        return {"at": begin, "nbytes": len(data)}

    def _tensor(self, x: torch.Tensor) -> dict[str, object]:
        x = x.detach().as_subclass(torch.Tensor)
        if not x.is_meta and x.numel() * x.itemsize > MOST_BYTES:
            raise WireError(f"It is larger than {MOST_BYTES:,} bytes.")
        if x.layout != torch.strided:  # its numbers are not all there, as on the meta device
            x = torch.empty(x.shape, dtype=x.dtype, device="meta")
        x = x.resolve_conj().resolve_neg()
        x = x if x.is_meta else x.cpu()
        storage = x.untyped_storage()
        nbytes = storage.nbytes()
        needed = x.numel() * x.itemsize
        if not x.is_meta and nbytes > max(10_000, 2 * needed):  # a small view of much memory
            x = x.contiguous().clone()
            storage, nbytes = x.untyped_storage(), needed
        told = {"kind": "tensor", "dtype": str(x.dtype).removeprefix("torch.")}
        told |= {"shape": list(x.shape), "stride": list(x.stride()), "offset": x.storage_offset()}
        number = self.storages.get(storage._cdata)
        if number is not None:
            return told | {"storage": number}
        number = self.storages[storage._cdata] = len(self.storages)
        self.alive.append(storage)
        if x.is_meta:
            return told | {"storage": number, "meta": nbytes}
        flat = torch.empty(0, dtype=torch.uint8).set_(storage)
        return told | {"storage": number, **self._piece(flat.numpy().tobytes())}


class _Reader:
    """Makes values of a tree, and trusts nothing in it."""

    def __init__(self, data: bytes, kinds: Mapping[str, Callable[..., object]]) -> None:
        self.data = data
        self.kinds = kinds
        self.storages: list[torch.Tensor] = []

    def value(self, tree: object, depth: int) -> object:
        if depth == 0:
            raise WireError("It is nested too deeply.")
        if tree is None or type(tree) in (bool, int, float, str):
            return tree
        if type(tree) is list:
            return [self.value(part, depth - 1) for part in tree]
        if type(tree) is not dict or type(tree.get("kind")) is not str:
            raise WireError("It is no value.")
        read = getattr(self, f"_{tree['kind']}", None) if tree["kind"] in KINDS else None
        if read is None:
            raise WireError("There is no such kind.")
        return read(tree, depth)

    def _ellipsis(self, _: dict, __: int) -> object:
        return ...

    def _int(self, tree: dict, _: int) -> int:
        return int(_text(tree["hex"], 100_000), 16)

    def _tuple(self, tree: dict, depth: int) -> tuple:
        return tuple(self._parts(tree, depth))

    def _set(self, tree: dict, depth: int) -> set:
        return set(self._parts(tree, depth))

    def _parts(self, tree: dict, depth: int) -> list:
        if type(tree["parts"]) is not list:
            raise WireError("It has no parts.")
        return [self.value(part, depth - 1) for part in tree["parts"]]

    def _dict(self, tree: dict, depth: int) -> dict:
        return {
            self.value(key, depth - 1): self.value(part, depth - 1) for key, part in tree["pairs"]
        }

    def _bytes(self, tree: dict, _: int) -> bytes:
        begin, nbytes = _whole(tree["at"]), _whole(tree["nbytes"])
        found = self.data[begin : begin + nbytes]
        if len(found) != nbytes:
            raise WireError("Its bytes are not all there.")
        return found

    def _complex(self, tree: dict, _: int) -> complex:
        real, imaginary = tree["parts"]
        return complex(float(real), float(imaginary))

    def _fraction(self, tree: dict, _: int) -> Fraction:
        above, below = (int(_text(part, 10_000), 16) for part in tree["parts"])
        if below == 0:
            raise WireError("It divides by 0.")
        return Fraction(above, below)

    def _array(self, tree: dict, depth: int) -> np.ndarray:
        dtype = np.dtype(_text(tree["dtype"], 9))
        if dtype.kind not in ARRAYS:
            raise WireError("It has no numbers.")
        return np.frombuffer(self._bytes(tree, depth), dtype).reshape(_sizes(tree["shape"])).copy()

    def _tensor(self, tree: dict, depth: int) -> torch.Tensor:
        number, dtype = _whole(tree["storage"]), DTYPES[_text(tree["dtype"], 30)]
        if number == len(self.storages):
            if "meta" in tree:
                storage = torch.empty(_whole(tree["meta"]), dtype=torch.uint8, device="meta")
            else:
                storage = torch.tensor(
                    memoryview(bytearray(self._bytes(tree, depth))), dtype=torch.uint8
                )
            self.storages.append(storage)
        flat = self.storages[number]
        flat = flat[: len(flat) - len(flat) % dtype.itemsize].view(dtype)
        shape, stride = _sizes(tree["shape"]), _sizes(tree["stride"])
        if len(shape) != len(stride):
            raise WireError("Each dimension has a stride.")
        if not flat.is_meta and math.prod(shape) > MOST_BYTES:  # as a stride of 0 can claim
            raise WireError("It has more numbers than bytes can hold.")
        return flat.as_strided(
            shape, stride, _whole(tree["offset"])
        )  # which refuses what is outside

    def _function(self, _: dict, __: int) -> object:
        return _a_function

    def _iterator(self, _: dict, __: int) -> object:
        return iter(())

    def _other(self, tree: dict, _: int) -> object:
        return stand_in(identifier(tree["name"]))

    def _object(self, tree: dict, depth: int) -> object:
        name = identifier(tree["name"])
        if name not in self.kinds:
            return stand_in(name)
        return self.kinds[name](**self.value(tree["fields"], depth - 1))


KINDS = {name.removeprefix("_") for name in vars(_Reader) if not name.startswith("__")} - {
    "value",
    "parts",
}


def _a_function(*_: object) -> NoReturn:
    raise TypeError("It stands for a function, and cannot be called here.")


def stand_in(name: str) -> Other:
    return type(name, (Other,), {})()


def identifier(name: object) -> str:
    """A name that may stand in a sentence; a neutral one if it is none."""
    text = _text(name, LONGEST_NAME)
    return text if text.isidentifier() else "an_object"


def _text(x: object, most: int) -> str:
    if type(x) is not str or len(x) > most:
        raise WireError("It is no such text.")
    return x


def _whole(x: object) -> int:
    if type(x) is not int or not 0 <= x < 2**50:
        raise WireError("It is no such number.")
    return x


def _sizes(x: object) -> tuple[int, ...]:
    if type(x) is not list or len(x) > 16:
        raise WireError("These are no sizes.")
    return tuple(_whole(size) for size in x)
