"""Round trips bit for bit, files that are torn, changed, lying or foreign, and saves that fail on the way."""

import errno
import fcntl
import hashlib
import json
import math
import os
import pickle
import platform
import random
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
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_utils import checkpoints, measure
from course_utils.checkpoints import contents, files
from course_utils.training import long_run

untimed = settings(deadline=None, max_examples=60)
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")


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
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**400), 10**400)
    | doubles
    | st.text(st.characters(exclude_categories=["Cs"]))
    | tensors()
)
keys = st.text(st.characters(exclude_categories=["Cs"])) | st.integers()
states = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)


def in_bits(value):
    """A state as something that == compares to the last bit and type, by another way than the module's."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().resolve_conj().resolve_neg()
        size = flat.element_size()
        whole = flat.view(
            {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(size, flat.dtype)
        )
        raw = whole.numpy().tobytes()  # numpy orders the elements
        return "tensor", value.dtype, tuple(value.shape), raw
    if isinstance(value, dict):
        return "dict", [(type(key), key, in_bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [in_bits(item) for item in value]
    return type(value), struct.pack("<d", value) if isinstance(value, float) else value


@settings(deadline=None, max_examples=200)
@given(tensors() | states)
def test_what_comes_back_is_what_was_saved_to_the_last_bit(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "round-trip.ckpt"
    checkpoints.save(path, state)
    back = checkpoints.load(path, like=state)
    assert in_bits(back) == in_bits(state)
    assert path.stat().st_size == checkpoints.file_bytes(state).total


def test_every_nan_every_infinity_and_numbers_of_any_size_come_back(path):
    patterns = [
        0x7FF0000000000000,
        0xFFF0000000000000,
        0x7FF8000000000001,
        0xFFFFFFFFFFFFFFFF,
        0x8000000000000000,
        1,
    ]
    floats = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in patterns]
    state = {"floats": [*floats, 0.1, 1e308, 5.0], 2**70: [10**4500, -(2**63), 2**63 - 1, 2**63], -1: True}
    checkpoints.save(path, state)
    assert in_bits(checkpoints.load(path)) == in_bits(state)


def test_every_dtype_of_torch_is_held_but_the_quantised():
    assert {"float32", "bfloat16", "float8_e4m3fn", "uint64", "bool", "complex32", "float4_e2m1fn_x2"} <= set(
        contents.DTYPES
    )
    left_out = {d for d in vars(torch).values() if isinstance(d, torch.dtype)} - {*contents.DTYPES.values()}
    assert {str(dtype) for dtype in left_out} == {
        *("torch.qint8", "torch.qint32", "torch.quint8", "torch.quint2x4", "torch.quint4x2")
    }


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


def test_a_tensor_under_two_names_is_written_twice_and_comes_back_as_two(path):
    shared = torch.ones(1000)
    checkpoints.save(path, {"a": shared, "b": shared})
    back = checkpoints.load(path)
    assert path.stat().st_size > 8000
    assert back["a"].zero_().sum() != back["b"].sum()


def test_views_of_all_kinds_come_back_as_what_they_show(path):
    numbers = torch.arange(24.0).reshape(4, 6)
    state = {
        "expanded": numbers[0, :1].expand(1000),
        "negated": torch.view_as_complex(numbers.reshape(12, 2)).conj().imag,
        "conjugated": torch.view_as_complex(numbers.reshape(12, 2)).conj(),
        "every other": numbers[1::2, ::3],
        "one of a column": numbers[:1, 2].bfloat16().repeat_interleave(2)[::2],
        "parameter": nn.Parameter(numbers),
        "ordered": OrderedDict(b=1, a=2),
    }
    checkpoints.save(path, state)
    back = checkpoints.load(path)
    assert all(torch.equal(back[key], state[key]) for key in state if key != "ordered")
    assert type(back["ordered"]) is dict
    assert list(back["ordered"].items()) == [("b", 1), ("a", 2)]
    assert type(back["parameter"]) is torch.Tensor
    assert not back["parameter"].requires_grad
    assert back["expanded"].untyped_storage().nbytes() == 4000


def test_a_tensor_larger_than_a_piece_is_written_without_a_second_copy(path, monkeypatch):
    monkeypatch.setattr(contents, "PIECE_BYTES", 100)
    state = [torch.randn(7, 50, 3).mT, torch.randn(1, 1, 90).expand(3, 1, 90), torch.randn(1000)]
    blocks = [memoryview(block).nbytes for tensor in state for block in contents._blocks(tensor)]
    assert max(blocks) <= 100
    assert sum(blocks) == checkpoints.file_bytes(state)["tensors"] == 4 * (7 * 50 * 3 + 3 * 90 + 1000)
    checkpoints.save(path, state)
    assert all(map(torch.equal, checkpoints.load(path), state))


def test_saving_takes_the_memory_of_a_piece_and_not_of_a_second_state(path):
    state = {f"row {n}": torch.zeros(2_000_000) for n in range(10)} | {"turned": torch.ones(6000, 6000).T}
    tracemalloc.start()
    copied = measure.peak_bytes(lambda: checkpoints.save(path, state))
    _, of_python = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 200e6
    assert contents.PIECE_BYTES / 4 < copied <= 2 * contents.PIECE_BYTES  # one written, and the next one made
    assert of_python < contents.PIECE_BYTES / 4


def test_a_file_is_as_long_as_predicted_and_a_view_takes_its_own_bytes(path, tmp_path):
    row = torch.zeros(1000, 1000)[3]
    checkpoints.save(path, {"row": row})
    torch.save({"row": row}, tmp_path / "torch.pt")
    header = b'{"dict":[["row",{"tensor":["float32",1000]}]]}'
    assert path.stat().st_size == 4 * 1000 + len(header) + len(b"course_utils checkpoint\n") + 3 * 8 + 32
    assert (tmp_path / "torch.pt").stat().st_size > 4_000_000
    assert checkpoints.file_bytes({"row": row}) == {"tensors": 4000, "header": len(header), "frame": 80}


def test_the_state_of_a_run_takes_12_bytes_a_parameter_4_a_tensor_and_its_generators(path):
    run = long_run.the_run()
    list(run.losses(2))
    parameters = list(run.model.parameters())
    state = run.state()
    checkpoints.save(path, state)
    generators = run.generator.get_state().nbytes + torch.get_rng_state().nbytes
    predicted = 12 * sum(map(torch.numel, parameters)) + 4 * len(parameters) + generators
    assert checkpoints.file_bytes(state)["tensors"] == predicted
    assert path.stat().st_size == predicted + checkpoints.file_bytes(state)["header"] + 80


# What cannot be saved.

Pair = namedtuple("Pair", "a b")


def holding_itself():
    state = {}
    state["again"] = [state]
    return state


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (lambda: {"model": {0: [nn.Linear(1, 1)]}}, "model.0.0 is of type torch.nn.modules.linear.Linear. "),
        (lambda: {"loss": np.float64(1)}, "loss is of type numpy.float64. "),
        (lambda: [1, np.zeros(2)], "1 is of type numpy.ndarray. "),
        (lambda: {"f": print}, "f is of type builtins.builtin_function_or_method. "),
        (lambda: {1.5: 0}, "The state itself has the key 1.5, which is neither a str nor an int. "),
        (lambda: {"a": {True: 0}}, "a has the key True, "),
        (lambda: {"a": {None: 0}}, "a has the key None, "),
        (lambda: {"count": Counter()}, "count is of type collections.Counter. "),
        (lambda: {"pair": Pair(1, 2)}, "pair is of type tests.test_checkpoints.Pair. "),
        (
            lambda: {"s": torch.zeros(2).to_sparse()},
            "s is a tensor whose bytes are not all of it (cpu, torch.sparse",
        ),
        (
            lambda: {"m": torch.zeros(2, device="meta")},
            "m is a tensor whose bytes are not all of it (meta, ",
        ),
        (
            lambda: torch.quantize_per_tensor(torch.ones(2), 1, 0, torch.qint8),
            "The state itself is a tensor ",
        ),
        (lambda: nn.Buffer(torch.ones(1)).as_subclass(Marked), "is a tensor of type Marked. "),
        (holding_itself, "again.0.again.0 holds more than 64 levels, or itself. "),
        (lambda: {"text": "\ud800"}, "text is the text '\\ud800', with half a character in it. "),
        (lambda: {"whole": 1, 2: {3, 4}}, "2 is of type builtins.set. "),
    ],
)
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_what_cannot_be_saved_is_named_with_its_place_before_anything_is_written(path, thing, sentence):
    with pytest.raises(
        ValueError, match=r"^[^\n]*\. A checkpoint holds dict \(keys: str or int\), .*\.$"
    ) as caught:
        checkpoints.save(path, thing())
    assert sentence in str(caught.value)
    assert names(path.parent) == []


class Marked(torch.Tensor):
    pass


# Files that are torn, changed or lie.

SMALL = {"step": 3, "w": torch.tensor([1.5, -2.0]), "n": float("nan"), "who": "é"}


@pytest.fixture
def small(path):
    checkpoints.save(path, SMALL)
    return path.read_bytes()


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^/.*\.ckpt (is|has) .*\.$") as caught:
        checkpoints.load(path)
    return str(caught.value)


def test_a_file_torn_at_any_byte_is_refused(path, small):
    said = {refusal(path, small[:size]).split(str(path))[1] for size in range(len(small))}
    assert any("is empty." in sentence for sentence in said)
    assert sum("torn" in sentence for sentence in said) == len(small) - 1


def test_a_file_with_any_one_byte_changed_is_refused(path, small):
    reasons = Counter()
    for place in range(len(small)):
        for bits in (1 << place % 8, 0xFF):
            changed = bytearray(small)
            changed[place] ^= bits
            said = refusal(path, bytes(changed))
            reasons[next(why for why in ("no checkpoint", "version", "torn", "damaged") if why in said)] += 1
    assert reasons["no checkpoint"] == 2 * len(contents.MAGIC)
    assert (reasons["version"], reasons["torn"]) == (2 * 8, 2 * 16)
    assert reasons["damaged"] == 2 * (len(small) - len(contents.MAGIC) - 24)


def test_bytes_that_were_added_are_noticed(path, small):
    said = refusal(path, small + b"\0")
    assert f"promises {len(small)} bytes and has {len(small) + 1}" in said


def written(header, payload=b"", *, version=1, header_bytes=None, payload_bytes=None):
    """A file with a true checksum, whatever it says."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    sizes = [len(h) if n is None else n for h, n in ((header, header_bytes), (payload, payload_bytes))]
    all_of_it = contents.MAGIC + struct.pack("<QQQ", version, *sizes) + header + payload
    return all_of_it + hashlib.sha256(all_of_it).digest()


