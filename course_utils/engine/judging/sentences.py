"""The sentences of a verdict on a value or a difference. Those on an error are in `errors`.

A sentence that begins with a small letter follows the name of the reader's function.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from course_utils.core.say import Number, listed
from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.judging.agreement import agree, is_dense, is_number, near, plain

NO_NUMBER = template("NaN is not a number. It comes from 0 / 0, 0 × inf or inf - inf.")
NAMELESS = template("your function")
# The place of a tensor among several, as it follows "gave".
PLACES = (
    template(" as the first of {count}"),
    template(" as the second of {count}"),
    template(" as the third of {count}"),
)
FEW_PARTS = 8  # of a list or tuple, of which a sentence keeps all
MOST_SHOWN = 70  # characters of a value; of a longer one, the beginning and the end
# Relative: what is so close to the right number is taken for rounded or slightly incomplete.
CLOSE_VALUE = 0.03  # of a typed number
CLOSE_RESULT = 0.003  # of a function's


# On a value.


def shown(x: object) -> str:
    """Return a value as a sentence may quote it: short, on one line, without a memory address."""
    if isinstance(x, torch.Tensor) and x.ndim:
        return translated("a tensor of shape {shape}", shape=tuple(x.shape))
    if isinstance(x, np.ndarray) and x.ndim:
        return translated("an array of shape {shape}", shape=x.shape)
    # While grading, an object with a function's name stands for the function in another process.
    stands_for_a_function = callable(x) and hasattr(x, "__name__") and not isinstance(x, type)
    if inspect.isroutine(x) or stands_for_a_function:
        return translated("a function")
    if isinstance(x, complex):
        return translated("a complex number")
    try:
        words = _written(x)
    except Exception:  # an integer of 5,000 digits has no repr, nor has a list that holds itself
        words = ""
    is_address = " at 0x" in words or words.startswith("<")  # as in <object object at 0x7f…>
    if not words or is_address:
        return translated("a value of type {type}", type=type(x).__name__)
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
        parts = [_inside(part, write) for part in x]
        words = _in_a_row(parts)
        if isinstance(x, list):
            return f"[{words}]"
        return f"({words},)" if len(parts) == 1 else f"({words})"
    if type(x) is dict:
        items = [f"{_inside(name, shown)}: {_inside(part, shown)}" for name, part in x.items()]
        return "{" + _in_a_row(items) + "}"
    return " ".join(repr(x).split())  # without line breaks


def _inside(x: object, write: Callable[[object], str]) -> str:
    """Return a part of a list, where a comma is between two parts, and so not inside a number."""
    words = write(x)
    return words.replace(",", "") if type(x) in (int, float) else words


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


def number_in_full(x: Number, digits: int = 6) -> str:
    """Return an integer with separators, and a float with six digits, or all before the point.

    >>> number_in_full(2_142_208), number_in_full(1155.534), number_in_full(6.3e24)
    ('2,142,208', '1,155.53', '6.3 × 10^24')
    """
    if isinstance(x, int):
        return f"{x:,}"
    if not math.isfinite(x) or x == 0:
        return repr(x).removesuffix(".0")  # such as "inf", "nan" or "0"
    if 1e-4 <= abs(x) < 1e9:
        digits_after_the_point = max(0, digits - 1 - math.floor(math.log10(abs(x))))
        words = f"{x:,.{digits_after_the_point}f}"
        return words.rstrip("0").rstrip(".") if "." in words else words
    mantissa, _, power = f"{x:.{digits - 1}e}".partition("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa} × 10^{int(power)}"


def called(function: Callable[..., object], case: str) -> str:
    """Return a sentence's beginning, such as "With n = 3, my_days"; the case may be empty."""
    name = name_of(function)
    if case:
        in_words = translated(NAMELESS) if name == NAMELESS else name
        return translated("{case}, {name}", case=case, name=in_words)
    return translated("Your function") if name == NAMELESS else name


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
        shape = tuple(x.shape)
        words.append(translated("{names} of shape {shape}", names=listed(together), shape=shape))
        together = []
    return translated("With {arguments}", arguments=listed(words))


