"""A real JupyterHub, as `make hub` starts it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests import ROOT
from tests.helpers.browser import free_port, skip_module


def skip_without_hub() -> None:
    """Skip the module that calls this if JupyterHub is not installed; in CI it has to be."""
    if find_spec("jupyterhub") is None:
        skip_module("no JupyterHub found (`make test` installs it)")


@contextmanager
def running_hub(
    folder: Path, password: str, instructor: str, **environment: str
) -> Iterator[tuple[str, Callable[[], Path]]]:
    """Run a hub whose files all lie in that folder.

    Yields its address, and a function that says where the students' homes are once it has begun.
    """
    port = free_port()
    options = [f"--port={port}", f"--password={password}", f"--instructor={instructor}"]
    command = [sys.executable, "-m", "course_utils.stage.hub", *options]
    where = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}

    def homes() -> Path:
        return next(folder.glob("hub-*")) / "homes"

    with (folder / "hub.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=os.environ | where | environment, stdout=log, stderr=log
        )
        try:
            yield f"http://127.0.0.1:{port}", homes
        except Exception:
            print((folder / "hub.log").read_text())  # pytest shows it, if the test fails
            raise
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)
