"""How far off the reader's guesses were, one after the other: a picture on the contents page, and a sentence."""

import math
from collections.abc import Mapping, Sequence
from statistics import median_low

from course_utils.core.say import Guess, times_text

FURTHEST = 1000.0  # times off; what lies beyond, and a wrong choice, is drawn here
ENOUGH = 8  # guesses, before the first half is compared with the second


def summary(guesses: Sequence[Guess]) -> str:
    """How many guesses are right, and how far off the middle one is.

    >>> summary([Guess("a", 9, 3), Guess("b", 5, 5), Guess("c", 1, 8)]), summary([Guess("a", 9, 3)])
    ('3 guesses: 1 right, half of them within 3 times', '1 guess: within 3 times')
    """
    if not guesses:
        return ""
    if len(guesses) == 1:
        return f"1 guess: {_how_far(guesses[0])}"
    right = sum(guess.is_right for guess in guesses)
    return f"{len(guesses)} guesses: {right} right, {_half(guesses)}"


def picture(by_notebook: Mapping[int, Sequence[Guess]]) -> dict[str, object]:
    """What contents.html draws: a dot for every guess with its sentence, a bar for every notebook; empty without a guess.

    Heights are from 0, right, to 1, far off. A bar's place is from its first guess to the next bar's.
    """
    guesses, bars = [], []
    for number, some in sorted(by_notebook.items()):
        if some:
            begin, half = len(guesses), median_low(guess.off for guess in some)
            guesses += some
            bars.append(
                (begin, len(guesses), _height(half), f"{number}" if begin else f"notebook {number}")
            )
    if not guesses:
        return {}
    marks = {1: "right", 10: "10 times off", 100: "100 times off", FURTHEST: "1,000 or wrong"}
    return {
        "words": _trend(guesses),
        "marks": [(_height(off), words) for off, words in marks.items()],
        "dots": [(_height(one.off), f"{one.asked}: {one.said} is {one.words}") for one in guesses],
        "bars": bars,
    }


def _trend(guesses: Sequence[Guess]) -> str:
    """A sentence on whether guesses get better, once there are enough."""
    if len(guesses) < ENOUGH:
        return f"{summary(guesses)}. From {ENOUGH} on, this page compares the later ones with the first."
    middle = len(guesses) // 2
    first, last = guesses[:middle], guesses[middle:]
    return f"Of your first {len(first)} guesses, {_half(first)}; of the next {len(last)}, {_half(last)}."


def _half(guesses: Sequence[Guess]) -> str:
    middle = sorted(guesses, key=lambda guess: guess.off)[(len(guesses) - 1) // 2]
    return f"{'half' if middle.off < math.inf else 'most'} of them {_how_far(middle)}"


def _how_far(guess: Guess) -> str:
    if guess.is_right:
        return "right"
    return f"within {times_text(guess.off)}" if guess.off < math.inf else "wrong"


def _height(off: float) -> float:
    return math.log(min(off, FURTHEST)) / math.log(FURTHEST)
