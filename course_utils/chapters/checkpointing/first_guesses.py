"""The reader's guesses at the two questions that open the course, beside what was counted."""

from course_utils.core import record
from course_utils.core.say import Guess, Number, Table, in_words
from course_utils.core.say.language import translated

# Each question as notebook 1 asks it ahead: its notebook, its name, its unit.
DAYS = ("flops", "70 billion parameters on 1,024 H100s", "days")
LARGEST = ("optimizers", "8 H100s, AdamW", "billions of parameters")


def beside_your_guesses(*, days_of_70b: Number, billions_on_8_gpus: Number) -> Table:
    """Return a table of both questions: the guess in the reader's record, and the counted number.

    A guess is the reader's first, from before notebooks 4 and 6 could change it. Where the record
    has none, or where there is no record, the table says so.
    """
    rows = [["", translated("your first guess"), translated("counted"), ""]]
    for question, counted in ((DAYS, days_of_70b), (LARGEST, billions_on_8_gpus)):
        notebook, name, unit = question
        said = _first_guess_at(notebook, name)
        guess_text = translated("none in your record")
        closeness = ""
        if isinstance(said, int | float):  # neither None nor a text
            guess_text = in_words(said, unit)
            guess = Guess(name, said, counted, kind="calculated", digits=3, unit=unit)
            closeness = translated(guess.word)  # such as "spot on"
        rows.append([name, guess_text, in_words(counted, unit), closeness])
    return Table(rows)


def _first_guess_at(notebook: str, name: str) -> Number | str | None:
    """Return the reader's first guess at that question; None if the record has none."""
    folder = record.workspace()
    if folder is None:
        return None
    said_by_name = record.said_so_far(folder, notebook)
    if name not in said_by_name:
        return None
    return said_by_name[name].first