def test_the_format_is_what_its_description_says(path, small):
    header = {
        "dict": [
            ["step", 3],
            ["w", {"tensor": ["float32", 2]}],
            ["n", {"float": "000000000000f87f"}],
            ["who", "é"],
        ]
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    assert small == written(text, struct.pack("<2f", 1.5, -2.0))
    assert in_bits(checkpoints.load(path)) == in_bits(SMALL)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (written({}, version=2), "has version 2, and this course reads version 1: update the course"),
        (written({}, version=0), "has version 0, "),
        (written([], header_bytes=2**63), "it promises 9,223,372,036,854,775,888 bytes and has "),
        (written([], payload_bytes=2**64 - 1), "is torn or was added to"),
        (written(b"[1, 2"), "its header says what cannot be"),
        (written(b"\xff\xfe"), "its header says what cannot be"),
        (written(b""), "its header says what cannot be"),
        (written(b"[" * 10**5 + b"]" * 10**5), "its header says what cannot be"),
        (written(b"[" * 70 + b"]" * 70), "more than 64 levels"),
        (written([{"tensor": ["float32", 2**40]}], b"1234"), "shape [1099511627776], where 4 bytes are left"),
        (
            written([{"tensor": ["float32", 2**40, 0, 2**40]}, {"tensor": ["int8", 2]}], b"1"),
            "where 1 bytes are left",
        ),
        (written([{"tensor": ["int8", 0, 2**62, 2**62]}]), "its header says what cannot be"),
        (written([{"tensor": ["int8", -4, -1]}], b"1234"), "a tensor of dtype int8 and shape [-4, -1]"),
        (written([{"tensor": ["int8", 2.0]}], b"12"), "a tensor of dtype int8 and shape [2.0]"),
        (written([{"tensor": ["int8", True]}], b"1"), "a tensor of dtype int8 and shape [True]"),
        (
            written([{"tensor": ["int8", 2**64, 0]}]),
            "a tensor of dtype int8 and shape [18446744073709551616, 0]",
        ),
        (written([{"tensor": ["int8", *[1] * 65]}], b"1"), "a tensor of dtype int8 and shape [1, 1"),
        (written([{"tensor": ["qint8", 1]}], b"1"), "a tensor of dtype qint8"),
        (written([{"tensor": ["Tensor", 1]}], b"1"), "a tensor of dtype Tensor"),
        (written([{"tensor": []}]), "is nothing that is saved here"),
        (written([{"tensor": ["int8", 1]}, {"tensor": ["int8", 1]}], b"1"), "where 0 bytes are left"),
        (written([{"tensor": ["int8", 1]}], b"12"), "1 bytes that belong to no tensor"),
        (written({"dict": [["a", 1], ["a", 2]]}), "a key twice"),
        (written({"dict": [[True, 1]]}), "True as a key"),
        (written({"dict": [[None, 1]]}), "None as a key"),
        (written({"dict": [[[], 1]]}), "[] as a key"),
        (written({"dict": [[{"float": "0" * 16}, 1]]}), "as a key"),
        (written({"dict": [1]}), "its header says what cannot be"),
        (written({"dict": [["a", 1, 2]]}), "its header says what cannot be"),
        (written({"int": "0b1__"}), "its header says what cannot be"),
        (written({"float": "0" * 15 + "g"}), "its header says what cannot be"),
        (written({"float": " " * 16}), "its header says what cannot be"),
        (written({"float": "00"}), "is nothing that is saved here"),
        (written({"pickle": "gASVCgAAAAAAAAB9lC4="}), "is nothing that is saved here"),
        (written({"__class__": "os.system"}), "is nothing that is saved here"),
        (written({}), "is nothing that is saved here"),
        (written(b"1" * 5000), "its header says what cannot be"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
def test_a_header_that_lies_gets_a_sentence_though_its_checksum_is_true(path, content, sentence):
    assert sentence in refusal(path, content)


@untimed
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=3)
        | st.sampled_from(sorted(contents.DTYPES)),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["tensor", "dict", "tuple", "int", "float", "x"]), inner, max_size=2
            )
        ),
        max_leaves=10,
    ),
    st.binary(max_size=8),
)
def test_any_header_whatever_gives_a_state_or_a_sentence(tmp_path_factory, header, payload):
    path = tmp_path_factory.getbasetemp() / "any.ckpt"
    path.write_bytes(written(header, payload))
    try:
        state, said = checkpoints.load(path), None
    except ValueError as reason:
        state, said = None, str(reason)
    if said is None:
        assert checkpoints.file_bytes(state)["tensors"] == len(payload)
    else:
        assert said.startswith(f"{path} is damaged")


