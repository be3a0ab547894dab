"""Round trips bit for bit, files that are torn, changed, lying or foreign, and saves that fail on the way."""

import errno
import fcntl
import hashlib
import json
import math
import os
import pickle
import re
import stat
import struct
import tracemalloc
from collections import Counter, OrderedDict, namedtuple
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils.core import measure
from course_utils.subjects import checkpoints
from course_utils.subjects.checkpoints import contents

pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")
SMALL = {"step": 3, "w": torch.tensor([1.5, -2.0]), "n": float("nan"), "who": "é"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ckpt"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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
@given(tensors() | states, st.sampled_from([20, contents.PIECE_BYTES]))
@example([*struct.unpack("<4d", NANS), -0.0, 5e-324, 1e308], 20)
@example({2**70: [-(10**400), -(2**63), 2**63 - 1, 2**63], -1: True}, 20)
def test_what_comes_back_is_what_was_saved_to_the_last_bit(tmp_path_factory, state, piece):
    path = tmp_path_factory.getbasetemp() / "round-trip.ckpt"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(contents, "PIECE_BYTES", piece)
        checkpoints.save(path, state)
    back = checkpoints.load(path)
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


def test_views_of_all_kinds_come_back_as_what_they_show_and_one_tensor_twice_as_two(path):
    numbers = torch.arange(24.0).reshape(4, 6)
    pairs = torch.view_as_complex(numbers.reshape(12, 2))
    state = {
        "expanded": numbers[0, :1].expand(1000),
        "negated": pairs.conj().imag,
        "conjugated": pairs.conj(),
        "every other": numbers[1::2, ::3],
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


def test_saving_takes_the_memory_of_a_piece_and_not_of_a_second_state(path, monkeypatch):
    monkeypatch.setattr(contents, "PIECE_BYTES", piece := 2**20)
    state = {f"row {n}": torch.zeros(125_000) for n in range(10)} | {"turned": torch.ones(1500, 1500).T}
    tracemalloc.start()
    copied = measure.peak_bytes(lambda: checkpoints.save(path, state))
    _, of_python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 13e6
    assert piece / 4 < copied <= 2 * piece  # one written, and the next one made
    assert of_python < piece / 4


# What cannot be saved.

Pair = namedtuple("Pair", "a b")
HOLDS_ITSELF = {}
HOLDS_ITSELF["again"] = [HOLDS_ITSELF]


class Marked(torch.Tensor):
    pass


CANNOT_BE_SAVED = {
    "model.0.0 is of type torch.nn.modules.linear.Linear. ": lambda: {"model": {0: [nn.Linear(1, 1)]}},
    "loss is of type numpy.float64. ": lambda: {"loss": np.float64(1)},
    "2 is of type builtins.set. ": lambda: {"whole": 1, 2: {3, 4}},
    "count is of type collections.Counter. ": lambda: {"count": Counter()},
    "pair is of type tests.subjects.test_checkpoints.Pair. ": lambda: {"pair": Pair(1, 2)},
    "The state itself has the key 1.5, which is neither a str nor an int. ": lambda: {1.5: 0},
    "a has the key True, ": lambda: {"a": {True: 0}},
    "s is a tensor whose bytes are not all of it (cpu, torch.sp": lambda: {"s": torch.zeros(2).to_sparse()},
    "m is a tensor whose bytes are not all of it (meta, ": lambda: {"m": torch.zeros(2, device="meta")},
    "itself is a tensor ": lambda: torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
    "is a tensor of type Marked. ": lambda: nn.Buffer(torch.ones(1)).as_subclass(Marked),
    "again.0.again.0 holds more than 64 levels, or itself. ": lambda: HOLDS_ITSELF,
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
    assert all("torn" in refusal(path, small[:size]) for size in range(len(small)))
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
    "it promises 9,223,372,036,854,775,888 bytes and has ": [written([], header_bytes=2**63)],
    "is torn or was added to": [written([], payload_bytes=2**64 - 1)],
    "its header is impossible": [
        *(written(b"[1, 2"), written(b"\xff\xfe"), written(b""), written(b"[" * 10**5 + b"]" * 10**5)),
        *(written({"dict": [1]}), written({"dict": [["a", 1, 2]]}), written(b"1" * 5000)),
        *(written({"float": "0" * 15 + "g"}), written({"float": " " * 16})),
    ],
    "more than 64 levels": [written(b"[" * 70 + b"]" * 70)],
    "shape [1099511627776], where 4 bytes are left": [one_tensor(2**40, payload=b"1234")],
    "where 1 bytes are left": [written([{"tensor": ["int8", 2**40, 0]}, {"tensor": ["int8", 2]}], b"1")],
    "1 bytes that belong to no tensor": [one_tensor(1, payload=b"12")],
    "a tensor of dtype int8 and shape [": [
        *(
            one_tensor(-4, -1, payload=b"1234"),
            one_tensor(2.0, payload=b"12"),
            one_tensor(True, payload=b"1"),
        ),
        *(one_tensor(2**64, 0), one_tensor(0, 2**62, 2**62)),
    ],
    "a tensor of dtype qint8": [one_tensor(1, dtype="qint8", payload=b"1")],
    "is nothing that is saved here": [
        *(written({"dict": [[True, 1]]}), written({"dict": [[None, 1]]}), written({"set": [1]})),
    ],
}


@pytest.mark.parametrize("sentence", LIES)
def test_a_header_that_lies_gets_a_sentence_though_its_checksum_is_true(path, sentence):
    for content in LIES[sentence]:
        assert sentence in refusal(path, content)


def test_a_lying_header_does_not_make_room_for_what_the_file_does_not_hold(path, monkeypatch):
    asked = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: asked.append(empty(*a, **k).nbytes) or empty(*a, **k))
    refusal(path, written([{"tensor": ["float64", n]} for n in (4, 3, 2**50)], bytes(64)))
    assert asked == [32, 24]


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        (torch, "empty", RuntimeError("DefaultCPUAllocator: can't allocate memory")),
        (json, "loads", MemoryError("full")),
        (contents, "read", OSError(errno.EIO, "Input/output error")),
        (contents, "read", PermissionError(errno.EACCES, "Permission denied")),
    ],
)
def test_an_error_that_is_not_the_files_fault_is_raised_as_it_is(path, monkeypatch, module, name, error):
    checkpoints.save(path, SMALL)
    monkeypatch.setattr(module, name, Mock(side_effect=error))
    with pytest.raises(type(error), match=re.escape(str(error))):
        checkpoints.load(path)


