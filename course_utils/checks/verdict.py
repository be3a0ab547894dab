"""How an answer is judged: not attempted yet, right, or wrong with what was expected and what came."""

import math
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape

COLOUR = {"not attempted yet": "#5f6b76", "right": "#00875f", "not yet": "#D55E00"}


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
    answer: Callable[..., object],
    oracle: Callable[..., object],
    cases: Iterable[tuple],
    *,
    tempting: Mapping[Callable[..., object], str],
    because: str,
) -> Verdict:
    """A function, case by case against the oracle. If a tempting function gives the same wrong answer, its advice."""
    for case in cases:
        came, stumble = _call(answer, case)
        call = f"{answer.__name__}({', '.join(map(repr, case))})"
        if stumble:
            return Verdict("not yet", f"{call} {stumble}")
        if came is ...:
            return NOT_ATTEMPTED
        expected = oracle(*case)
        if not same(came, expected):
            advice = next(
                (words for wrong, words in tempting.items() if same(_call(wrong, case)[0], came)), ""
            )
            return Verdict("not yet", f"{call} gave {came!r}; expected {expected!r}. {advice}".strip())
    return Verdict("right", because)


def _call(function: Callable[..., object], case: tuple) -> tuple[object, str]:
    """What the function returned, or a sentence on how it failed: the reader's line, not our stack."""
    try:
        return function(*case), ""
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        return None, f"stopped in line {line} with {type(error).__name__}: {error}"


def same(a: object, b: object) -> bool:
    """Equal to the last bit: NaN equals NaN, and -0.0 is not 0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) != isinstance(b, str):
        return a is b
    try:
        return bool(a == b)
    except Exception:  # a tensor of several elements, say: not the one value that was asked for
        return False