def test_a_lying_header_does_not_make_room_for_what_the_file_does_not_hold(path, monkeypatch):
    asked = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: asked.append(empty(*a, **k).nbytes) or empty(*a, **k))
    header = [{"tensor": ["float64", 4]}, {"tensor": ["float64", 3]}, {"tensor": ["float64", 2**50]}]
    refusal(path, written(header, bytes(64)))
    assert asked == [32, 24]


def test_a_good_file_that_memory_has_no_room_for_is_not_called_damaged(tmp_path, monkeypatch):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, SMALL)

    def full(*given, **options):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.")

    monkeypatch.setattr(torch, "empty", full)
    for read in (
        lambda: checkpoints.newest(tmp_path),
        lambda: checkpoints.load(tmp_path / "step-00000002.ckpt"),
    ):
        with pytest.raises(
            MemoryError, match=r"step-00000002\.ckpt may be good, .* for a tensor of 8 bytes\. Load"
        ):
            read()

    def fuller(_):
        raise MemoryError

    monkeypatch.setattr(json, "loads", fuller)
    with pytest.raises(MemoryError, match=r"may be good, but there is no memory left for its header\."):
        checkpoints.newest(tmp_path)


def test_a_header_that_claims_gigabytes_is_refused_before_it_is_read(path, monkeypatch):
    with path.open("wb") as file:  # of holes: it takes no room
        file.write(contents.MAGIC + struct.pack("<QQQ", 1, 6 * 2**30, 0))
        file.truncate(contents.FRAME_BYTES + 6 * 2**30)
    with pytest.raises(
        ValueError, match=r"its header has 6,442,450,944 bytes, and 268,435,456 is the most\. Use an"
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
def test_a_file_that_carries_code_is_refused_and_its_code_does_not_run(path, tmp_path, writer):
    trace = tmp_path / "it-ran"
    if writer == "pickle":
        path.write_bytes(pickle.dumps({"model": Payload(trace)}))
    else:
        torch.save({"model": Payload(trace)}, path, _use_new_zipfile_serialization=writer == "torch")
    with pytest.raises(
        ValueError, match=r"is no checkpoint of this course\. Files of torch\.save .* can carry code"
    ):
        checkpoints.load(path)
    assert not trace.exists()
    step = tmp_path / "steps" / "step-00000009.ckpt"
    checkpoints.save_step(step.parent, 1, {"a": 1})
    path.rename(step)
    found = checkpoints.newest(step.parent)
    assert found.step == 1
    assert found.passed_over[0][0] == step
    assert not trace.exists()
    if writer != "torch":  # the very same file, opened by what does run code
        pickle.loads(step.read_bytes()) if writer == "pickle" else torch.load(step, weights_only=False)
        assert trace.exists()


def test_no_module_of_checkpoints_can_unpickle():
    folder = Path(checkpoints.__file__).parent
    for source in folder.glob("*.py"):
        text = source.read_text(encoding="utf-8")
        assert not any(
            word in text for word in ("import pickle", "torch.load", "eval(", "exec(", "importlib")
        )


def test_what_is_missing_or_no_file_gets_a_sentence(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"There is no checkpoint at .*none\.ckpt; nothing was saved there\.$"
    ):
        checkpoints.load(tmp_path / "none.ckpt")
    with pytest.raises(
        ValueError, match=r"is no file; of a folder of steps, checkpoints\.newest gives the newest\.$"
    ):
        checkpoints.load(tmp_path)
    with pytest.raises(ValueError, match=r"is there already, and is no file; give the path of a file\.$"):
        checkpoints.save(tmp_path, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no file"):
        checkpoints.load(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no file"):
        checkpoints.save(tmp_path / "pipe", {})
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("like", "sentence"),
    [
        (
            {"m": {"w": torch.zeros(3, 2)}},
            "m.w is float32 of shape (2, 3) in the file; float32 of shape (3, 2) is wanted.",
        ),
        (
            {"m": {"w": torch.zeros(2, 3).half()}},
            "m.w is float32 of shape (2, 3) in the file; float16 of shape",
        ),
        ({"m": {"w": 1}}, "m.w is float32 of shape (2, 3) in the file; 1 is wanted."),
        ({"m": {"v": torch.zeros(2, 3)}}, "m.v is wanted, and not in the file."),
        ({"m": [1]}, "m is a dict in the file; a list is wanted."),
        ({"m": {"w": torch.zeros(2, 3)}, "o": {0: (1,)}}, "o.0.1 is in the file, and not wanted."),
        ({"m": {"w": torch.zeros(2, 3)}, "o": {0: [1, 2]}}, "o.0 is a tuple in the file; a list is wanted."),
        ({"m": {"w": torch.zeros(2, 3)}}, "o is in the file, and not wanted."),
        ({"m": {"w": torch.zeros(2, 3)}, "o": {"0": (1, 2)}}, "o.0 is wanted, and not in the file."),
        (torch.zeros(1), "The state itself is a dict in the file; float32 of shape (1,) is wanted."),
    ],
)
def test_a_state_of_another_structure_is_named_at_its_first_difference(path, like, sentence):
    state = {"m": {"w": torch.ones(2, 3)}, "o": {0: (1, "x")}}
    checkpoints.save(path, state)
    with pytest.raises(ValueError, match="holds another state: ") as caught:
        checkpoints.load(path, like=like)
    assert sentence in str(caught.value)
    fitting = {"o": {0: (7, None)}, "m": {"w": torch.zeros(2, 3)}}  # other values, in another order
    assert in_bits(checkpoints.load(path, like=fitting)) == in_bits(state)
    assert in_bits(checkpoints.load(path, like={"m": {}, "o": {}})) == in_bits(state)


def test_a_fresh_runs_state_is_like_a_later_one_and_not_like_another_models(path):
    run = long_run.the_run()
    list(run.losses(2))
    checkpoints.save(path, run.state())
    assert checkpoints.load(path, like=long_run.the_run().state())["step"] == 2
    wider = long_run.the_run().state()
    wider["model"]["tokens"] = torch.zeros(128, 99)
    with pytest.raises(
        ValueError, match=r"model\.tokens is float32 of shape \(128, 64\) in the file; .*\(128, 99\)"
    ):
        checkpoints.load(path, like=wider)


# Saves that fail.


def failing_at(monkeypatch, n, error):
    """The n-th call of the system that a save makes raises; how many there were."""
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


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EDQUOT, "Quota"), KeyboardInterrupt()],
)
@pytest.mark.parametrize("n", range(1, 9))
def test_a_save_that_fails_anywhere_leaves_the_old_one_whole_and_nothing_else(path, monkeypatch, n, error):
    checkpoints.save(path, SMALL)
    with monkeypatch.context() as patched:
        calls = failing_at(patched, n, error)
        with pytest.raises(type(error)) as caught:
            checkpoints.save(path, {"w": torch.ones(3), "v": torch.ones(2)})
    assert calls == ["write"] * 5 + ["fsync", "replace", "fsync"] if n == 8 else len(calls) == n
    assert names(path.parent) == ["run.ckpt"]
    state = checkpoints.load(path)
    assert set(state) == (set(SMALL) if n < 8 else {"w", "v"})
    if isinstance(error, OSError):
        assert caught.value.errno == error.errno
        old = f"The state was not saved: {error.strerror}. What {path} holds is whole; make room, then save again."
        new = f"The new state is in place at {path}, and may not survive a loss of power: {error.strerror}. Save again"
        assert str(caught.value).startswith(f"[Errno {error.errno}] {old if n < 8 else new}")


