"""An answer in another process: what it says arrives as it is, what it must not say does not, and verdicts stay the same."""

import json
import math
import multiprocessing
import os
import random
import socket
from collections.abc import Callable
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
import torch

from course_utils.chapters.mixed_precision import repair
from course_utils.core import measure
from course_utils.core.accountant import Model
from course_utils.engine.judging.agreement import same
from course_utils.stage.grading import answering, asking, flags, observing, seccomp, wire
from course_utils.stage.grading.slicing import statements
from course_utils.stage.grading.talking import SilentError, Talk, TooSlowError
from tests.engine.test_checks import TRIED
from tests.helpers.notebooks import exercises
from tests.helpers.thorough import few

FORKING = multiprocessing.get_context("fork")
BASE = torch.arange(24.0).view(4, 6)
META = torch.empty(1 << 20, 8, device="meta")
PLAIN = [
    *(
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
    ),
    *(
        [1, (2, [3])],
        {"a": (1,), 2: 3, None: "x"},
        Fraction(1, 3),
        BASE,
        BASE.T,
        BASE[1:, ::2],
        META,
    ),
    *(
        torch.tensor(2.0, dtype=torch.bfloat16),
        torch.zeros(6, 0),
        torch.ones(3) > 0,
        BASE[:1].expand(5, 6),
    ),
]


def through(value: object) -> object:
    return wire.decoded(wire.encoded(value), kinds={})


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_arrives_as_it_is_and_of_exactly_its_type(value):
    came = through(value)
    assert type(came) is type(value)
    assert same(came, value)


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


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        *(
            (Lying(1), float),
            (np.float64(2), float),
            (np.bool_(1), bool),
            (random.Random, wire.Other),
        ),
        *(
            (Equal(), wire.Other),
            (torch.zeros(2).as_subclass(Tensorlike), torch.Tensor),
            (len, None),
        ),
        *(
            (torch.nn.Parameter(torch.zeros(2)), torch.Tensor),
            ({1: Equal()}, dict),
            ([Lying(1)], list),
        ),
    ],
    ids=lambda x: getattr(x, "__name__", type(x).__name__),
)
def test_no_method_of_anothers_class_arrives(value, type_):
    came = through(value)
    parts = came.values() if type(came) is dict else came if type(came) is list else [came]
    assert type_ is None or isinstance(came, type_)
    for part in parts:
        assert type(part).__module__ in ("builtins", "torch", "course_utils.stage.grading.wire")
        assert type(part) is not Lying
        assert not (part == object() and type(part) is not bool) or callable(part)


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
        assert isinstance(
            came, list | dict | tuple | int | float | str | None | torch.Tensor | wire.Other
        )


def tensor(**other: object) -> dict[str, object]:
    told = {
        "kind": "tensor",
        "dtype": "float32",
        "shape": [2],
        "stride": [1],
        "offset": 0,
        "storage": 0,
    }
    return told | {"at": 0, "nbytes": 8} | other


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


def test_who_says_nothing_or_too_much_is_not_waited_for():
    mine, theirs = socket.socketpair()
    with mine, theirs:
        with pytest.raises(TooSlowError):
            Talk(mine, 0.05).hear()
        theirs.send(b"\xff" * 8)
        with pytest.raises(SilentError, match="more than anybody may"):
            Talk(mine, 5).hear()


def asked_apart(answer: object, check: Callable[[object], object]) -> object:
    """The check's verdict on an answer that lies in another process."""
    mine, theirs = socket.socketpair()

    def live() -> None:
        mine.close()
        talk = Talk(theirs, 60, {"Model": Model})
        try:
            talk.say(answering._described(answer))
            while True:
                case = talk.hear()
                if isinstance(case, tuple):
                    answering._say_outcome(talk, answer, case)
                else:
                    observing.OBSERVE[case["do"]](talk, answer, case)
        except SilentError:
            os._exit(0)

    process = FORKING.Process(target=live)
    process.start()
    theirs.close()
    with mine:
        talk = Talk(mine, 60)
        verdict = check(asking.value_of(talk.hear(), talk))
    process.join()
    return verdict


@pytest.fixture
def from_afar():
    kept = mock.patch.object(measure, "saved_bytes_over_time", measure.saved_bytes_over_time)
    with kept, mock.patch.multiple(repair, seen=repair.seen, is_untouched=repair.is_untouched):
        asking.judge_from_afar()
        yield


WITH_TRIED = [e for e in exercises() if e.judge in TRIED]
# Each answer to a loop that is to be mended trains a model twice: one of the five loops stands for all.
OTHER_LOOPS = {"mended_a", "mended_c", "mended_d", "mended_e"}
AT_ONCE = [e for e in WITH_TRIED if e.judge.__name__ not in OTHER_LOOPS]


@pytest.mark.parametrize("exercise", few(WITH_TRIED, AT_ONCE), ids=lambda e: e.name)
def test_a_tried_answer_gets_from_afar_the_verdict_that_it_gets_here(exercise, from_afar):
    tried = TRIED[exercise.judge]
    for right in tried.right:
        assert asked_apart(right, exercise.judge).right
    for wrong, words in tried.wrong:
        here, apart = exercise.judge(wrong), asked_apart(wrong, exercise.judge)
        assert apart.status == here.status == "not yet"
        assert words in apart.words, (here, apart)


NO_PART = "def f():\n    return {}\n"


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
    lent = statements(
        "a", "from course_utils.chapters.accountant import days, matrices, SECONDS_PER_DAY"
    )
    assert words in flags.found([one.code for one in statements("b", text)], lent, ["matrices"])


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
    lent = statements(
        "a", "from course_utils.chapters.accountant import days, matrices, SECONDS_PER_DAY"
    )
    assert flags.found([one.code for one in statements("b", text)], lent, ["matrices"]) == []


def refused(number: int) -> bool:
    """Whether the filter of this processor refuses a call of that number, run as the kernel runs it."""
    machine = "x86_64"
    steps, at, held = seccomp.program(machine), 0, 0
    shown = {seccomp.ARCHITECTURE_AT: seccomp.ARCHITECTURES[machine], seccomp.NUMBER_AT: number}
    while True:
        code, if_true, if_false, value = steps[at]
        if code == seccomp.RETURN:
            return value != seccomp.ALLOW
        at += 1
        if code == seccomp.LOAD:
            held = shown.get(value, 0)
            continue
        holds = {
            seccomp.JUMP_IF_EQUAL: held == value,
            seccomp.JUMP_IF_AT_LEAST: held >= value,
            seccomp.JUMP_IF_ANY_BIT: bool(held & value),
        }[code]
        at += if_true if holds else if_false


def test_the_filter_refuses_processes_signals_and_sockets_and_nothing_that_computing_needs():
    assert all(refused(numbers[0]) for numbers in seccomp.REFUSED.values())
    assert refused(seccomp.CLONE[0])  # without the flag of a thread
    assert refused(seccomp.CLONE3[0])
    assert refused(0x40000000 + 59)
    read, write, open_, mmap, futex, exit_group = 0, 1, 257, 9, 202, 231
    assert not any(map(refused, (read, write, open_, mmap, futex, exit_group)))
