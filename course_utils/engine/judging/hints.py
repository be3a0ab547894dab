"""Hints of an exercise, one at a time: a further one for each new wrong answer without advice.

Advice on a listed mistake says what to change, so no hint comes with it, which could repeat it or
lead elsewhere. If the same advice comes again, it has not helped, and the next hint is due.

What was tried is remembered in the kernel alone. Grading shows no verdict, and so never a hint.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType

from course_utils.core.say.language import template, translated
from course_utils.engine.judging.sentences import shown

FOLDED = template("The solution is folded below.")
# Wrong answers before FOLDED: so many more than there are hints, if each of them got advice, or if
# there are no hints at all.
MOST_TRIED = 3


@dataclass(frozen=True)
class Attempt:
    """A wrong answer that was shown its verdict."""

    key: object  # identifies the answer
    is_due: bool  # whether a new hint came with it


# By exercise, its different wrong answers, and the advice that they got.
TRIED: dict[str, list[Attempt]] = {}
ADVISED: dict[str, set[str]] = {}


def next_hint(
    exercise: str, answer: object, hints: Sequence[str], advice: str = ""
) -> tuple[str, str]:
    """Return the heading of the hint for this wrong answer, such as "Hint 1 of 3", and the hint.

    The same answer, checked again, gets the same hint again. After the last hint there is no
    heading, and the hint is FOLDED, which leads to the solution. Heading and hint are empty if none
    is due, as with `advice`.
    """
    tried = TRIED.setdefault(exercise, [])
    key = _key(answer)
    if all(attempt.key != key for attempt in tried):
        advised = ADVISED.setdefault(exercise, set())
        tried.append(Attempt(key, is_due=not advice or advice in advised))
        advised.add(advice)
    place = [attempt.key for attempt in tried].index(key)
    if _leads_to_the_solution(tried, place, hints):
        return "", translated(FOLDED)
    number = _hints_before(tried, place)
    if not tried[place].is_due or not hints:
        return "", ""
    return _heading(number, hints), translated(hints[number])


def earlier_hints(
    exercise: str, answer: object, hints: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the headings and the hints before the one of this answer, which `next_hint` saw.

    A reader may have left them folded, so they stay within reach. The way to the solution comes
    after all hints, so those that were never due are above it, too.
    """
    tried = TRIED.get(exercise, [])
    keys = [attempt.key for attempt in tried]
    key = _key(answer)
    if key not in keys:
        return ()
    place = keys.index(key)
    number = _hints_before(tried, place)
    if _leads_to_the_solution(tried, place, hints):
        number = len(hints)
    earlier = enumerate(hints[:number])
    return tuple((_heading(place, hints), translated(hint)) for place, hint in earlier)


def _leads_to_the_solution(tried: Sequence[Attempt], place: int, hints: Sequence[str]) -> bool:
    """Whether this wrong answer gets FOLDED: after the last hint, or after so many answers."""
    had_all = _hints_before(tried, place) >= len(hints) if hints else place + 1 >= MOST_TRIED
    return (tried[place].is_due and had_all) or place >= len(hints) + MOST_TRIED


def _hints_before(tried: Sequence[Attempt], place: int) -> int:
    """Return how many hints came with the wrong answers before this one."""
    return sum(attempt.is_due for attempt in tried[:place])


def _heading(place: int, hints: Sequence[str]) -> str:
    return translated("Hint {number} of {count}", number=place + 1, count=len(hints))


def forget(exercise: str) -> None:
    """Begin the hints of the exercise anew, to be called when its answer is right."""
    TRIED.pop(exercise, None)
    ADVISED.pop(exercise, None)


def _key(answer: object) -> object:
    """Return what identifies an answer: a function's code, and of other answers what is shown.

    A function that was defined again without a change, or with other comments, has the same key.
    """
    if isinstance(answer, dict):  # what is shown of it as a whole is cut off after a few entries
        return [(shown(name), _key(part)) for name, part in answer.items()]
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
