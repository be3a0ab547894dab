"""The sentences of a verdict on an error that has stopped an answer: brief, with no stack trace.

A sentence that begins with a small letter follows the name of the reader's function.
"""

import inspect
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from course_utils.core.say.language import in_a_row, template, translated
from course_utils.engine.judging.limits import LONGEST_S, TooLongError
from course_utils.engine.judging.sentences import shown

NO_END = template("Does its loop come to an end?")
IN_PLACE = template("changed what it was given. Change nothing in place: make a new one.")
COURSE = Path(__file__).parents[2]  # the folder of course_utils
# As a TypeError names functions that were to be added or compared, such as tensor.nbytes.
FUNCTIONS = ("builtin_function_or_method", "method", "function")
OF_NO_NUMBERS = "(): Expected reduction dim"  # what torch says of an empty tensor's min() or max()
# What Python says of such a name. The error of an answer in another process has only the message.
NOT_DEFINED = re.compile(r"name '(?P<name>\w+)' is not defined")
# Names of the module math that a reader may write without the module.
IN_MATH = ("sqrt", "isqrt", "log", "log2", "log10", "exp", "ceil", "floor", "prod", "pi", "inf")
MOST_VARIABLES = 4  # that are shown where an answer that did not end was stopped
ENDS = (".", "?", "!", "。", "？", "！")  # of a sentence
MOST_OF_A_MESSAGE = 160  # characters


class InPlaceError(Exception):
    """A function has changed what it was given."""


def advice_on_calling(function: Callable[..., object], case: tuple) -> str:
    """Return the advice on a function that cannot take a case's arguments; empty if it can."""
    try:
        inspect.signature(function).bind(*case)
    except TypeError:  # which `bind` raises if the arguments are too many or too few
        if len(case) == 1:
            return translated("It is called with 1 value: keep the first line of the stub.")
        return translated(
            "It is called with {count} values: keep the first line of the stub.",
            count=len(case),
        )
    except ValueError:  # a function of Python's own, whose signature is not known
        pass
    return ""


def stopped(function: Callable[..., object], error: BaseException) -> str:
    """Return the sentence on a call that an error has stopped: the line of the code, the message.

    Only the first line of the message is quoted.
    """
    if isinstance(error, InPlaceError):
        return translated(IN_PLACE)
    # While grading, the process that has the answer's code has written this sentence.
    sentence = getattr(error, "told", "")
    if sentence:
        return sentence

    frame, line = _innermost(function, error)
    if isinstance(error, TooLongError | KeyboardInterrupt):
        variables = _variables(frame.f_locals) if frame else ""
        if isinstance(error, KeyboardInterrupt):
            return _interrupted(line, variables)
        return in_a_row(_not_ended(line, variables), translated(NO_END))
    if _is_courses(error):
        return _stopped_by_the_course(line, said_by(error))
    kind = type(error).__name__
    message = _said_plainly(frame, error)
    # Behind the kind, or the message, a full stop.
    said = f"{kind}: {message}" if message else kind
    if not message.endswith(ENDS):
        said += "."
    if not line:
        return translated("stopped with {error}", error=said)
    return translated("stopped in line {line} with {error}", line=line, error=said)


