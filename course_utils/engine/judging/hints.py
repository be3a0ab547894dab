"""Hints of an exercise, one at a time: a further one for each new wrong answer.

What was tried is remembered in the kernel alone. Grading shows no verdict, and so never a hint.
"""

import inspect
from collections.abc import Sequence
from types import CodeType

from course_utils.core.say.language import template, translated
from course_utils.engine.judging.sentences import shown

FOLDED = template("The solution is folded below.")
# By exercise, a key for each different wrong answer that was shown its verdict.
TRIED: dict[str, list[object]] = {}


def next_hint(exercise: str, answer: object, hints: Sequence[str]) -> tuple[str, str]:
    """Return the heading of the hint for this wrong answer, such as "Hint 1 of 3", and the hint.

    The same answer, checked again, gets the same hint again. After the last hint there is no
    heading, and the hint is FOLDED, which leads to the solution. Heading and hint are empty if the
    exercise has no hints.
    """
    if not hints:
        return "", ""
    tried = TRIED.setdefault(exercise, [])  # the keys of its different wrong answers so far
    key = _key(answer)
    if key not in tried:
        tried.append(key)
    number = tried.index(key)
    if number >= len(hints):
        return "", translated(FOLDED)
    return _heading(number, hints), translated(hints[number])


def earlier_hints(
    exercise: str, answer: object, hints: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the headings and the hints before the one of this answer, which `next_hint` saw.

    A reader may have left them folded, so they stay within reach.
    """
    tried = TRIED.get(exercise, [])
    key = _key(answer)
    number = tried.index(key) if key in tried else 0
    earlier = enumerate(hints[:number])
    return tuple((_heading(place, hints), translated(hint)) for place, hint in earlier)


def _heading(place: int, hints: Sequence[str]) -> str:
    return translated("Hint {number} of {count}", number=place + 1, count=len(hints))


def forget(exercise: str) -> None:
    """Begin the hints of the exercise anew, to be called when its answer is right."""
    TRIED.pop(exercise, None)


def _key(answer: object) -> object:
    """Return what identifies an answer: a function's code, and of other answers what is shown.

    A function that was defined again without a change, or with other comments, has the same key.
    """
    if not callable(answer):
        return shown(answer)
    code = getattr(inspect.unwrap(answer), "__code__", None)
    if code is None:  # a callable that is no function in Python, such as a class
        return shown(answer)
    return _code_key(code)


def _code_key(code: CodeType) -> object:
    """Return what a function computes with: its code without line numbers, inner functions too."""
    constants = []
    for constant in code.co_consts:
        # The code of an inner function would be unequal already if its line number differed.
        constants.append(_code_key(constant) if isinstance(constant, CodeType) else repr(constant))
    return code.co_code, constants, code.co_names, code.co_varnames
