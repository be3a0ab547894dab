"""The sentences of a verdict: on a value, a difference or an error, brief, with no stack trace."""

import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

import numpy as np
import torch

from course_utils.core.say import Number, listed
from course_utils.engine.judging.agreement import agree, is_dense, is_number, near, plain
from course_utils.engine.judging.limits import LONGEST_S, TooLongError

NO_NUMBER = "NaN is not a number. It comes from 0 / 0, 0 × inf or inf - inf."
NO_END = "Does its loop come to an end?"
# Follows the name of a function.
IN_PLACE = "changed what it was given. Change nothing in place: make a new one."
NAMELESS = "your function"
MOST_WRONG = 3  # keys of a dict whose wrong values are shown
FEW_PARTS = 8  # of a list or tuple, of which a sentence keeps all
MOST_SHOWN = 70  # characters of a value; of a longer one, the beginning and the end
MOST_VARIABLES = 4  # that are shown where an answer that did not end was stopped
MOST_OF_A_MESSAGE = 160  # characters
# Relative: what is so close to the right number is taken for rounded or slightly incomplete.
CLOSE_VALUE = 0.03  # of a typed number
CLOSE_RESULT = 0.003  # of a function's


class InPlaceError(Exception):
    """A function has changed what it was given."""


# On a value.


def shown(x: object) -> str:
    """Return a value as a sentence may quote it: short, on one line, without a memory address."""
    if isinstance(x, torch.Tensor) and x.ndim:
        return f"a tensor of shape {tuple(x.shape)}"
    if isinstance(x, np.ndarray) and x.ndim:
        return f"an array of shape {x.shape}"
    # While grading, an object with a function's name stands for the function in another process.
    stands_for_a_function = callable(x) and hasattr(x, "__name__") and not isinstance(x, type)
    if inspect.isroutine(x) or stands_for_a_function:
        return "a function"
    try:
        words = _written(x)
    except Exception:  # an integer of 5,000 digits has no repr, nor has a list that holds itself
        words = ""
    is_address = " at 0x" in words or words.startswith("<")  # as in <object object at 0x7f…>
    if not words or is_address:
        return f"a value of type {type(x).__name__}"
    if len(words) > MOST_SHOWN:
        return f"{words[:50]} … {words[-10:]}"
    return words


def _written(x: object) -> str:
    """Return a value on one line, as Python writes it; of many parts, just those at both ends."""
    if type(x) in (int, float):  # with separators, as 1,024; type(), since a bool is an int
        return number_in_full(x)
    if type(x) in (list, tuple):
        # Few parts are all kept, so `shown` shortens each. Of many parts, `_in_a_row` leaves some
        # out, so the others need not be shortened.
        write = shown if len(x) <= FEW_PARTS else _written
        parts = [write(part) for part in x]
        words = _in_a_row(parts)
        if isinstance(x, list):
            return f"[{words}]"
        return f"({words},)" if len(parts) == 1 else f"({words})"
    if type(x) is dict:
        items = [f"{shown(name)}: {shown(part)}" for name, part in x.items()]
        return "{" + _in_a_row(items) + "}"
    return " ".join(repr(x).split())  # without line breaks


def _in_a_row(parts: list[str]) -> str:
    """Return the parts, separated by commas; if they are too long, whole parts from both ends."""
    words = ", ".join(parts)
    fits = len(words) + len("[]") <= MOST_SHOWN  # `_written` adds brackets
    if fits or len(parts) < 3:
        return words
    first = [parts[0]]
    room = MOST_SHOWN - len(f"[, … {parts[-1]}]")
    for part in parts[1:-1]:
        if len(", ".join([*first, part])) > room:
            break
        first.append(part)
    return f"{', '.join(first)}, … {parts[-1]}"


