"""What counts: which notebooks, which of their turns, and how many points each has.

NB="04 05"           these notebooks; without it, each one that somebody handed in
TURNS=main           the main path's turns, which is the rule; TURNS=all has those beyond, too
TURNS="1-3 6"        these turns of each notebook; "04.1-3 05.2" says of which
POINTS=2             so many for each turn; POINTS="1 04.2:3" says one for each, and three for turn 2 of notebook 4
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

MAIN, ALL = "main", "all"
TURNS = re.compile(r"(?:(\d+)\.)?(\d+)(?:-(\d+))?")
POINTS = re.compile(r"(?:(?:(\d+)\.)?(\d+):)?(\d+(?:\.\d+)?)")
MOST_TURNS = 99


@dataclass(frozen=True)
class Counting:
    """Which turns of which notebooks count, and what each is worth."""

    notebooks: Sequence[str] = ()  # all, if there are none
    turns: str = MAIN
    chosen: Collection[
        tuple[str, int]
    ] = ()  # if single ones are chosen; the notebook may be any: ""
    points: Sequence[tuple[str, int, float]] = ()  # of the last that fits; number 0 is each turn

    def counts(self, notebook: str, number: int, *, is_beyond: bool) -> bool:
        if self.notebooks and notebook not in self.notebooks:
            return False
        if self.chosen:
            return not {("", number), (notebook, number)}.isdisjoint(self.chosen)
        return self.turns == ALL or not is_beyond

    def worth(self, notebook: str, number: int) -> float:
        worth = 1.0
        for of, turn, points in self.points:
            if of in ("", notebook) and turn in (0, number):
                worth = points
        return worth


def counting(notebooks: str, turns: str, points: str, course: Sequence[str]) -> Counting:
    """What these words ask for; ValueError with a sentence if they cannot be understood."""
    names = tuple(_named(word, course) for word in _words(notebooks))
    turns = turns.strip() or MAIN
    chosen = (
        set()
        if turns in (MAIN, ALL)
        else {one for word in _words(turns) for one in _turns(word, course)}
    )
    return Counting(
        names, turns, frozenset(chosen), tuple(_points(word, course) for word in _words(points))
    )


def _words(text: str) -> list[str]:
    return re.split(r"[\s,]+", text.strip()) if text.strip() else []


def _named(word: str, course: Sequence[str]) -> str:
    """The notebook that the word names: its number, or its name."""
    for name in course:
        number = name.partition("_")[0]
        if word in (name, f"{name}.ipynb") or (word.isdecimal() and int(word) == int(number)):
            return name
    raise ValueError(f"There is no notebook {word!r}. There are: {', '.join(course)}.")


def _turns(word: str, course: Sequence[str]) -> list[tuple[str, int]]:
    found = TURNS.fullmatch(word)
    if not found:
        raise ValueError(
            f'TURNS={word} is not understood: write main, all, or numbers as in "1-3 04.5".'
        )
    notebook, first, last = found.groups()
    name = _named(notebook, course) if notebook else ""
    return [(name, number) for number in range(int(first), min(int(last or first), MOST_TURNS) + 1)]


def _points(word: str, course: Sequence[str]) -> tuple[str, int, float]:
    found = POINTS.fullmatch(word)
    if not found:
        raise ValueError(f'POINTS={word} is not understood: write 2, or as in "1 3:2 04.5:4".')
    notebook, number, points = found.groups()
    return _named(notebook, course) if notebook else "", int(number or 0), float(points)
