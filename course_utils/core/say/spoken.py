"""What a screen reader says of the picture of a guess: all its numbers, in the picture's order."""

from course_utils.core.say.guesses import Guess
from course_utils.core.say.language import translated
from course_utils.core.say.wording import Number, in_words


def of_numbers(guess: Guess, predicted: Number, measured: Number, heads: tuple[str, str]) -> str:
    """Return the question, the three numbers with their units, and how close the guess is.

    `heads` are the names of the other two numbers, such as ("predicted", "measured"). If both have
    the same name, they are the same number, which is said once.

    >>> guess = Guess("state", 2.4, 2.416, unit="GB")
    >>> of_numbers(guess, 2.416, 2.416, ("predicted", "measured"))
    'state: your guess 2.4 GB, predicted 2.42 GB, measured 2.42 GB. Spot on: 2.4 GB for 2.42 GB'
    """
    first, kind = map(translated, heads)
    said = in_words(guess.said, guess.unit)
    measured_text = in_words(measured, guess.unit, guess.digits)
    if first == kind:
        return _beside(guess, said, kind, measured_text)
    return translated(
        "{asked}: your guess {said}, {first} {predicted}, {kind} {measured}. {words}",
        asked=guess.asked,
        said=said,
        first=first,
        predicted=in_words(predicted, guess.unit, guess.digits),
        kind=kind,
        measured=measured_text,
        words=guess.words,
    )


def of_choice(guess: Guess) -> str:
    """Return the question, the reader's option and the right one, and whether they are the same.

    >>> of_choice(Guess("stops", "bf16", "bf16"))
    'stops: your guess bf16, measured bf16. Spot on: bf16'
    """
    return _beside(guess, guess.said, translated(guess.kind), guess.measured)


def _beside(guess: Guess, said: str, kind: str, measured: str) -> str:
    """Return the question, the guess beside the one other number or option, and how close it is."""
    return translated(
        "{asked}: your guess {said}, {kind} {measured}. {words}",
        asked=guess.asked,
        said=said,
        kind=kind,
        measured=measured,
        words=guess.words,
    )
