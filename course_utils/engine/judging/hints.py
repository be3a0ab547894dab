"""Hints of an exercise, one at a time: a further one for each new wrong answer.

What was tried is remembered in the kernel alone. Grading shows no verdict, and so never a hint.
"""

import inspect
from collections.abc import Sequence

from course_utils.engine.judging.sentences import shown

FOLDED = "The solution is folded below."
# By exercise, a key for each different wrong answer that was shown its verdict.
TRIED: dict[str, list[object]] = {}


def next_hint(exercise: str, answer: object, hints: Sequence[str]) -> tuple[str, str]:
    """What to call the hint for this wrong answer, and the hint itself.

    The same answer, checked again, gets the same hint again. After the last hint comes a sentence
    that leads to the solution. Both are empty without hints.
    """
    if not hints:
        return "", ""
    tried = TRIED.setdefault(exercise, [])
    key = _key(answer)
    if key not in tried:
        tried.append(key)
    number = tried.index(key)
    if number >= len(hints):
        return "", FOLDED
    return f"Hint {number + 1} of {len(hints)}", hints[number]


def forget(exercise: str) -> None:
    """Begin the hints of the exercise anew, because its answer is right by now."""
    TRIED.pop(exercise, None)


def _key(answer: object) -> object:
    """What is the same for two answers that do the same in the same words."""
    code = getattr(inspect.unwrap(answer), "__code__", None) if callable(answer) else None
    if code is None:
        return shown(answer)
    constants = [shown(constant) for constant in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames
