"""How far off the reader's guesses were, one after the other: a picture on the contents page, and a sentence."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median_low

from course_utils.quantities import Guess, times_text

FURTHEST = 1000.0  # times off; what lies beyond, and a wrong choice, is drawn here
LEFT, TOP, WIDTH, HEIGHT = 104, 26, 600, 150
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


def picture(by_notebook: Mapping[int, Sequence[Guess]]) -> str:
    """Every guess as a dot with its sentence, the notebooks side by side; empty without a guess."""
    places = [(number, guess) for number in sorted(by_notebook) for guess in by_notebook[number]]
    if not places:
        return ""
    step, x = WIDTH / len(places), LEFT
    marks = {1: "right", 10: "10 times off", 100: "100 times off", FURTHEST: "1,000 or wrong"}
    drawn = [
        _line(x, x + WIDTH, off, "grid") + _text(x - 8, _y(off) + 4, w, "end") for off, w in marks.items()
    ]
    drawn += [
        f'<circle cx="{x + step * (at + 0.5):.1f}" cy="{_y(guess.off):.1f}" r="5"><title>{escape(_said(guess))}</title></circle>'
        for at, (_, guess) in enumerate(places)
    ]
    for number, guesses in sorted(by_notebook.items()):
        if guesses:
            end = x + step * len(guesses)
            name = f"notebook {number}" if x == LEFT else f"{number}"
            drawn.append(_text((x + end) / 2, TOP + HEIGHT + 22, name, "middle"))
            drawn.append(_line(x + 3, end - 3, median_low(guess.off for guess in guesses), "half"))
            x = end
    drawn.append(_text(LEFT + WIDTH, TOP - 12, "half lie below the bar", "end", "half"))
    words = _trend([guess for _, guess in places])
    view = f'viewBox="0 0 {LEFT + WIDTH + 8} {TOP + HEIGHT + 30}"'
    return (
        f'<h2>Your guesses, notebook by notebook</h2>\n<p>{words}</p>\n<svg {view} role="img" '
        f'aria-label="{words} Each dot is a guess, from right at the bottom to 1,000 times off at the top.">{"".join(drawn)}</svg>'
    )


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


def _line(left: float, right: float, off: float, class_: str) -> str:
    y = _y(off)
    return f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="{class_}"/>'


def _text(x: float, y: float, words: str, anchor: str, class_: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{class_}">{words}</text>'


def _said(guess: Guess) -> str:
    return f"{guess.asked}: {guess.said} is {guess.words}"


def _y(off: float) -> float:
    """A guess's height in the picture: right at the bottom, far off at the top."""
    return TOP + HEIGHT * (1 - math.log(min(off, FURTHEST)) / math.log(FURTHEST))