def name_of(function: Callable[..., object]) -> str:
    """Return the function's name, or NAMELESS for a lambda or an object without a name."""
    name = getattr(function, "__name__", "<none>")
    return NAMELESS if name.startswith("<") else name  # a lambda's name is "<lambda>"


def listed_value(answer: object, advice: str) -> str:
    """Return the sentences on a wrong value that the exercise lists as a mistake."""
    is_not_it = translated("{answer} is not it.", answer=shown(answer))
    return in_a_row(is_not_it, translated(advice))


def wrong_value(answer: object, expected: object, wanted: str) -> str:
    """Return the sentences on a wrong value that the exercise does not list as a mistake.

    `wanted` is the exercise's name for the quantity.
    """
    is_wanted = translated("Wanted: {quantity}.", quantity=translated(wanted))
    return in_a_row(_what_is_wrong(answer, expected), is_wanted)


def _what_is_wrong(answer: object, expected: object) -> str:
    """Return the sentence on how a wrong value differs from the expected one."""
    number = plain(answer)
    words = shown(answer)
    is_described = words.startswith(("a ", "an "))  # as in "a function"
    beginning = f"A{words[1:]}" if is_described else words
    if not is_number(expected):
        return translated("{answer} is not it.", answer=beginning)
    if isinstance(number, str):
        return translated(
            "{answer} is not one plain number: write it without quotes or a unit.",
            answer=beginning,
        )
    if not is_number(number):
        return translated("{answer} is not one plain number.", answer=beginning)
    # Only NaN differs from itself. math.isnan would raise an error for an integer beyond floats.
    if number != number:
        return translated(NO_NUMBER)
    if near(number, expected, CLOSE_VALUE):
        return translated("{answer} is close, but something is rounded or left out.", answer=words)
    if number > expected:
        return translated("{answer} is too large.", answer=words)
    return translated("{answer} is too small.", answer=words)


# On a difference.


def gave(
    result: object,
    expected: object,
    tolerance: Number,
    unit: str = "",
    names: Sequence[str] = (),
) -> str:
    """Return the sentence on a wrong result: what the function gave, and what was expected.

    For a dict, the sentence names every key; for a tuple, every value, if `names` has their names.
    For another tuple or list of tensors, it names the place of the first tensor that differs, such
    as "as the second of 3".
    """
    from course_utils.engine.judging import pairs, several  # only a wrong answer needs them

    if isinstance(result, dict) and isinstance(expected, dict):
        return several.gave_dict(result, expected, tolerance, unit)
    is_of_that_length = isinstance(result, list | tuple) and _length(expected) == len(result)
    if names and is_of_that_length:
        return several.gave_tuple(names, result, expected, tolerance, unit)
    if names:
        return translated("gave {result}.", result=_alone(result, expected, names, tolerance))
    part = ""  # of several tensors, the place of the one that differs: " as the second of 3"
    if _has_tensors(expected) and is_of_that_length:
        part, result, expected = _differing_part(result, expected, tolerance)
    if isinstance(result, torch.Tensor) and isinstance(expected, torch.Tensor):
        return _gave_tensor(result, expected, part)
    given, wanted = pairs.beside(result, expected, unit)
    return _gave(part, given, wanted)


def _length(x: object) -> int | None:
    return len(x) if isinstance(x, list | tuple) else None


def _alone(result: object, expected: tuple, names: Sequence[str], tolerance: Number) -> str:
    """Return in words what came in place of a tuple: one of its values, perhaps."""
    for name, wanted in zip(names, expected, strict=True):
        if agree(result, wanted, tolerance):
            return translated("{name} alone", name=name)
    return shown(result)


def _gave(part: str, result: str, wanted: str) -> str:
    return translated(
        "gave{part} {result}; expected {wanted}.", part=part, result=result, wanted=wanted
    )


def _differing_part(
    result: list | tuple, expected: list | tuple, tolerance: Number
) -> tuple[str, object, object]:
    """Return the place, in words, at which two sequences differ first, and what each has there."""
    for place, part, wanted in zip(PLACES, result, expected, strict=False):
        if not agree(part, wanted, tolerance):
            return translated(place, count=len(result)), part, wanted
    raise ValueError("No exercise expects more than three tensors.")


