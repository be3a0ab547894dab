"""How an answer is judged: not attempted yet, right, or wrong with what was expected and what came."""

import copy
import inspect
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
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


NOT_ATTEMPTED = Verdict(
    "not attempted yet", "Put your answer where the ... stands, and run both cells again."
)
NO_NUMBER = "NaN is no number; it comes of 0 / 0, 0 × inf or inf - inf."
IN_PLACE = "changed what it was given. Change nothing in place: make a new one."


def judge_value(
    answer: object,
    expected: object,
    *,
    wanted: str,
    tempting: Mapping[object, str],
    because: str,
    tolerance: Number = 0.0,
) -> Verdict:
    """One value, exact or to a relative tolerance, with advice for the wrong values that people come to.

    `wanted` names the quantity and its unit, for those who answer with something else altogether.
    """
    if answer is ...:
        return NOT_ATTEMPTED
    if agree(answer, expected, tolerance):
        return Verdict("right", because)
    for wrong, words in tempting.items():
        if agree(answer, wrong, tolerance):
            return Verdict("not yet", f"{shown(answer)} is not it. {words}")
    number = _plain(answer)
    if not is_number(expected):
        said = f"{_came(answer)} is not it."
    elif not is_number(number):
        said = f"{_came(answer)} is not one plain number{': write it without quotes or a unit' * isinstance(number, str)}."
    elif number != number:  # which holds of NaN alone
        said = NO_NUMBER
    elif near(number, expected, 0.03):
        said = f"{shown(answer)} is close, but something is rounded or left out."
    else:
        said = f"{shown(answer)} is too {'large' if number > expected else 'small'}."
    return Verdict("not yet", f"{said} Wanted: {wanted}.")


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
    if not callable(answer):
        return no_function(answer)
    alike = dict(tempting)
    for case in cases:
        theirs = (
            case if (lasting := all(isinstance(x, int | float | str) for x in case)) else copy.deepcopy(case)
        )
        came, error = call(answer, *theirs)
        if came is ...:
            return NOT_ATTEMPTED
        expected = None if error else oracle(*(case if lasting else copy.deepcopy(case)))
        if isinstance(expected, bool) and isinstance(_plain(came), int) and _plain(came) in (0, 1):
            came = bool(came)
        plainly = type(came) is type(expected) is float and came == expected != 0  # of 131,072, say
        right = (
            not error and (plainly or agree(came, expected, tolerance)) and (lasting or same(theirs, case))
        )
        if right and not alike:
            continue
        alike = {
            wrong: words for wrong, words in alike.items() if _alike(wrong, case, came, error, tolerance)
        }
        if right:
            continue
        called = f"{name_of(answer)}({', '.join(map(_argument, case))})"
        advice = next(iter(alike.values()), "")
        if error:
            said = f"{stopped(answer, error)} {advice or _advice_on_calling(answer, case)}"
        elif not same(theirs, case):
            said = IN_PLACE
        else:
            said = f"{_gave(came, expected, tolerance)}. {advice or advice_on_kind(came, expected)}"
        return Verdict("not yet", f"{called} {said}".strip())
    return Verdict("right", because)


def no_function(answer: object) -> Verdict:
    """What is said of an answer that cannot be called."""
    if answer is ...:
        return NOT_ATTEMPTED
    return Verdict("not yet", f"A function is wanted here, not {shown(answer)}.")


def _alike(
    wrong: Callable[..., object], case: tuple, came: object, error: BaseException | None, tolerance: Number
) -> bool:
    """Whether that function gives the same, or stops in the same way."""
    its, mistake = call(wrong, *copy.deepcopy(case))
    if mistake or error:
        return type(mistake) is type(error) and _said_by(mistake) == _said_by(error)
    return agree(its, came, tolerance)


def shown(x: object) -> str:
    """A value as it may stand in a sentence: brief, on one line, and never an address in memory."""
    if isinstance(x, torch.Tensor | np.ndarray) and x.ndim:
        return f"{'a tensor' if isinstance(x, torch.Tensor) else 'an array'} of shape {tuple(x.shape)}"
    if inspect.isroutine(x):
        return "a function"
    try:
        words = _written(x)
    except Exception:  # an integer of 5,000 digits has no repr, nor has a list that holds itself
        words = ""
    if not words or " at 0x" in words or words.startswith("<"):
        return f"a value of type {type(x).__name__}"
    return words if len(words) <= 70 else f"{words[:50]} … {words[-10:]}"


def _written(x: object) -> str:
    """As Python writes it, but with six digits and on one line."""
    if type(x) in (list, tuple):
        parts = ", ".join(map(shown if len(x) < 9 else _written, x))
        return f"[{parts}]" if isinstance(x, list) else f"({parts}{',' * (len(x) == 1)})"
    words = " ".join(repr(x).split())
    return f"{x:.6g}" if isinstance(x, float) and len(words) > 9 else words


def _argument(x: object) -> str:
    """A value between the brackets of a call."""
    return f"tensor{list(x.shape)}" if isinstance(x, torch.Tensor) else shown(x)


def _came(answer: object) -> str:
    """The answer at the beginning of a sentence."""
    words = shown(answer)
    return words.replace("a", "A", 1) if words.startswith(("a ", "an ")) else words


