"""Round trips bit for bit, files that are torn, changed, lying or foreign, and saves that fail on the way."""

import errno
import fcntl
import hashlib
import json
import math
import os
import pickle
import platform
import stat
import struct
import subprocess
import sys
import tracemalloc
import warnings
from collections import Counter, OrderedDict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils import checkpoints, measure
from course_utils.checkpoints import contents, files
from course_utils.training import long_run

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")
SMALL = {"step": 3, "w": torch.tensor([1.5, -2.0]), "n": float("nan"), "who": "é"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def steps_in(folder):
    return [int(name.removeprefix("step-").removesuffix(".ckpt")) for name in names(folder)]


# Round trips.


def in_any_layout(tensor, way):
    """The same elements at other addresses: transposed twice, behind an offset, with gaps."""
    if way == "transposed":
        return tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor
    if way == "offset":
        return torch.stack([tensor, tensor])[1]
    if way == "gaps":
        return torch.stack([tensor, tensor], -1)[..., 0]
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


@st.composite
def tensors(draw):
    """Any bits, so every NaN, in every dtype."""
    dtype = contents.DTYPES[draw(st.sampled_from(sorted(contents.DTYPES)))]
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape) * torch.empty(0, dtype=dtype).element_size()
    bits = draw(st.binary(min_size=size, max_size=size))
    if dtype is torch.bool:
        bits = bytes(byte % 2 for byte in bits)
    raw = torch.tensor(list(bits), dtype=torch.uint8)
    plain = raw.view(dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
    way = draw(st.sampled_from(["plain", "transposed", "offset", "gaps"]))
    try:
        return in_any_layout(plain, way)
    except RuntimeError:  # torch itself can't copy some dtypes
        return plain


doubles = st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack("<d", bits)[0])
text = st.text(st.characters(exclude_categories=["Cs"]))
leaves = st.none() | st.booleans() | st.integers() | doubles | text | tensors()
states = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(text | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
NANS = struct.pack("<4Q", 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001, 2**64 - 1)


def in_bits(value):
    """A state as something that == compares to the last bit and type, by another way than the module's."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().resolve_conj().resolve_neg()
        as_bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        whole = flat.view(as_bits.get(flat.element_size(), flat.dtype))
        return "tensor", value.dtype, tuple(value.shape), whole.numpy().tobytes()  # numpy orders the elements
    if isinstance(value, dict):
        return "dict", [(type(key), key, in_bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [in_bits(item) for item in value]
    return type(value), struct.pack("<d", value) if isinstance(value, float) else value


@settings(deadline=None, max_examples=150)
@given(tensors() | states)
@example([*struct.unpack("<4d", NANS), -0.0, 5e-324, 1e308])
@example({2**70: [10**4500, -(10**400), -(2**63), 2**63 - 1, 2**63], -1: True})
def test_what_comes_back_is_what_was_saved_to_the_last_bit(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "round-trip.ckpt"
    checkpoints.save(path, state)
    back = checkpoints.load(path, like=state)
    assert in_bits(back) == in_bits(state)
    assert path.stat().st_size == checkpoints.file_bytes(state).total


def test_every_dtype_of_torch_is_held_but_the_quantised():
    left_out = {d for d in vars(torch).values() if isinstance(d, torch.dtype)} - {*contents.DTYPES.values()}
    quantised = {"torch.qint8", "torch.qint32", "torch.quint8", "torch.quint2x4", "torch.quint4x2"}
    assert {str(dtype) for dtype in left_out} == quantised


def test_tensors_come_back_on_the_cpu_whatever_the_default_device_is(path):
    checkpoints.save(path, SMALL)
    with torch.device("meta"):
        assert in_bits(checkpoints.load(path)) == in_bits(SMALL)


def test_loading_a_rare_dtype_warns_of_nothing(path):
    state = torch.arange(6, dtype=torch.int16).view(torch.float16).reshape(3, 2)
    checkpoints.save(path, torch.view_as_complex(state))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = checkpoints.load(path)
    assert back.dtype is torch.complex32
    assert torch.equal(back.view(torch.int32), state.view(torch.int32).flatten())


def test_views_of_all_kinds_come_back_as_what_they_show_and_one_tensor_twice_as_two(path):
    numbers = torch.arange(24.0).reshape(4, 6)
    pairs = torch.view_as_complex(numbers.reshape(12, 2))
    state = {
        "expanded": numbers[0, :1].expand(1000),
        "negated": pairs.conj().imag,
        "conjugated": pairs.conj(),
        "every other": numbers[1::2, ::3],
        "one of a column": numbers[:1, 2].bfloat16().repeat_interleave(2)[::2],
        "parameter": nn.Parameter(numbers),
        "again": numbers,
    }
    checkpoints.save(path, state | {"ordered": OrderedDict(b=1, a=2)})
    back = checkpoints.load(path)
    ordered = back.pop("ordered")
    assert (type(ordered), list(ordered.items())) == (dict, [("b", 1), ("a", 2)])
    assert all(torch.equal(back[key], state[key]) for key in state)
    assert (type(back["parameter"]), back["parameter"].requires_grad) == (torch.Tensor, False)
    assert back["expanded"].untyped_storage().nbytes() == 4000
    assert back["parameter"].zero_().sum() != back["again"].sum()


def test_a_tensor_larger_than_a_piece_is_written_piece_by_piece(path, monkeypatch):
    monkeypatch.setattr(contents, "PIECE_BYTES", 100)
    state = [torch.randn(7, 50, 3).mT, torch.randn(1, 1, 90).expand(3, 1, 90), torch.randn(1000)]
    blocks = [memoryview(block).nbytes for tensor in state for block in contents._blocks(tensor)]
    assert max(blocks) <= 100
    assert sum(blocks) == checkpoints.file_bytes(state)["tensors"] == 4 * (7 * 50 * 3 + 3 * 90 + 1000)
    checkpoints.save(path, state)
    assert all(map(torch.equal, checkpoints.load(path), state))


def test_saving_takes_the_memory_of_a_piece_and_not_of_a_second_state(path, monkeypatch):
    monkeypatch.setattr(contents, "PIECE_BYTES", piece := 2**22)
    state = {f"row {n}": torch.zeros(500_000) for n in range(10)} | {"turned": torch.ones(3000, 3000).T}
    tracemalloc.start()
    copied = measure.peak_bytes(lambda: checkpoints.save(path, state))
    _, of_python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 50e6
    assert piece / 4 < copied <= 2 * piece  # one written, and the next one made
    assert of_python < piece / 4


def test_a_file_is_as_long_as_predicted_and_a_view_takes_its_own_bytes(path, tmp_path):
    row = torch.zeros(1000, 1000)[3]
    checkpoints.save(path, {"row": row})
    torch.save({"row": row}, tmp_path / "torch.pt")
    header = b'{"dict":[["row",{"tensor":["float32",1000]}]]}'
    assert path.stat().st_size == 4 * 1000 + len(header) + len(b"course_utils checkpoint\n") + 3 * 8 + 32
    assert (tmp_path / "torch.pt").stat().st_size > 4_000_000
    assert checkpoints.file_bytes({"row": row}) == {"tensors": 4000, "header": len(header), "frame": 80}


def test_the_state_of_a_run_takes_12_bytes_a_parameter_4_a_tensor_and_its_generators():
    run = long_run.new_run()
    run.advance()
    parameters = list(run.model.parameters())
    generators = run.generator.get_state().nbytes + torch.get_rng_state().nbytes
    predicted = 12 * sum(map(torch.numel, parameters)) + 4 * len(parameters) + generators
    assert checkpoints.file_bytes(run.state())["tensors"] == predicted


# What cannot be saved.

Pair = namedtuple("Pair", "a b")
HOLDS_ITSELF = {}
HOLDS_ITSELF["again"] = [HOLDS_ITSELF]


class Marked(torch.Tensor):
    pass


CANNOT_BE_SAVED = {
    "model.0.0 is of type torch.nn.modules.linear.Linear. ": lambda: {"model": {0: [nn.Linear(1, 1)]}},
    "loss is of type numpy.float64. ": lambda: {"loss": np.float64(1)},
    "1 is of type numpy.ndarray. ": lambda: [1, np.zeros(2)],
    "f is of type builtins.builtin_function_or_method. ": lambda: {"f": print},
    "2 is of type builtins.set. ": lambda: {"whole": 1, 2: {3, 4}},
    "count is of type collections.Counter. ": lambda: {"count": Counter()},
    "pair is of type tests.test_checkpoints.Pair. ": lambda: {"pair": Pair(1, 2)},
    "The state itself has the key 1.5, which is neither a str nor an int. ": lambda: {1.5: 0},
    "a has the key True, ": lambda: {"a": {True: 0}},
    "a has the key None, ": lambda: {"a": {None: 0}},
    "s is a tensor whose bytes are not all of it (cpu, torch.sp": lambda: {"s": torch.zeros(2).to_sparse()},
    "m is a tensor whose bytes are not all of it (meta, ": lambda: {"m": torch.zeros(2, device="meta")},
    "itself is a tensor ": lambda: torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
    "is a tensor of type Marked. ": lambda: nn.Buffer(torch.ones(1)).as_subclass(Marked),
    "again.0.again.0 holds more than 64 levels, or itself. ": lambda: HOLDS_ITSELF,
    "text is the text '\\ud800', with half a character in it. ": lambda: {"text": "\ud800"},
}


@pytest.mark.parametrize("sentence", CANNOT_BE_SAVED)
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_cannot_be_saved_is_named_with_its_place_before_anything_is_written(path, sentence):
    allowed = r"^[^\n]*\. A checkpoint holds dict \(keys: str or int\), .*\.$"
    with pytest.raises(ValueError, match=allowed) as caught:
        checkpoints.save(path, CANNOT_BE_SAVED[sentence]())
    assert sentence in str(caught.value)
    assert names(path.parent) == []


# Files that are torn, changed or lie.


@pytest.fixture
def small(path):
    checkpoints.save(path, SMALL)
    return path.read_bytes()


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^/.*\.ckpt (is|has) .*\.$") as caught:
        checkpoints.load(path)
    return str(caught.value).removeprefix(f"{path} ")


def test_a_file_torn_at_any_byte_or_added_to_is_refused(path, small):
    first, *others = [refusal(path, small[:size]) for size in range(len(small))]
    assert first == "is empty."
    assert all("torn" in sentence for sentence in others)
    assert f"promises {len(small)} bytes and has {len(small) + 1}" in refusal(path, small + b"\0")


def test_a_file_with_any_one_bit_changed_is_refused(path, small):
    reasons = Counter()
    for place in range(len(small)):
        changed = bytearray(small)
        changed[place] ^= 1 << place % 8
        why = refusal(path, bytes(changed))
        reasons[next(word for word in ("no checkpoint", "version", "torn", "damaged") if word in why)] += 1
    magic = len(contents.MAGIC)
    rest = len(small) - magic - 24
    assert reasons == {"no checkpoint": magic, "version": 8, "torn": 16, "damaged": rest}


def written(header, payload=b"", *, version=1, header_bytes=None, payload_bytes=None):
    """A file with a true checksum, whatever it says."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    sizes = [len(h) if n is None else n for h, n in ((header, header_bytes), (payload, payload_bytes))]
    all_of_it = contents.MAGIC + struct.pack("<QQQ", version, *sizes) + header + payload
    return all_of_it + hashlib.sha256(all_of_it).digest()


def test_the_format_is_what_its_description_says(path, small):
    w, n = {"tensor": ["float32", 2]}, {"float": "000000000000f87f"}
    tree = [["step", 3], ["w", w], ["n", n], ["who", "é"]]
    header = json.dumps({"dict": tree}, separators=(",", ":"), ensure_ascii=False).encode()
    assert small == written(header, struct.pack("<2f", 1.5, -2.0))


def one_tensor(*shape, dtype="int8", payload=b""):
    return written([{"tensor": [dtype, *shape]}], payload)


LIES = {
    "has version 2, and this course reads version 1: update the course": [written({}, version=2)],
    "has version 0, ": [written({}, version=0)],
    "it promises 9,223,372,036,854,775,888 bytes and has ": [written([], header_bytes=2**63)],
    "is torn or was added to": [written([], payload_bytes=2**64 - 1)],
    "its header says what cannot be": [
        *(written(b"[1, 2"), written(b"\xff\xfe"), written(b""), written(b"[" * 10**5 + b"]" * 10**5)),
        *(written({"dict": [1]}), written({"dict": [["a", 1, 2]]}), written({"int": "0b1__"})),
        *(written({"float": "0" * 15 + "g"}), written({"float": " " * 16}), written(b"1" * 5000)),
        one_tensor(0, 2**62, 2**62),
    ],
    "more than 64 levels": [written(b"[" * 70 + b"]" * 70)],
    "shape [1099511627776], where 4 bytes are left": [one_tensor(2**40, payload=b"1234")],
    "where 1 bytes are left": [written([{"tensor": ["int8", 2**40, 0]}, {"tensor": ["int8", 2]}], b"1")],
    "where 0 bytes are left": [written([{"tensor": ["int8", 1]}] * 2, b"1")],
    "1 bytes that belong to no tensor": [one_tensor(1, payload=b"12")],
    "a tensor of dtype int8 and shape [-4, -1]": [one_tensor(-4, -1, payload=b"1234")],
    "a tensor of dtype int8 and shape [2.0]": [one_tensor(2.0, payload=b"12")],
    "a tensor of dtype int8 and shape [True]": [one_tensor(True, payload=b"1")],
    "a tensor of dtype int8 and shape [18446744073709551616, 0]": [one_tensor(2**64, 0)],
    "a tensor of dtype int8 and shape [1, 1": [one_tensor(*[1] * 65, payload=b"1")],
    "a tensor of dtype qint8": [one_tensor(1, dtype="qint8", payload=b"1")],
    "a tensor of dtype Tensor": [one_tensor(1, dtype="Tensor", payload=b"1")],
    "a key twice": [written({"dict": [["a", 1], ["a", 2]]})],
    "as a key": [written({"dict": [[key, 1]]}) for key in (True, None, [], {"float": "0" * 16})],
    "is nothing that is saved here": [
        *(written({"tensor": []}), written({"float": "00"}), written({})),
        *(written({"pickle": "gASVCgAAAAAAAAB9lC4="}), written({"__class__": "os.system"})),
    ],
}


@pytest.mark.parametrize("sentence", LIES)
def test_a_header_that_lies_gets_a_sentence_though_its_checksum_is_true(path, sentence):
    for content in LIES[sentence]:
        assert sentence in refusal(path, content)


NODES = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(sorted(contents.DTYPES))
)
KINDS = st.sampled_from(["tensor", "dict", "tuple", "int", "float", "x"])
HEADERS = st.recursive(
    NODES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KINDS, inner, max_size=2),
    max_leaves=10,
)


