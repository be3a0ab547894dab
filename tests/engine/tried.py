"""Answers beside the solutions: right in another way, or wrong in one that is not listed."""

from collections.abc import Callable
from dataclasses import dataclass

from course_utils.engine.judging.verdict import Verdict

Check = Callable[[object], Verdict]


@dataclass(frozen=True)
class Tried:
    """Answers to one exercise; each wrong one with a part of the sentence that it gets."""

    right: tuple[object, ...] = ()
    wrong: tuple[tuple[object, str], ...] = ()
