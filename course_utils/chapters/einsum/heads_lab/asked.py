"""A width that is split into heads, by a pattern whose names stand in one order or the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from course_utils.core.say import Guess
from course_utils.core.say.language import translated
from course_utils.engine.labs.fields import choice, drawn, reveal

COLUMNS = 12
HEADS = (2, 3, 4)
# The order of the two names into which einops splits the width; the last name is the inner loop.
RIGHT = "(head place)"
WRONG = "(place head)"
PRESETS: Mapping[str, Mapping[str, object]] = {
    "four heads?": {"heads": 4, "pattern": WRONG},
    "the right order?": {"heads": 4, "pattern": RIGHT},
}
MARKS = [f"head of column {column}" for column in range(COLUMNS)]


@dataclass(frozen=True)
class Split:
    """A number of heads, a pattern, and the head where the reader expects each column."""

    heads: int = choice("heads", {str(heads): heads for heads in HEADS}, 4)
    pattern: str = choice("pattern", (RIGHT, WRONG), WRONG)
    guess: Sequence[int | None] = drawn(
        "your marks",
        marks=MARKS,
        levels=max(HEADS),
        fewer=lambda said: said["heads"],
        says=lambda _mark, head: translated("head {head}", head=head),
        about=("heads", "pattern"),
    )
    shown: bool = reveal()

    @property
    def places(self) -> int:
        """How many columns each head has."""
        return COLUMNS // self.heads

    @cached_property
    def arrives(self) -> Sequence[int]:
        """The head to which the pattern sends each column.

        The pattern's last name is the inner loop, so it changes from each column to the next. With
        four heads, "(head place)" gives 0, 0, 0, 1, 1, 1, …, and "(place head)" 0, 1, 2, 3, 0, 1, …
        """
        heads = range(self.heads)
        places = range(self.places)
        if self.pattern == RIGHT:
            return [head for head, _ in product(heads, places)]
        return [head for _, head in product(places, heads)]

    @property
    def belongs(self) -> Sequence[int]:
        """The head to which each column belongs: a head has neighbouring columns."""
        return [column // self.places for column in range(COLUMNS)]


def guesses(asked: Split, found: object = None) -> list[Guess]:
    """Return a guess for each mark that is set, with the head to which its column really goes.

    `found` is what the method `guesses` of every lab is given; this lab needs nothing of it.
    """
    guesses = []
    for mark, guessed_head, head in zip(MARKS, asked.guess, asked.arrives, strict=True):
        if guessed_head is not None:
            question = f"{mark}, by {asked.pattern}"
            guesses.append(Guess(question, said=f"head {guessed_head}", measured=f"head {head}"))
    return guesses
