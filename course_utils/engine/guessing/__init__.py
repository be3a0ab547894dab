"""`ask`: a field for a guess, in the notebook and in its question's own unit."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from IPython.display import display

from course_utils.core import record
from course_utils.core.say import OpenGuess, listed
from course_utils.engine.guessing.field import Field

# stage.present sets this to False for a room that guesses by phone: there, a page with all guesses
# takes the field's place.
shows_fields = True


def ask(names: str | Sequence[str], unit: str = "", *, among: Sequence[str] = ()) -> OpenGuess:
    """Show a field for a guess, and return the guess: `reveal` sets it beside the measured value.

    `names` is the name of the question, or the names of several. An answer is a number in that unit
    ("share" is from 0 to 1, "of 200" a count out of 200), or else one of the options in `among`.

    What the reader types is kept in the record, so after a restart the same cell shows it again.
    """
    questions = (names,) if isinstance(names, str) else tuple(names)
    if not questions or not all(questions):  # none at all, or one with an empty name
        raise ValueError('ask needs the name of what is asked for: ask("one matrix", "GB").')
    if len(set(questions)) < len(questions):
        raise ValueError(
            f"Each question needs a name of its own, unlike these: {listed(questions)}."
        )
    guess = OpenGuess(questions, unit, tuple(among))
    _connect_with_record(guess)
    if shows_fields:
        display(Field(guess))
    return guess


def _connect_with_record(guess: OpenGuess) -> None:
    """Give the guess what the record has of it, and from now on write its changes to the record.

    Nothing is restored or written if this kernel's notebook is not a reader's copy.
    """
    folder = record.workspace()
    notebook = record.notebook
    if not folder or not notebook:
        return
    _restore(guess, record.said_so_far(folder, notebook))
    _write_changes(guess, folder, notebook)


def _restore(guess: OpenGuess, so_far: Mapping[str, record.Said]) -> None:
    """Give the guess what the reader has said before; `so_far` has that by question."""
    for name in guess.names:
        former = so_far.get(name, record.Said())
        guess.recall(name, former.said)
        if former.is_closed:
            guess.is_closed = True
        if former.has_gone_on or former.is_closed:  # whoever has seen the answer has gone on
            guess.has_gone_on = True


def _write_changes(guess: OpenGuess, folder: Path, notebook: str) -> None:
    """From now on, write each change of the guess to the record in that folder."""
    # What the record has already.
    noted = dict(guess.said)
    had_gone_on = guess.has_gone_on

    def note_change() -> None:
        """Write to the record what is new since the last call."""
        nonlocal had_gone_on
        for name, said in guess.said.items():
            if noted.get(name) != said:
                noted[name] = said
                record.note_said(folder, notebook, name, said)
        if guess.has_gone_on and not had_gone_on:
            had_gone_on = True
            for name in guess.names:
                record.note_shown(folder, notebook, name)

    guess.on_change.append(note_change)
