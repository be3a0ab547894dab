"""How an answer comes to its verdict.

`exercises` has the decorators that make a check of an exercise, and it tries the reader's answer.
`agreement` says when two answers are the same. `sentences` puts into words what came instead of
what was expected, and `verdict` is what a cell shows.
"""

from course_utils.engine.judging.after_cell import note_what_is_shown
from course_utils.engine.judging.exercises import Answers, call, function, objection, outcome, value
from course_utils.engine.judging.verdict import NotYetError

__all__ = [
    "Answers",
    "NotYetError",
    "call",
    "function",
    "objection",
    "outcome",
    "value",
]

note_what_is_shown()
