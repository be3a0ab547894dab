"""Notes what a student's code does that has no place in an answer, while the code runs.

`flags` looks at the text before it runs; here we note what a text can hide. The notes are sent to
the judge with each outcome. A student who sets out to can wipe them away.
"""

import ast
import builtins
import functools
import sys
from collections.abc import Callable, Collection, Sequence
from types import FunctionType

import course_utils.core.accountant as course_terms
from course_utils.stage.grading.flags import SOLVED, TERMS_OF, may_import
from course_utils.stage.grading.slicing import Statement

NOTED: list[str] = []  # sentences on the one answer that runs in this process
MOST = 3  # notes on one answer
LONGEST_NAME = 60  # characters of a module's name in a note
# The `__name__` that a student's code has: "__main__" as in a notebook, or one of the other two in
# a namespace that the code has made itself, such as {} for exec.
STUDENTS = ("__main__", "builtins", None)
OPTIONS_OF_IMPORT = ("globals", "locals", "fromlist", "level")  # behind the name, in this order
Import = tuple[str, tuple[str, ...]]  # the module, and what is imported from it


def watch(allowed: Collection[str], courses_own: Sequence[Statement]) -> None:
    """From here on, note imports of modules with answers, and calls of forbidden functions.

    Forbidden are the accountant's functions that are not among the names in `allowed`. Imports in
    the course's own statements are not noted.
    """
    own: set[Import] = set()
    for statement in courses_own:
        node = statement.code
        if isinstance(node, ast.ImportFrom):
            own.add((str(node.module), tuple(alias.name for alias in node.names)))
    builtins.__import__ = _noting_imports(builtins.__import__, own, allowed)
    for name, term in list(vars(course_terms).items()):  # a list, because the loop changes them
        if isinstance(term, FunctionType) and name not in allowed:
            setattr(course_terms, name, _noting_calls(name, term))


def note(words: str) -> None:
    """Keep the sentence for the judge: each once, and at most MOST of them."""
    if words not in NOTED and len(NOTED) < MOST:
        NOTED.append(words)


def _noting_imports(
    original: Callable[..., object], own: Collection[Import], allowed: Collection[str]
) -> Callable[..., object]:
    """Return Python's import function, wrapped: it also notes when a student imports answers.

    What the course's own cells import is not noted, even if the student's code imports it again.
    """
    prefixes_of_answers = tuple(f"{solved}." for solved in SOLVED)

    @functools.wraps(original)
    def imported(name: str, *arguments: object, **options: object) -> object:
        """Import as `original` does, and note an import of answers by the student."""
        # All options by name, also those that were passed by position.
        given = dict(zip(OPTIONS_OF_IMPORT, arguments, strict=False))  # there may be fewer
        given.update(options)
        # The namespace of the code that imports: Python passes None, or nothing, without one.
        module_globals = given.get("globals") or {}
        is_students = module_globals.get("__name__") in STUDENTS
        names = tuple(given.get("fromlist") or ())
        stands_in_notebook = (name, names) in own
        are_allowed_terms = name == TERMS_OF and may_import(names, allowed)
        # With the dot, "course_utils.chapters_of_mine" is no module with answers.
        has_answers = f"{name}.".startswith(prefixes_of_answers)
        if is_students and has_answers and not (stands_in_notebook or are_allowed_terms):
            note(f"It imported {name[:LONGEST_NAME]}.")
        return original(name, *arguments, **options)

    return imported


def _noting_calls(name: str, term: Callable[..., object]) -> Callable[..., object]:
    """Return the accountant's function, wrapped: it also notes when a student's code calls it."""

    @functools.wraps(term)
    def noting(*arguments: object, **options: object) -> object:
        """Note the call if it comes from a student's code, and call the function."""
        caller = sys._getframe(1)  # the frame of the code that has called this function
        if caller.f_globals.get("__name__") in STUDENTS:
            note(f"It called {name} of the accountant.")
        return term(*arguments, **options)

    return noting