def _is_courses(error: BaseException) -> bool:
    """Whether the course itself has raised the error, with a whole sentence for the reader."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    is_inside = bool(frames) and COURSE in Path(frames[-1].f_code.co_filename).parents
    return is_inside and isinstance(error, ValueError) and str(error).endswith(ENDS)


def _stopped_by_the_course(line: int, sentence: str) -> str:
    if not line:
        return translated("stopped. {sentence}", sentence=sentence)
    return translated("stopped in line {line}. {sentence}", line=line, sentence=sentence)


def _said_plainly(frame: FrameType | None, error: BaseException) -> str:
    """Return the error's message; of a KeyError, also whose keys there are.

    Where the message has the name of a class of the course's, it gets that of Python's own class.
    """
    message = said_by(error)
    if frame is None:
        return message
    if isinstance(error, KeyError) and error.args:
        return _of_key(frame, error.args[0]) or message
    if OF_NO_NUMBERS in message:
        name, _, _ = message.partition("(")
        return translated("{name}() of a tensor without numbers", name=name)
    for x in frame.f_locals.values():
        kind = type(x)
        if kind.__module__.startswith("course_utils.") and isinstance(x, list | dict | int):
            pythons = next(base for base in kind.__mro__ if base.__module__ == "builtins")
            message = message.replace(f"'{kind.__name__}' object", f"'{pythons.__name__}' object")
    return message


def _of_key(frame: FrameType, key: object) -> str:
    """Return which dict lacks the key, and which keys it has; empty if it is not clear."""
    lacking = {}
    for name in (*frame.f_code.co_names, *frame.f_code.co_varnames):
        found = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(found, dict) and not _has(found, key):
            lacking[name] = found
    if len(lacking) != 1:
        return ""
    ((name, asked),) = lacking.items()
    return translated(
        "{name} has no key {key}. Its keys: {keys}.",
        name=name,
        key=shown(key),
        keys=shown([*asked]),
    )


def _has(asked: dict, key: object) -> bool:
    try:
        return key in asked
    except Exception:  # of a key that cannot be compared
        return True


def advice_on_error(error: BaseException) -> str:
    """Return the advice on an error whose message says little to a reader; else empty."""
    # A variable that has no value yet raises another kind of NameError.
    is_undefined = NOT_DEFINED.match(said_by(error)) if type(error) is NameError else None
    if is_undefined:
        return _on_name(is_undefined["name"])
    if getattr(error, "told", "") or not isinstance(error, TypeError | KeyError):
        return ""
    if isinstance(error, KeyError):
        is_tuple = bool(error.args) and isinstance(error.args[0], tuple)
        return (
            translated("That key is a tuple. If its values are keys, take them one at a time.")
            if is_tuple
            else ""
        )
    message = said_by(error)
    if message.endswith("is not subscriptable") and any(kind in message for kind in FUNCTIONS):
        return translated("Square brackets take an element. A function is called with round ones.")
    if any(f"'{kind}'" in message for kind in FUNCTIONS):
        return translated("A function was not called: write brackets after its name.")
    if message.endswith("object is not callable"):
        return translated(
            "Round brackets call a function, and what stands before them is not one. Is a * "
            "missing, or are square brackets meant?"
        )
    return ""


def _on_name(name: str) -> str:
    """Return the advice on a name that is not defined; empty unless it belongs to math."""
    if name == "math":
        return translated("That is a module: write import math above.")
    if name in IN_MATH:
        return translated(
            "That is in the module math: import math, and write math.{name}.", name=name
        )
    return ""


def _interrupted(line: int, variables: str) -> str:
    """Return the sentence on a call that the reader has interrupted; line 0 is not known."""
    if not line:
        return translated("was interrupted.")
    if not variables:
        return translated("was interrupted in line {line}.", line=line)
    return translated(
        "was interrupted in line {line}, with {variables}.", line=line, variables=variables
    )


def _not_ended(line: int, variables: str) -> str:
    """Return the sentence on a call whose time was up; line 0 is not known."""
    seconds = f"{LONGEST_S:.0f}"
    if not line:
        return translated("had not ended after {seconds} s, and was ended.", seconds=seconds)
    if not variables:
        return translated(
            "had not ended after {seconds} s, and was ended in line {line}.",
            seconds=seconds,
            line=line,
        )
    return translated(
        "had not ended after {seconds} s, and was ended in line {line}, with {variables}.",
        seconds=seconds,
        line=line,
        variables=variables,
    )


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
    """Return the first numbers and strings among the variables, such as "x = 3, y = 4"."""
    words = []
    for name, x in variables.items():
        if isinstance(x, int | float | str):
            words.append(f"{name} = {shown(x)}")
    return ", ".join(words[:MOST_VARIABLES])


def said_by(error: BaseException) -> str:
    """Return the first line of the error's message that is not empty; else an empty string."""
    try:
        for line in str(error).splitlines():
            if line.strip():
                return line.strip()[:MOST_OF_A_MESSAGE]
    except Exception:  # an error of the reader's own, whose message fails as well
        return ""
    return ""