# Files that are not ours.


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_a_file_that_carries_code_is_refused_and_its_code_does_not_run(tmp_path, writer):
    trace, foreign = tmp_path / "it-ran", tmp_path / "foreign.ckpt"
    if writer == "pickle":
        foreign.write_bytes(pickle.dumps({"model": Payload(trace)}))
    else:
        torch.save({"model": Payload(trace)}, foreign)
    with pytest.raises(
        ValueError, match=r"no checkpoint of this course\. Files of torch\.save .* can carry code"
    ):
        checkpoints.load(foreign)
    assert not trace.exists()
    if writer == "pickle":
        pickle.loads(foreign.read_bytes())  # the very same file, opened by what does run code
        assert trace.exists()


def test_what_is_missing_or_no_file_gets_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*none\.ckpt; nothing was saved there\.$"):
        checkpoints.load(tmp_path / "none.ckpt")
    os.mkfifo(tmp_path / "pipe")
    for each in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ValueError, match=r"is no file; give the path of one that"):
            checkpoints.load(each)
        with pytest.raises(ValueError, match=r"is there already, and is no file; give the path of a file\.$"):
            checkpoints.save(each, {})
    assert names(tmp_path) == ["pipe"]


# Saves that fail.


def failing_at(monkeypatch, n, error):
    """The n-th call of the system that a save makes raises; which there were."""
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    calls = []

    def guarded(function):
        def call(*given):
            calls.append(function.__name__)
            if len(calls) == n:
                raise error
            return function(*given)

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


@pytest.mark.parametrize("old", [None, SMALL])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("n", range(1, len(CALLS) + 1))
def test_a_save_that_fails_anywhere_leaves_what_was_there_and_nothing_else(path, monkeypatch, n, error, old):
    if old:
        checkpoints.save(path, old)
    with monkeypatch.context() as patched:
        calls = failing_at(patched, n, error)
        with pytest.raises(type(error)) as caught:
            checkpoints.save(path, TWO)
    assert calls == CALLS[:n]
    there = TWO if n == len(CALLS) else old  # only its flushing failed
    assert names(path.parent) == [path.name] * bool(there)
    assert not there or in_bits(checkpoints.load(path)) == in_bits(there)
    if isinstance(error, OSError):
        assert caught.value.errno == error.errno
        holds = f"What {path} holds is whole" if there else f"There is still nothing at {path}"
        assert str(caught.value).startswith(
            f"[Errno {error.errno}] The state is not safely saved: No space left. {holds}; make room, or take a folder"
        )


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nothing at .*a\.ckpt; .* or take a folder that is there and"
    ):
        checkpoints.save(tmp_path / "none" / "a.ckpt", {})


@pytest.mark.parametrize("on", ["Linux", "macOS", "a disk that macOS flushes as others do"])
def test_the_file_is_flushed_with_all_its_bytes_and_then_the_folder_as_far_as_the_system_can(
    path, monkeypatch, on
):
    fully, plainly = [], []

    def flush(into, handle, can):
        status = os.fstat(handle)
        into.append("folder" if stat.S_ISDIR(status.st_mode) else status.st_size)
        if not can:
            raise OSError(errno.EINVAL, "Invalid argument")

    def control(handle, command):
        assert command == 51
        flush(fully, handle, on == "macOS")

    monkeypatch.setattr(os, "fsync", lambda handle: flush(plainly, handle, len(plainly) == 0))
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    if on != "Linux":
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", control)
    checkpoints.save(path, SMALL)
    both = [path.stat().st_size, "folder"]
    assert (fully, plainly) == ([] if on == "Linux" else both, [] if on == "macOS" else both)


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_are_those_that_open_would_give_and_leave(tmp_path, umask):
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
