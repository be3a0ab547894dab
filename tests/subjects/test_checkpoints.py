"""Round trips bit for bit; files that are torn, changed, lying or foreign; and saves that fail."""

import errno
import fcntl
import hashlib
import io
import math
import os
import pickle
import re
import stat
import struct
import tracemalloc
import zipfile
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
from tests.helpers.in_bits import in_bits

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
    dtype = draw(st.sampled_from(sorted(contents.DTYPES, key=str)))
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


@settings(deadline=None, max_examples=150)
@given(tensors() | states)
@example([*struct.unpack("<4d", NANS), -0.0, 5e-324, 1e308])
@example({2**70: [-(10**400), -(2**63), 2**63 - 1, 2**63, 2**2000 - 1], -1: True})
def test_what_comes_back_is_what_was_saved_to_the_last_bit(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "round-trip.ckpt"
    checkpoints.save(path, state)
    back = checkpoints.load(path)
    assert in_bits(back) == in_bits(state)
    assert path.stat().st_size == checkpoints.file_bytes(state).total


def test_every_dtype_of_torch_is_held_but_the_quantised_and_integers_of_under_a_byte():
    all_dtypes = {dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)}
    left_out = all_dtypes - contents.DTYPES
    quantised = {"torch.qint8", "torch.qint32", "torch.quint8", "torch.quint2x4", "torch.quint4x2"}
    small = {f"torch.{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)}
    assert {str(dtype) for dtype in left_out} == quantised | small


def test_tensors_come_back_on_the_cpu_whatever_the_default_device_is(path):
    checkpoints.save(path, SMALL)
    with torch.device("meta"):
        assert in_bits(checkpoints.load(path)) == in_bits(SMALL)


def test_views_of_all_kinds_come_back_as_what_they_show_and_share_what_they_shared(path):
    numbers = torch.arange(24.0).reshape(4, 6)
    pairs = torch.view_as_complex(numbers.reshape(12, 2))
    state = {
        "expanded": numbers[0, :1].expand(1000),
        "negated": pairs.conj().imag,  # a view of the same memory, but for its sign
        "every other": numbers[1::2, ::3],
        "parameter": nn.Parameter(numbers),
        "again": numbers,
    }
    state["parameter"].tag = object()
    checkpoints.save(path, state | {"ordered": OrderedDict(b=1, a=2)})
    back = checkpoints.load(path)
    ordered = back.pop("ordered")
    assert type(ordered) is dict
    assert list(ordered.items()) == [("b", 1), ("a", 2)]
    assert all(torch.equal(back[key], state[key]) for key in state)
    assert type(back["parameter"]) is torch.Tensor
    assert not back["parameter"].requires_grad
    assert not hasattr(back["parameter"], "tag")
    back["again"].zero_()
    assert not any(tensor.any() for tensor in back.values())
    assert checkpoints.file_bytes(state)["storages"] == numbers.nbytes


def test_memory_that_is_seen_as_two_dtypes_comes_back_as_both(path):
    numbers = torch.arange(24.0)
    state = {
        "floats": numbers,
        "pairs": torch.view_as_complex(numbers.reshape(12, 2)).conj(),
        "again": numbers,
    }
    checkpoints.save(path, state)
    back = checkpoints.load(path)
    assert all(torch.equal(back[key], state[key]) for key in state)
    assert back["again"].zero_().equal(back["floats"])


def test_saving_copies_nothing(path):
    state = {f"row {n}": torch.zeros(125_000) for n in range(10)}
    state["turned"] = torch.ones(1500, 1500).T
    tracemalloc.start()
    copied = measure.peak_bytes(lambda: checkpoints.save(path, state))
    _, of_python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 13e6
    assert copied == 0
    assert of_python < 1e6


def test_loading_takes_the_memory_of_the_state_and_not_of_two(path):
    checkpoints.save(path, {"large": torch.zeros(2_000_000)})
    tracemalloc.start()
    checkpoints.load(path)
    _, of_python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A piece that is digested, and what torch.load leaves beside the tensors.
    assert of_python < 3e6


# What cannot be saved.

Pair = namedtuple("Pair", "a b")
HOLDS_ITSELF = {}
HOLDS_ITSELF["again"] = [HOLDS_ITSELF]


class Marked(torch.Tensor):
    pass


CANNOT_BE_SAVED = {
    "model.0.0 is of type torch.nn.modules.linear.Linear. ": lambda: {
        "model": {0: [nn.Linear(1, 1)]}
    },
    "loss is of type numpy.float64. ": lambda: {"loss": np.float64(1)},
    "2 is of type builtins.set. ": lambda: {"whole": 1, 2: {3, 4}},
    "count is of type collections.Counter. ": lambda: {"count": Counter()},
    "pair is of type tests.subjects.test_checkpoints.Pair. ": lambda: {"pair": Pair(1, 2)},
    "The state itself has the key 1.5, which is neither a str nor an int. ": lambda: {1.5: 0},
    "a has the key True, ": lambda: {"a": {True: 0}},
    "n is an integer of more than 2,000 bits. ": lambda: {"n": 2**2000},
    "is an integer of more than 2,000 bits. ": lambda: {2**2000: 0},
    "u is a tensor whose bytes are not all of it (cpu, torch.strided, torch.uint4)": lambda: {
        "u": torch.empty(2, dtype=torch.uint4)
    },
    "s is a tensor whose bytes are not all of it (cpu, torch.sp": lambda: {
        "s": torch.zeros(2).to_sparse()
    },
    "m is a tensor whose bytes are not all of it (meta, ": lambda: {
        "m": torch.zeros(2, device="meta")
    },
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


TORN = "is torn, was added to, or was not saved"
DAMAGED = "is damaged, or changed after it was saved"
FOREIGN = "is no checkpoint of this course"
LYING = "has the right SHA-256, but holds something"


def test_a_file_torn_at_any_byte_or_added_to_is_refused(path, small):
    assert all(refusal(path, small[:size]).startswith(TORN) for size in range(len(small)))
    assert refusal(path, small + b"\0").startswith(TORN)
    assert refusal(path, small + small).startswith(DAMAGED)


def test_a_file_with_any_one_bit_changed_is_refused(path, small):
    reasons = Counter()
    for place in range(len(small)):
        changed = bytearray(small)
        changed[place] ^= 1 << place % 8
        why = refusal(path, bytes(changed))
        (reason,) = (reason for reason in (TORN, DAMAGED, FOREIGN) if why.startswith(reason))
        reasons[reason] += 1
    assert reasons[FOREIGN] == 4
    assert 9 <= reasons[TORN] <= contents.DIGEST_BYTES
    assert sum(reasons.values()) == len(small)


def test_torch_alone_would_take_some_changed_bits_for_other_weights(small, path):
    """So there is a digest."""
    place = small.index(struct.pack("<2f", 1.5, -2.0))
    changed = bytearray(small)
    changed[place + 3] ^= 0x80
    path.write_bytes(changed)
    assert torch.load(path)["w"].tolist() == [-1.5, -2.0]
    assert refusal(path, bytes(changed)).startswith(DAMAGED)


def digested(content):
    """With a true digest, whatever the content is."""
    return content + b"\nsha256 " + hashlib.sha256(content).hexdigest().encode() + b"\n"


def test_the_file_is_what_torch_save_writes_and_its_digest(path, small):
    by_torch = io.BytesIO()
    torch.save(SMALL, by_torch)
    assert small == digested(by_torch.getvalue())
    assert in_bits(torch.load(path)) == in_bits(SMALL)


def test_a_file_of_the_former_format_gets_a_sentence_that_says_what_to_do(path):
    said = refusal(path, b"course_utils checkpoint\n" + bytes(60))
    assert "Load it with the version of the course that saved it" in said


class Payload:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def rewritten(change):
    """What torch.save writes of four numbers, with one file of its archive changed.

    `change` is the end of the file's name, and a function from its content to the new one; where
    that is None, the file is left out.
    """
    by_torch = io.BytesIO()
    other = io.BytesIO()
    torch.save({"w": torch.arange(4)}, by_torch)
    ending, new = change
    with zipfile.ZipFile(by_torch) as archive, zipfile.ZipFile(other, "w") as changed:
        for name in archive.namelist():
            content = archive.read(name)
            if name.endswith(ending):
                content = new(content)
            if content is not None:
                changed.writestr(name, content)
    return other.getvalue()


def swapped(old, new):
    def change(content):
        assert content.count(old) == 1
        return content.replace(old, new)

    return "data.pkl", change


LIES = {
    "no zip": b"PK\3\4" + bytes(100),
    "no tree": rewritten(("data.pkl", lambda _: None)),
    "no tensor": rewritten(("data/0", lambda _: None)),
    "a tensor that is cut": rewritten(("data/0", lambda numbers: numbers[:5])),
    "an unknown order of bytes": rewritten(("byteorder", lambda _: b"neither")),
    "more numbers than there are": rewritten(swapped(b"K\x04t", b"J\0\0\0\x40t")),
    "fewer than none": rewritten(swapped(b"K\x04t", b"J\xff\xff\xff\xfft")),
    "a shape beyond the numbers": rewritten(swapped(b"K\x04\x85", b"J\0\0\0\x40\x85")),
    "a start behind the numbers": rewritten(swapped(b"QK\0", b"QK\x09")),
    "another function": rewritten(("data.pkl", lambda _: pickle.dumps(print, 2))),
    "another type": rewritten(("data.pkl", lambda _: pickle.dumps(Path("a"), 2))),
    "a tree without a bottom": rewritten(
        ("data.pkl", lambda _: b"\x80\x02" + b"]" * 10**5 + b"a" * 10**5)
    ),
    "a tree that ends": rewritten(("data.pkl", lambda tree: tree[:40])),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_gets_a_sentence_though_its_digest_is_true(path, lie):
    assert refusal(path, digested(LIES[lie])).startswith(LYING)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError("full"),
        OSError(errno.EIO, "Input/output error"),
        PermissionError(errno.EACCES, "Permission denied"),
    ],
)
def test_an_error_that_is_not_the_files_fault_is_raised_as_it_is(path, monkeypatch, error):
    checkpoints.save(path, SMALL)
    monkeypatch.setattr(torch, "load", Mock(side_effect=error))
    with pytest.raises(type(error), match=re.escape(str(error))):
        checkpoints.load(path)


# Files that are not ours.


@pytest.mark.parametrize("writer", ["torch", "torch, with a true digest", "pickle"])
def test_a_file_that_carries_code_is_refused_and_its_code_does_not_run(tmp_path, writer):
    trace = tmp_path / "it-ran"
    foreign = tmp_path / "foreign.ckpt"
    file = io.BytesIO()
    save = pickle.dump if writer == "pickle" else torch.save
    save({"model": Payload(trace)}, file)
    content = file.getvalue()
    if writer == "pickle":
        assert refusal(foreign, content).startswith(FOREIGN)
    elif writer == "torch":
        assert refusal(foreign, content).startswith(TORN)
    else:
        assert refusal(foreign, digested(content)).startswith(LYING)
    assert not trace.exists()
    # The very same content, opened by what does run code.
    file.seek(0)
    if writer == "pickle":
        pickle.load(file)
    else:
        torch.load(file, weights_only=False)
    assert trace.exists()


def test_what_is_missing_or_no_file_gets_a_sentence(tmp_path):
    missing = r"no checkpoint at .*none\.ckpt; nothing was saved there\.$"
    with pytest.raises(FileNotFoundError, match=missing):
        checkpoints.load(tmp_path / "none.ckpt")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    there_already = r"is there already, and is no file; give the path of a file\.$"
    for no_file in (tmp_path, pipe):
        with pytest.raises(ValueError, match=r"is no file; give the path of one that"):
            checkpoints.load(no_file)
        with pytest.raises(ValueError, match=there_already):
            checkpoints.save(no_file, {})
    assert names(tmp_path) == ["pipe"]


# Saves that fail.


def failing_at(monkeypatch, n, error):
    """Make the n-th call of the system raise that a save makes; returns the calls' names."""
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
            self.file = file
            self.write = guarded(file.write)

        def __getattr__(self, name):
            return getattr(self.file, name)

    write = contents.write
    monkeypatch.setattr(contents, "write", lambda file, *rest: write(File(file), *rest))
    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))
    return calls