def number_in_full(x: Number) -> str:
    """Return an integer with separators, and a float with six digits, or all before the point.

    >>> number_in_full(2_142_208), number_in_full(1155.534), number_in_full(6.3e24)
    ('2,142,208', '1,155.53', '6.3 × 10^24')
    """
    if isinstance(x, int):
        return f"{x:,}"
    if not math.isfinite(x) or x == 0:
        return repr(x).removesuffix(".0")  # such as "inf", "nan" or "0"
    if 1e-4 <= abs(x) < 1e9:
        digits_after_the_point = max(0, 5 - math.floor(math.log10(abs(x))))
        words = f"{x:,.{digits_after_the_point}f}"
        return words.rstrip("0").rstrip(".") if "." in words else words
    mantissa, _, power = f"{x:.5e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')} × 10^{int(power)}"


def called(function: Callable[..., object], case: str) -> str:
    """Return a sentence's beginning, such as "With n = 3, my_days"; the case may be empty."""
    name = name_of(function)
    if case:
        return f"{case}, {name}"
    return NAMELESS.capitalize() if name == NAMELESS else name


def case_in_words(names: Sequence[str], case: Sequence[object]) -> str:
    """Return a case in words, such as "With batch = 16 and widths = [8, 4, 4, 2]".

    Neighbouring tensors of one shape are named together, as in "With q and k of shape (2, 3)".
    """
    words = []
    together: list[str] = []  # the names of neighbouring tensors of one shape
    for place, (name, x) in enumerate(zip(names, case, strict=True)):
        if not isinstance(x, torch.Tensor):
            words.append(f"{name} = {shown(x)}")
            continue
        together.append(name)
        following = case[place + 1] if place + 1 < len(case) else None
        if isinstance(following, torch.Tensor) and following.shape == x.shape:
            continue  # both are named together, in a later pass of the loop
        words.append(f"{listed(together)} of shape {tuple(x.shape)}")
        together = []
    return f"With {listed(words)}"


def name_of(function: Callable[..., object]) -> str:
    """Return the function's name, or NAMELESS for a lambda or an object without a name."""
    name = getattr(function, "__name__", "<none>")
    return NAMELESS if name.startswith("<") else name  # a lambda's name is "<lambda>"


def wrong_value(answer: object, expected: object) -> str:
    """Return the sentence on a wrong value that the exercise does not list as a mistake."""
    number = plain(answer)
    words = shown(answer)
    is_described = words.startswith(("a ", "an "))  # as in "a function"
    beginning = f"A{words[1:]}" if is_described else words
    if not is_number(expected):
        return f"{beginning} is not it."
    if not is_number(number):
        advice = ": write it without quotes or a unit" if isinstance(number, str) else ""
        return f"{beginning} is not one plain number{advice}."
    # Only NaN differs from itself. math.isnan would raise an error for an integer beyond floats.
    if number != number:
        return NO_NUMBER
    if near(number, expected, CLOSE_VALUE):
        return f"{words} is close, but something is rounded or left out."
    return f"{words} is too {'large' if number > expected else 'small'}."


# On a difference.


def gave(result: object, expected: object, tolerance: Number, unit: str = "") -> str:
    """Return the sentence on a wrong result: what the function gave, and what was expected.

    For a dict, the sentence names every key. For a tuple or a list of tensors, it names the place
    of the first tensor that differs, such as "as the second of 3".
    """
    part = ""  # of several tensors, the place of the one that differs: " as the second of 3"
    if _has_tensors(expected) and isinstance(result, list | tuple) and len(result) == len(expected):
        part, result, expected = _differing_part(result, expected, tolerance)
    if isinstance(result, dict) and isinstance(expected, dict):
        return _gave_dict(result, expected, tolerance)
    if isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _gave_tensor(result, expected, part)
    from course_utils.engine.judging.pairs import beside  # only a wrong answer needs it

    given, wanted = beside(result, expected, unit)
    return f"gave{part} {given}; expected {wanted}."