def _gave_tensor(result: torch.Tensor, expected: torch.Tensor, part: str) -> str:
    """Return the sentence for two tensors that differ in shape, in NaN, in dtype or in a number."""
    if not is_dense(result):
        not_all = translated("a tensor whose numbers are not all there, as on the meta device")
        return _gave(part, not_all, shown(expected))
    if result.shape != expected.shape:
        return _gave(part, shown(result), shown(expected))
    if result.isnan().any():
        return translated(
            "gave{part} {result} with NaN among its numbers.", part=part, result=shown(result)
        )
    # Only a wrong answer needs them.
    from course_utils.engine.judging.several import farthest, has_wrong_dtype

    if has_wrong_dtype(result, expected):
        return translated(
            "gave{part} {result} and {dtype}; expected {wanted}.",
            part=part,
            result=shown(result),
            dtype=result.dtype,
            wanted=expected.dtype,
        )
    place, wrong, right = farthest(result, expected)
    return translated(
        "gave{part} {result}, as expected, but [{place}] is {wrong}, and should be {right}.",
        part=part,
        result=shown(result),
        place=place,
        wrong=wrong,
        right=right,
    )


# On a result of the wrong kind.


def advice_on_kind(result: object, expected: object, names: Sequence[str] = ()) -> str:
    """Return the advice on a result of the wrong kind, or on a close number; else an empty text.

    If a tuple is expected, `names` may have the names of its values.
    """
    plain_result = plain(result)
    plain_expected = plain(expected)
    advice = _advice_on_a_slip(plain_result)
    if advice:
        return advice
    if isinstance(plain_expected, bool):
        is_bool = isinstance(plain_result, int) and plain_result in (0, 1)
        return "" if is_bool else translated("True or False is wanted.")
    if _has_nan(plain_result) and not _has_nan(plain_expected):
        return translated(NO_NUMBER)
    if isinstance(expected, torch.Tensor):
        return "" if isinstance(result, torch.Tensor) else translated("A tensor is wanted.")
    if isinstance(plain_expected, list | tuple):
        return _advice_on_sequence(result, plain_expected, names)
    if is_number(plain_expected) and not is_number(plain_result):
        return translated("One plain number is wanted.")
    if near(plain_result, plain_expected, CLOSE_RESULT):
        return translated("That is close: something is rounded or left out.")
    return ""


def _advice_on_a_slip(result: object) -> str:
    """Return the advice if no value was returned, but None or a function, say; else empty."""
    if result is None:
        return translated("A function gives None if it has no return, or returns print(...).")
    parts = result if isinstance(result, list | tuple) else [result]
    if any(inspect.isroutine(part) for part in parts):
        return translated("That is the function itself. Call it: write brackets after its name.")
    if isinstance(result, complex):
        return translated(
            "A root of a negative number is complex, and a plain number is wanted: "
            "see why that number is below zero."
        )
    if isinstance(result, Iterator):
        return translated(
            "Return the whole at once: write return instead of yield, "
            "and list(...) around a map or a zip."
        )
    return ""


def _advice_on_sequence(result: object, expected: list | tuple, names: Sequence[str]) -> str:
    """Return the advice if the result is no sequence, or has a wrong length; else empty."""
    if names:
        from course_utils.engine.judging.several import all_wanted

        is_complete = isinstance(result, list | tuple) and len(result) == len(expected)
        return "" if is_complete else all_wanted(names)
    if isinstance(expected, list):
        wanted = translated("A list is wanted.")
    else:
        wanted = translated("{count} values are wanted.", count=len(expected))
    if isinstance(result, torch.Tensor) and _has_tensors(expected):
        return wanted  # one tensor in place of several would be a list of numbers below
    parts = plain(result)
    if not isinstance(parts, list | tuple):
        return wanted
    if len(parts) != len(expected):
        return translated(
            "It has {count} parts, not {wanted}.", count=len(parts), wanted=len(expected)
        )
    return ""


def _has_tensors(x: object) -> bool:
    return isinstance(x, list | tuple) and any(isinstance(part, torch.Tensor) for part in x)


def _has_nan(x: object) -> bool:
    if isinstance(x, list | tuple):
        return any(_has_nan(part) for part in x)
    return isinstance(x, float) and math.isnan(x)
