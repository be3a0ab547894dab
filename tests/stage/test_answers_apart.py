"""An answer in another process: plain values arrive as they are, and others do not arrive.

Verdicts on such an answer are those that it gets in the judge's own process.
"""

import json
import math
import multiprocessing
import random
import socket
from dataclasses import dataclass
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
import torch

from course_utils.chapters.mixed_precision import repair
from course_utils.core import measure
from course_utils.core.accountant import Latent, Mixture, Model, model_from
from course_utils.engine.judging.agreement import same
from course_utils.engine.judging.exercises import Check
from course_utils.engine.judging.sentences import shown
from course_utils.engine.judging.verdict import Verdict
from course_utils.stage.grading import answering, asking, flags, observing, seccomp, wire
from course_utils.stage.grading.channel import Channel, ChannelError, TooSlowError
from course_utils.stage.grading.slicing import statements
from tests import ROOT
from tests.engine.test_checks import TRIED
from tests.helpers.notebooks import Exercise, exercises
from tests.helpers.thorough import few

# The processes of answers are forked by a server that has imported what they need and has computed
# nothing. To fork this process would not do: a torch with CUDA refuses a backward pass in a process
# whose parent has done one, and any torch may wait for ever for threads that were not copied.
# torch._dynamo takes a second, and each answer with an optimizer would import it for itself.
FROM_SERVER = multiprocessing.get_context("forkserver")
FROM_SERVER.set_forkserver_preload(["tests.stage.test_answers_apart", "torch._dynamo"])
BASE = torch.arange(24.0).view(4, 6)
META = torch.empty(1 << 20, 8, device="meta")
PLAIN = [
    None,
    True,
    ...,
    3,
    2**70,
    -(2**60),
    1.5,
    math.nan,
    -0.0,
    math.inf,
    "ä\ud800\x00",
    b"\0\1",
    1 + 2j,
    [1, (2, [3])],
    {"a": (1,), 2: 3, None: "x"},
    Fraction(1, 3),
    BASE,
    BASE.T,
    BASE[1:, ::2],
    META,
    torch.tensor(2.0, dtype=torch.bfloat16),
    torch.zeros(6, 0),
    torch.ones(3) > 0,
    BASE[:1].expand(5, 6),
]


def through(value: object) -> object:
    return wire.decoded(wire.encoded(value), kinds={})


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_arrives_as_it_is_and_of_exactly_its_type(value):
    came = through(value)
    assert type(came) is type(value)
    assert same(came, value)


KINDS = {kind.__name__: kind for kind in (Model, Mixture, Latent)}


@dataclass(slots=True)
class Slotted:
    number: int


def test_a_model_arrives_with_its_experts_and_its_latent():
    config = ROOT / "course_utils" / "core" / "configs" / "deepseek-v3.json"
    model = model_from(json.loads(config.read_text(encoding="utf-8")))
    assert wire.decoded(wire.encoded(model), kinds=KINDS) == model
    assert isinstance(through(Slotted(3)), wire.Other), "and one of another class as a stand-in"


def test_views_of_one_storage_are_views_of_one_storage():
    base, turned, other, meta, row = through([BASE, BASE.T, BASE.clone(), META, META[0]])
    storages = [x.untyped_storage()._cdata for x in (base, turned, other, meta, row)]
    assert storages[0] == storages[1] != storages[2]
    assert storages[3] == storages[4] != storages[0]


class Equal:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class Lying(float):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class Tensorlike(torch.Tensor):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


OF_OTHER_CLASSES = [  # a value, and of which type it arrives
    (Lying(1), float),
    (np.float64(2), float),
    (np.bool_(1), bool),
    (random.Random, wire.Other),
    (Equal(), wire.Other),
    (torch.zeros(2).as_subclass(Tensorlike), torch.Tensor),
    (torch.nn.Parameter(torch.zeros(2)), torch.Tensor),
    ({1: Equal()}, dict),
    ([Lying(1)], list),
]
MODULES_OF_WHAT_ARRIVES = ("builtins", "torch", "course_utils.stage.grading.wire")


def parts_of(value: object) -> list[object]:
    if type(value) is dict:
        return list(value.values())
    return value if type(value) is list else [value]


@pytest.mark.parametrize(
    ("value", "type_"),
    OF_OTHER_CLASSES,
    ids=lambda x: getattr(x, "__name__", type(x).__name__),
)
def test_no_method_of_anothers_class_arrives(value, type_):
    came = through(value)
    assert isinstance(came, type_)
    for part in parts_of(came):
        assert type(part).__module__ in MODULES_OF_WHAT_ARRIVES
        assert type(part) is not Lying
        is_equal_to_all = part == object()
        assert not is_equal_to_all