def test_a_first_save_that_fails_says_that_nothing_is_there(path, monkeypatch):
    failing_at(monkeypatch, 2, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(
        OSError, match=r"Input/output error\. There is still nothing at .*run\.ckpt; save again, or some"
    ):
        checkpoints.save(path, SMALL)
    assert names(path.parent) == []


def test_a_folder_that_is_not_there_or_not_ours_is_told(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"There is still nothing at .*; make the folder first\.$"):
        checkpoints.save(tmp_path / "none" / "a.ckpt", {})
    with monkeypatch.context() as patched:  # as where something else removed the new file
        failing_at(patched, 6, FileNotFoundError(errno.ENOENT, "No such file"))
        with pytest.raises(
            FileNotFoundError, match=r"nothing at .*a\.ckpt; save again, or somewhere else\.$"
        ):
            checkpoints.save(tmp_path / "a.ckpt", {"w": torch.ones(3), "v": torch.ones(2)})
    denied = PermissionError(errno.EACCES, "Permission denied")
    failing_at(monkeypatch, 1, denied)
    with pytest.raises(
        PermissionError, match=r"Permission denied\. .*; choose a folder that you may write to\.$"
    ):
        checkpoints.save(tmp_path / "a.ckpt", {})


def test_a_folder_that_cannot_be_flushed_is_no_failure(path, monkeypatch):
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    flush = os.fsync

    def only_files(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(handle)

    monkeypatch.setattr(os, "fsync", only_files)
    checkpoints.save(path, {"a": 1})
    assert checkpoints.load(path) == {"a": 1}


def test_the_file_and_then_the_folder_are_flushed_and_the_name_comes_between(path, monkeypatch):
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    order = []

    def noted(name):
        function = getattr(os, name)

        def call(*given):
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(given[0]).st_mode)
            size = os.fstat(given[0]).st_size if name == "fsync" and not is_folder else 0
            order.append((name, is_folder, size))
            return function(*given)

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name))
    checkpoints.save(path, SMALL)
    size = path.stat().st_size
    assert order == [("fsync", False, size), ("replace", False, 0), ("fsync", True, 0)]


