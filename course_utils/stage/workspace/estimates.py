"""How far off the reader's guesses were: a picture and a sentence for the contents page.

`Guess.off` says how many times a guess is off: 1 if it is right, and infinite if no factor makes it
right, as for a wrong choice.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median_low

from course_utils.core.say import Guess, times_text

FURTHEST = 1000.0  # times off; a guess that is further off, or a wrong choice, is drawn here
ENOUGH = 8  # guesses, before the first half is compared with the second
MARKS = {1: "right", 10: "10 times off", 100: "100 times off", FURTHEST: "1,000 or wrong"}


def summary(guesses: Sequence[Guess]) -> str:
    """How many guesses are right, and how far off the median one is.

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
    """The picture that contents.html draws; empty without a guess.

    "dots" has a height and a sentence for each guess. "bars" has for each notebook the numbers of
    its first guess and of the first one after it, a height, and a name. A height is 0 for a right
    guess, and 1 for one that is FURTHEST off.
    """
    guesses = []
    bars = []
    for number, here in sorted(by_notebook.items()):
        if not here:
            continue
        begin = len(guesses)
        guesses += here
        height = _height(median_low(guess.off for guess in here))
        name = f"{number}" if bars else f"notebook {number}"
        bars.append((begin, len(guesses), height, name))
    if not guesses:
        return {}
    return {
        "words": _trend(guesses),
        "marks": [(_height(off), words) for off, words in MARKS.items()],
        "dots": [(_height(guess.off), _sentence(guess)) for guess in guesses],
        "bars": bars,
    }


def _sentence(guess: Guess) -> str:
    return f"{guess.asked}: {guess.said} is {guess.words}"


def _trend(guesses: Sequence[Guess]) -> str:
    """A sentence on whether guesses get better, once there are enough."""
    if len(guesses) < ENOUGH:
        later = f"From {ENOUGH} on, this page compares the later ones with the first."
        return f"{summary(guesses)}. {later}"
    middle = len(guesses) // 2
    first = guesses[:middle]
    last = guesses[middle:]
    return (
        f"Of your first {len(first)} guesses, {_half(first)}; "
        f"of the next {len(last)}, {_half(last)}."
    )


def _half(guesses: Sequence[Guess]) -> str:
    """In words, how far off the better half of the guesses is, or that most are wrong choices."""
    by_distance = sorted(guesses, key=lambda guess: guess.off)
    median = by_distance[(len(guesses) - 1) // 2]
    share = "half" if median.off < math.inf else "most"
    return f"{share} of them {_how_far(median)}"


def _how_far(guess: Guess) -> str:
    if guess.is_right:
        return "right"
    if guess.off < math.inf:
        return f"within {times_text(guess.off)}"
    return "wrong"


def _height(off: float) -> float:
    """The height in the picture of a guess that is `off` times off, from 0 to 1."""
    return math.log(min(off, FURTHEST)) / math.log(FURTHEST)