@pytest.mark.parametrize("old", [None, SMALL])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_save_that_fails_anywhere_leaves_what_was_there_and_nothing_else(
    path, monkeypatch, error, old
):
    new = {"w": torch.ones(3), "v": torch.ones(2)}
    with monkeypatch.context() as patched:
        all_calls = failing_at(patched, None, error)
        checkpoints.save(path, new)
    writes = all_calls.count("write")
    assert all_calls == ["write"] * writes + ["fsync", "replace", "fsync"]
    for n in range(1, len(all_calls) + 1):
        path.unlink()
        if old:
            checkpoints.save(path, old)
        with monkeypatch.context() as patched:
            failing_at(patched, n, error)
            with pytest.raises(type(error)) as caught:
                checkpoints.save(path, new)
        there = new if n == len(all_calls) else old  # only its flushing failed
        assert names(path.parent) == [path.name] * bool(there)
        assert not there or in_bits(checkpoints.load(path)) == in_bits(there)
        if isinstance(error, OSError):
            assert caught.value.errno == error.errno
            holds = f"What {path} holds is whole" if there else f"There is still nothing at {path}"
            saved = "The state is not safely saved: No space left."
            words = f"[Errno {error.errno}] {saved} {holds}; make room, or take"
            assert str(caught.value).startswith(words)
        path.touch()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    sentence = r"nothing at .*a\.ckpt; .* or take a folder that is there and"
    with pytest.raises(FileNotFoundError, match=sentence):
        checkpoints.save(tmp_path / "none" / "a.ckpt", {})


@pytest.mark.parametrize("on", ["Linux", "macOS", "a disk that macOS flushes as others do"])
def test_the_file_is_flushed_with_all_its_bytes_and_then_the_folder_as_far_as_the_system_can(
    path, monkeypatch, on
):
    fully = []  # what was flushed by macOS's own call: a file's size, or "folder"
    plainly = []  # what was flushed by fsync

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
    assert fully == ([] if on == "Linux" else both)
    assert plainly == ([] if on == "macOS" else both)


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
    target = tmp_path / "there" / "a.ckpt"
    link = tmp_path / "link"
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
