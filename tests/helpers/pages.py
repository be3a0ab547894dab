"""The course's pages in a test: little is computed beforehand, and only this machine is served."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from course_utils.chapters import labs
from course_utils.stage.pages import runtime
from course_utils.stage.pages.precomputed import ASKED, Precomputed, precomputed

ALIVE = [name.removesuffix("_lab") for name in labs.__all__]


def bring_or_skip(folder: Path) -> None:
    """Bring the runtime into the folder, or skip the module that calls this, with the reason."""
    try:
        runtime.bring(folder)
    except ValueError as error:
        pytest.skip(str(error), allow_module_level=True)


def precomputed_for(name: str, states: list[dict[str, object]]) -> Precomputed | None:
    """Compute what the lab finds out, for these states only, because all states take long."""
    asked_by = ASKED[name].by if name in ASKED else ()
    answers = [tuple(state[question] for question in asked_by) for state in states]
    each_once = dict.fromkeys(answers)  # in their order, as a set would not have them
    return precomputed(name, each_once.keys())


class Quiet(SimpleHTTPRequestHandler):
    """Python's own static server, without its log of requests."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve that folder; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
