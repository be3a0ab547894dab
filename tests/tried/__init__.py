"""What was handed in for each exercise beside its solution: right in another way, and wrong with the advice it gets."""

from collections.abc import Callable
from dataclasses import dataclass

from course_utils.checks.verdict import Verdict

Check = Callable[[object], Verdict]


@dataclass(frozen=True)
class Tried:
    """Answers to one exercise; each wrong one with telling words of the advice that fits it."""

    right: list[object]
    wrong: list[tuple[object, str]]
