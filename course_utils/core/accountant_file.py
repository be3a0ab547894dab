"""The text of an `accountant.py`: which terms are the reader's, and how one more becomes theirs.

The file is a whole program at any time: a term that is not the reader's yet is the course's, and its first line says
so. Nothing here runs the file, since the workspace's server reads it, too.
"""

import ast
import re
from pathlib import Path

NAME = "accountant.py"
OURS = Path(__file__).with_name(NAME)
TERMS = (
    *(
        "tensor_bytes",
        "storage_bytes",
        "matrices",
        "parameters",
        "forward_flops",
        "days",
        "layer_bytes",
    ),
    *("state_bytes", "recipe", "step_bytes", "step_flops", "interval", "lost_share"),
)
MARK = "# the course's, until yours is right"  # readers' files have it: never change it


def ours() -> str:
    """The course's version as a workspace gets it: with the mark behind the first line of each term."""
    first_line = rf"^(def (?:{'|'.join(TERMS)})\(.*:)$"
    return re.sub(first_line, rf"\1  {MARK}", OURS.read_text(encoding="utf-8"), flags=re.MULTILINE)


def program_text(path: Path) -> str:
    """The file's text; ValueError if Python cannot read it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        statements(text)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is no Python, {error.msg}") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:  # a folder, or no text
        raise ValueError(
            getattr(error, "strerror", None) or "it cannot be read as Python"
        ) from error
    return text


def statements(text: str) -> dict[str, str]:
    """Each statement with the blank lines and comments above it, by what it defines; under "" the end of the file."""
    lines, found, begin = text.split("\n"), {}, 0
    for node in ast.parse(text).body:
        name = getattr(node, "name", None) or ast.unparse(node).partition("= ")[0]
        while name in found:
            name += " again"
        if node.end_lineno > begin:  # else it stands in the line of the one before
            found[name] = "\n".join(lines[begin : node.end_lineno])
            begin = node.end_lineno
    return found | {"": "\n".join(lines[begin:])}


def theirs(text: str) -> list[str]:
    """The terms that are the reader's."""
    there_are = statements(text)
    return [name for name in TERMS if name in there_are and MARK not in there_are[name]]


def with_term(text: str, name: str, function: str) -> str:
    """The file's text, with this function in place of the one of the same name."""
    there_are = statements(text)
    begins = re.search(rf"^def {name}\b", there_are.get(name, ""), re.MULTILINE)
    if not begins:
        raise ValueError(f"it has no function {name} any more. Delete the file to begin it anew")
    result = "\n".join((there_are | {name: there_are[name][: begins.start()] + function}).values())
    if name not in theirs(result):
        raise ValueError(f"write it as def {name}(...)")
    return result
