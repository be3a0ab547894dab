"""What a student's code does while it runs that has no place in an answer: it is noted, and said with the next outcome.

`flags` looks at the text before it runs; here is noted what a text can hide. Whoever sets out to can wipe it away.
"""

import ast
import builtins
import functools
import sys
from collections.abc import Callable, Collection, Sequence
from types import FunctionType

import course_utils.core.accountant as course_terms
from course_utils.stage.grading.flags import SOLVED, TERMS_OF, are_lent
from course_utils.stage.grading.slicing import Statement

NOTED: list[str] = []
MOST = 3
STUDENTS = (
    "__main__",
    "builtins",
    None,
)  # what a student's code calls its own module, also where it makes one
Import = tuple[str, tuple[str, ...]]


def watch(allowed: Collection[str], courses_own: Sequence[Statement]) -> None:
    """Note imports of what has the answers, and calls of the accountant's functions that the answer may not use."""
    nodes = [one.code for one in courses_own if isinstance(one.code, ast.ImportFrom)]
    own = {(str(node.module), tuple(alias.name for alias in node.names)) for node in nodes}
    builtins.__import__ = _noting_imports(builtins.__import__, own, allowed)
    for name, term in [*vars(course_terms).items()]:
        if isinstance(term, FunctionType) and name not in allowed:
            setattr(course_terms, name, _noting_calls(name, term))


def note(words: str) -> None:
    if words not in NOTED and len(NOTED) < MOST:
        NOTED.append(words)


def _noting_imports(
    original: Callable[..., object], own: Collection[Import], allowed: Collection[str]
) -> Callable[..., object]:
    has_answers = tuple(f"{one}." for one in SOLVED)

    @functools.wraps(original)
    def imported(name: str, *arguments: object, **options: object) -> object:
        asked = (
            dict(zip(("globals", "locals", "fromlist", "level"), arguments, strict=False)) | options
        )
        is_students = (asked.get("globals") or {}).get("__name__") in STUDENTS
        names = tuple(asked.get("fromlist") or ())
        is_lent = (name, names) in own or (name == TERMS_OF and are_lent(names, allowed))
        if is_students and not is_lent and f"{name}.".startswith(has_answers):
            note(f"It imported {name[:60]}.")
        return original(name, *arguments, **options)

    return imported


def _noting_calls(name: str, term: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(term)
    def noting(*arguments: object, **options: object) -> object:
        if sys._getframe(1).f_globals.get("__name__") in STUDENTS:
            note(f"It called {name} of the accountant.")
        return term(*arguments, **options)

    return noting