def test_a_function_arrives_as_one_that_cannot_be_called():
    came = through(len)
    assert type(came).__module__ == "builtins"
    with pytest.raises(TypeError, match="It stands for a function"):
        came([])


VALUES = (list, dict, tuple, int, float, str, type(None), torch.Tensor, wire.Other)


def test_bytes_that_are_no_value_are_refused_and_nothing_else_happens():
    draw = random.Random(0)
    whole = wire.encoded([BASE, {"a": (1, 2.5, "x")}, META, np.arange(3), Fraction(1, 2), b"abc"])
    text_end = 8 + int.from_bytes(whole[:8], "big")
    for _ in range(3000):
        spoilt = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            spoilt[draw.randrange(8, text_end)] = draw.choice(b'0123456789-[]{}",:eE. tfn')
        try:
            came = wire.decoded(bytes(spoilt), kinds={})
        except wire.WireError:
            continue
        assert isinstance(came, VALUES)


def tensor(**other: object) -> dict[str, object]:
    """What is written of a tensor of two numbers, but for what is to be wrong in it."""
    told = {
        "kind": "tensor",
        "dtype": "float32",
        "shape": [2],
        "stride": [1],
        "offset": 0,
        "storage": 0,
        "at": 0,
        "nbytes": 8,
    }
    return told | other


@pytest.mark.parametrize(
    "tree",
    [
        tensor(shape=[3]),
        tensor(offset=1),
        tensor(stride=[-1]),
        tensor(shape=[10**12], stride=[0]),
        tensor(dtype="quint8"),
        tensor(dtype="float32; import os"),
        tensor(storage=7),
        tensor(shape=[1] * 99, stride=[1] * 99),
        tensor(shape=[True]),
        tensor(nbytes=10**9),
        {"kind": "array", "dtype": "O", "shape": [1], "at": 0, "nbytes": 8},
        {"kind": "fraction", "parts": ["0x1", "0x0"]},
        {"kind": "int", "hex": "0x" + "f" * 200_000},
        {"kind": "value"},
        {"kind": "__init__"},
        {"kind": ["tuple"]},
        {"kind": "dict", "pairs": [[[1], 2]]},
        {"kind": "tuple"},
        {"a": 1},
    ],
    ids=str,
)
def test_a_claim_that_cannot_be_is_refused(tree):
    text = json.dumps(tree).encode()
    with pytest.raises(wire.WireError):
        wire.decoded(len(text).to_bytes(8, "big") + text + bytes(8), kinds={})


@pytest.mark.parametrize(
    "data", [b"", b"\xff" * 8, b"\0" * 8, bytes(7) + b"\x05{{{{{", b"\x80\x04K\x01."]
)
def test_noise_is_refused(data):
    with pytest.raises(wire.WireError):
        wire.decoded(data, kinds={})


def test_a_channel_does_not_wait_for_one_that_sends_nothing_or_too_much():
    mine, theirs = socket.socketpair()
    with mine, theirs:
        with pytest.raises(TooSlowError):
            Channel(mine, 0.05).receive()
        theirs.send(b"\xff" * 8)
        with pytest.raises(ChannelError, match="more than anybody may"):
            Channel(mine, 5).receive()


WITH_TRIED = [exercise for exercise in exercises() if exercise.judge in TRIED]
# Each answer to a loop that is to be mended trains a model twice: one of the five loops stands for
# all.
OTHER_LOOPS = {"mended_a", "mended_c", "mended_d", "mended_e"}
AT_ONCE = [exercise for exercise in WITH_TRIED if exercise.judge.__name__ not in OTHER_LOOPS]
LONGEST_S = 60


def live(name: str, is_right: bool, number: int, end: socket.socket) -> None:
    """What the process of a tried answer does, until nobody asks it any more."""
    (judge,) = [exercise.judge for exercise in WITH_TRIED if exercise.name == name]
    answer = tried_answers(judge, is_right=is_right)[number]
    channel = Channel(end, LONGEST_S, KINDS)
    try:
        channel.send(answering._described(answer))
        while True:
            case = channel.receive()
            if isinstance(case, tuple):
                answering._send_outcome(channel, answer, case)
            else:
                observing.OBSERVE[case["do"]](channel, answer, case)
    except ChannelError:
        return


def tried_answers(judge: Check, *, is_right: bool) -> list[object]:
    tried = TRIED[judge]
    return list(tried.right) if is_right else [wrong for wrong, _ in tried.wrong]


def asked_apart(exercise: Exercise, number: int, *, is_right: bool) -> Verdict:
    """The check's verdict on the tried answer of that number, which lies in another process."""
    mine, theirs = socket.socketpair()
    arguments = (exercise.name, is_right, number, theirs)
    process = FROM_SERVER.Process(target=live, args=arguments)
    process.start()
    theirs.close()
    with mine:
        channel = Channel(mine, LONGEST_S)
        verdict = exercise.judge(asking.value_of(channel.receive(), channel))
    process.join()
    assert process.exitcode == 0
    return verdict


