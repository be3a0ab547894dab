"""Present a notebook in JupyterLab: large, with working labs and little around it. Called by `make present`.

What runs is a copy, in a folder that goes when the server stops: the notebook keeps its outputs, and the
presenter's own JupyterLab its settings. The copy has its results to come, so that the room can guess.

With CUT=25, it is cut down to what a lecture of 25 minutes shows: see `course_utils.stage.present.cuts`.
With ROOM=1, or with one of this machine's addresses, it guesses by phone: see `course_utils.stage.poll`. TUNNEL is the
address at which a tunnel shows the phones' page to those in other networks.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import nbformat
from jupyterlab_server.workspaces_handler import WorkspacesManager
from nbformat.sign import NotebookNotary

from course_utils.stage.notebook.files import Notebook, read, write
from course_utils.stage.present import cuts
from course_utils.stage.workspace import websocket
from course_utils.stage.workspace.copies import TO_README, as_handed_out, named, notebooks
from course_utils.stage.workspace.spacers import SPACER, WORDS, has_spacer

CLOCK = '<details class="course-minute"><summary>One minute</summary><p></p></details>'
TO_CONTENTS = b"[contents]" + TO_README + " · ".encode()
PAGE = Path(__file__).with_name(
    "page"
)  # what JupyterLab's page does besides, as an extension of it
RESULTS = "--results"  # shows the stored ones from the beginning
# What the Settings Editor would write. Sizes follow the screen's width, so that a line of code holds as many
# letters on a projector as on a wall.
REMOTE = ".jp-Notebook.jp-mod-commandMode:not(.jp-mod-readWrite) :focus"
SETTINGS = {
    "apputils-extension/themes": {
        "overrides": {"content-font-size1": "1.7vw", "code-font-size": "1.4vw"}
    },
    "notebook-extension/tracker": {
        "autoStartDefaultKernel": True,
        "codeCellConfig": {"lineWrap": True},
        "windowingMode": "none",  # a cell that is not there yet cannot come to the top
    },
    # A page that is loaded again has its walls. Nothing else saves: of two saves at once, JupyterLab takes one for
    # somebody else's, and asks the presenter which to keep.
    "docmanager-extension/plugin": {"autosaveInterval": 2},
    "statusbar-extension/plugin": {"visible": False},
    "shortcuts-extension/shortcuts": {
        "shortcuts": [
            {
                "command": "notebook:run-cell-and-select-next",
                "keys": ["PageDown"],
                "selector": REMOTE,
            },
            {"command": "notebook:move-cursor-up", "keys": ["PageUp"], "selector": REMOTE},
        ]
    },
}
# What JupyterLab would remember of a window without sidebars and header.
SIDEBAR = {"collapsed": True, "visible": False}
WINDOW = {
    "data": {
        "layout-restorer:data": {
            "left": SIDEBAR,
            "right": SIDEBAR,
            "top": {"simpleVisibility": False},
        }
    },
    "metadata": {"id": "default"},
}


def present(
    chosen: Path,
    options: list[str],
    lecture: cuts.Plan | None = None,
    serve: Callable[[list[str]], None] | None = None,
) -> None:
    """Serve a copy of that notebook, cut for the lecture, and of those beside it, until the server is stopped."""
    with tempfile.TemporaryDirectory(prefix="presenting-") as folder:
        copies, own = Path(folder, "notebooks"), Path(folder, "jupyterlab")
        shutil.copytree(chosen.parent, copies, ignore=shutil.ignore_patterns(".*"))
        configure(own)
        for path in {copies / chosen.name, *notebooks(copies)}:
            path.write_bytes(path.read_bytes().replace(TO_CONTENTS, b""))  # which is not served
            if lecture and path.name == chosen.name:
                write(path, cuts.cut(read(path), lecture))
            if RESULTS not in options:
                write(path, with_clocks(as_handed_out(read(path))))
        trust(copies / chosen.name)
        extensions = own / "extensions"
        extensions.mkdir()
        shutil.copytree(PAGE, extensions / "course-room")
        if serve is None:
            from jupyterlab.labapp import (
                main as serve,
            )  # reads what configure has put into the environment

        # A terminal that is closed; the folder has to go then, too.
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
        print(f"You present a copy of {chosen.name}. It goes when you stop this with Ctrl+C.")
        only_the_notebook = [
            f"--LabApp.default_url=/doc/tree/{chosen.name}",
            "--LabApp.custom_css=True",
        ]
        served = ["--ip=127.0.0.1", f"--ServerApp.root_dir={copies}", websocket.OPTION]
        page = [f"--LabApp.extra_labextensions_path={extensions}"]
        theirs = [option for option in options if option != RESULTS]
        serve([*served, *only_the_notebook, *page, *theirs])


def trust(path: Path) -> None:
    """Sign a copy of ours, or JupyterLab would take the walls for a stranger's and drop them when it is loaded again."""
    NotebookNotary(data_dir=os.environ["JUPYTER_DATA_DIR"]).sign(nbformat.read(path, as_version=4))