def _gave_dict(result: dict, expected: dict, tolerance: Number) -> str:
    """Return the sentence for two dicts, with a ✓ behind each key whose value is right."""
    if result.keys() != expected.keys():
        given_keys = ", ".join(map(str, result)) or "nothing"
        expected_keys = ", ".join(map(str, expected))
        return f"gave {given_keys}; expected {expected_keys}."
    right = []
    wrong = []
    for key, wanted in expected.items():
        if agree(result[key], wanted, tolerance):
            right.append(f"{key} ✓")
        else:
            wrong.append(f"{key} {shown(result[key])} instead of {shown(wanted)}")
    further = len(wrong) - MOST_WRONG
    if further > 0:
        wrong[MOST_WRONG:] = [f"and {further} more"]
    return f"gave {', '.join([*right, *wrong])}."


def _differing_part(
    result: list | tuple, expected: list | tuple, tolerance: Number
) -> tuple[str, object, object]:
    """Return the place, in words, at which two sequences differ first, and what each has there."""
    places = ("first", "second", "third")
    for place, part, wanted in zip(places, result, expected, strict=False):
        if not agree(part, wanted, tolerance):
            return f" as the {place} of {len(result)}", part, wanted
    raise ValueError("No exercise expects more than three tensors.")


def _gave_tensor(result: torch.Tensor, expected: torch.Tensor, part: str) -> str:
    """Return the sentence for two tensors that differ in shape, in NaN, in dtype or in a number."""
    gave = f"gave{part} {shown(result)}"
    if not is_dense(result):
        return (
            f"gave{part} a tensor whose numbers are not all there, as on the meta device; "
            f"expected {shown(expected)}."
        )
    if result.shape != expected.shape:
        return f"{gave}; expected {shown(expected)}."
    if result.isnan().any():
        return f"{gave} with NaN among its numbers."
    # The dtype is wrong if all numbers are right, or complex, which no exercise expects.
    is_misplaced_bool = result.dtype == torch.bool and expected.dtype != torch.bool
    is_other_kind = result.is_complex() or is_misplaced_bool
    if is_other_kind or torch.equal(result.double(), expected.double()):
        return f"{gave} and {result.dtype}; expected {expected.dtype}."
    differences = (expected.double() - result.double()).abs()
    farthest = tuple(torch.unravel_index(differences.argmax(), expected.shape))
    from course_utils.engine.judging.pairs import distinct  # only a wrong answer needs it

    wrong, right = distinct(result[farthest].item(), expected[farthest].item())
    place = ", ".join(f"{index}" for index in farthest)
    return f"{gave}, as expected, but [{place}] is {wrong}, and should be {right}."


# On a result of the wrong kind.


def advice_on_kind(result: object, expected: object) -> str:
    """Return the advice on a result of the wrong kind, or on a close number; else an empty text."""
    plain_result = plain(result)
    plain_expected = plain(expected)
    advice = _advice_on_a_slip(plain_result)
    if advice:
        return advice
    if isinstance(plain_expected, bool):
        is_bool = isinstance(plain_result, int) and plain_result in (0, 1)
        return "" if is_bool else "True or False is wanted."
    if _has_nan(plain_result) and not _has_nan(plain_expected):
        return NO_NUMBER
    if isinstance(expected, torch.Tensor):
        return "" if isinstance(result, torch.Tensor) else "A tensor is wanted."
    if isinstance(plain_expected, list | tuple):
        return _advice_on_sequence(result, plain_expected)
    if is_number(plain_expected) and not is_number(plain_result):
        return "One plain number is wanted."
    if near(plain_result, plain_expected, CLOSE_RESULT):
        return "That is close: something is rounded or left out."
    return ""


def _advice_on_a_slip(result: object) -> str:
    """Return the advice if None, a function or an iterator was returned; else an empty string."""
    if result is None:
        return "A function gives None if it has no return, or returns print(...)."
    if inspect.isroutine(result):
        return "That is the function itself. Call it: write brackets after its name."
    if isinstance(result, Iterator):
        return (
            "Return the whole at once: write return instead of yield, "
            "and list(...) around a map or a zip."
        )
    return ""


