"""Plain values as bytes, and back: what an answer's process and the judge send each other.

Nothing comes out of `decoded` but None, truth values, numbers, strings, bytes, lists, tuples,
dicts, sets, tensors and arrays, each of exactly that type. So no method of a student's runs in the
judge. A function, an iterator or any other object comes out as a stand-in with the name of its
class. We use no pickle, because to read a pickle runs what is in it.
"""

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
import torch

MOST_BYTES = 16_000_000  # the largest right answer has 131,072 numbers
BYTES_OF_A_LENGTH = 8
DEEPEST = 20  # lists and the like inside each other
LONGEST_NAME = 60
MOST_BITS = 100_000  # of an integer
LONGEST_INT = 100_000  # hexadecimal digits
LONGEST_FRACTION = 10_000  # hexadecimal digits above, and below
LONGEST_DTYPE = 30  # of torch
LONGEST_ARRAY_DTYPE = 9  # of NumPy
MOST_DIMENSIONS = 16
LARGEST_WHOLE = 2**50  # of a size, a stride or a place
SMALL_BYTES = 10_000  # storages that are sent whole, however little of them a tensor uses
EXACT = 2**53  # up to here all programs read JSON's integers alike
DTYPES = {  # torch's by name, without the quantized ones
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and not str(dtype).startswith(("torch.q", "torch.bits"))
}
ARRAYS = ("b", "i", "u", "f", "c")  # NumPy's letters for truth values and the kinds of numbers
KINDS = {  # for each of them `_Reader` has a method
    "ellipsis",
    "int",
    "tuple",
    "set",
    "dict",
    "bytes",
    "complex",
    "fraction",
    "array",
    "tensor",
    "function",
    "iterator",
    "other",
    "object",
}


class WireError(Exception):
    """Bytes encode no value, or a value cannot be encoded."""


class Other:
    """Stands for an object that is no plain value.

    Each stand-in has a class of its own, derived from this one and named as the object's class.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def encoded(value: object) -> bytes:
    """Return the value as bytes: the length of a JSON text, the text, and bytes it points to."""
    pieces: list[bytes] = []
    tree = _Writer(pieces).tree(value, DEEPEST)
    text = json.dumps(tree).encode()
    length = len(text).to_bytes(BYTES_OF_A_LENGTH, "big")
    whole = b"".join([length, text, *pieces])
    if len(whole) > MOST_BYTES:
        raise _too_large()
    return whole


def decoded(data: bytes, *, kinds: Mapping[str, Callable[..., object]]) -> object:
    """Return the value that the bytes encode; WireError if they encode none.

    `kinds` maps names to classes. Objects are made of these classes only, by calling one with the
    object's fields.
    """
    try:
        if len(data) > MOST_BYTES:
            raise WireError("It is too large.")
        end = BYTES_OF_A_LENGTH + int.from_bytes(data[:BYTES_OF_A_LENGTH], "big")
        tree = json.loads(data[BYTES_OF_A_LENGTH:end].decode())
        return _Reader(data[end:], kinds).value(tree, DEEPEST)
    except WireError:
        raise
    except (  # all that json, NumPy and torch raise for a wrong tree
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        RecursionError,
        OverflowError,
        RuntimeError,
    ) as error:
        raise WireError(f"It is no value: {error}") from None


def _too_large() -> WireError:
    return WireError(f"It is larger than {MOST_BYTES:,} bytes.")


class _Writer:
    """Makes a tree for JSON from a value. Tensors that share memory still share it when decoded."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces  # the storages' bytes, to which this adds
        self.length = 0  # bytes of all pieces so far
        self.storages: dict[int, int] = {}  # the number of each storage, by its address
        self.kept_storages: list[object] = []  # so that no address is given to another storage

    def tree(self, x: object, depth: int) -> object:
        """Return `x` as JSON can hold it, such as {"kind": "tuple", "parts": [1, 2]} for (1, 2)."""
        if depth == 0:
            raise WireError("It is nested too deeply.")
        if isinstance(x, np.generic):  # a number of NumPy's
            x = x.item()
        if x is None or isinstance(x, bool):
            return x
        if x is ...:
            return {"kind": "ellipsis"}
        if isinstance(x, int):
            return self._int(int(x))  # plain, even if `x` is of a subclass
        if isinstance(x, float):
            return float(x)  # Python's json writes and reads NaN and infinity, too
        if isinstance(x, str):
            return str(x)
        return self._collection(x, depth)

    def _int(self, x: int) -> object:
        """Return a small integer as it is, and a larger one in hexadecimal digits."""
        if x.bit_length() > MOST_BITS:
            raise WireError("It has too many digits.")
        if abs(x) < EXACT:
            return x
        return {"kind": "int", "hex": hex(x)}

    def _collection(self, x: object, depth: int) -> object:
        """Return the tree of a list, a tuple, a mapping or a set, or of a rarer value."""
        if isinstance(x, list):
            return self._trees(x, depth)
        if isinstance(x, tuple):
            return {"kind": "tuple", "parts": self._trees(x, depth)}
        if isinstance(x, Mapping):
            pairs = []
            for key, part in x.items():
                pairs.append([self.tree(key, depth - 1), self.tree(part, depth - 1)])
            return {"kind": "dict", "pairs": pairs}
        if isinstance(x, set | frozenset):
            return {"kind": "set", "parts": self._trees(x, depth)}
        return self._rare(x, depth)

    def _trees(self, parts: Iterable[object], depth: int) -> list[object]:
        return [self.tree(part, depth - 1) for part in parts]

    def _rare(self, x: object, depth: int) -> object:
        """Return the tree of bytes, a rarer number, a tensor, an array, or any other object."""
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
            described = {"kind": "array", "dtype": x.dtype.str, "shape": list(x.shape)}
            return described | self._piece(data)
        name = type(x).__name__[:LONGEST_NAME]
        if is_dataclass(x) and not isinstance(x, type):
            # Not `asdict`, which would make dictionaries of such objects in its fields.
            values = {field.name: getattr(x, field.name) for field in fields(x)}
            return {"kind": "object", "name": name, "fields": self.tree(values, depth - 1)}
        if inspect.isroutine(x):
            return {"kind": "function"}
        return {"kind": "iterator" if isinstance(x, Iterator) else "other", "name": name}

    def _piece(self, data: bytes) -> dict[str, int]:
        """Add these bytes to those behind the JSON text; return their place among them."""
        begin = self.length
        self.length += len(data)
        if self.length > MOST_BYTES:
            raise _too_large()
        self.pieces.append(data)
        return {"at": begin, "nbytes": len(data)}

    def _tensor(self, x: torch.Tensor) -> dict[str, object]:
        """Return the tensor's description. Its storage follows the text, once for all its views."""
        x = _plain(x)
        storage = x.untyped_storage()
        described = {
            "kind": "tensor",
            "dtype": str(x.dtype).removeprefix("torch."),
            "shape": list(x.shape),
            "stride": list(x.stride()),
            "offset": x.storage_offset(),
        }
        address = storage._cdata  # of the storage itself: on the meta device it has no bytes
        if address in self.storages:  # it has been written with another tensor
            return described | {"storage": self.storages[address]}
        number = len(self.storages)
        self.storages[address] = number
        self.kept_storages.append(storage)
        if x.is_meta:
            return described | {"storage": number, "meta": storage.nbytes()}
        flat = torch.empty(0, dtype=torch.uint8).set_(storage)  # all bytes of the storage
        return described | {"storage": number, **self._piece(flat.numpy().tobytes())}