@settings(deadline=None, max_examples=60)
@given(HEADERS, st.binary(max_size=8))
def test_any_header_whatever_gives_a_state_or_a_sentence(tmp_path_factory, header, payload):
    path = tmp_path_factory.getbasetemp() / "any.ckpt"
    path.write_bytes(written(header, payload))
    try:
        fits, why = checkpoints.file_bytes(checkpoints.load(path))["tensors"] == len(payload), None
    except ValueError as reason:
        fits, why = False, str(reason)
    assert fits or why.startswith(f"{path} is damaged")


def test_a_lying_header_does_not_make_room_for_what_the_file_does_not_hold(path, monkeypatch):
    asked = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: asked.append(empty(*a, **k).nbytes) or empty(*a, **k))
    refusal(path, written([{"tensor": ["float64", n]} for n in (4, 3, 2**50)], bytes(64)))
    assert asked == [32, 24]


def raising(error):
    def raises(*_given, **_options):
        raise error

    return raises


def test_a_good_file_that_memory_has_no_room_for_is_not_called_damaged_nor_passed_over(tmp_path, monkeypatch):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, SMALL)
    full = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.")
    for module, name, error, what in (
        (torch, "empty", full, "a tensor of 8 bytes"),
        (json, "loads", MemoryError(), "its header"),
    ):
        monkeypatch.setattr(module, name, raising(error))
        with pytest.raises(MemoryError, match=rf"step-00000002\.ckpt may be good, .* left for {what}\. Load"):
            checkpoints.newest(tmp_path)


