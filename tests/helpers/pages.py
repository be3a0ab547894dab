"""The course's pages in a test: written with little computed beforehand, and served on this machine alone."""

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
    """The runtime, or the reason why there is none."""
    try:
        runtime.bring(folder)
    except ValueError as error:
        pytest.skip(str(error), allow_module_level=True)


def precomputed_for(name: str, states: list[dict[str, object]]) -> Precomputed | None:
    """What the lab found out, for these states only: for all of them it takes long."""
    by = ASKED[name][0] if name in ASKED else ()
    return precomputed(name, {tuple(state[one] for one in by): None for state in states}.keys())


class Quiet(SimpleHTTPRequestHandler):
    """Python's own server, which any static host can stand for."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of that folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
