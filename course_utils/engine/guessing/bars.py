"""The field of guesses that are parts of a sum: each has a bar that can be dragged."""

import re
from collections.abc import Mapping

import traitlets

from course_utils.core.say import Number, OpenGuess
from course_utils.core.say.typed import read
from course_utils.engine.guessing.field import Field

BELOW_ZERO = re.compile(r"\s*[-−]([^-−+]+)")  # a minus sign, and one number; as in guesses.js


class OpenParts(OpenGuess):
    """Guesses that are parts of a sum. A part can be below 0, because it may save something."""

    def _read(self, typed: str) -> Number | str:
        """Return the number that was typed; ValueError if it is none."""
        below_zero = BELOW_ZERO.fullmatch(typed)
        try:
            return super()._read(typed)
        except ValueError:
            if not below_zero:
                raise
        return -read(below_zero[1], self.unit)


class Bars(Field):
    """A field in which each part of a sum has a bar, which begins where the one above it ends.

    `between` has the names and the numbers of the two ends: what comes before the first part, and
    what all parts lead to.
    """

    between = traitlets.List().tag(sync=True)

    def __init__(self, guess: OpenGuess, between: Mapping[str, Number]) -> None:
        _check_that_bars_fit(guess, between)
        super().__init__(guess)
        self.between = [[name, number] for name, number in between.items()]

    def _line(self, name: str) -> dict[str, object]:
        """Return what the page shows for one question, with the typed number, or None."""
        return {**super()._line(name), "number": self.guess.said.get(name)}


def _check_that_bars_fit(guess: OpenGuess, between: Mapping[str, Number]) -> None:
    """Raise a ValueError if the guesses cannot be bars between two numbers."""
    numbers = list(between.values())
    are_parts = len(guess.names) > 1 and not guess.among
    if not are_parts or len(numbers) != 2 or not 0 <= numbers[0] < numbers[1]:
        raise ValueError(
            "With between=…, several numbers are asked for, and it has two of its own, "
            f'the smaller one first: {{"at the peak": 82.5, "reported": 260}}; not {between}.'
        )
