"""The sentences of a verdict, on a value, a difference or an error: brief, and never a stack trace."""

import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from course_utils.core.say import Number
from course_utils.engine.judging.agreement import agree, is_dense, is_number, near, plain
from course_utils.engine.judging.limits import LONGEST_S, TooLongError

NO_NUMBER = "NaN is not a number. It comes from 0 / 0, 0 × inf or inf - inf."


class InPlaceError(Exception):
    """A function has changed what it was given."""


def shown(x: object) -> str:
    """A value as it may stand in a sentence: brief, on one line, and never an address in memory."""
    if isinstance(x, torch.Tensor | np.ndarray) and x.ndim:
        return (
            f"{'a tensor' if isinstance(x, torch.Tensor) else 'an array'} of shape {tuple(x.shape)}"
        )
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
    """The value as Python writes it, with at most six digits and on one line."""
    if type(x) in (list, tuple):
        parts = ", ".join(map(shown if len(x) < 9 else _written, x))
        return f"[{parts}]" if isinstance(x, list) else f"({parts}{',' * (len(x) == 1)})"
    words = " ".join(repr(x).split())
    return f"{x:.6g}" if isinstance(x, float) and len(words) > 9 else words


def called(function: Callable[..., object], case: tuple) -> str:
    """The call of the reader's function, as it is written."""
    arguments = (
        f"tensor{list(x.shape)}" if isinstance(x, torch.Tensor) else shown(x) for x in case
    )
    return f"{name_of(function)}({', '.join(arguments)})"


def off(answer: object, expected: object) -> str:
    """The sentence on a value that no exercise lists."""
    number, words = plain(answer), shown(answer)
    beginning = f"A{words[1:]}" if words.startswith(("a ", "an ")) else words
    if not is_number(expected):
        return f"{beginning} is not it."
    if not is_number(number):
        advice = ": write it without quotes or a unit" if isinstance(number, str) else ""
        return f"{beginning} is not one plain number{advice}."
    if number != number:  # which holds of NaN alone
        return NO_NUMBER
    if near(number, expected, 0.03):
        return f"{words} is close, but something is rounded or left out."
    return f"{words} is too {'large' if number > expected else 'small'}."


def gave(came: object, expected: object, tolerance: Number, part: str = "") -> str:
    """The sentence on what came and what was expected. In a dict, or a tuple of tensors, it names the part that differs."""
    if _has_tensors(expected) and isinstance(came, list | tuple) and len(came) == len(expected):
        places = [f" as the {place} of {len(came)}" for place in ("first", "second", "third")]
        parts = zip(came, expected, places, strict=False)
        came, expected, part = next(p for p in parts if not agree(*p[:2], tolerance))
    if isinstance(came, dict) and isinstance(expected, dict):
        if came.keys() != expected.keys():
            return f"gave {', '.join(map(str, came)) or 'nothing'}; expected {', '.join(map(str, expected))}."
        key = next(key for key in expected if not agree(came[key], expected[key], tolerance))
        came, expected, part = came[key], expected[key], f" as {key}"
    tensors = isinstance(came, torch.Tensor) and isinstance(expected, torch.Tensor)
    gave, wanted = f"gave{part} {shown(came)}", shown(expected)
    if not tensors and shown(came) == wanted:  # they differ beyond six digits
        return f"gave{part} {came!r}; expected {expected!r}."
    if tensors and not is_dense(came):
        return f"gave{part} a tensor whose numbers are not all there, as on the meta device; expected {wanted}."
    if not tensors or came.shape != expected.shape:
        return f"{gave}; expected {wanted}."
    if came.isnan().any():
        return f"{gave} with NaN among its numbers."
    if (
        came.dtype == torch.bool
        or came.is_complex()
        or torch.equal(came.double(), expected.double())
    ):
        return f"{gave} and {came.dtype}; expected {expected.dtype}."
    at = tuple(
        torch.unravel_index((expected.double() - came.double()).abs().argmax(), expected.shape)
    )
    is_, should_be = _apart(came[at].item(), expected[at].item())
    place = ", ".join(f"{index}" for index in at)
    return f"{gave}, as expected, but [{place}] is {is_}, and should be {should_be}."


