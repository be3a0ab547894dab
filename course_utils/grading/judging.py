"""What the check says of one answer: its verdict, the listed mistake that the answer looks like, and all its words."""

import ast
import sys
from collections.abc import Callable, Mapping

from course_utils.checks.judging.sentences import said_by
from course_utils.checks.judging.verdict import NOT_ATTEMPTED, Verdict
from course_utils.grading.slicing import needed

Judge = Callable[[object], Verdict]
CHANGED = "It changed what belongs to Python or to the check."


def said(code: Mapping[str, str], judge: Judge, check: str, cell: str, asked: str) -> list[str]:
    """Judge what the notebook of that code hands to that check ("flops.days"), which the course calls in that cell, as asked."""
    trusted = _trusted()
    statements, answer = needed(code, check.partition(".")[2], cell, asked)
    space: dict[str, object] = {"__name__": "__main__"}
    stopped: dict[str, BaseException] = {}  # by cell; what stands below in it does not run
    for one in statements:
        try:
            if one.cell not in stopped:
                one.run(space)
        except BaseException as error:
            stopped[one.cell] = error
    try:
        verdict = judge(eval(compile(ast.Expression(answer), cell, "eval"), space))
    except BaseException as error:
        error = next(reversed(stopped.values()), error)
        told = f"The cell of the answer stopped with {type(error).__name__}: {said_by(error).rstrip('.')}."
        verdict = Verdict("not yet", told, looks_like=told) if statements else NOT_ATTEMPTED
    if not trusted.items() <= _trusted().items():
        verdict = Verdict("stopped", CHANGED, looks_like=CHANGED)
    return [verdict.status, verdict.looks_like, verdict.words]


def _trusted() -> dict[tuple[str, str], tuple[int, int]]:
    """Which thing each name of Python's own and of the checks' stands for, and which code a function has."""
    ours = ("builtins", "course_utils.checks")
    named = [(name, vars(one)) for name, one in sys.modules.items() if name.startswith(ours)]
    things = {(module, name): x for module, names in named for name, x in names.items()}
    return {at: (id(x), id(getattr(x, "__code__", x))) for at, x in things.items()}