def test_a_header_that_claims_gigabytes_is_refused_before_it_is_read(path, monkeypatch):
    with path.open("wb") as file:  # of holes: it takes no room
        file.write(contents.MAGIC + struct.pack("<QQQ", 1, 6 * 2**30, 0))
        file.truncate(contents.FRAME_BYTES + 6 * 2**30)
    with pytest.raises(
        ValueError, match=r"header has 6,442,450,944 bytes, and 268,435,456 is the most\. Use an"
    ):
        checkpoints.load(path)
    path.unlink()
    monkeypatch.setattr(contents, "MOST_HEADER_BYTES", 100)
    checkpoints.save(path, [0] * 49)  # 99 bytes
    with pytest.raises(
        ValueError, match=r"^All but the tensors takes 101 bytes, and 100 is the most: put long"
    ):
        checkpoints.save(path, [0] * 50)
    assert checkpoints.load(path) == [0] * 49


# Files that are not ours.


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("writer", ["torch", "old torch", "pickle"])
def test_a_file_that_carries_code_is_refused_and_its_code_does_not_run(tmp_path, writer):
    trace, foreign = tmp_path / "it-ran", tmp_path / "steps" / "step-00000009.ckpt"
    checkpoints.save_step(foreign.parent, 1, {"a": 1})
    if writer == "pickle":
        foreign.write_bytes(pickle.dumps({"model": Payload(trace)}))
    else:
        torch.save({"model": Payload(trace)}, foreign, _use_new_zipfile_serialization=writer == "torch")
    with pytest.raises(
        ValueError, match=r"no checkpoint of this course\. Files of torch\.save .* can carry code"
    ):
        checkpoints.load(foreign)
    found = checkpoints.newest(foreign.parent)
    assert (found.step, found.passed_over[0][0]) == (1, foreign)
    assert not trace.exists()
    if writer != "torch":  # the very same file, opened by what does run code
        pickle.loads(foreign.read_bytes()) if writer == "pickle" else torch.load(foreign, weights_only=False)
        assert trace.exists()