def _apart(a: Number, b: Number) -> tuple[str, str]:
    """Both numbers with three digits, or with more if they differ only there."""
    pairs = ((f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in range(3, 18))
    return next(pair for pair in pairs if pair[0] != pair[1])


def advice_on_kind(came: object, expected: object) -> str:
    """The sentence on a result of the wrong kind; an empty string if its kind is right."""
    wants_tensor = isinstance(expected, torch.Tensor)
    given, came, expected = came, plain(came), plain(expected)
    if came is None:
        return "A function gives None if it has no return, or returns print(...)."
    if inspect.isroutine(came):
        return "That is the function itself. Call it: write brackets after its name."
    if isinstance(came, Iterator):
        return "Return the whole at once: write return instead of yield, and list(...) around a map or a zip."
    if isinstance(expected, bool):
        return "" if isinstance(came, int) and came in (0, 1) else "True or False is wanted."
    if _has_nan(came) and not _has_nan(expected):
        return NO_NUMBER
    if wants_tensor:
        return "" if isinstance(given, torch.Tensor) else "A tensor is wanted."
    if isinstance(expected, list | tuple):
        wanted = (
            "A list is wanted."
            if isinstance(expected, list)
            else f"{len(expected)} values are wanted."
        )
        if not isinstance(came, list | tuple) or (
            _has_tensors(expected) and isinstance(given, torch.Tensor)
        ):
            return wanted
        return (
            "" if len(came) == len(expected) else f"It has {len(came)} parts, not {len(expected)}."
        )
    if is_number(expected) and not is_number(came):
        return "One plain number is wanted."
    return "That is close: something is rounded or left out." if near(came, expected, 0.003) else ""


def _has_tensors(x: object) -> bool:
    return isinstance(x, list | tuple) and any(isinstance(part, torch.Tensor) for part in x)


def _has_nan(x: object) -> bool:
    return (
        any(map(_has_nan, x))
        if isinstance(x, list | tuple)
        else isinstance(x, float) and math.isnan(x)
    )


def advice_on_calling(function: Callable[..., object], case: tuple) -> str:
    """The sentence on a function that does not take these arguments; an empty string if it does."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError:
        return f"It is called with {len(case)} value{'s' * (len(case) > 1)}: keep the first line of the stub."
    except ValueError:  # a function of Python's own, which does not say what it takes
        pass
    return ""


def stopped(function: Callable[..., object], error: BaseException) -> str:
    """The sentence on an error: the line in the reader's code, and the first line of Python's message."""
    if isinstance(error, InPlaceError):
        return "changed what it was given. Change nothing in place: make a new one."
    if told := getattr(
        error, "told", ""
    ):  # it was raised in another process, which has the student's code
        return told
    code = getattr(inspect.unwrap(function), "__code__", None)
    frames = traceback.walk_tb(error.__traceback__)
    theirs = [(f, line) for f, line in frames if code and f.f_code.co_filename == code.co_filename]
    where = f" in line {theirs[-1][1]}" if theirs else ""
    if isinstance(error, TooLongError | KeyboardInterrupt):
        with_ = _variables(theirs[-1][0].f_locals) if theirs else ""
        if isinstance(error, KeyboardInterrupt):
            return f"was interrupted{where}{with_}."
        return f"had not ended after {LONGEST_S:.0f} s, and was ended{where}{with_}. Does its loop come to an end?"
    said = said_by(error)
    end = "" if said.endswith((".", "?", "!")) else "."
    return f"stopped{where} with {type(error).__name__}{': ' if said else ''}{said}{end}"


def stopped_briefly(error: BaseException) -> str:
    """The sentence on an error without its message, in which the function could tell what it was called with."""
    if isinstance(error, InPlaceError):
        return "It changed what it was given. Change nothing in place: make a new one."
    if isinstance(error, TooLongError):
        return f"It had not ended after {LONGEST_S:.0f} s. Does its loop come to an end?"
    name = type(error).__name__ if type(error).__module__ == "builtins" else "an error of its own"
    return f"In one of the cases it stopped with {name}."


def _variables(found: Mapping[str, object]) -> str:
    """The function's variables at that moment, at most four: numbers and strings alone."""
    plain_ones = [
        f"{name} = {shown(x)}" for name, x in found.items() if isinstance(x, int | float | str)
    ]
    return f", with {', '.join(plain_ones[:4])}" if plain_ones else ""


def said_by(error: BaseException) -> str:
    """The first line of an error's message."""
    try:
        return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:160]
    except Exception:  # one of the reader's own, that fails at that too
        return ""


def name_of(function: Callable[..., object]) -> str:
    name = getattr(function, "__name__", "<")
    return "your function" if name.startswith("<") else name
