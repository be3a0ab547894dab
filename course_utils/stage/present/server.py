"""Present a notebook in JupyterLab: large, with working labs and little around it.

`make present` calls this module. It presents a copy, in a folder that is removed when the server
stops: so the notebook keeps its outputs, and the presenter's own JupyterLab its settings. The copy
has no outputs at first, so that the room can guess.

With CUT=25, the copy is cut down to what a lecture of 25 minutes shows: see
`course_utils.stage.present.cuts`. With RECALL=1, it begins with three questions of earlier
notebooks: see `course_utils.stage.recall.in_class`. With ROOM=1, or with one of this machine's
addresses, the room guesses by phone: see `course_utils.stage.poll`. TUNNEL is the address at which
a tunnel shows the phones' page to those in other networks.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from pathlib import Path

import nbformat
from jupyterlab_server.workspaces_handler import WorkspacesManager
from nbformat.sign import NotebookNotary

from course_utils.core.say.language import speak, translated
from course_utils.stage.notebook.files import Cell, Notebook, read, write
from course_utils.stage.notebook.outline import is_code
from course_utils.stage.present import cuts
from course_utils.stage.recall import in_class
from course_utils.stage.translations import language
from course_utils.stage.translations.edition import ENGLISH, Edition
from course_utils.stage.translations.spoken import sentences_in
from course_utils.stage.workspace import websocket
from course_utils.stage.workspace.copies import (
    COURSE,
    GLOSSARY,
    TO_README,
    as_handed_out,
    named,
    notebooks,
)
from course_utils.stage.workspace.spacers import has_spacer, words_of

CLOCK = '<details class="course-minute"><summary>{minute}</summary><p></p></details>'
TO_CONTENTS = b"[contents]" + TO_README + " · ".encode()
PAGE = Path(__file__).with_name("page")  # the folder of an extension of JupyterLab
RESULTS = "--results"  # the option that shows the stored results from the beginning
# The selector for the keys of a remote control: they act in a notebook while nobody types in it.
REMOTE = ".jp-Notebook.jp-mod-commandMode:not(.jp-mod-readWrite) :focus"
# Settings of JupyterLab, as its Settings Editor would write them. Sizes follow the screen's width,
# so that a line of code holds as many letters on every screen.
SETTINGS = {
    "apputils-extension/themes": {
        "overrides": {"content-font-size1": "1.7vw", "code-font-size": "1.4vw"}
    },
    "notebook-extension/tracker": {
        "autoStartDefaultKernel": True,
        "codeCellConfig": {"lineWrap": True},
        "windowingMode": "none",  # a cell that is not in the page cannot come to the top
    },
    # Save often, so that a page that is loaded again still has its walls. Nothing else saves: of
    # two saves at once, JupyterLab takes one for another person's, and asks which to keep.
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
    *,
    recall: Sequence[Cell] = (),
) -> None:
    """Serve copies of that notebook and of those beside it, until the server is stopped.

    With a plan for a lecture, the copy is cut. The cells of `recall` come at its head. `serve`
    starts the server; by default JupyterLab's.
    """
    with tempfile.TemporaryDirectory(prefix="presenting-") as folder:
        copies = Path(folder, "notebooks")
        own = Path(folder, "jupyterlab")
        extensions = own / "extensions"
        # Without hidden files and folders, such as .ipynb_checkpoints.
        shutil.copytree(chosen.parent, copies, ignore=shutil.ignore_patterns(".*"))
        configure(own)
        _prepare_all(copies, chosen.name, lecture, RESULTS in options, recall)
        translate_glossary(copies)
        trust(copies / chosen.name)
        shutil.copytree(PAGE, extensions / "course-room")  # which makes both folders
        if serve is None:
            serve = _jupyterlab()

        # SIGHUP, of a closed terminal, would leave the folder. SIGTERM lets this block remove it.
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
        print(f"You present a copy of {chosen.name}. It goes when you stop this with Ctrl+C.")
        course_options = [
            "--ip=127.0.0.1",
            f"--ServerApp.root_dir={copies}",
            websocket.OPTION,
            f"--LabApp.default_url=/doc/tree/{chosen.name}",
            "--LabApp.custom_css=True",
            f"--LabApp.extra_labextensions_path={extensions}",
        ]
        for_jupyterlab = [option for option in options if option != RESULTS]
        serve([*course_options, *for_jupyterlab])


def _prepare_all(
    copies: Path,
    chosen: str,
    lecture: cuts.Plan | None,
    shows_results: bool,
    recall: Sequence[Cell],
) -> None:
    spoken = language.chosen()
    language.pass_on(spoken)
    # A set, because the chosen notebook is usually among the others, and is prepared once.
    for path in {copies / chosen, *notebooks(copies)}:
        is_chosen = path.name == chosen
        plan = lecture if is_chosen else None
        head = recall if is_chosen else ()
        prepare(path, plan, shows_results=shows_results, recall=head, spoken=spoken)


def _jupyterlab() -> Callable[[list[str]], None]:
    """Return the function that starts JupyterLab.

    It is imported late, because its import reads what `configure` has put into the environment.
    """
    from jupyterlab.labapp import main

    return main


def prepare(
    path: Path,
    lecture: cuts.Plan | None,
    shows_results: bool,
    recall: Sequence[Cell] = (),
    spoken: str = ENGLISH,
) -> None:
    """Rewrite the copied notebook for the room: cut by the plan, if there is one, and translated.

    The cells of `recall` come behind its opening, in front of the first cell of code. Unless
    `shows_results`, the copy has no outputs.
    """
    text = path.read_bytes()
    # TO_CONTENTS is a link in Markdown to the contents page, which is not served here.
    path.write_bytes(text.replace(TO_CONTENTS, b""))
    if lecture:
        write(path, cuts.cut(read(path), lecture))
    if recall:
        write(path, _with_recall(read(path), recall))
    edition = Edition(spoken, path.stem)
    if not edition.is_english:  # last, because a cut is made by the English headings
        write(path, edition.notebook(read(path)))
    if not shows_results:
        write(path, with_clocks(as_handed_out(read(path))))


def _with_recall(notebook: Notebook, recall: Sequence[Cell]) -> Notebook:
    """Return the notebook with these cells in front of its first cell of code."""
    cells = notebook["cells"]
    first = next((place for place, cell in enumerate(cells) if is_code(cell)), len(cells))
    return {**notebook, "cells": [*cells[:first], *recall, *cells[first:]]}


def translate_glossary(copies: Path) -> None:
    """Rewrite the copied glossary in the language of the room."""
    for path in copies.glob(GLOSSARY):  # none in a folder of another's notebooks
        edition = Edition(language.chosen(), path.stem)
        path.write_bytes(edition.contents(path.read_bytes(), is_notebook=False))


def trust(path: Path) -> None:
    """Sign the notebook, so that JupyterLab shows its outputs as they are.

    When the page is loaded again, JupyterLab removes every frame from the outputs of a notebook
    without a signature. The pages that show the room's guesses below cells are such frames.
    """
    notary = NotebookNotary(data_dir=os.environ["JUPYTER_DATA_DIR"])
    notary.sign(nbformat.read(path, as_version=4))


def with_clocks(notebook: Notebook) -> Notebook:
    """Put a one-minute clock below each guess of the notebook, in place, and return the notebook.

    A spacer, which is an output below a cell that asks for a guess, gets the clock. server.css adds
    space there, so that the answer is out of view.
    """
    clock = CLOCK.format(minute=translated("One minute"))
    for cell in notebook["cells"]:
        if has_spacer(cell):
            (spacer,) = cell["outputs"]
            html = f'<div class="course-spacer"><p>{words_of(cell)}</p>{clock}</div>'
            data = {**spacer["data"], "text/html": html}
            cell["outputs"] = [{**spacer, "data": data}]
    return notebook


def configure(own: Path) -> None:
    """Make this process's JupyterLab use SETTINGS and WINDOW.

    `own` is the folder in which this JupyterLab keeps its settings, so that the presenter's own
    ones neither count nor change.
    """
    texts = {"custom/custom.css": Path(__file__).with_suffix(".css").read_text(encoding="utf-8")}
    for plugin, settings in SETTINGS.items():
        name = f"settings/@jupyterlab/{plugin}.jupyterlab-settings"
        texts[name] = json.dumps(settings)
    for name, text in texts.items():
        path = own / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    workspaces = own / "workspaces"
    WorkspacesManager(str(workspaces)).save("default", json.dumps(WINDOW))
    # JupyterLab reads these variables when it is imported, which happens later.
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        os.environ[name] = str(own)
    os.environ["JUPYTERLAB_SETTINGS_DIR"] = str(own / "settings")
    os.environ["JUPYTERLAB_WORKSPACES_DIR"] = str(workspaces)


@contextmanager
def room(address: str, shows: bool) -> Iterator[None]:
    """Run the process that answers phones and the wall, within a `with` block.

    It listens at `address`: "1" means this machine's own, and "" that there is no such process. If
    `shows`, its start page is opened in a browser.
    """
    if not address:
        os.environ.pop("COURSE_ROOM", None)
        yield
        return
    tunnel = os.environ.get("TUNNEL", "")
    if address == "1":
        address = "127.0.0.1" if tunnel else own_address()
    command = [sys.executable, "-m", "course_utils.stage.poll", address, tunnel]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # closed at the end of the block, which ends the process
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(os.nice, 5),  # the presentation has priority
    ) as process:
        line = process.stdout.readline()  # the addresses, which it prints once it listens
        if not line:
            raise ValueError("So nothing was started.")  # the process has printed why
        urls = json.loads(line)
        os.environ["COURSE_ROOM"] = urls["wall"]
        _print_addresses(urls, tunnel)
        if shows:
            webbrowser.open(f"{urls['wall']}start.html")
        yield


def _print_addresses(urls: dict[str, str], tunnel: str) -> None:
    # `urls` has "phones", for the audience, "wall", for the presenter, and "inside", for a tunnel.
    where = "anywhere" if tunnel else "in this network"
    print(f"Phones {where} go to {urls['phones']}")
    if tunnel:
        print(f"The tunnel has to lead to {urls['inside']}")
    print(f"For the wall, at the start: {urls['wall']}start.html")
    print(f"After the lecture:          {urls['wall']}kept.html", flush=True)


def own_address() -> str:
    """Return this machine's address in the network that leads outside."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # An address that no machine has. To connect sends nothing, but chooses the network.
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]
    raise ValueError(
        "This machine has no network, so no phone can reach it. Join one, or present without ROOM."
    )


def main(arguments: list[str]) -> int:
    """Present a notebook, and return the exit status.

    The first argument is the notebook's number or name; the others are RESULTS, or options for
    JupyterLab. In the environment, CUT is the minutes of a lecture that shows parts of the
    notebook; RECALL, if set, lets it begin with three questions of earlier notebooks; and ROOM, if
    set, lets the audience guess by phone.
    """
    name = arguments[0] if arguments else ""
    options = arguments[1:]
    try:
        chosen = named(name)
    except ValueError as error:
        print(f"{error} For the fourth: make present NB=04", file=sys.stderr)
        return 2
    minutes = os.environ.get("CUT", "")
    try:
        speak(sentences_in(language.chosen()))
        lecture = cuts.plan(chosen, minutes) if minutes else None
        recall = []
        if os.environ.get("RECALL", ""):
            recall = in_class.cells(int(chosen.name[:2]), date.today(), COURSE)
        with room(os.environ.get("ROOM", ""), shows="--no-browser" not in options):
            present(chosen, options, lecture, recall=recall)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