def test_what_is_missing_or_no_file_gets_a_sentence(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"There is no checkpoint at .*none\.ckpt; nothing was saved there\.$"
    ):
        checkpoints.load(tmp_path / "none.ckpt")
    os.mkfifo(tmp_path / "pipe")
    for each in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match=r"is no file; of a folder of steps, checkpoints\.newest gives"):
            checkpoints.load(each)
        with pytest.raises(ValueError, match=r"is there already, and is no file; give the path of a file\.$"):
            checkpoints.save(each, {})
    assert names(tmp_path) == ["pipe"]


W = {"w": torch.zeros(2, 3)}


WANTED = {
    "m.w is float32 of shape (2, 3) in the file; float32 of shape (3, 2) is": {"m": {"w": torch.zeros(3, 2)}},
    "m.w is float32 of shape (2, 3) in the file; float16 of shape": {"m": {"w": torch.zeros(2, 3).half()}},
    "m.w is float32 of shape (2, 3) in the file; 1 is wanted.": {"m": {"w": 1}},
    "m.v is wanted, and not in the file.": {"m": {"v": torch.zeros(2, 3)}},
    "m is a dict in the file; a list is wanted.": {"m": [1]},
    "o.0.1 is in the file, and not wanted.": {"m": W, "o": {0: (1,)}},
    "o.0 is a tuple in the file; a list is wanted.": {"m": W, "o": {0: [1, 2]}},
    "o is in the file, and not wanted.": {"m": W},
    "o.0 is wanted, and not in the file.": {"m": W, "o": {"0": (1, 2)}},
    "The state itself is a dict in the file; float32 of shape (1,) is wanted.": torch.zeros(1),
}


