"""`reveal`: the measured value beside what was predicted, and beside what the reader guessed."""

from collections.abc import Mapping

from course_utils.core.say.comparisons import Choice, Comparison
from course_utils.core.say.open_guesses import OpenGuess
from course_utils.core.say.wording import Number, listed

Numbers = Number | Mapping[str, Number]


def reveal(
    guess: OpenGuess,
    *,
    measured: Numbers | str,
    predicted: Numbers | None = None,
    digits: int | None = None,
    heads: tuple[str, str] = ("predicted", "measured"),
) -> Comparison | Choice:
    """Return the answer to what was asked: a Comparison of numbers, or a Choice among options.

    `guess` is what `ask` has returned, and the question's name becomes the name of the row. If
    several numbers were asked for, `predicted` and `measured` have a number for each name. `digits`
    and `heads` are those of a Comparison. Options have `measured`, and only the second head.

    >>> reveal(OpenGuess(("6 × 7",), "points"), predicted=42, measured=6 * 7)
    points  predicted  measured  measured / predicted
    6 × 7          42        42             1 exactly
    """
    if not isinstance(guess, OpenGuess):
        raise TypeError(
            f"The first argument of reveal is what ask(…) has returned, not {guess!r:.40}. "
            "Run the cell with ask(…) again, and type the guess into its field."
        )
    if guess.among:
        if len(guess.names) > 1:
            raise ValueError(
                f"Name one question of {listed(guess.names)}: reveal(…[{guess.names[0]!r}], …)."
            )
        (name,) = guess.names
        return Choice(name, among=guess.among, measured=measured, guess=guess, kind=heads[1])
    if predicted is None:
        raise TypeError("Beside a measured number stands the predicted one: name predicted=….")
    return Comparison(
        _by_name(guess, predicted),
        _by_name(guess, measured),
        unit=guess.unit,
        guess=guess,
        digits=digits,
        heads=heads,
    )


def _by_name(guess: OpenGuess, numbers: Numbers) -> Mapping[str, Number]:
    """Return the numbers by the guess's names; ValueError if one of these has no number.

    A single number is for a guess with a single name.
    """
    if isinstance(numbers, Mapping):
        missing = [name for name in guess.names if name not in numbers]
        if missing:
            raise ValueError(
                f"There is no number for {listed(missing)}, but for {listed(list(numbers))}."
            )
        return numbers
    if len(guess.names) > 1:
        raise ValueError(f"There is a number for each of {listed(guess.names)}, by its name.")
    return {guess.names[0]: numbers}