@pytest.fixture
def remotely():
    """The checks judge functions in another process, and afterwards as they did before."""
    kept = mock.patch.object(measure, "saved_bytes_over_time", measure.saved_bytes_over_time)
    loops = mock.patch.multiple(repair, seen=repair.seen, is_untouched=repair.is_untouched)
    with kept, loops:
        asking.observe_remotely()
        yield


@pytest.mark.parametrize("exercise", few(WITH_TRIED, AT_ONCE), ids=lambda e: e.name)
def test_a_tried_answer_gets_remotely_the_verdict_that_it_gets_here(exercise, remotely):
    tried = TRIED[exercise.judge]
    for number in range(len(tried.right)):
        assert asked_apart(exercise, number, is_right=True).right
    for number, (wrong, words) in enumerate(tried.wrong):
        here = exercise.judge(wrong)
        apart = asked_apart(exercise, number, is_right=False)
        assert apart.status == here.status == "not yet"
        assert words in apart.words, (here, apart)


LENT = "from course_utils.chapters.accountant import days, matrices, SECONDS_PER_DAY"
NO_PART = "def f():\n    return {}\n"


def test_a_function_where_a_value_is_wanted_is_called_a_function():
    judges_end, answers_end = socket.socketpair()
    with judges_end, answers_end:
        remote = asking.RemoteFunction(Channel(judges_end, longest_s=1), "my_days", None)
        assert shown(remote) == "a function"


def flags_in(text: str) -> list[str]:
    """What is flagged in a cell of this text, below the import above; it may use `matrices`."""
    nodes = [statement.code for statement in statements("b", text)]
    return flags.found(nodes, statements("a", LENT), ["matrices"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import course_utils.chapters.flops.check",
            "It imports course_utils.chapters.flops.check.",
        ),
        ("from course_utils import chapters", "It imports course_utils.chapters."),
        (
            "from course_utils.chapters.accountant import days",
            "It imports course_utils.chapters.accountant.",
        ),
        (NO_PART.format("days(1)"), "It uses days of the accountant, or of what judges it."),
        (NO_PART.format("repair.loop()"), "It uses repair.loop, which has the answer."),
        (NO_PART.format("__builtins__"), "It uses __builtins__."),
        (NO_PART.format("eval('1')"), "It calls eval."),
        (NO_PART.format("'course_utils.chapters'"), "It names 'course_utils.chapters'."),
    ],
)
def test_what_reaches_for_the_answers_is_flagged(text, words):
    assert words in flags_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "from course_utils.chapters.accountant import SECONDS_PER_DAY, matrices",
        "import math, torch, os\nfrom course_utils import measure",
        NO_PART.format("[m for m in model.modules()]"),
        NO_PART.format("matrices(m) and SECONDS_PER_DAY and repair.add_up"),
        NO_PART.format("re.compile('x')"),
    ],
)
def test_what_an_answer_needs_is_not_flagged(text):
    assert flags_in(text) == []


def refused(number: int) -> bool:
    """Whether the filter of this processor refuses a call of that number, as the kernel does."""
    machine = "x86_64"
    steps = seccomp.program(machine)
    shown = {seccomp.ARCHITECTURE_AT: seccomp.ARCHITECTURES[machine], seccomp.NUMBER_AT: number}
    at = 0
    held = 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == seccomp.RETURN:
            return value != seccomp.ALLOW
        if code == seccomp.LOAD:
            held = shown.get(value, 0)
        elif jumps(code, held, value):
            at += if_true
        else:
            at += if_false


def jumps(code: int, held: int, value: int) -> bool:
    return {
        seccomp.JUMP_IF_EQUAL: held == value,
        seccomp.JUMP_IF_AT_LEAST: held >= value,
        seccomp.JUMP_IF_ANY_BIT: held & value != 0,
    }[code]


def test_the_filter_refuses_processes_signals_and_sockets_and_nothing_that_computing_needs():
    for number, _ in seccomp.REFUSED.values():
        assert refused(number)
    clone_without_the_flag_of_a_thread, _ = seccomp.CLONE
    assert refused(clone_without_the_flag_of_a_thread)
    clone3, _ = seccomp.CLONE3
    assert refused(clone3)
    execve = 59
    assert refused(seccomp.OF_ANOTHER_KIND + execve)
    needed = {"read": 0, "write": 1, "openat": 257, "mmap": 9, "futex": 202, "exit_group": 231}
    for number in needed.values():
        assert not refused(number)
