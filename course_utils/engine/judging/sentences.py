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
# Behind the name of a function.
IN_PLACE = "changed what it was given. Change nothing in place: make a new one."
NAMELESS = "your function"
MOST_WRONG = 3  # keys of a dict that are shown with what came
MOST_SHOWN = 70  # characters of a value; of a longer one, the beginning and the end
MOST_VARIABLES = 4
MOST_OF_A_MESSAGE = 160  # characters


class InPlaceError(Exception):
    """A function has changed what it was given."""


# On a value.


def shown(x: object) -> str:
    """A value as it may stand in a sentence: brief, on one line, and never an address in memory."""
    if isinstance(x, torch.Tensor) and x.ndim:
        return f"a tensor of shape {tuple(x.shape)}"
    if isinstance(x, np.ndarray) and x.ndim:
        return f"an array of shape {x.shape}"
    stands_for_a_function = callable(x) and hasattr(x, "__name__") and not isinstance(x, type)
    if inspect.isroutine(x) or stands_for_a_function:  # as a function of another process does
        return "a function"
    try:
        words = _written(x)
    except Exception:  # an integer of 5,000 digits has no repr, nor has a list that holds itself
        words = ""
    if not words or " at 0x" in words or words.startswith("<"):
        return f"a value of type {type(x).__name__}"
    if len(words) > MOST_SHOWN:
        return f"{words[:50]} … {words[-10:]}"
    return words


def _written(x: object) -> str:
    """The value as Python writes it, but on one line, and its numbers as people write them."""
    if type(x) in (int, float):
        return number_in_full(x)
    if type(x) in (list, tuple):
        # Of a longer sequence, not every part is shown, and none is shortened.
        is_short = len(x) < 9
        parts = [shown(part) if is_short else _written(part) for part in x]
        words = _in_a_row(parts)
        if isinstance(x, list):
            return f"[{words}]"
        return f"({words},)" if len(parts) == 1 else f"({words})"
    if type(x) is dict:
        items = [f"{shown(name)}: {shown(part)}" for name, part in x.items()]
        return f"{{{_in_a_row(items)}}}"
    return " ".join(repr(x).split())


def _in_a_row(parts: list[str]) -> str:
    """The parts, separated by commas; of too many, the first ones and the last, each whole."""
    words = ", ".join(parts)
    if len(words) <= MOST_SHOWN - 2 or len(parts) < 3:
        return words
    first = [parts[0]]
    room = MOST_SHOWN - len(f"[, … {parts[-1]}]")
    for part in parts[1:-1]:
        if len(", ".join([*first, part])) > room:
            break
        first.append(part)
    return f"{', '.join(first)}, … {parts[-1]}"


def number_in_full(x: Number) -> str:
    """An integer in full with separators, and a float with six digits.

    >>> number_in_full(2_142_208), number_in_full(1155.534), number_in_full(6.3e24)
    ('2,142,208', '1,155.53', '6.3 × 10^24')
    """
    if isinstance(x, int):
        return f"{x:,}"
    if not math.isfinite(x) or x == 0:
        return repr(x).removesuffix(".0")
    if 1e-4 <= abs(x) < 1e9:
        digits_after_the_point = max(0, 5 - math.floor(math.log10(abs(x))))
        words = f"{x:,.{digits_after_the_point}f}"
        return words.rstrip("0").rstrip(".") if "." in words else words
    mantissa, _, power = f"{x:.5e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')} × 10^{int(power)}"


def called(function: Callable[..., object], case: str) -> str:
    """The beginning of a sentence on what a function did in a case, which is given in words."""
    name = name_of(function)
    if case:
        return f"{case}, {name}"
    return f"Y{name[1:]}" if name == NAMELESS else name


def case_in_words(names: Sequence[str], case: Sequence[object]) -> str:
    """A case as its arguments by name: "With batch = 16 and widths = [8, 4, 4, 2]".

    Neighbouring tensors of one shape are named together.
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
            continue
        words.append(f"{listed(together)} of shape {tuple(x.shape)}")
        together = []
    return f"With {listed(words)}"


def name_of(function: Callable[..., object]) -> str:
    """The function's name; NAMELESS for a lambda or an object, which have none."""
    name = getattr(function, "__name__", "<")
    return NAMELESS if name.startswith("<") else name


