"""An IPython extension for the kernels of the course: it explains a NameError after a restart.

A check whose answer is missing because the answer's cell stopped says so in the error's place.

It also loads the two extensions that not every kernel needs.

The environment's etc/ipython/ipython_kernel_config.json loads it. Until there is such an error,
this module imports nothing of the course, so that a kernel starts as fast as one without it.
"""

import json
import os
import symtable
from pathlib import Path
from types import TracebackType

from IPython.core.interactiveshell import InteractiveShell

ENGLISH = "en"
LONGEST_QUOTE = 60  # characters of a cell's first line


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Have NameErrors explained. IPython calls this function when the kernel starts."""
    shell.set_custom_exc((NameError,), _explain)
    # COURSE_ROOM has the address of the wall, in a presentation whose audience guesses by phone.
    if os.environ.get("COURSE_ROOM"):
        shell.extension_manager.load_extension("course_utils.stage.present.asking")
    # COURSE_LANG has the language in which the server shows the course.
    if os.environ.get("COURSE_LANG", ENGLISH) not in ("", ENGLISH):
        shell.extension_manager.load_extension("course_utils.stage.translations.in_kernel")


def _explain(
    shell: InteractiveShell,
    kind: type[NameError],
    error: NameError,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show why the name is missing. If no cell of the notebook makes it, show the error as usual.

    The arguments are those that IPython passes to the handler of an error.
    """
    name = error.name or ""  # a NameError that a program raises by itself may have none
    words = _of_a_stopped_answer(shell, name) or _not_known(shell, name)
    if words:
        from course_utils.core.say.alone import alone  # here: see this module's docstring

        alone(error, words)
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def _of_a_stopped_answer(shell: InteractiveShell, name: str) -> str:
    """Return what the check says instead of a verdict, if it lacks the answer `name`, else ""."""
    # Here: see this module's docstring.
    from course_utils.core.say.language import translated
    from course_utils.engine.judging import after_cell, verdict

    judged = [answer for _, answer in after_cell.CHECKED.findall(shell.user_ns["In"][-1])]
    if name in judged and name in after_cell.stopped:
        return repr(verdict.Verdict("not judged", translated(after_cell.STOPPED)))
    return ""


def _not_known(shell: InteractiveShell, name: str) -> str:
    """Return the sentences on a name that a cell of the notebook makes; "" if no cell does."""
    cells = _code_of_this_notebook()
    here = _place_of_running(shell, [identifier for identifier, _ in cells])
    makes = [place for place, (_, source) in enumerate(cells) if name in _defined_in(source)]
    others = [place for place in makes if place != here]
    if not others:
        return ""
    from course_utils.core.say.language import translated  # here: see this module's docstring

    first_line, _, _ = cells[others[0]][1].lstrip().partition("\n")
    beginning = first_line[:LONGEST_QUOTE]
    if here is not None and others[0] > here:  # then all others are below, too
        return translated(
            "The kernel does not know {name}. It is made only in a cell below this one, which "
            "begins “{beginning}”. If the letters themselves are meant, write them in quotes.",
            name=name,
            beginning=beginning,
        )
    return translated(
        "The kernel does not know {name}. The cell that begins “{beginning}” makes it, "
        "and has not run since the kernel was started. Choose Run → Run All Above Selected "
        "Cell, and then run this cell again.",
        name=name,
        beginning=beginning,
    )


def _place_of_running(shell: InteractiveShell, cells: list[str]) -> int | None:
    """Return the running cell's place among those with these ids, or None if nobody says it."""
    request = shell.get_parent() if hasattr(shell, "get_parent") else {}
    running = request.get("metadata", {}).get("cellId")  # JupyterLab says it with each request
    return cells.index(running) if running in cells else None


def _code_of_this_notebook() -> list[tuple[str, str]]:
    """Return the id and the source of each code cell, as the notebook was last saved.

    If the notebook's file cannot be found or read, the list is empty.
    """
    # The server has put the notebook's path there, such as "my_notebooks/04_flops.ipynb".
    session = os.environ.get("JPY_SESSION_NAME", "")
    path = Path.cwd() / Path(session).name  # a kernel starts in the notebook's folder
    try:
        cells = json.loads(path.read_bytes())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        return [(cell.get("id", ""), "".join(cell["source"])) for cell in code]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _defined_in(source: str) -> set[str]:
    """Return the names that a cell imports, defines or assigns at its top level."""
    try:
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except (SyntaxError, ValueError):  # such as a cell with a %magic, or one half written
        return set()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
