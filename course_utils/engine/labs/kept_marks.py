"""The marks that a reader has drawn in labs, kept in a file, so that a restart changes nothing.

Only a panel in a reader's copy loads this module.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from course_utils.core import record
from course_utils.engine.labs.fields import Drawn
from course_utils.engine.labs.session import Session


class KeptMarks:
    """The marks of one lab of a notebook, and whether *Show* was pressed there.

    A notebook can show the same lab several times. `first_answers`, with which its cell makes the
    lab, tells them apart.
    """

    def __init__(
        self, session: Session, folder: Path, notebook: str, first_answers: Mapping[str, object]
    ) -> None:
        """Set the lab to what was kept of it, if anything."""
        self._session = session
        self._path = folder / record.MARKS / f"{notebook}.json"
        self._lab = json.dumps([session.lab.name, first_answers], sort_keys=True, default=str)
        self._names = [
            name for name, field in session.lab.fields.items() if isinstance(field, Drawn)
        ]
        self._names.append("shown")
        self._kept = self._state()  # of a lab that nobody has touched nothing is written
        self._restore()

    def _state(self) -> dict[str, object]:
        """Return the levels of all marks, and whether the answer is shown, as JSON has them."""
        values = {name: self._session.values.get(name) for name in self._names}
        return json.loads(json.dumps(values))

    def _all(self) -> dict[str, object]:
        """Return what is kept of all labs of the notebook. A file that cannot be read is empty."""
        with suppress(OSError, ValueError, RecursionError):
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            if isinstance(kept, dict):
                return kept
        return {}

    def _restore(self) -> None:
        """Set the marks as they were, unless the lab of today has others."""
        kept = self._all().get(self._lab)
        if not isinstance(kept, dict) or kept.keys() != self._kept.keys():
            return
        former_values = dict(self._session.values)
        self._session.set(kept)
        if self._session.error is not None:
            self._session.set(former_values)
        self._kept = self._state()

    def keep(self) -> None:
        """Write the marks to the file, if they have changed."""
        state = self._state()
        if state == self._kept:
            return
        self._kept = state
        as_json = json.dumps(self._all() | {self._lab: state}, ensure_ascii=False)
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            record.write_whole(self._path, as_json.encode())
