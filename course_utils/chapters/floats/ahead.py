"""`ask_ahead`: a field for a guess at a question that a later notebook asks again and answers."""

from course_utils.core import record
from course_utils.core.say import OpenGuess
from course_utils.engine import guessing
from course_utils.engine.guessing.field import Field


def ask_ahead(name: str, unit: str, *, notebook: str) -> None:
    """Show a field for a guess that waits in the record until the other notebook asks for it.

    `notebook` is that notebook's name, such as "flops". It calls `ask` with the same `name` and
    `unit`. There the guess stands in the field, and can be changed until the answer is shown.
    Nothing that follows here gives the answer away, so this field has no button *Show*.
    """
    # `has_gone_on` says that the button *Show* was pressed, after which a field has no such button.
    guess = OpenGuess((name,), unit, has_gone_on=True)
    folder = record.workspace()
    if folder and record.notebook:  # both are there in a reader's copy of the notebook only
        # Only a reader's copy has to load what reads and writes the record of guesses.
        from course_utils.engine.guessing import kept

        # Fills in the guess that the record has, and writes each change to the record.
        kept.restore(guess, folder, notebook)
    if guessing.shows_fields:
        guessing.display(Field(guess))
