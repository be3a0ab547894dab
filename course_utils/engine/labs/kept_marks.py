"""The marks that a reader has drawn in labs, kept in files.

They are kept as they are, so that a restart changes nothing, and as guesses in the record.

Only a panel in a reader's copy loads this module.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from course_utils.core import record
from course_utils.core.say import Guess
from course_utils.engine.labs.session import Session

# What the file has of a lab: what its controls held, and the marks for each question that it asked.
CONTROLS = "controls"
DRAWINGS = "drawings"


class KeptMarks:
    """What the controls of one lab of a notebook held when a mark moved, or *Show* was pressed.

    That is kept of all controls, because marks are a guess at what the other controls ask for. The
    marks for other questions are kept beside them, and show up when those are asked again. A
    notebook can show the same lab several times: `cell` has the arguments with which the cell
    makes it, and tells them apart.
    """

    def __init__(self, session: Session, folder: Path, notebook: str, cell: object) -> None:
        """Set the lab to what was kept of it, if anything."""
        self._session = session
        self._folder = folder
        self._notebook = notebook
        self._cell = record.cell  # that makes the lab, because labs are made while their cell runs
        self._path = folder / record.MARKS / f"{notebook}.json"
        # The lab's key in the file. `default=str`: an argument that is no JSON becomes its text.
        self._key = json.dumps([session.lab.name, cell], sort_keys=True, default=str)
        # The guess when `keep` wrote last; before that, the one at first.
        self._kept = self._guess()
        self._restore()

    def _guess(self) -> tuple[list[tuple[object, Sequence[int | None]]], bool]:
        """Return each question that has marks now, with their levels; and whether Show was pressed.

        Two questions may have the same levels, and be two guesses all the same.
        """
        drawings = self._session.drawings()
        asked = [(question, drawings[question]) for question in self._session.questions()]
        with_marks = [(question, levels) for question, levels in asked if _has_marks(levels)]
        return with_marks, self._session.revealed

    def _all(self) -> dict[str, object]:
        """Return what is kept of all labs of the notebook. A file that cannot be read is empty."""
        with suppress(OSError, ValueError, RecursionError):
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if isinstance(kept, dict):
                return kept
        return {}

    def _restore(self) -> None:
        """Set the controls as they were, unless the lab of today has others."""
        kept = self._all().get(self._key)
        if not isinstance(kept, dict):
            return
        controls = kept.get(CONTROLS, kept)  # a file of former versions has the controls alone
        if not isinstance(controls, dict) or controls.keys() != self._session.values.keys():
            return
        former_values = dict(self._session.values)
        self._session.set(controls)
        if self._session.error is None:
            self._remember(kept.get(DRAWINGS, []))
        else:  # the lab of today cannot be drawn with these values
            self._session.set(former_values)
        self._kept = self._guess()  # is in the file already, so `keep` waits for another guess

    def _remember(self, drawings: Sequence[tuple[Sequence[object], Sequence[int | None]]]) -> None:
        """Give the session the marks for other questions, as far as today's lab has them."""
        with suppress(ValueError, TypeError):
            for question, levels in drawings:
                self._session.remember(tuple(question), levels)

    def note(self, guesses: Sequence[Guess]) -> None:
        """Add a line to the record on one of the guesses: the middle one, by how far off it was.

        Without a guess, the line says that the answer was seen. A lab calls this when *Show*
        reveals the answer to the guesses that were drawn in its picture. There may be many, and the
        record gets one line for all, because they are one drawing. Its farthest mark would call a
        good drawing far.
        """
        if guesses:
            by_distance = sorted(guesses, key=lambda guess: guess.off)
            in_the_middle = by_distance[len(guesses) // 2]  # of two, the one that is farther off
            drawn = replace(in_the_middle, cell=self._cell)
            record.note_guess(self._folder, self._notebook, drawn)
        elif self._cell:
            record.note_seen(self._folder, self._notebook, self._cell)

    def keep(self) -> None:
        """Write what all controls hold to the file, if a mark has moved or *Show* was pressed."""
        guess = self._guess()
        if guess == self._kept:
            return
        # A mark that was set can be moved, but not taken back. If none is left, another question is
        # asked now. The file keeps the drawing, whatever is shown or hidden there.
        marks, _ = guess
        former_marks, _ = self._kept
        if former_marks and not marks:
            return
        self._kept = guess
        drawings = [[question, levels] for question, levels in self._session.drawings().items()]
        kept = {CONTROLS: dict(self._session.values), DRAWINGS: drawings}
        everything = self._all() | {self._key: kept}
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            record.write_whole(self._path, json.dumps(everything, default=str).encode())


def _has_marks(levels: Sequence[int | None]) -> bool:
    return any(level is not None for level in levels)
