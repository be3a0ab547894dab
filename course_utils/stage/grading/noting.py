"""What a student's code does while it runs that has no place in an answer.

`flags` looks at the text before it runs; here we note what a text can hide. It is said with the
next outcome. Somebody who sets out to can wipe these notes away.
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
LONGEST_NAME = 60
# The names of modules whose code is a student's: that of the notebook, and what a module is called
# that the student's code makes itself.
STUDENTS = ("__main__", "builtins", None)
OPTIONS_OF_IMPORT = ("globals", "locals", "fromlist", "level")  # behind the name, in this order
Import = tuple[str, tuple[str, ...]]  # the module, and what is imported from it


def watch(allowed: Collection[str], courses_own: Sequence[Statement]) -> None:
    """Note imports of what has the answers, and calls of functions that the answer may not use."""
    own: set[Import] = set()
    for statement in courses_own:
        node = statement.code
        if isinstance(node, ast.ImportFrom):
            own.add((str(node.module), tuple(alias.name for alias in node.names)))
    builtins.__import__ = _noting_imports(builtins.__import__, own, allowed)
    for name, term in list(vars(course_terms).items()):
        if isinstance(term, FunctionType) and name not in allowed:
            setattr(course_terms, name, _noting_calls(name, term))


def note(words: str) -> None:
    if words not in NOTED and len(NOTED) < MOST:
        NOTED.append(words)


def _noting_imports(
    original: Callable[..., object], own: Collection[Import], allowed: Collection[str]
) -> Callable[..., object]:
    """Python's import, which also notes what a student's code imports that has the answers.

    What the course's own cells import is not noted, even if the student's code imports it again.
    """
    has_answers = tuple(f"{solved}." for solved in SOLVED)

    @functools.wraps(original)
    def imported(name: str, *arguments: object, **options: object) -> object:
        asked = dict(zip(OPTIONS_OF_IMPORT, arguments, strict=False))
        asked.update(options)
        module_globals = asked.get("globals") or {}
        is_students = module_globals.get("__name__") in STUDENTS
        names = tuple(asked.get("fromlist") or ())
        is_lent = (name, names) in own or (name == TERMS_OF and are_lent(names, allowed))
        if is_students and not is_lent and f"{name}.".startswith(has_answers):
            note(f"It imported {name[:LONGEST_NAME]}.")
        return original(name, *arguments, **options)

    return imported


def _noting_calls(name: str, term: Callable[..., object]) -> Callable[..., object]:
    """The accountant's function, which also notes that a student's code calls it."""

    @functools.wraps(term)
    def noting(*arguments: object, **options: object) -> object:
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__") in STUDENTS:
            note(f"It called {name} of the accountant.")
        return term(*arguments, **options)

    return noting
