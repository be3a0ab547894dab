"""How an answer is judged: not attempted yet, right, or wrong with what was expected and what came."""

import copy
import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import torch

from course_utils.figures import COLOURS
from course_utils.quantities import Number

COLOUR = {"not attempted yet": COLOURS["limit"], "right": "#00875f", "not yet": COLOURS["alarm"]}


@dataclass(frozen=True)
class Verdict:
    """What the reader is told."""

    status: str  # "not attempted yet", "right", "not yet"
    words: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer passed."""
        return self.status == "right"

    def __repr__(self) -> str:
        return f"{self.status.capitalize()}. {self.words}".strip()

    def _repr_html_(self) -> str:
        border = f"border-left: 4px solid {COLOUR[self.status]}; padding: 4px 10px"
        return f'<div style="{border}"><b>{self.status.capitalize()}.</b> {escape(self.words)}</div>'


_WANTED = {int: "A plain number is wanted.", float: "A plain number is wanted."}
NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)


def judge_value(
    answer: object,
    expected: object,
    *,
    tempting: Mapping[object, str],
    because: str,
    tolerance: Number = 0.0,
    wanted: str = "",
) -> Verdict:
    """One value, exact or to a relative tolerance, with advice for the wrong values that people come to."""
    if answer is ...:
        return NOT_ATTEMPTED
    if same(answer, expected) or near(answer, expected, tolerance):
        return Verdict("right", because)
    if (
        not isinstance(_plain(answer), type(expected) | int | float)
        or isinstance(answer, bool)
        or answer != answer
    ):
        return Verdict(
            "not yet", f"{answer!r} is not it. {wanted or _WANTED.get(type(expected), '')}".strip()
        )
    advice = next(
        (words for wrong, words in tempting.items() if same(answer, wrong) or near(answer, wrong, tolerance)),
        "",
    )
    return Verdict("not yet", f"{answer!r} is not it. {advice}".strip())


def judge_function(
    answer: object,
    oracle: Callable[..., object],
    cases: Iterable[tuple],
    *,
    tempting: Mapping[Callable[..., object], str],
    because: str,
    tolerance: Number = 0.0,
) -> Verdict:
    """A function, case by case against the oracle. A tempting function that went the same way all along gives advice.

    `tolerance` is a share of each number; of a tensor, a share of its largest one.
    """
    if answer is ...:
        return NOT_ATTEMPTED
    if not callable(answer):
        return Verdict("not yet", f"A function is wanted here, not {answer!r}.")
    tempting = dict(tempting)
    for case in cases:
        theirs = copy.deepcopy(case)
        came, stumble = call(answer, *theirs)
        called = f"{name_of(answer)}({', '.join(map(_shown, case))})"
        if stumble:
            alike = (
                words
                for wrong, words in tempting.items()
                if _error(call(wrong, *copy.deepcopy(case))[1]) == _error(stumble)
            )
            return Verdict("not yet", f"{called} {stumble} {next(alike, '')}".strip())
        if came is ...:
            return NOT_ATTEMPTED
        tempting = {
            wrong: words
            for wrong, words in tempting.items()
            if same(its := call(wrong, *copy.deepcopy(case))[0], came) or near(its, came, tolerance)
        }
        if not all(map(same, theirs, case)):
            return Verdict("not yet", f"{called} changed what it was given. Change nothing in place.")
        expected = oracle(*copy.deepcopy(case))
        if not (same(came, expected) or near(came, expected, tolerance)):
            advice = next(iter(tempting.values()), "")
            words = f"{called} gave {_shown(came)}; expected {_expected(expected, came)}. {advice}".strip()
            return Verdict("not yet", words)
    return Verdict("right", because)


def _shown(x: object) -> str:
    """A tensor by its shape, anything else as Python shows it."""
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


def _expected(expected: object, came: object) -> str:
    if isinstance(expected, torch.Tensor) and isinstance(came, torch.Tensor):
        if expected.shape == came.shape:
            return f"other numbers: they differ by up to {(expected - came).abs().max().item():.2g}"
        return f"shape {tuple(expected.shape)}"
    return _shown(expected)


def call(function: Callable[..., object], *arguments: object) -> tuple[object, str]:
    """What the function returned, or a sentence on how it failed: the reader's line, not our stack."""
    try:
        return function(*arguments), ""
    except Exception as error:
        code = getattr(inspect.unwrap(function), "__code__", None)
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame.lineno for frame in frames if code and frame.filename == code.co_filename]
        where = f" in line {theirs[-1]}" if theirs else ""
        return None, f"stopped{where} with {type(error).__name__}: {error}"


def _error(stumble: str) -> str:
    """The error without the line that it came from."""
    return stumble.partition(" with ")[2]


def name_of(function: Callable[..., object]) -> str:
    """What the reader called it."""
    return getattr(function, "__name__", "your function")


def same(a: object, b: object) -> bool:
    """Equal to the last bit: NaN equals NaN, and -0.0 is not 0.0. Whose number type it is, or list or tuple, does not matter."""
    a, b = _plain(a), _plain(b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if {type(a), type(b)} == {int, float} and abs(a) < 2**53 > abs(b):  # where a float holds every integer
        a, b = float(a), float(b)
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) != isinstance(b, str):
        return a is b
    try:
        return bool(a == b)
    except Exception:  # a tensor of several elements, say: not the one value that was asked for
        return False


def near(a: object, b: object, tolerance: Number) -> bool:
    """Within that share of each other; of two sequences, each number of the one and of the other; of tensors, of the largest."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and max(a.ndim, b.ndim) > 0:
        return a.shape == b.shape and bool(((a - b).abs() <= tolerance * b.abs().max()).all())
    a, b = _plain(a), _plain(b)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (a, b))
    return numbers and tolerance > 0 and math.isclose(a, b, rel_tol=tolerance)


def _plain(x: object) -> object:
    """NumPy's scalars and tensors of one element as Python's own numbers."""
    if isinstance(x, torch.Tensor):
        return x.item() if x.numel() == 1 else x.tolist()
    if isinstance(x, np.ndarray):
        return x.tolist()
    return x.item() if isinstance(x, np.generic) else x