@pytest.mark.parametrize("sentence", WANTED)
def test_a_state_of_another_structure_is_named_at_its_first_difference(path, sentence):
    checkpoints.save(path, {"m": {"w": torch.ones(2, 3)}, "o": {0: (1, "x")}})
    with pytest.raises(ValueError, match="holds another state: ") as caught:
        checkpoints.load(path, like=WANTED[sentence])
    assert sentence in str(caught.value)


def test_other_values_in_another_order_are_the_same_structure_and_empty_ones_stand_for_any(path):
    state = {"m": {"w": torch.ones(2, 3)}, "o": {0: (1, "x")}}
    checkpoints.save(path, state)
    for like in ({"o": {0: (7, None)}, "m": W}, {"m": {}, "o": {}}):
        assert in_bits(checkpoints.load(path, like=like)) == in_bits(state)


# Saves that fail.


def failing_at(monkeypatch, n, error):
    """The n-th call of the system that a save makes raises; which there were."""
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    calls = []

    def guarded(function):
        def call(*given, **options):
            calls.append(function.__name__)
            if len(calls) == n:
                raise error
            return function(*given, **options)

        return call

    class File:
        def __init__(self, file):
            self.file, self.write = file, guarded(file.write)

        def __getattr__(self, name):
            return getattr(self.file, name)

    write = contents.write
    monkeypatch.setattr(contents, "write", lambda file, *rest: write(File(file), *rest))
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))
    return calls


