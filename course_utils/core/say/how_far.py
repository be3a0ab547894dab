"""How far off a guess is, as sentences, which only a notebook with a guess has to load."""

import math

from course_utils.core.say.closeness import CLOSE, FAR, SPOT_ON, is_counted, whole_judged_by
from course_utils.core.say.guesses import Guess, short
from course_utils.core.say.language import translated
from course_utils.core.say.wording import (
    Number,
    as_float,
    factor_text,
    in_words,
    three_digits,
    times_text,
)


def words(guess: Guess) -> str:
    """Return how close the guess is, and how far off, as a sentence without its full stop."""
    word = translated(guess.word)
    # capitalize() would lower all other letters, which another language may have.
    first = word[0].upper() + word[1:]
    return translated("{word}: {how_far}", word=first, how_far=f"{how_far(guess)}{hint(guess)}")


def hint(guess: Guess) -> str:
    """Return a question that follows `how_far` if the reader may have answered in another unit."""
    if not _may_be_another_unit(guess):
        return ""
    return translated(". Is it in the unit that was asked for?")


def how_far(guess: Guess) -> str:
    """Return how far off the guess is, in the words that fit its unit."""
    if guess.word == SPOT_ON:
        return _nearly(guess)
    return difference(guess) or _beside(guess)  # both numbers, where no difference says it


def difference(guess: Guess) -> str:
    """Return how far off the guess is; empty if it is spot on, or if only both numbers say it."""
    # Options have no difference, and are treated like a number that is not finite.
    measured = as_float(guess.measured) if not guess.is_choice else math.inf
    if guess.word == SPOT_ON or not math.isfinite(measured):
        return ""
    apart = as_float(guess.said) - measured
    is_high = apart > 0
    whole = whole_judged_by(measured, guess.unit)  # such as 100, or 0
    if whole in (1, 100):  # a share or percent
        points = three_digits(abs(apart) * 100 / whole)
        if is_high:
            return translated("{points} points too high", points=points)
        return translated("{points} points too low", points=points)
    is_near_count = guess.word != FAR and is_counted(measured, guess.unit, guess.digits)
    if is_near_count and apart == int(apart):
        return _counted(in_words(int(abs(apart)), guess.unit), is_high=is_high)
    is_off_by_one = guess.word == CLOSE and abs(apart) == 1
    if whole or is_off_by_one:  # "1 too low" says more than a factor
        return _off_by(three_digits(abs(apart)), is_high=is_high)
    if guess.off == math.inf:  # no factor leads from the guess to the value, as from 0
        return ""
    # "0.333 times" would have to be turned round by the reader; "0.9 times" reads well.
    return _times(guess) if guess.word == CLOSE else _factor(guess.off, is_high=is_high)


def _counted(number: str, *, is_high: bool) -> str:
    """Return by how many a count is off, such as "4 bytes too few"."""
    if is_high:
        return translated("{number} too many", number=number)
    return translated("{number} too few", number=number)


def _off_by(number: str, *, is_high: bool) -> str:
    """Return by how much a number is off, such as "7 too low"."""
    if is_high:
        return translated("{number} too high", number=number)
    return translated("{number} too low", number=number)


def _times(guess: Guess) -> str:
    """Return the ratio of a guess that is not far off, such as "0.9 times what was measured"."""
    times = times_text(guess.ratio)
    kind = translated(guess.kind)
    if _is_participle(guess.kind):
        return translated("{times} what was {kind}", times=times, kind=kind)
    return translated("{times} the number {kind}", times=times, kind=kind)


def _factor(off: float, *, is_high: bool) -> str:
    """Return the ratio of a guess that is far off, such as "a factor of 12.8 too small"."""
    factor = factor_text(off)
    if is_high:
        return translated("a factor of {factor} too large", factor=factor)
    return translated("a factor of {factor} too small", factor=factor)


def _is_participle(kind: str) -> bool:
    """Whether `kind` is a participle such as "measured" or "found", and not "with a step"."""
    return kind.endswith(("ed", "found"))


def _beside(guess: Guess) -> str:
    """Return both numbers in a sentence: "you said 3, and what was measured is 4"."""
    said = _text(guess.said, guess)
    kind = translated(guess.kind)
    measured = _text(guess.measured, guess, guess.digits)
    if _is_participle(guess.kind):
        return translated(
            "you said {said}, and what was {kind} is {measured}",
            said=said,
            kind=kind,
            measured=measured,
        )
    return translated(
        "you said {said}, and the number {kind} is {measured}",
        said=said,
        kind=kind,
        measured=measured,
    )


def _nearly(guess: Guess) -> str:
    """Return what to say of a guess that is spot on: "2.4 GB for 2.42 GB", or "2.42 GB"."""
    said = _text(guess.said, guess)
    measured = _text(guess.measured, guess, guess.digits)
    if guess.is_right or said == measured:
        return said
    return translated("{said} for {measured}", said=said, measured=measured)


def _text(value: Number | str, guess: Guess, digits: int | None = None) -> str:
    """Return an option, or a number as the picture has it, short enough for a sentence."""
    return short(value if isinstance(value, str) else in_words(value, guess.unit, digits))


def _may_be_another_unit(guess: Guess) -> bool:
    """Whether the guess is off by about a hundred, or by about a power of 1,000 or 1,024."""
    factors = [100]  # percent in place of a share
    for power in (1, 2, 3, 4):
        factors += [1000**power, 1024**power]
    about = 0.12  # how far from such a factor the guess may be off, as a share of the factor
    # `off` is at least 1, whether the guess is too large or too small.
    return any(abs(guess.off / factor - 1) < about for factor in factors)