@pytest.mark.parametrize("code", [None, errno.ENOTSUP, errno.EIO])
def test_macos_flushes_all_the_way_and_as_others_where_a_disk_cannot(path, monkeypatch, code):
    asked, plain = [], []

    def control(handle, command):
        asked.append((stat.S_ISDIR(os.fstat(handle).st_mode), command))
        if code:
            raise OSError(code, "told")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    monkeypatch.setattr(os, "fsync", plain.append)
    if code == errno.EIO:
        with pytest.raises(OSError, match="The state was not saved: told"):
            checkpoints.save(path, SMALL)
        return
    checkpoints.save(path, SMALL)
    assert asked == [(False, 51), (True, 51)]
    assert len(plain) == (2 if code else 0)


def test_the_parent_of_every_new_folder_is_flushed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(files, "flush_folder", flushed.append)
    checkpoints.save_step(tmp_path / "a" / "b" / "c", 1, {})
    a, b, c = tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"
    assert flushed == [tmp_path, a, b, c]
    checkpoints.save_step(c, 2, {})
    assert flushed[4:] == [c]


def test_a_private_file_is_private_from_its_first_moment(path, monkeypatch):
    checkpoints.save(path, {})
    path.chmod(0o600)
    monkeypatch.setattr(os, "chmod", lambda *_: None)  # so that what it began with shows
    checkpoints.save(path, {"private": 1})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_permissions_are_those_that_open_would_give_and_leave(tmp_path, umask):
    before = os.umask(umask)
    try:
        (tmp_path / "plain").open("w").close()
        checkpoints.save(tmp_path / "ours", {})
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "ours").chmod(0o640)
    checkpoints.save(tmp_path / "ours", {"private": 1})
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o640


