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
    """Skip the module that calls this where JupyterHub was not asked for; in CI it must be there."""
    if find_spec("jupyterhub") is None:
        skip_module("no JupyterHub found (`make test` installs it)")


@contextmanager
def running_hub(
    folder: Path, password: str, instructor: str, **environment: str
) -> Iterator[tuple[str, Callable[[], Path]]]:
    """Its address, and the folder of the students' homes once it has begun; all of it lies in that folder."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "course_utils.stage.hub",
        f"--port={port}",
        f"--password={password}",
    ]
    command += [f"--instructor={instructor}"]
    where = {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    with (folder / "hub.log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=os.environ | where | environment, stdout=log, stderr=log
        )
        try:
            yield f"http://127.0.0.1:{port}", lambda: next(folder.glob("hub-*")) / "homes"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(120)