TWO = {"w": torch.ones(3), "v": torch.ones(2)}
CALLS = ["write"] * 5 + ["fsync", "replace", "fsync"]  # of a state of two tensors


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("n", range(1, len(CALLS) + 1))
def test_a_save_that_fails_anywhere_leaves_the_old_one_whole_and_nothing_else(path, monkeypatch, n, error):
    checkpoints.save(path, SMALL)
    with monkeypatch.context() as patched:
        calls = failing_at(patched, n, error)
        with pytest.raises(type(error)) as caught:
            checkpoints.save(path, TWO)
    assert calls == CALLS[:n]
    assert names(path.parent) == ["run.ckpt"]
    is_new = n == len(CALLS)
    assert set(checkpoints.load(path)) == set(TWO if is_new else SMALL)
    if isinstance(error, OSError):
        assert caught.value.errno == error.errno
        old = (
            f"The state was not saved: No space left. What {path} holds is whole; make room, then save again."
        )
        new = f"The new state is in place at {path}, and may not survive a loss of power: No space left. Save again"
        assert (new if is_new else old) in str(caught.value)


@pytest.mark.parametrize(
    ("n", "code", "advice"),
    [
        (2, errno.EIO, "save again, or somewhere else"),
        (6, errno.ENOENT, "save again, or somewhere else"),  # as where something else removed the new file
        (1, errno.EACCES, "choose a folder that you may write to"),
        (1, errno.EDQUOT, "make room, then save again"),
    ],
)
def test_a_first_save_that_fails_says_that_nothing_is_there_and_what_to_do(
    path, monkeypatch, n, code, advice
):
    failing_at(monkeypatch, n, OSError(code, "So it is"))
    with pytest.raises(OSError, match=rf"So it is\. There is still nothing at {path}; {advice}\.$"):
        checkpoints.save(path, TWO)
    assert names(path.parent) == []


def test_a_folder_that_is_not_there_is_to_be_made_first(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is still nothing at .*; make the folder first\.$"):
        checkpoints.save(tmp_path / "none" / "a.ckpt", {})


@pytest.mark.parametrize("folders_can_be_flushed", [True, False])
def test_the_file_and_then_the_folder_are_flushed_and_the_name_comes_between(
    path, monkeypatch, folders_can_be_flushed
):
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    order, replace = [], os.replace

    def fsync(handle):
        status = os.fstat(handle)
        is_folder = stat.S_ISDIR(status.st_mode)
        order.append("folder" if is_folder else f"file of {status.st_size} bytes")
        if is_folder and not folders_can_be_flushed:  # which is no failure
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda *given: order.append("rename") or replace(*given))
    checkpoints.save(path, SMALL)
    assert order == [f"file of {path.stat().st_size} bytes", "rename", "folder"]


@pytest.mark.parametrize("code", [None, errno.ENOTSUP, errno.EIO])
def test_macos_flushes_all_the_way_and_as_others_where_a_disk_cannot(path, monkeypatch, code):
    asked, plain = [], []

    def control(handle, command):
        asked.append((stat.S_ISDIR(os.fstat(handle).st_mode), command))
        if code:
            raise OSError(code, "So it is")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    if code == errno.EIO:
        with pytest.raises(OSError, match="The state was not saved: So it is"):
            checkpoints.save(path, SMALL)
        return
    checkpoints.save(path, SMALL)
    assert asked == [(False, 51), (True, 51)]
    assert len(plain) == (2 if code else 0)


def test_the_parent_of_every_new_folder_is_flushed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(files, "flush_folder", flushed.append)
    a, b, c = tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"
    checkpoints.save_step(c, 1, {})
    checkpoints.save_step(c, 2, {})
    assert flushed == [tmp_path, a, b, c, c]


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_are_those_that_open_would_give_and_leave(tmp_path, monkeypatch, umask):
    before = os.umask(umask)
    try:
        (tmp_path / "plain").open("w").close()
        checkpoints.save(tmp_path / "ours", {})
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
    for mode in (0o666, 0o600):
        (tmp_path / "ours").chmod(mode)
        checkpoints.save(tmp_path / "ours", {"n": 1})
        assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == mode
    monkeypatch.setattr(os, "chmod", lambda *_: None)  # so that what it began with shows
    checkpoints.save(tmp_path / "ours", {"private": 1})
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o600