def test_through_a_link_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.ckpt", tmp_path / "link"
    link.symlink_to(target)
    for state in ({"n": 1}, {"n": 2}):  # at first the target is not there yet
        checkpoints.save(link, state)
        assert link.is_symlink()
        assert checkpoints.load(target) == checkpoints.load(link) == state


def test_a_name_may_be_bytes_free_text_or_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a b", "ünï [*]", "step-00000001.ckpt", str(tmp_path / "x")):
        checkpoints.save(name, {"name": name})
        assert checkpoints.load(Path(name)) == {"name": name}


# A folder of steps.


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=8), st.integers(1, 4))
def test_the_newest_few_and_the_latest_saved_are_kept(tmp_path_factory, steps, keep):
    folder, kept = tmp_path_factory.mktemp("steps") / "new", set()
    for step in steps:
        path = checkpoints.save_step(folder, step, {"step": step}, keep=keep)
        kept = {*sorted(kept | {step})[-keep:], step}
        assert path == folder / f"step-{step:08d}.ckpt"
        assert names(folder) == [f"step-{n:08d}.ckpt" for n in sorted(kept)]
        found = checkpoints.newest(folder)
        assert (found.step, found.path, found.state) == (
            max(kept),
            folder / f"step-{max(kept):08d}.ckpt",
            {"step": max(kept)},
        )
        assert found.passed_over == ()


