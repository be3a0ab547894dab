"""The text of an `accountant.py`: which terms the reader has written, and how one more is put in.

The file is a whole program at any time: a term that the reader has not written yet is the course's,
and its first line ends in MARK. Nothing here runs the file, since the workspace's server reads it,
too.
"""

import ast
import re
from pathlib import Path

NAME = "accountant.py"
OURS = Path(__file__).with_name(NAME)
TERMS = (  # in the order of the notebooks
    "tensor_bytes",
    "storage_bytes",
    "matrices",
    "parameters",
    "forward_flops",
    "days",
    "layer_bytes",
    "state_bytes",
    "recipe",
    "step_bytes",
    "step_flops",
    "interval",
    "lost_share",
)
# Readers' files have this text, so it must never change.
MARK = "# the course's, until yours is right"


def ours() -> str:
    """The course's version as a workspace gets it: the first line of each term ends in the mark."""
    text = OURS.read_text(encoding="utf-8")
    # A first line is such as "def days(flops, gpus, peak, share):".
    first_line = rf"^(def (?:{'|'.join(TERMS)})\(.*:)$"
    return re.sub(first_line, rf"\1  {MARK}", text, flags=re.MULTILINE)


def program_text(path: Path) -> str:
    """The text of the file. ValueError, with the reason, if it cannot be read or is no Python."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        statements(text)  # raises an error if the text is no Python
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is no Python, {error.msg}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:  # such as a folder
        why = getattr(error, "strerror", None)  # only an OSError has one
        raise ValueError(why or "it cannot be read as Python") from error
    return text


def statements(text: str) -> dict[str, str]:
    """Each statement's text, with the blank lines and comments above it, by what it defines.

    An assignment is known by its left side, and a statement that defines nothing by its own text.
    A name that is defined twice has " again" behind it the second time. The text behind the last
    statement is under "".
    """
    lines = text.split("\n")
    found = {}
    begin = 0
    for node in ast.parse(text).body:
        name = getattr(node, "name", None)
        if not name:  # no function and no class
            name, _, _ = ast.unparse(node).partition("= ")
        while name in found:
            name += " again"
        if node.end_lineno > begin:  # otherwise it shares the last line of the one before
            found[name] = "\n".join(lines[begin : node.end_lineno])
            begin = node.end_lineno
    found[""] = "\n".join(lines[begin:])
    return found


def theirs(text: str) -> list[str]:
    """The names of the terms that the reader has written: those that lack the course's mark."""
    written = statements(text)
    return [name for name in TERMS if name in written and MARK not in written[name]]


def with_term(text: str, name: str, function: str) -> str:
    """The file's text, with the text `function` in place of the function that is called `name`.

    ValueError if the file has no such function, or if the new one is called something else.
    """
    written = statements(text)
    former = written.get(name, "")
    begins = re.search(rf"^def {name}\b", former, re.MULTILINE)
    if not begins:
        raise ValueError(f"it has no function {name} any more. Delete the file to begin it anew")
    comments_above = former[: begins.start()]
    written[name] = comments_above + function
    result = "\n".join(written.values())
    if name not in theirs(result):  # the text `function` defines another name
        raise ValueError(f"write it as def {name}(...)")
    return result
