"""How an answer comes to its verdict.

`exercises` has the decorators that make a check of an exercise, and it tries the reader's answer.
`agreement` decides whether two answers are the same. `faults` and `sentences` write what is wrong
with an answer, and `verdict` is what a cell shows.
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

# A notebook imports its `check`, and with it this package, so no cell has to call this.
note_what_is_shown()
