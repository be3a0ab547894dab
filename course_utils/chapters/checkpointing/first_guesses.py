"""The reader's guesses at the two questions that open the course, beside what was counted."""

from dataclasses import dataclass

from course_utils.core import record
from course_utils.core.say import Comparison, Number
from course_utils.core.say.language import template, translated
from course_utils.core.say.open_guesses import OpenGuess

# Each question as notebook 1 asks it ahead: its notebook, its name, its unit.
DAYS = ("flops", "70 billion parameters on 1,024 H100s", "days")
LARGEST = ("optimizers", "8 H100s, AdamW", "billions of parameters")
HEADS = (template("in one line"), template("by your accountant"))
NONE = template("No first guess is in your record.")
TwoWays = tuple[Number, Number]  # as one line of arithmetic says it, and as the accountant does


@dataclass(frozen=True)
class FirstGuesses:
    """Two reveals, one below the other, as notebooks 4 and 6 show them.

    They are no Comparison to those who record guesses: each was recorded in its own notebook.
    """

    reveals: tuple[Comparison, ...]

    def __repr__(self) -> str:
        return "\n\n".join(
            f"{reveal}" if reveal.guesses else f"{reveal}\n{translated(NONE)}"
            for reveal in self.reveals
        )

    def _repr_html_(self) -> str:
        """Return what Jupyter shows."""
        shown = []
        for reveal in self.reveals:
            shown.append(reveal._repr_html_())
            if not reveal.guesses:
                shown.append(f"<p>{translated(NONE)}</p>")
        return "".join(shown)


def beside_your_guesses(*, days_of_70b: TwoWays, billions_on_8_gpus: TwoWays) -> FirstGuesses:
    """Return the reveals of both questions: the guess in the reader's record, and both numbers.

    A guess is the reader's first, from before notebooks 4 and 6 could change it. Where the record
    has none, or where there is no record, that is said.
    """
    reveals = []
    for question, (in_one_line, counted) in ((DAYS, days_of_70b), (LARGEST, billions_on_8_gpus)):
        notebook, name, unit = question
        said = _first_guess_at(notebook, name)
        guess = OpenGuess((name,), unit, has_gone_on=True, is_closed=True)
        if isinstance(said, int | float):  # neither None nor a text
            guess.said[name] = said
        reveals.append(
            Comparison(
                {name: in_one_line}, {name: counted}, unit, guess=guess, digits=3, heads=HEADS
            )
        )
    return FirstGuesses(tuple(reveals))


def _first_guess_at(notebook: str, name: str) -> Number | str | None:
    """Return the reader's first guess at that question; None if the record has none."""
    folder = record.workspace()
    if folder is None:
        return None
    said_by_name = record.said_so_far(folder, notebook)
    if name not in said_by_name:
        return None
    return said_by_name[name].first
