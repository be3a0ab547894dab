"""`ask`: a field for a guess, in the notebook and in its question's own unit."""

from collections.abc import Mapping, Sequence

from IPython.display import display

from course_utils.core import record
from course_utils.core.say import Number, OpenGuess, listed
from course_utils.engine.guessing.field import Field

# stage.present sets this to False for a room that guesses by phone: there, a page with all guesses
# takes the field's place.
shows_fields = True


def ask(
    names: str | Sequence[str],
    unit: str = "",
    *,
    among: Sequence[str] = (),
    between: Mapping[str, Number] | None = None,
) -> OpenGuess:
    """Show a field for a guess, and return the guess: `reveal` sets it beside the measured value.

    `names` is the name of the question, or the names of several. An answer is a number in that unit
    ("share" is from 0 to 1, "of 200" a count out of 200), or else one of the options in `among`.

    Several numbers can be parts of a sum. Then `between` names what comes before the first part,
    and what all parts lead to, each with its number: {"at the peak": 82.5, "reported": 260}. Each
    part has a bar that can be dragged, which begins where the one above it ends.

    What the reader types is kept in the record, so after a restart the same cell shows it again.
    """
    questions = (names,) if isinstance(names, str) else tuple(names)
    if not questions or not all(questions):  # none at all, or one with an empty name
        raise ValueError('ask needs the name of what is asked for: ask("one matrix", "GB").')
    if len(set(questions)) < len(questions):
        raise ValueError(
            f"Each question needs a name of its own, unlike these: {listed(questions)}."
        )
    guess = _guess_at(between)(questions, unit, tuple(among))
    _connect_with_record(guess)
    if shows_fields:
        display(_field(guess, between))
    return guess


def _guess_at(between: Mapping[str, Number] | None) -> type[OpenGuess]:
    """Return the type of a guess: parts of a sum, between two numbers, can be below 0."""
    if between is None:
        return OpenGuess
    from course_utils.engine.guessing.bars import OpenParts

    return OpenParts


def _field(guess: OpenGuess, between: Mapping[str, Number] | None) -> Field:
    """Return the field in which the reader types the guess.

    With `between`, the numbers that are guessed are parts of a sum: the parts lead from the first
    number in `between` to the second one, and each is drawn as a bar that can be dragged.
    """
    if between is None:
        return Field(guess)
    # Only a notebook in which parts of a sum are guessed loads their bars.
    from course_utils.engine.guessing.bars import Bars

    return Bars(guess, between)


def _connect_with_record(guess: OpenGuess) -> None:
    """Give the guess what the record has of it, and from now on write its changes to the record.

    Nothing is restored or written if this kernel's notebook is not a reader's copy.
    """
    folder = record.workspace()
    notebook = record.notebook
    if not folder or not notebook:
        return
    # Only a reader's copy has to load what reads and writes the record of guesses.
    from course_utils.engine.guessing import kept

    kept.restore(guess, folder, notebook)