def test_old_ones_go_only_when_the_new_one_is_there(tmp_path, monkeypatch):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, {}, keep=2)
    for n in range(1, 5):
        with monkeypatch.context() as patched:
            failing_at(patched, n, OSError(errno.ENOSPC, "No space left on device"))
            with pytest.raises(OSError, match="No space left"):
                checkpoints.save_step(tmp_path, 3, {}, keep=1)
        assert names(tmp_path) == ["step-00000001.ckpt", "step-00000002.ckpt"]


def test_bad_files_are_passed_over_named_left_alone_and_not_counted(tmp_path):
    for step in (1, 2, 3, 4, 5):
        checkpoints.save_step(tmp_path, step, {"step": step}, keep=9)
    content = (tmp_path / "step-00000005.ckpt").read_bytes()
    (tmp_path / "step-00000005.ckpt").write_bytes(content[:50])
    (tmp_path / "step-00000006.ckpt").write_bytes(b"")
    torch.save({}, tmp_path / "step-00000007.ckpt")
    (tmp_path / "step-00000008.ckpt").mkdir()
    (tmp_path / "step-00000009.ckpt").write_bytes(written({}, version=9))
    (tmp_path / "step-00000004.ckpt").write_bytes(content.replace(b"5", b"6"))  # its length is right
    found = checkpoints.newest(tmp_path)
    assert found.step == found.state["step"] == 3
    assert [path.name for path, _ in found.passed_over] == [
        f"step-0000000{n}.ckpt" for n in (9, 8, 7, 6, 5, 4)
    ]
    reasons = ["version 9", "is no file", "no checkpoint of this course", "empty", "torn", "damaged"]
    for (path, sentence), reason in zip(found.passed_over, reasons, strict=True):
        assert sentence.startswith(str(path))
        assert reason in sentence
    checkpoints.save_step(tmp_path, 10, {"step": 10}, keep=3)
    assert [int(name[5:13]) for name in names(tmp_path)] == [3, 4, 5, 6, 7, 8, 9, 10]


def test_names_without_a_file_are_passed_over(tmp_path):
    checkpoints.save_step(tmp_path, 1, {"step": 1})
    (tmp_path / "step-00000009.ckpt").symlink_to(tmp_path / "gone")
    (tmp_path / "step-00000008.ckpt").symlink_to("step-00000008.ckpt")
    os.mkfifo(tmp_path / "step-00000007.ckpt")
    found = checkpoints.newest(tmp_path)
    assert found.step == 1
    said = ["name only", "cannot be read: Too many", "no file"]
    assert all(why in reason for why, (_, reason) in zip(said, found.passed_over, strict=True))
    checkpoints.save_step(tmp_path, 2, {}, keep=1)  # and they are neither counted nor removed
    assert names(tmp_path) == [f"step-0000000{n}.ckpt" for n in (2, 7, 8, 9)]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_what_the_disk_cannot_read_is_passed_over_and_what_one_may_not_read_is_told(
    tmp_path, monkeypatch, code
):
    for step in (1, 2):
        checkpoints.save_step(tmp_path, step, {"step": step})
    read = contents.read

    def broken(file):
        if "step-00000002" in file.name:
            raise OSError(code, "So it is")
        return read(file)

    monkeypatch.setattr(contents, "read", broken)
    if code == errno.EACCES:
        with pytest.raises(PermissionError):
            checkpoints.newest(tmp_path)
        return
    found = checkpoints.newest(tmp_path)
    assert found.step == 1
    bad = tmp_path / "step-00000002.ckpt"
    assert found.passed_over == ((bad, f"{bad} cannot be read: So it is. Use an older one."),)


def test_an_empty_folder_and_none_have_no_newest(tmp_path):
    assert checkpoints.newest(tmp_path) is None
    assert checkpoints.newest(tmp_path / "none") is None
    (tmp_path / "step-1.ckpt.txt").write_bytes(b"")
    assert checkpoints.newest(tmp_path) is None


