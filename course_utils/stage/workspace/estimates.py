"""How close the reader's guesses were: a picture and a sentence for the contents page.

`Guess.word` is the word that the notebook gave a guess, and the page counts the same words.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median_low

from course_utils.core.say import Guess
from course_utils.core.say.closeness import CLOSE, FAR, SPOT_ON, WORDS, whole_judged_by
from course_utils.core.say.language import template, translated
from course_utils.core.say.wording import letters_wide

LETTER_PX = 6.1  # of the words at a grid line, as letters_wide counts them
LEFT_PX = 104  # where the grid begins at the least
FURTHEST = 1000.0  # times off; a guess that is further off, or a wrong choice, is drawn here
ENOUGH = 8  # guesses, before the first half is compared with the second
# The picture's grid lines: how many times off, and the words at the line.
MARKS = {
    1: template("spot on"),
    10: template("10 times off"),
    100: template("100 times off"),
    FURTHEST: template("1,000 or missed"),
}
# A share is judged by points, and so it is drawn by its word: 11 % for 2 % is close, though it is
# 5.5 times too large. A share that is far is as high as a size of another power of ten.
TIMES_OFF = {SPOT_ON: 1.0, CLOSE: 1.5, FAR: 10.0}


def summary(guesses: Sequence[Guess]) -> str:
    """Return how many guesses there are, and how many of them each word is for.

    >>> summary([Guess("a", 30, 10), Guess("b", 5, 5), Guess("c", 1, 8)])
    '3 guesses: 1 spot on, 1 right power of ten, 1 far'
    >>> summary([Guess("a", 30, 10)])
    '1 guess: right power of ten'
    """
    if not guesses:
        return ""
    if len(guesses) == 1:
        return translated("1 guess: {word}", word=translated(guesses[0].word))
    return translated("{number} guesses: {counts}", number=len(guesses), counts=_counts(guesses))


def picture(by_notebook: Mapping[int, Sequence[Guess]]) -> dict[str, object]:
    """Return the picture that contents.html draws; empty without a guess.

    "left" is where the grid begins, behind the words of the grid lines.
    "dots" has a height and a sentence for each guess, and "marks" the same for each grid line.
    "bars" has for each notebook the numbers of its first guess and of the first one after it, the
    height of its median, and a name. A height is 0 for a guess that is right, and 1 for one that
    is FURTHEST off.
    """
    guesses = []
    bars = []
    for number, here in sorted(by_notebook.items()):
        if not here:
            continue
        begin = len(guesses)
        guesses += here
        # Of an even number of guesses, the better of the two in the middle, which was really made.
        median = median_low(_times_off(guess) for guess in here)
        height = _height(median)
        name = f"{number}"
        if not bars:  # the first says what the numbers are
            name = translated("notebook {number}", number=number)
        bars.append((begin, len(guesses), height, name))
    if not guesses:
        return {}
    marks = [(_height(off), translated(words)) for off, words in MARKS.items()]
    longest = max(letters_wide(words) for _, words in marks)
    return {
        "words": _trend(guesses),
        "left": max(LEFT_PX, round(LETTER_PX * longest) + 12),
        "marks": marks,
        "dots": [(_height(_times_off(guess)), _sentence(guess)) for guess in guesses],
        "bars": bars,
    }


def _sentence(guess: Guess) -> str:
    """Return what was asked, and how far off the guess was, as the text at a dot."""
    return translated("{asked}. {words}", asked=guess.asked, words=guess.words)


def _trend(guesses: Sequence[Guess]) -> str:
    """Return a sentence on whether guesses get better, once there are enough."""
    if len(guesses) < ENOUGH:
        return translated(
            "{summary}. From {enough} on, this page compares the later ones with the first.",
            summary=summary(guesses),
            enough=ENOUGH,
        )
    middle = len(guesses) // 2
    first = guesses[:middle]
    last = guesses[middle:]
    return translated(
        "Of your first {first} guesses, {first_counts}; of the next {next}, {next_counts}.",
        first=len(first),
        first_counts=_counts(first),
        next=len(last),
        next_counts=_counts(last),
    )


def _counts(guesses: Sequence[Guess]) -> str:
    """Return how many guesses each word is for, from the best word on; no word stands with a 0."""
    words = [guess.word for guess in guesses]
    counts = ""
    for word in WORDS:
        if word in words:
            shown = translated(word)
            count = translated("{number} {word}", number=words.count(word), word=shown)
            counts = translated("{items}, {next}", items=counts, next=count) if counts else count
    return counts


def _times_off(guess: Guess) -> float:
    """Return how many times off the guess is drawn in the picture.

    A guess at a share is drawn by the word for it: see TIMES_OFF.
    """
    is_choice = isinstance(guess.measured, str)  # among options in words
    if is_choice or guess.word not in TIMES_OFF:
        return guess.off
    is_by_points = whole_judged_by(guess.measured, guess.unit) > 0  # such as a guess in percent
    return TIMES_OFF[guess.word] if is_by_points else guess.off


def _height(off: float) -> float:
    """Return the height in the picture of a guess that is `off` times off, from 0 to 1."""
    # Logarithmic: 1 time off is 0, and FURTHEST is 1.
    return math.log(min(off, FURTHEST)) / math.log(FURTHEST)
