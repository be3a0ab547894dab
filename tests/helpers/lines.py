"""How many lines of code a file has, and which files of the course a notebook loads."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.notebooks import code

IMPORTS = re.compile(r"^(?:from course_utils|import course_utils).*$", re.MULTILINE)
COMMENTS = {
    ".js": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".mjs": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".css": re.compile(r"/\*.*?\*/", re.DOTALL),
    ".html": re.compile(r"<!--.*?-->|\{#.*?#\}", re.DOTALL),
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(path: Path) -> int:
    """Lines with code: without blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in COMMENTS:
        return sum(bool(line.strip()) for line in COMMENTS[path.suffix].sub("", text).split("\n"))
    lines = {
        number
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return len(lines)


def loaded_by(path: Path) -> set[Path]:
    """The course's modules that a notebook's imports load."""
    lines = [line for cell in code(path) for line in IMPORTS.findall(cell.source)]
    program = "\n".join(
        [
            "import sys",
            *lines,
            "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('course_utils')), sep='\\n')",
        ]
    )
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent)
    return {Path(line) for line in run.stdout.splitlines()}