def wrong_value(answer: object, expected: object) -> str:
    """The sentence on a wrong value that the exercise does not list as a mistake."""
    number = plain(answer)
    words = shown(answer)
    is_described = words.startswith(("a ", "an "))
    beginning = f"A{words[1:]}" if is_described else words
    if not is_number(expected):
        return f"{beginning} is not it."
    if not is_number(number):
        advice = ": write it without quotes or a unit" if isinstance(number, str) else ""
        return f"{beginning} is not one plain number{advice}."
    # Only NaN differs from itself. math.isnan would raise an error for an integer beyond floats.
    if number != number:
        return NO_NUMBER
    if near(number, expected, 0.03):
        return f"{words} is close, but something is rounded or left out."
    return f"{words} is too {'large' if number > expected else 'small'}."


# On a difference.


def gave(came: object, expected: object, tolerance: Number, unit: str = "") -> str:
    """The sentence on a wrong result: what the function gave, and what was expected.

    Of a dict, the sentence goes through all parts; of a tuple of tensors, it names the part that
    differs.
    """
    part = ""
    if _has_tensors(expected) and isinstance(came, list | tuple) and len(came) == len(expected):
        part, came, expected = _differing_part(came, expected, tolerance)
    if isinstance(came, dict) and isinstance(expected, dict):
        return _gave_dict(came, expected, tolerance)
    if isinstance(came, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _gave_tensor(came, expected, part)
    if shown(came) == shown(expected):  # they differ beyond six digits
        return f"gave{part} {came!r}; expected {expected!r}."
    wanted = f"{shown(expected)} {unit}".strip()
    return f"gave{part} {shown(came)}; expected {wanted}."


def _gave_dict(came: dict, expected: dict, tolerance: Number) -> str:
    """`gave` for two dicts: a ✓ behind each key whose value is right."""
    if came.keys() != expected.keys():
        came_keys = ", ".join(map(str, came)) or "nothing"
        return f"gave {came_keys}; expected {', '.join(map(str, expected))}."
    right = []
    wrong = []
    for key, wanted in expected.items():
        if agree(came[key], wanted, tolerance):
            right.append(f"{key} ✓")
        else:
            wrong.append(f"{key} {shown(came[key])} instead of {shown(wanted)}")
    further = len(wrong) - MOST_WRONG
    if further > 0:
        wrong[MOST_WRONG:] = [f"and {further} more"]
    return f"gave {', '.join([*right, *wrong])}."


def _differing_part(
    came: list | tuple, expected: list | tuple, tolerance: Number
) -> tuple[str, object, object]:
    """The first part in which two sequences differ: its place in words, and the part of each."""
    places = ("first", "second", "third")
    for place, part, wanted in zip(places, came, expected, strict=False):
        if not agree(part, wanted, tolerance):
            return f" as the {place} of {len(came)}", part, wanted
    raise ValueError("No exercise expects more than three tensors.")


def _gave_tensor(came: torch.Tensor, expected: torch.Tensor, part: str) -> str:
    """`gave` for two tensors, which differ in shape, in NaN, in dtype or in a number."""
    gave = f"gave{part} {shown(came)}"
    if not is_dense(came):
        return (
            f"gave{part} a tensor whose numbers are not all there, as on the meta device; "
            f"expected {shown(expected)}."
        )
    if came.shape != expected.shape:
        return f"{gave}; expected {shown(expected)}."
    if came.isnan().any():
        return f"{gave} with NaN among its numbers."
    is_no_real_number = came.dtype == torch.bool or came.is_complex()
    if is_no_real_number or torch.equal(came.double(), expected.double()):
        return f"{gave} and {came.dtype}; expected {expected.dtype}."
    differences = (expected.double() - came.double()).abs()
    farthest = tuple(torch.unravel_index(differences.argmax(), expected.shape))
    is_, should_be = _distinct(came[farthest].item(), expected[farthest].item())
    place = ", ".join(f"{index}" for index in farthest)
    return f"{gave}, as expected, but [{place}] is {is_}, and should be {should_be}."


def _distinct(a: Number, b: Number) -> tuple[str, str]:
    """The two numbers as text, with three digits, or with the fewest that tell them apart."""
    # With 17 digits, any two floats that differ are written differently.
    pairs = ((f"{a:.{digits}g}", f"{b:.{digits}g}") for digits in range(3, 18))
    return next(pair for pair in pairs if pair[0] != pair[1])


# On a result of the wrong kind.


def advice_on_kind(came: object, expected: object) -> str:
    """The sentence on a result of the wrong kind; an empty string if its kind is right."""
    plain_came = plain(came)
    plain_expected = plain(expected)
    advice = _advice_on_a_slip(plain_came)
    if advice:
        return advice
    if isinstance(plain_expected, bool):
        is_bool = isinstance(plain_came, int) and plain_came in (0, 1)
        return "" if is_bool else "True or False is wanted."
    if _has_nan(plain_came) and not _has_nan(plain_expected):
        return NO_NUMBER
    if isinstance(expected, torch.Tensor):
        return "" if isinstance(came, torch.Tensor) else "A tensor is wanted."
    if isinstance(plain_expected, list | tuple):
        return _advice_on_sequence(came, plain_expected)
    if is_number(plain_expected) and not is_number(plain_came):
        return "One plain number is wanted."
    if near(plain_came, plain_expected, 0.003):
        return "That is close: something is rounded or left out."
    return ""


def _advice_on_a_slip(came: object) -> str:
    """The sentence on a return that was forgotten, or on what was returned in place of a value."""
    if came is None:
        return "A function gives None if it has no return, or returns print(...)."
    if inspect.isroutine(came):
        return "That is the function itself. Call it: write brackets after its name."
    if isinstance(came, Iterator):
        return (
            "Return the whole at once: write return instead of yield, "
            "and list(...) around a map or a zip."
        )
    return ""


def _advice_on_sequence(came: object, expected: list | tuple) -> str:
    """The sentence on a result that is no sequence, or has a wrong length; else an empty string."""
    if isinstance(expected, list):
        wanted = "A list is wanted."
    else:
        wanted = f"{len(expected)} values are wanted."
    if isinstance(came, torch.Tensor) and _has_tensors(expected):
        return wanted
    parts = plain(came)
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
    """The sentence on a function that does not take a case's arguments; empty if it does."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError:
        values = "1 value" if len(case) == 1 else f"{len(case)} values"
        return f"It is called with {values}: keep the first line of the stub."
    except ValueError:  # a function of Python's own, whose signature is not known
        pass
    return ""


def stopped(function: Callable[..., object], error: BaseException) -> str:
    """What stands behind a call that raised an error: the line of the reader's code, the message.

    Of the message, only the first line is quoted.
    """
    if isinstance(error, InPlaceError):
        return IN_PLACE
    # While grading, the answer's process has written this sentence, since it has the code.
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
    """The innermost frame of the error in the reader's code, and its line; or None and 0."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    found = (None, 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if code and frame.f_code.co_filename == code.co_filename:
            found = (frame, line)
    return found


def stopped_briefly(error: BaseException) -> str:
    """The sentence on an error, without its message.

    A function could write its arguments into the message, and not everybody is to know the case.
    """
    if isinstance(error, InPlaceError):
        return f"It {IN_PLACE}"
    if isinstance(error, TooLongError):
        return f"It had not ended after {LONGEST_S:.0f} s. {NO_END}"
    is_pythons = type(error).__module__ == "builtins"
    name = type(error).__name__ if is_pythons else "an error of its own"
    return f"In one of the cases it stopped with {name}."


def _variables(variables: Mapping[str, object]) -> str:
    """The first numbers and strings among a function's variables, such as ", with x = 3, y = 4"."""
    words = []
    for name, x in variables.items():
        if isinstance(x, int | float | str):
            words.append(f"{name} = {shown(x)}")
    if not words:
        return ""
    return f", with {', '.join(words[:MOST_VARIABLES])}"


def said_by(error: BaseException) -> str:
    """The first line of the error's message that is not empty; an empty string if there is none."""
    try:
        for line in str(error).splitlines():
            if line.strip():
                return line.strip()[:MOST_OF_A_MESSAGE]
    except Exception:  # an error of the reader's own, whose message fails as well
        return ""
    return ""
