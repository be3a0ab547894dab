"""Runs the sessions of a page's labs in the browser, where the page's messages move them.

In Jupyter, the panel and the kernel do this. This module runs in a worker of the page, so it
imports neither torch nor numpy nor Jupyter.
"""

import json
import pickle
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.chapters import labs
from course_utils.core.say.language import speak
from course_utils.engine.labs.session import Session

PRECOMPUTED = Path("precomputed")  # the worker unpacks this folder beside the course's modules


@dataclass(frozen=True)
class Precomputed:
    """The results that a lab computed with torch when the page was made.

    `by` names the answers that the results depend on, such as ("after",). `found` has the results
    by the values of these answers, such as {(0,): …, (50,): …}.
    """

    by: Sequence[str] = ()
    found: Mapping[tuple[object, ...], object] = field(default_factory=dict)

    def known(self, asked: object, found_so_far: object) -> object:
        """Return the precomputed result for the answers `asked`, a dataclass with all of them.

        A lab that computes everything on the page has no precomputed results, and gets what it
        has found so far.
        """
        if not self.by:
            return found_so_far
        values = [getattr(asked, name) for name in self.by]
        return self.found[tuple(values)]


def session_of(name: str, precomputed: Precomputed | None) -> Session:
    """Return a new session of that lab, with its precomputed results if it has any."""
    if precomputed is None:
        precomputed = Precomputed()  # whose `known` returns what it gets
    return Session(labs.lab_named(name), precomputed.known)


def answer_of(session: Session, message: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Make the moves of a message, and return what the page has to show.

    The message has the arguments of each move by its name, which is a method of the session, as in
    {"set": [{"b": 1024}], "preset": ["how thin is one token?"]}.
    """
    for move, arguments in message.items():
        with suppress(Exception):  # the session has the error among what it shows
            getattr(session, move)(*arguments)
    parts = {}
    for name, of_control in session.parts.items():
        parts[name] = [part._asdict() for part in of_control]
    return {
        **session.shown,
        "running": session.running,
        "parts": parts,
        "values": session.values,
    }


_sessions: dict[str, Session] = {}


def speak_in(translations: str) -> None:
    """Say everything with these translations, which are JSON by the English, from now on."""
    speak(json.loads(translations))


def answer(place: str, message: str) -> str:
    """Return the answer in JSON to a message in JSON, for the worker.

    The place is a lab's name. If a page has a lab twice, the second one's place has a number
    behind the name, as in "float 2".
    """
    if place not in _sessions:
        name, *_ = place.split()
        file = PRECOMPUTED / f"{name}.pickle"
        known = pickle.loads(file.read_bytes()) if file.exists() else None
        _sessions[place] = session_of(name, known)
    return json.dumps(answer_of(_sessions[place], json.loads(message)))