def _advice_on_sequence(result: object, expected: list | tuple) -> str:
    """Return the advice if the result is no sequence, or has a wrong length; else empty."""
    if isinstance(expected, list):
        wanted = "A list is wanted."
    else:
        wanted = f"{len(expected)} values are wanted."
    if isinstance(result, torch.Tensor) and _has_tensors(expected):
        return wanted  # one tensor in place of several would be a list of numbers below
    parts = plain(result)
    if not isinstance(parts, list | tuple):
        return wanted
    if len(parts) != len(expected):
        return f"It has {len(parts)} parts, not {len(expected)}."
    return ""


def _has_tensors(x: object) -> bool:
    return isinstance(x, list | tuple) and any(isinstance(part, torch.Tensor) for part in x)


def _has_nan(x: object) -> bool:
    if isinstance(x, list | tuple):
        return any(_has_nan(part) for part in x)
    return isinstance(x, float) and math.isnan(x)


# On an error.


def advice_on_calling(function: Callable[..., object], case: tuple) -> str:
    """Return the advice on a function that cannot take a case's arguments; empty if it can."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError:  # which `bind` raises if the arguments are too many or too few
        values = "1 value" if len(case) == 1 else f"{len(case)} values"
        return f"It is called with {values}: keep the first line of the stub."
    except ValueError:  # a function of Python's own, whose signature is not known
        pass
    return ""


def stopped(function: Callable[..., object], error: BaseException) -> str:
    """Return the sentence on a call that an error has stopped: the line of the code, the message.

    Only the first line of the message is quoted.
    """
    if isinstance(error, InPlaceError):
        return IN_PLACE
    # While grading, the process that has the answer's code has written this sentence.
    sentence = getattr(error, "told", "")
    if sentence:
        return sentence

    frame, line = _innermost(function, error)
    where = f" in line {line}" if frame else ""
    if isinstance(error, TooLongError | KeyboardInterrupt):
        variables = _variables(frame.f_locals) if frame else ""
        if isinstance(error, KeyboardInterrupt):
            return f"was interrupted{where}{variables}."
        return f"had not ended after {LONGEST_S:.0f} s, and was ended{where}{variables}. {NO_END}"
    words = f"stopped{where} with {type(error).__name__}"
    message = said_by(error)
    if message:
        words += f": {message}"
    return words if message.endswith((".", "?", "!")) else f"{words}."


def _innermost(
    function: Callable[..., object], error: BaseException
) -> tuple[FrameType | None, int]:
    """Return the error's innermost frame in the function's cell, and its line; or None and 0."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    innermost = (None, 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if code and frame.f_code.co_filename == code.co_filename:  # each cell has a name of its own
            innermost = (frame, line)
    return innermost


def stopped_briefly(error: BaseException) -> str:
    """Return a sentence on the error without its message, because that may quote the case."""
    if isinstance(error, InPlaceError):
        return f"It {IN_PLACE}"
    if isinstance(error, TooLongError):
        return f"It had not ended after {LONGEST_S:.0f} s. {NO_END}"
    # The reader's code could put the arguments into the name of its own type of error, too.
    is_pythons = type(error).__module__ == "builtins"
    name = type(error).__name__ if is_pythons else "an error of its own"
    return f"In one of the cases it stopped with {name}."


def _variables(variables: Mapping[str, object]) -> str:
    """Return the first numbers and strings among the variables, such as ", with x = 3, y = 4"."""
    words = []
    for name, x in variables.items():
        if isinstance(x, int | float | str):
            words.append(f"{name} = {shown(x)}")
    if not words:
        return ""
    return f", with {', '.join(words[:MOST_VARIABLES])}"


def said_by(error: BaseException) -> str:
    """Return the first line of the error's message that is not empty; else an empty string."""
    try:
        for line in str(error).splitlines():
            if line.strip():
                return line.strip()[:MOST_OF_A_MESSAGE]
    except Exception:  # an error of the reader's own, whose message fails as well
        return ""
    return ""