def test_a_folder_of_torn_checkpoints_is_no_empty_one(tmp_path):
    (tmp_path / "step-00000001.ckpt").write_bytes(b"torn")
    (tmp_path / "step-00000002.ckpt").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"none of them can be used. .*step-00000002\.ckpt is empty\..*another folder"
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
    assert names(tmp_path) == ["step-100000000.ckpt", "step-100000001.ckpt"]


@pytest.mark.parametrize(("step", "keep"), [(-1, 3), (0, 0)])
def test_a_step_below_0_or_none_kept_raises_a_sentence(tmp_path, step, keep):
    with pytest.raises(ValueError, match=rf"^Steps count from 0, .*; got step {step} and keep {keep}\.$"):
        checkpoints.save_step(tmp_path, step, {}, keep=keep)


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
        checkpoints.save_step(tmp_path, 3, {})
        assert names(tmp_path) == sorted(
            [name for name, stays in left.items() if stays] + ["step-00000003.ckpt"]
        )
        assert checkpoints.newest(tmp_path).step == 3


def test_a_temporary_file_names_its_machine_and_its_process(path, monkeypatch):
    seen, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: seen.append(old.name) or replace(old, new))
    hosts = {files._host.__wrapped__()}
    assert hosts == {files._host()}
    checkpoints.save(path, {})
    monkeypatch.setattr(platform, "node", lambda: "another")
    hosts.add(files._host.__wrapped__())
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[1]")  # a container on it
    hosts.add(files._host.__wrapped__())
    assert len(hosts) == 3
    (name,) = seen
    assert name.startswith(f"run.ckpt.{files._host()}-{os.getpid()}-")


def test_a_step_is_saved_with_one_look_for_leftovers(tmp_path, monkeypatch):
    looks, look = [], files._remove_leftovers
    monkeypatch.setattr(files, "_remove_leftovers", lambda folder: looks.append(folder) or look(folder))
    checkpoints.save_step(tmp_path, 1, {})
    assert looks == [tmp_path]


def test_threads_that_save_to_one_path_do_not_meet(path):
    states = [{"who": n, "w": torch.full((50_000,), float(n))} for n in range(4)]
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(checkpoints.save, path, state) for _ in range(5) for state in states]
    assert all(each.result() is None for each in done)
    state = checkpoints.load(path)
    assert state["w"].eq(state["who"]).all()
    assert names(path.parent) == ["run.ckpt"]


SAVER = """
import sys, torch
from course_utils import checkpoints
which, folder = int(sys.argv[1]), sys.argv[2]
for n in range(20):
    state = {"who": which, "n": n, "w": torch.full((20_000,), float(which))}
    checkpoints.save(f"{folder}/one.ckpt", state)
    checkpoints.save_step(folder, n, state, keep=2)
    if found := checkpoints.newest(folder):
        assert found.state["w"].eq(found.state["who"]).all() and not found.passed_over
    loaded = checkpoints.load(f"{folder}/one.ckpt")
    assert loaded["w"].eq(loaded["who"]).all()
"""


def test_two_processes_that_save_in_one_folder_leave_each_others_files_whole(tmp_path):
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, f"{n}", str(tmp_path)], stderr=subprocess.PIPE, text=True
        )
        for n in (1, 2)
    ]
    complaints = [process.communicate()[1] for process in both]
    assert complaints == ["", ""]
    assert names(tmp_path) == ["one.ckpt", "step-00000018.ckpt", "step-00000019.ckpt"]
    state = checkpoints.newest(tmp_path).state
    assert state["n"] == 19
    assert state["w"].eq(state["who"]).all()


def test_the_newest_is_found_while_older_ones_are_being_removed(tmp_path, monkeypatch):
    checkpoints.save_step(tmp_path, 1, {"step": 1})
    load, others_turn = files.load, [True]

    def just_removed(path, **options):
        if others_turn.pop() if others_turn else False:
            checkpoints.save_step(tmp_path, 2, {"step": 2}, keep=1)
        return load(path, **options)

    monkeypatch.setattr(files, "load", just_removed)
    assert checkpoints.newest(tmp_path).state == {"step": 2}


# What a run's state needs.


def test_the_state_of_python_numpy_and_torch_goes_on_from_a_file(path):
    training = long_run.training
    training.seed_all(5)
    np.random.randn(), random.gauss(0, 1)
    states = training.shared_states()
    expected = random.random(), np.random.randn(), random.gauss(0, 1), torch.rand(2).tolist()
    checkpoints.save(path, states)
    training.restore_shared_states(checkpoints.load(path))
    assert (random.random(), np.random.randn(), random.gauss(0, 1), torch.rand(2).tolist()) == expected