def test_through_a_link_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.ckpt", tmp_path / "link"
    link.symlink_to(target)
    for state in ({"n": 1}, {"n": 2}):  # at first the target is not there yet
        checkpoints.save(link, state)
        assert link.is_symlink()
        assert checkpoints.load(target) == checkpoints.load(link) == state


def test_a_name_may_be_free_text_or_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a b", "ünï [*]", "step-00000001.ckpt", str(tmp_path / "x")):
        checkpoints.save(name, {"name": name})
        assert checkpoints.load(Path(name)) == {"name": name}


# A folder of steps.


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=8), st.integers(1, 4))
def test_the_newest_few_and_the_latest_saved_are_kept(tmp_path_factory, steps, keep):
    folder, kept = tmp_path_factory.mktemp("steps") / "new", set()
    for step in steps:
        path = checkpoints.save_step(folder, step, {"step": step}, keep=keep)
        kept = {*sorted(kept | {step})[-keep:], step}
        assert path == folder / f"step-{step:08d}.ckpt"
        assert steps_in(folder) == sorted(kept)
        newest = folder / f"step-{max(kept):08d}.ckpt"
        assert checkpoints.newest(folder) == checkpoints.Newest(max(kept), newest, {"step": max(kept)})


def test_old_ones_go_only_when_the_new_one_is_there(tmp_path, monkeypatch):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, {}, keep=2)
    for n in range(1, 5):
        with monkeypatch.context() as patched:
            failing_at(patched, n, OSError(errno.ENOSPC, "No space left"))
            with pytest.raises(OSError, match="No space left"):
                checkpoints.save_step(tmp_path, 3, {}, keep=1)
        assert steps_in(tmp_path) == [1, 2]


def test_bad_files_are_passed_over_named_left_alone_and_not_counted(tmp_path):
    for step in (1, 2, 3, 4, 5):
        checkpoints.save_step(tmp_path, step, {"step": step}, keep=12)
    bad = {step: tmp_path / f"step-{step:08d}.ckpt" for step in range(4, 12)}
    whole = bad[5].read_bytes()
    bad[4].write_bytes(whole.replace(b"5", b"6"))  # its length is right
    bad[5].write_bytes(whole[:50])
    torch.save({}, bad[6])
    bad[7].mkdir()
    bad[8].symlink_to(bad[8].name)
    os.mkfifo(bad[9])
    bad[10].symlink_to(tmp_path / "gone")
    bad[11].write_bytes(written({}, version=9))
    found = checkpoints.newest(tmp_path)
    assert found.step == found.state["step"] == 3
    assert [path for path, _ in found.passed_over] == [*bad.values()][::-1]
    reasons = [
        "version 9",
        "name only",
        "no file",
        "cannot be read: Too many",
        "no file",
        "no checkpoint of this",
    ]
    for (path, sentence), reason in zip(found.passed_over, [*reasons, "torn", "damaged"], strict=True):
        assert sentence.startswith(str(path))
        assert reason in sentence
    checkpoints.save_step(tmp_path, 12, {"step": 12}, keep=3)
    assert steps_in(tmp_path) == [3, *bad, 12]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_what_the_disk_cannot_read_is_passed_over_and_what_one_may_not_read_is_an_error(
    tmp_path, monkeypatch, code
):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, {"step": step})
    bad, read = tmp_path / "step-00000002.ckpt", contents.read
    broken = raising(OSError(code, "So it is"))
    monkeypatch.setattr(contents, "read", lambda file: (broken if file.name == str(bad) else read)(file))
    if code == errno.EACCES:
        with pytest.raises(PermissionError):
            checkpoints.newest(tmp_path)
        return
    found = checkpoints.newest(tmp_path)
    assert found.step == 1
    assert found.passed_over == ((bad, f"{bad} cannot be read: So it is. Use an older one."),)