def _plain(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor without autograd, and of no subclass, in main memory or on the meta device.

    A tensor without strides, such as a sparse one, is described by its shape alone.
    """
    x = x.detach().as_subclass(torch.Tensor)
    if not x.is_meta and x.numel() * x.itemsize > MOST_BYTES:
        raise _too_large()
    if x.layout != torch.strided:
        x = torch.empty(x.shape, dtype=x.dtype, device="meta")
    x = x.resolve_conj().resolve_neg()  # torch may have put off a conjugate or a change of sign
    if x.is_meta:  # it has a shape, but no numbers to copy
        return x
    x = x.cpu()
    needed_bytes = x.numel() * x.itemsize
    if x.untyped_storage().nbytes() > max(SMALL_BYTES, 2 * needed_bytes):
        x = x.contiguous().clone()  # without this, a small view sends its whole large storage
    return x


class _Reader:
    """Makes a value from a tree, and trusts nothing in the tree.

    `value` calls the method of the tree's kind: `_int`, `_tuple`, and so on.
    """

    def __init__(self, data: bytes, kinds: Mapping[str, Callable[..., object]]) -> None:
        self.data = data  # the bytes behind the JSON text
        self.kinds = kinds  # classes by their names, such as "Model"
        self.storages: list[torch.Tensor] = []  # as bytes, in the order in which they were sent

    def value(self, tree: object, depth: int) -> object:
        """Return the value that the tree describes; WireError if it is deeper than `depth`."""
        if depth == 0:
            raise WireError("It is nested too deeply.")
        if tree is None or type(tree) in (bool, int, float, str):
            return tree
        if type(tree) is list:
            return [self.value(part, depth - 1) for part in tree]
        if type(tree) is not dict or type(tree.get("kind")) is not str:
            raise WireError("It is no value.")
        if tree["kind"] not in KINDS:
            raise WireError("There is no such kind.")
        read = getattr(self, f"_{tree['kind']}")
        return read(tree, depth)

    # `value` finds the kinds' methods by their names, and gives each the tree and the depth left.

    def _ellipsis(self, _: dict, __: int) -> object:
        return ...

    def _int(self, tree: dict, _: int) -> int:
        return int(_text(tree["hex"], LONGEST_INT), 16)  # such as "-0x1f"

    def _tuple(self, tree: dict, depth: int) -> tuple:
        return tuple(self._parts(tree, depth))

    def _set(self, tree: dict, depth: int) -> set:
        return set(self._parts(tree, depth))

    def _parts(self, tree: dict, depth: int) -> list:
        if type(tree["parts"]) is not list:
            raise WireError("It has no parts.")
        return [self.value(part, depth - 1) for part in tree["parts"]]

    def _dict(self, tree: dict, depth: int) -> dict:
        read = {}
        for key_tree, part_tree in tree["pairs"]:
            key = self.value(key_tree, depth - 1)
            read[key] = self.value(part_tree, depth - 1)
        return read

    def _bytes(self, tree: dict, _: int) -> bytes:
        """Return the bytes that the tree points to, which lie behind the text."""
        begin = _whole(tree["at"])
        nbytes = _whole(tree["nbytes"])
        piece = self.data[begin : begin + nbytes]
        if len(piece) != nbytes:
            raise WireError("Its bytes are not all there.")
        return piece

    def _complex(self, tree: dict, _: int) -> complex:
        real, imaginary = tree["parts"]
        return complex(float(real), float(imaginary))

    def _fraction(self, tree: dict, _: int) -> Fraction:
        above, below = tree["parts"]
        numerator = int(_text(above, LONGEST_FRACTION), 16)
        denominator = int(_text(below, LONGEST_FRACTION), 16)
        if denominator == 0:
            raise WireError("It divides by 0.")
        return Fraction(numerator, denominator)

    def _array(self, tree: dict, depth: int) -> np.ndarray:
        dtype = np.dtype(_text(tree["dtype"], LONGEST_ARRAY_DTYPE))
        if dtype.kind not in ARRAYS:
            raise WireError("It has no numbers.")
        flat = np.frombuffer(self._bytes(tree, depth), dtype)
        return flat.reshape(_sizes(tree["shape"])).copy()  # `flat` cannot be written to

    def _tensor(self, tree: dict, depth: int) -> torch.Tensor:
        """Return a view of a storage: the next new one, or that of an earlier tensor."""
        number = _whole(tree["storage"])
        dtype = DTYPES[_text(tree["dtype"], LONGEST_DTYPE)]
        if number == len(self.storages):
            self.storages.append(self._storage(tree, depth))
        in_bytes = self.storages[number]
        # `view` refuses bytes at the end that are too few for a number.
        whole_numbers = len(in_bytes) - len(in_bytes) % dtype.itemsize
        flat = in_bytes[:whole_numbers].view(dtype)
        shape = _sizes(tree["shape"])
        stride = _sizes(tree["stride"])
        if len(shape) != len(stride):
            raise WireError("Each dimension has a stride.")
        # With a stride of 0, a small storage can have a huge shape, and a copy of it would fill the
        # memory. A meta tensor has no memory.
        if not flat.is_meta and math.prod(shape) > MOST_BYTES:
            raise WireError("It has more numbers than bytes can hold.")
        offset = _whole(tree["offset"])
        return flat.as_strided(shape, stride, offset)  # raises RuntimeError beyond the storage

    def _storage(self, tree: dict, depth: int) -> torch.Tensor:
        """Return the storage as a tensor of bytes, which later tensors in the tree may share."""
        if "meta" in tree:
            return torch.empty(_whole(tree["meta"]), dtype=torch.uint8, device="meta")
        data = bytearray(self._bytes(tree, depth))
        return torch.tensor(memoryview(data), dtype=torch.uint8)

    def _function(self, _: dict, __: int) -> object:
        return _a_function

    def _iterator(self, _: dict, __: int) -> object:
        return iter(())

    def _other(self, tree: dict, _: int) -> object:
        return stand_in(identifier(tree["name"]))

    def _object(self, tree: dict, depth: int) -> object:
        """Return an object of a class in `kinds`; of any other class, a stand-in without fields."""
        name = identifier(tree["name"])
        if name not in self.kinds:
            return stand_in(name)
        return self.kinds[name](**self.value(tree["fields"], depth - 1))


def _a_function(*_: object) -> NoReturn:
    """Stand in a decoded value for any function, because functions are not sent."""
    raise TypeError("It stands for a function, and cannot be called here.")


def stand_in(name: str) -> Other:
    """Return an object that stands for one of the class of that name."""
    return type(name, (Other,), {})()  # of a new class, which has this name


def identifier(name: object) -> str:
    """Return the name if it is an identifier, which a sentence can hold; else "an_object"."""
    text = _text(name, LONGEST_NAME)
    return text if text.isidentifier() else "an_object"


def _text(x: object, longest: int) -> str:
    """Return `x` if it is a string of at most `longest` characters; else raise a WireError."""
    if type(x) is not str or len(x) > longest:
        raise WireError("It is no such text.")
    return x


def _whole(x: object) -> int:
    """Return `x` if it is a whole number from 0 to below LARGEST_WHOLE; else raise a WireError."""
    if type(x) is not int or not 0 <= x < LARGEST_WHOLE:
        raise WireError("It is no such number.")
    return x


def _sizes(x: object) -> tuple[int, ...]:
    """Return the sizes or strides in the list `x`; WireError if it is no list of such numbers."""
    if type(x) is not list or len(x) > MOST_DIMENSIONS:
        raise WireError("These are no sizes.")
    return tuple(_whole(size) for size in x)
