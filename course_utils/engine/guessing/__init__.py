"""`ask`: a field for a guess, in the notebook and in its question's own unit."""

from collections.abc import Sequence

from IPython.display import display

from course_utils.core import record
from course_utils.core.say import OpenGuess, listed
from course_utils.engine.guessing.field import Field

# Before a room that guesses by phone, the wall takes the field's place: stage.present sets this.
shows_fields = True


def ask(names: str | Sequence[str], unit: str = "", *, among: Sequence[str] = ()) -> OpenGuess:
    """Show a field for a guess, and return the guess: `reveal` sets it beside the measured value.

    `names` names what is asked for, and there may be several. The answer is a number in that unit
    ("share" is from 0 to 1, "of 200" a count out of 200), or else one of the options in `among`.

    What the reader types is kept in the record, so the same cell finds it again after a restart.
    """
    each = (names,) if isinstance(names, str) else tuple(names)
    if not each or not all(each):
        raise ValueError('ask needs the name of what is asked for: ask("one matrix", "GB").')
    if len(set(each)) < len(each):
        raise ValueError(f"Each question needs a name of its own, unlike these: {listed(each)}.")
    guess = OpenGuess(each, unit, tuple(among))
    _restore(guess)
    if shows_fields:
        display(Field(guess))
    return guess


def _restore(guess: OpenGuess) -> None:
    """Give the guess what the record has of it, and from now on write its changes there.

    Nothing is restored or written if this kernel's notebook is not a reader's copy.
    """
    folder = record.workspace()
    notebook = record.notebook
    if not folder or not notebook:
        return
    so_far = record.said_so_far(folder, notebook)
    for name in guess.names:
        former = so_far.get(name, record.Said())
        guess.recall(name, former.said)
        guess.is_closed = guess.is_closed or former.is_closed
        guess.has_gone_on = guess.has_gone_on or former.has_gone_on or former.is_closed

    noted = dict(guess.said)
    had_gone_on = guess.has_gone_on

    def note_change() -> None:
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
