"""Which copies JupyterLab trusts: it takes every drawing out of the outputs of the others.

JupyterLab trusts a notebook whose signature it has stored, and signs again whenever it saves one
that it trusts. So a copy is signed where the course writes all of it, and also where the course
changes a copy that was trusted. What else is in a reader's folder is theirs to trust, such as a
notebook that somebody has sent them.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
from jupyter_core.application import JupyterApp
from jupyter_core.paths import jupyter_data_dir
from nbformat.sign import NotebookNotary

from course_utils.stage.notebook.files import Notebook, write
from course_utils.stage.workspace.spacers import is_only_our_spacer


def write_ours(own: Path, notebook: Notebook) -> None:
    """Write a copy in which everything is the course's, and sign it."""
    write(own, notebook)
    sign(own)


def rewrite(own: Path, notebook: Notebook) -> None:
    """Write a copy in which something is the reader's, and sign it if it was trusted before."""
    was_trusted = is_trusted(own)
    write(own, notebook)
    if was_trusted:
        sign(own)


def is_trusted(own: Path) -> bool:
    """Whether JupyterLab trusts the copy, or would if it did not have the course's spacers.

    Without outputs, or with nothing but printed text, JupyterLab signs any notebook that it saves.
    So copies that are older than this module are signed, too, if none of their cells has run.
    """
    # A copy that cannot be read, and a data folder that cannot be used, count as not trusted.
    with suppress(Exception), _notary() as notary:
        notebook = nbformat.read(own, as_version=4)
        if notary.check_signature(notebook):
            return True
        for cell in notebook.cells:
            if is_only_our_spacer(cell, notebook):
                cell.outputs = []
        notary.mark_cells(notebook, trusted=False)  # a mark in the file would be believed
        return notary.check_cells(notebook)
    return False


def sign(own: Path) -> None:
    """Sign the copy. Where that fails, it is a copy all the same."""
    with suppress(Exception), _notary() as notary:
        notary.sign(nbformat.read(own, as_version=4))


@contextmanager
def _notary() -> Iterator[NotebookNotary]:
    """Give the signatures of the JupyterLab that runs here or, in a command, that would run."""
    # The server is the instance, whatever its class is.
    here = JupyterApp.instance().data_dir if JupyterApp.initialized() else jupyter_data_dir()
    Path(here).mkdir(parents=True, exist_ok=True)  # in a fresh home, there is none yet
    notary = NotebookNotary(data_dir=here)
    try:
        yield notary
    finally:
        notary.store.close()
