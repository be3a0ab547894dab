"""What the record keeps of a guess. Only a notebook that is a reader's copy loads this module."""

from pathlib import Path

from course_utils.core import record
from course_utils.core.say import OpenGuess


def restore(guess: OpenGuess, folder: Path, notebook: str) -> None:
    """Give the guess what the record has of it, and from now on write its changes to the record."""
    so_far = record.said_so_far(folder, notebook)
    for name in guess.names:
        former = so_far.get(name, record.Said())  # if the record has nothing on it, an empty one
        guess.recall(name, former.said)
        if former.is_closed:
            guess.is_closed = True
        if former.has_gone_on or former.is_closed:  # whoever has seen the answer has gone on
            guess.has_gone_on = True
    _write_changes(guess, folder, notebook)


def _write_changes(guess: OpenGuess, folder: Path, notebook: str) -> None:
    """From now on, write each change of the guess to the record in that folder."""
    # What the record has already, so that each change is written once.
    noted = dict(guess.said)
    had_gone_on = guess.has_gone_on
    was_closed = guess.is_closed

    def note_change() -> None:
        """Write to the record what is new since the last call.

        The record has a line of its own for each of three events: the reader has typed a guess
        ("said"), has pressed *Show* ("shown"), or has seen the measured value ("seen").
        """
        nonlocal had_gone_on, was_closed
        for name, said in guess.said.items():
            if noted.get(name) != said:
                noted[name] = said
                record.note_said(folder, notebook, name, said)
        if guess.has_gone_on and not had_gone_on:
            had_gone_on = True
            for name in guess.names:
                record.note_shown(folder, notebook, name)
        if guess.is_closed and not was_closed:
            was_closed = True
            # Only questions without a guess get the line "seen". For the others after_cell.py in
            # engine/judging writes "guessed", with the guess and the measured value.
            for name in sorted(set(guess.names) - set(guess.said)):
                record.note_seen(folder, notebook, name)

    guess.on_change.append(note_change)
