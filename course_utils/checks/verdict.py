"""How an answer is judged: not attempted yet, right, or wrong with what was expected and what came."""

import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
import torch

from course_utils.figures import COLOURS

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


NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)


def judge_value(answer: object, expected: object, *, tempting: Mapping[object, str], because: str) -> Verdict:
    """One value, with advice for the wrong values that people come to."""
    if answer is ...:
        return NOT_ATTEMPTED
    if same(answer, expected):
        return Verdict("right", because)
    advice = next((words for wrong, words in tempting.items() if same(answer, wrong)), "")
    return Verdict("not yet", f"{answer!r} is not it. {advice}".strip())


def judge_function(
    answer: object,
    oracle: Callable[..., object],
    cases: Iterable[tuple],
    *,
    tempting: Mapping[Callable[..., object], str],
    because: str,
) -> Verdict:
    """A function, case by case against the oracle. A tempting function that went the same way all along gives advice."""
    if answer is ...:
        return NOT_ATTEMPTED
    if not callable(answer):
        return Verdict("not yet", f"A function is wanted here, not {answer!r}.")
    tempting = dict(tempting)
    for case in cases:
        came, stumble = call(answer, *case)
        called = f"{name_of(answer)}({', '.join(map(repr, case))})"
        if stumble:
            return Verdict("not yet", f"{called} {stumble}")
        if came is ...:
            return NOT_ATTEMPTED
        tempting = {wrong: words for wrong, words in tempting.items() if same(call(wrong, *case)[0], came)}
        expected = oracle(*case)
        if not same(came, expected):
            advice = next(iter(tempting.values()), "")
            words = f"{called} gave {came!r}; expected {expected!r}. {advice}".strip()
            return Verdict("not yet", words)
    return Verdict("right", because)


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


def name_of(function: Callable[..., object]) -> str:
    """What the reader called it."""
    return getattr(function, "__name__", "your function")


def same(a: object, b: object) -> bool:
    """Equal to the last bit: NaN equals NaN, and -0.0 is not 0.0. Whose number type it is does not matter."""
    a, b = _plain(a), _plain(b)
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


def _plain(x: object) -> object:
    """NumPy's scalars and tensors of one element as Python's own numbers."""
    if isinstance(x, torch.Tensor):
        return x.item() if x.numel() == 1 else x
    return x.item() if isinstance(x, np.generic) else x
