"""A width that is split into heads, by a pattern whose names stand in one order or the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from course_utils.core.say import Guess
from course_utils.engine.labs.fields import choice, drawn, reveal

COLUMNS = 12
HEADS = (2, 3, 4)
RIGHT, WRONG = "(head place)", "(place head)"
PRESETS: Mapping[str, Mapping[str, object]] = {
    "four heads?": {"heads": 4, "pattern": WRONG},
    "the right order?": {"heads": 4, "pattern": RIGHT},
}
MARKS = [f"head of column {column}" for column in range(COLUMNS)]


@dataclass(frozen=True)
class Split:
    """The number of heads and the pattern; and the head to which the reader expects each column to go."""

    heads: int = choice("heads", {f"{n}": n for n in HEADS}, 4)
    pattern: str = choice("pattern", (RIGHT, WRONG), WRONG)
    guess: Sequence[int | None] = drawn(
        "your marks", marks=MARKS, levels=max(HEADS), says=lambda _, level: f"head {level}"
    )
    shown: bool = reveal()

    @property
    def places(self) -> int:
        """The columns of a head."""
        return COLUMNS // self.heads

    @cached_property
    def arrives(self) -> Sequence[int]:
        """The head of each column, by walking through the pattern as loops: the last name runs fastest."""
        heads, places = range(self.heads), range(self.places)
        if self.pattern == RIGHT:
            return [head for head, _ in product(heads, places)]
        return [head for _, head in product(places, heads)]

    @property
    def belongs(self) -> Sequence[int]:
        """The head to which each column belongs: neighbouring columns make a head."""
        return [column // self.places for column in range(COLUMNS)]


def guesses(asked: Split, found: object = None) -> list[Guess]:
    """Each mark that is set, beside the head that its column goes to."""
    marks = zip(MARKS, asked.guess, asked.arrives, strict=True)
    said = [
        (f"{mark}, by {asked.pattern}", level, head)
        for mark, level, head in marks
        if level is not None
    ]
    return [Guess(of, f"head {level}", f"head {head}") for of, level, head in said]
