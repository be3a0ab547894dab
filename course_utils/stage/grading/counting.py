"""What counts: which notebooks, which of their turns, and how many points each has.

NB="04 05"           these notebooks; without it, each one that somebody handed in
TURNS=main           the main path's turns, which is the rule; TURNS=all has those beyond, too
TURNS="1-3 6"        these turns of each notebook; "04.1-3 05.2" says of which
POINTS=2             2 points for each turn; POINTS="1 04.2:3" says one for each, and three for
                     turn 2 of notebook 4
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAIN = "main"
ALL = "all"
TURNS = re.compile(r"(?:(\d+)\.)?(\d+)(?:-(\d+))?")  # as in 2, 1-3 or 04.1-3
POINTS = re.compile(r"(?:(?:(\d+)\.)?(\d+):)?(\d+(?:\.\d+)?)")  # as in 2, 3:2 or 04.2:3
MOST_TURNS = 99  # no notebook has as many, so TURNS=1-999999999 makes no endless list
ANY_NOTEBOOK = ""  # in place of a notebook's name
EACH_TURN = 0  # in place of a turn's number


@dataclass(frozen=True)
class Counting:
    """Which turns of which notebooks count, and what each is worth."""

    notebooks: Sequence[str] = ()  # all, if there are none
    turns: str = MAIN
    # Single turns, if some are chosen: the notebook of each, or ANY_NOTEBOOK, and its number.
    chosen: Collection[tuple[str, int]] = ()
    # A notebook, the number of a turn or EACH_TURN, and its points. The last one that fits counts.
    points: Sequence[tuple[str, int, float]] = ()

    def counts(self, notebook: str, number: int, *, is_beyond: bool) -> bool:
        """Whether the turn counts; `is_beyond` says that it lies beyond the main path."""
        if self.notebooks and notebook not in self.notebooks:
            return False
        if self.chosen:
            return (ANY_NOTEBOOK, number) in self.chosen or (notebook, number) in self.chosen
        return self.turns == ALL or not is_beyond

    def worth(self, notebook: str, number: int) -> float:
        """Return the points of a turn that counts."""
        worth = 1.0  # unless POINTS names another number
        for of_notebook, turn, points in self.points:
            if of_notebook in (ANY_NOTEBOOK, notebook) and turn in (EACH_TURN, number):
                worth = points
        return worth


def counting(notebooks: str, turns: str, points: str, course: Sequence[str]) -> Counting:
    """Return NB, TURNS and POINTS as a Counting; ValueError if one of them is not understood.

    `course` has the names of all notebooks, such as "04_flops".
    """
    names = [_named(word, course) for word in _words(notebooks)]
    turns = turns.strip() or MAIN
    chosen: set[tuple[str, int]] = set()
    if turns not in (MAIN, ALL):
        for word in _words(turns):
            chosen.update(_turns(word, course))
    worths = [_points(word, course) for word in _words(points)]
    return Counting(tuple(names), turns, frozenset(chosen), tuple(worths))


def _words(text: str) -> list[str]:
    """Return the words of that text, which spaces or commas separate."""
    if not text.strip():  # `split` would return one empty word
        return []
    return re.split(r"[\s,]+", text.strip())


def _named(word: str, course: Sequence[str]) -> str:
    """Return the name of the notebook with this name or number; ValueError if there is none."""
    for name in course:
        number = name.partition("_")[0]
        if word in (name, f"{name}.ipynb"):
            return name
        if word.isdecimal() and int(word) == int(number):
            return name
    raise ValueError(f"There is no notebook {word!r}. There are: {', '.join(course)}.")


def _turns(word: str, course: Sequence[str]) -> list[tuple[str, int]]:
    """Return the turns that one word chooses, such as 2, 1-3 or 04.1-3."""
    match = TURNS.fullmatch(word)
    if not match:
        raise ValueError(
            f'TURNS={word} is not understood: write main, all, or numbers as in "1-3 04.5".'
        )
    notebook, first, last = match.groups()
    name = _named(notebook, course) if notebook else ANY_NOTEBOOK
    if last is None:
        last = first
    numbers = range(int(first), min(int(last), MOST_TURNS) + 1)
    return [(name, number) for number in numbers]


def _points(word: str, course: Sequence[str]) -> tuple[str, int, float]:
    """Return the notebook, the turn and the points of one word, such as 2, 3:2 or 04.2:3."""
    match = POINTS.fullmatch(word)
    if not match:
        raise ValueError(f'POINTS={word} is not understood: write 2, or as in "1 3:2 04.5:4".')
    notebook, number, points = match.groups()
    name = _named(notebook, course) if notebook else ANY_NOTEBOOK
    turn = int(number) if number else EACH_TURN
    return name, turn, float(points)
