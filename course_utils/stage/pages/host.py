"""A session on a page: what the panel is in Jupyter, over messages, and without a kernel.

It runs in the browser, in a worker of the page: like a view, it imports neither torch nor numpy nor Jupyter.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.chapters import labs
from course_utils.engine.labs.session import Session

PRECOMPUTED = Path("precomputed")  # beside the course's modules, where the worker unpacks both


@dataclass(frozen=True)
class Precomputed:
    """What a lab computed with torch when the page was made, by the answers that it depends on."""

    by: Sequence[str] = ()
    found: Mapping[tuple[object, ...], object] = field(default_factory=dict)

    def known(self, asked: object, found: object) -> object:
        """What was computed for these answers; if nothing was, what has been found on the page."""
        return self.found[tuple(getattr(asked, name) for name in self.by)] if self.by else found


def session_of(name: str, precomputed: Precomputed | None) -> Session:
    """The lab as a page moves it."""
    return Session(labs.lab_named(name), (precomputed or Precomputed()).known)


def answer_of(session: Session, message: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Make the moves of a message, each with its arguments; returns what the page has to show."""
    for move, arguments in message.items():
        with suppress(Exception):  # the session shows it
            getattr(session, move)(*arguments)
    parts = {name: [part._asdict() for part in some] for name, some in session.parts.items()}
    return session.shown | {"running": session.running, "parts": parts}


_sessions: dict[str, Session] = {}


def answer(place: str, message: str) -> str:
    """The worker calls this with a message in JSON; returns the answer in JSON.

    The place is a lab's name, and for a second one of that lab on the page a number behind it, as in "float 2".
    """
    if place not in _sessions:
        name = place.split()[0]
        file = PRECOMPUTED / f"{name}.pickle"
        _sessions[place] = session_of(
            name, pickle.loads(file.read_bytes()) if file.exists() else None
        )
    return json.dumps(answer_of(_sessions[place], json.loads(message)))