def with_clocks(notebook: Notebook) -> Notebook:
    """The notebook with a one-minute clock below each guess. server.css leaves space there, so the answer is out of view."""
    for cell in filter(has_spacer, notebook["cells"]):
        html = f'<div class="course-spacer"><p>{WORDS}</p>{CLOCK}</div>'
        data = {**SPACER["data"], "text/html": html}
        cell["outputs"] = [{**SPACER, "data": data}]
    return notebook


def configure(own: Path) -> None:
    """Make this process's JupyterLab keep all of its settings in that folder, with the presenter's view as the first."""
    files = {
        f"settings/@jupyterlab/{plugin}.jupyterlab-settings": json.dumps(settings)
        for plugin, settings in SETTINGS.items()
    }
    files["custom/custom.css"] = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    for name, text in files.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text, encoding="utf-8")
    WorkspacesManager(str(own / "workspaces")).save("default", json.dumps(WINDOW))
    os.environ |= {f"JUPYTER_{kind}_DIR": str(own) for kind in ("CONFIG", "DATA", "RUNTIME")}
    os.environ |= {
        f"JUPYTERLAB_{kind.upper()}_DIR": str(own / kind) for kind in ("settings", "workspaces")
    }


@contextmanager
def room(asked: str, shows: bool) -> Iterator[None]:
    """The process that phones and the wall talk to, as long as this lasts; without an address, none. Shows its start page."""
    if not asked:
        os.environ.pop("COURSE_ROOM", None)
        yield
        return
    tunnel = os.environ.get("TUNNEL", "")
    if asked == "1":
        asked = "127.0.0.1" if tunnel else own_address()
    command = [sys.executable, "-m", "course_utils.stage.poll", asked, tunnel]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # It gives way to the presentation, and ends when its input does.
    with subprocess.Popen(command, **pipes, preexec_fn=partial(os.nice, 5)) as process:
        said = process.stdout.readline()
        if not said:
            raise ValueError("So nothing was started.")  # the process has said why
        urls = json.loads(said)
        os.environ["COURSE_ROOM"] = urls["wall"]
        print(f"Phones {'anywhere' if tunnel else 'in this network'} go to {urls['phones']}")
        if tunnel:
            print(f"The tunnel has to lead to {urls['inside']}")
        print(f"For the wall, at the start: {urls['wall']}start.html")
        print(f"After the lecture:          {urls['wall']}kept.html", flush=True)
        if shows:
            webbrowser.open(f"{urls['wall']}start.html")
        yield


def own_address() -> str:
    """This machine's address in the network that leads outside."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # which sends nothing
        return probe.getsockname()[0]
    raise ValueError(
        "This machine has no network, so no phone can reach it. Join one, or present without ROOM."
    )


def main(arguments: list[str]) -> int:
    """`make present NB=04`: the notebook's name, and options for JupyterLab, or `--results`."""
    name, *options = arguments or [""]
    try:
        chosen = named(name)
    except ValueError as error:
        print(f"{error} For the fourth: make present NB=04", file=sys.stderr)
        return 2
    minutes = os.environ.get("CUT", "")
    try:
        lecture = cuts.plan(chosen, minutes) if minutes else None
        with room(os.environ.get("ROOM", ""), shows="--no-browser" not in options):
            present(chosen, options, lecture)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
