"""What was handed in beside the solutions: right in another way, and wrong in one that the exercise does not list."""

from collections.abc import Callable
from dataclasses import dataclass

from course_utils.engine.judging.verdict import Verdict

Check = Callable[[object], Verdict]


@dataclass(frozen=True)
class Tried:
    """Answers to one exercise; each wrong one with telling words of what is said of it."""

    right: tuple[object, ...] = ()
    wrong: tuple[tuple[object, str], ...] = ()
