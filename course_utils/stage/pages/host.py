"""A lab's session on a page: what the panel is in Jupyter, moved by messages and without a kernel.

It runs in the browser, in a worker of the page. So it imports neither torch nor numpy nor Jupyter.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.chapters import labs
from course_utils.engine.labs.session import Session

PRECOMPUTED = Path("precomputed")  # the worker unpacks this folder beside the course's modules


@dataclass(frozen=True)
class Precomputed:
    """What a lab computed with torch when the page was made.

    `by` names the answers that it depends on; `found` has the results, by the values of these.
    """

    by: Sequence[str] = ()
    found: Mapping[tuple[object, ...], object] = field(default_factory=dict)

    def known(self, asked: object, found: object) -> object:
        """What was computed for these answers; in a lab that needs nothing computed, `found`."""
        if not self.by:
            return found
        values = [getattr(asked, name) for name in self.by]
        return self.found[tuple(values)]


def session_of(name: str, precomputed: Precomputed | None) -> Session:
    """The session of a lab on a page."""
    if precomputed is None:
        precomputed = Precomputed()
    return Session(labs.lab_named(name), precomputed.known)


def answer_of(session: Session, message: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Make the moves of a message, each with its arguments; returns what the page has to show."""
    for move, arguments in message.items():
        with suppress(Exception):  # the session shows it
            getattr(session, move)(*arguments)
    parts = {}
    for name, of_control in session.parts.items():
        parts[name] = [part._asdict() for part in of_control]
    return {**session.shown, "running": session.running, "parts": parts}


_sessions: dict[str, Session] = {}


def answer(place: str, message: str) -> str:
    """Called by the worker with a message in JSON; returns the answer in JSON.

    The place is a lab's name. If a page has a lab twice, the second one's place has a number
    behind the name, as in "float 2".
    """
    if place not in _sessions:
        name, *_ = place.split()
        file = PRECOMPUTED / f"{name}.pickle"
        known = pickle.loads(file.read_bytes()) if file.exists() else None
        _sessions[place] = session_of(name, known)
    return json.dumps(answer_of(_sessions[place], json.loads(message)))