def test_an_empty_folder_has_no_newest_and_one_of_torn_files_is_no_empty_one(tmp_path):
    assert checkpoints.newest(tmp_path / "none") is None
    (tmp_path / "step-1.ckpt.txt").write_bytes(b"")
    assert checkpoints.newest(tmp_path) is None
    (tmp_path / "step-00000001.ckpt").write_bytes(b"torn")
    (tmp_path / "step-00000002.ckpt").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"none of them can be used. .*0002\.ckpt is empty\..*another folder"
    ):
        checkpoints.newest(tmp_path)


def test_a_good_newest_that_does_not_fit_raises_and_is_not_passed_over(tmp_path):
    checkpoints.save_step(tmp_path, 1, {"w": torch.zeros(2)})
    checkpoints.save_step(tmp_path, 2, {"w": torch.zeros(3)})
    with pytest.raises(
        ValueError, match=r"step-00000002\.ckpt holds another state: w is float32 of shape \(3,\)"
    ):
        checkpoints.newest(tmp_path, like={"w": torch.zeros(2)})
    assert checkpoints.newest(tmp_path, like={"w": torch.ones(3)}).step == 2


def test_the_hundred_millionth_step_is_newer_than_those_before(tmp_path):
    for step in (99_999_999, 100_000_000, 100_000_001):
        checkpoints.save_step(tmp_path, step, {"step": step}, keep=2)
    assert checkpoints.newest(tmp_path).step == 100_000_001
    assert steps_in(tmp_path) == [100_000_000, 100_000_001]


@pytest.mark.parametrize(("step", "keep"), [(-1, 3), (0, 0)])
def test_a_step_below_0_or_none_kept_raises_a_sentence(tmp_path, step, keep):
    with pytest.raises(ValueError, match=rf"^Steps count from 0, .*; got step {step} and keep {keep}\.$"):
        checkpoints.save_step(tmp_path, step, {}, keep=keep)


# Several at once.


def test_what_a_dead_process_left_is_removed_and_a_living_ones_is_not(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as alive:
        here = files._host()
        left = {
            f"step-00000001.ckpt.{here}-{dead.pid}-0123abcd.tmp": False,
            f"other.ckpt.{here}-{dead.pid}-0123abcd.tmp": False,
            f"step-00000001.ckpt.{here}-{alive.pid}-0123abcd.tmp": True,
            f"step-00000001.ckpt.{'0' * 8}-{dead.pid}-0123abcd.tmp": True,  # another machine's
            f"step-00000001.ckpt.{dead.pid}-0123abcd.tmp": True,  # not as we call them
            f"step-00000001.ckpt.{here}-1-0123abcd.tmp": True,
            "notes.tmp": True,
        }
        for name in left:
            (tmp_path / name).write_bytes(b"half")
        saved = checkpoints.save_step(tmp_path, 3, {})
        assert names(tmp_path) == sorted([saved.name, *(name for name, stays in left.items() if stays)])
        assert checkpoints.newest(tmp_path).step == 3


def test_a_temporary_file_names_its_machine_and_its_process(path, monkeypatch):
    seen, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: seen.append(old.name) or replace(old, new))
    checkpoints.save(path, {})
    assert seen[0].startswith(f"run.ckpt.{files._host()}-{os.getpid()}-")
    host = files._host.__wrapped__
    hosts = [files._host(), host()]
    monkeypatch.setattr(platform, "node", lambda: "another")
    hosts.append(host())
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[1]")  # a container on it
    hosts.append(host())
    assert len({*hosts}) == 3


def test_threads_that_save_to_one_path_do_not_meet(path):
    states = [{"who": n, "w": torch.full((50_000,), float(n))} for n in range(4)]
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(checkpoints.save, path, state) for _ in range(5) for state in states]
    assert all(each.result() is None for each in done)
    state = checkpoints.load(path)
    assert state["w"].eq(state["who"]).all()
    assert names(path.parent) == ["run.ckpt"]


def test_the_newest_is_found_while_older_ones_are_being_removed(tmp_path, monkeypatch):
    checkpoints.save_step(tmp_path, 1, {"step": 1})
    load, others_turn = files.load, [True]

    def just_removed(path, **options):
        if others_turn.pop() if others_turn else False:
            checkpoints.save_step(tmp_path, 2, {"step": 2}, keep=1)
        return load(path, **options)

    monkeypatch.setattr(files, "load", just_removed)
    assert checkpoints.newest(tmp_path).state == {"step": 2}
