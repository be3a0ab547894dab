"""An extension of IPython, for the kernels of the course's notebooks: after a restart, a name that is gone gets a sentence.

etc/ipython/ipython_kernel_config.json of the environment loads it. It imports nothing of the course.
"""

import json
import os
import symtable
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """IPython calls this when the kernel starts."""
    shell.set_custom_exc((NameError,), _explain)
    if os.environ.get("COURSE_ROOM"):  # a presentation's, with phones
        shell.extension_manager.load_extension("course_utils.stage.present.asking")


def _explain(
    shell: InteractiveShell,
    kind: type[NameError],
    error: NameError,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show which cell to run in place of the error. If no cell makes that name, show the error."""
    if begins := next(_cells_that_make(error.name or ""), ""):
        words = (
            f"The kernel does not know {error.name}. The cell that begins “{begins}” makes it, and has not run since the "
            "kernel was started. Choose Run → Run All Above Selected Cell, and then run this cell again."
        )
        error._render_traceback_ = lambda: [words]  # where IPython asks what to show
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _cells_that_make(name: str) -> Iterator[str]:
    """The first line of each cell of this kernel's notebook, as it was last saved, that makes a thing of that name."""
    session = os.environ.get("JPY_SESSION_NAME", "")  # the notebook's path, which the server tells
    try:
        cells = json.loads((Path.cwd() / Path(session).name).read_bytes())["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, TypeError, KeyError):
        return
    for source in sources:
        if name in _made_by(source):
            yield source.lstrip().partition("\n")[0][:60]


def _made_by(source: str) -> set[str]:
    """The names that a cell imports, defines or gives a value."""
    try:
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError):
        return set()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}