def _gave(came: object, expected: object, tolerance: Number, part: str = "") -> str:
    """What came and what was expected, down to the part that differs."""
    pair = isinstance(came, list | tuple) and isinstance(expected, list | tuple)
    if pair and len(came) == len(expected) and any(isinstance(x, torch.Tensor) for x in expected):
        places = [f" as the {place} of {len(came)}" for place in ("first", "second", "third")]
        parts = zip(came, expected, places, strict=True)
        came, expected, part = next(p for p in parts if not agree(*p[:2], tolerance))
    gave = f"gave{part} {shown(came)}"
    if (
        not (isinstance(came, torch.Tensor) and isinstance(expected, torch.Tensor))
        or came.shape != expected.shape
    ):
        alike = shown(came) == shown(expected)
        return (
            f"gave{part} {came!r}; expected {expected!r}" if alike else f"{gave}; expected {shown(expected)}"
        )
    if came.isnan().any():
        return f"{gave} with NaN among its numbers"
    if came.dtype == torch.bool or came.is_complex():
        return f"{gave} and {came.dtype}; expected {expected.dtype}"
    return f"{gave}, as expected, but its numbers differ by up to {(expected - came).abs().max().item():.2g}"


def advice_on_kind(came: object, expected: object) -> str:
    """A sentence for what is not of the kind that is wanted, whatever the exercise."""
    wants_tensor = isinstance(expected, torch.Tensor)
    given, came, expected = came, _plain(came), _plain(expected)
    if came is None:
        return "None is what a function gives that has no return, or return print(...)."
    if inspect.isroutine(came):
        return "A function's name is not its result: call it, with brackets behind it."
    if isinstance(came, Iterator):
        return "Give back the whole at once: return instead of yield, and list(...) around a map or a zip."
    if isinstance(expected, bool):
        return "" if isinstance(came, bool) else "True or False is wanted."
    if _has_nan(came) and not _has_nan(expected):
        return NO_NUMBER
    if wants_tensor:
        return "" if isinstance(given, torch.Tensor) else "A tensor is wanted."
    of_tensors = isinstance(expected, list | tuple) and any(isinstance(x, torch.Tensor) for x in expected)
    parts = isinstance(came, list | tuple) and not (of_tensors and isinstance(given, torch.Tensor))
    if isinstance(expected, list | tuple) and not parts:
        return "A list is wanted." if isinstance(expected, list) else f"{len(expected)} values are wanted."
    if isinstance(expected, list | tuple):
        return "" if len(came) == len(expected) else f"It has {len(came)} parts; {len(expected)} are wanted."
    if is_number(expected) and not is_number(came):
        return "One plain number is wanted."
    return "That is close: something is rounded or left out." if near(came, expected, 0.003) else ""


def _has_nan(x: object) -> bool:
    return any(map(_has_nan, x)) if isinstance(x, list | tuple) else isinstance(x, float) and math.isnan(x)


def _advice_on_calling(function: Callable[..., object], case: tuple) -> str:
    """A sentence for a function that cannot even be called with these arguments."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError:
        return f"It is called with {len(case)} value{'s' * (len(case) > 1)}: keep the first line of the stub."
    except ValueError:  # a function of Python's own, which does not say what it takes
        pass
    return ""


def call(function: Callable[..., object], *arguments: object) -> tuple[object, BaseException | None]:
    """What the function returned, or the error that it stopped with."""
    try:
        return function(*arguments), None
    except (Exception, SystemExit) as error:
        return None, error


def stopped(function: Callable[..., object], error: BaseException) -> str:
    """How it stopped, as a sentence: the reader's line and not our stack, and the first line of what Python says."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame.lineno for frame in frames if code and frame.filename == code.co_filename]
    where = f" in line {theirs[-1]}" if theirs else ""
    said = _said_by(error)
    end = "" if said.endswith((".", "?", "!")) else "."
    return f"stopped{where} with {type(error).__name__}{': ' if said else ''}{said}{end}"


def _said_by(error: BaseException) -> str:
    """The first line of what an error says of itself, if it can."""
    try:
        return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:160]
    except Exception:  # one of the reader's own, that fails at that too
        return ""


def name_of(function: Callable[..., object]) -> str:
    """What the reader called it."""
    name = getattr(function, "__name__", "<")
    return "your function" if name.startswith("<") else name


def agree(a: object, b: object, tolerance: Number) -> bool:
    """The same, or within that share of each other, part by part."""
    if isinstance(b, list | tuple) and isinstance(a, torch.Tensor | np.ndarray) and a.ndim:
        a = list(a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(agree(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return same(a, b) or near(a, b, tolerance)


def is_number(x: object) -> bool:
    """Whether it is one of Python's real numbers, which True and False are not here."""
    return isinstance(x, int | float) and not isinstance(x, bool)


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
    try:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and max(a.ndim, b.ndim) > 0:
            return a.shape == b.shape and bool(((a - b).abs() <= tolerance * b.abs().max()).all())
        a, b = _plain(a), _plain(b)
        if isinstance(a, list | tuple) and isinstance(b, list | tuple):
            return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b, strict=True))
        return is_number(a) and is_number(b) and tolerance > 0 and math.isclose(a, b, rel_tol=tolerance)
    except (RuntimeError, OverflowError):  # tensors of truth values; an integer beyond every float
        return False


def _plain(x: object) -> object:
    """NumPy's scalars, fractions and tensors of one element as Python's own numbers."""
    if isinstance(x, torch.Tensor) and not x.is_meta:
        return x.item() if x.numel() == 1 else x.tolist()
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, Fraction):
        return float(x)
    return x.item() if isinstance(x, np.generic) else x
