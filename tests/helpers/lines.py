"""How much code a file has, in lines and tokens, and which files of the course a notebook loads."""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.helpers.notebooks import code

# An import from the course, over several lines if it has brackets.
IMPORTS = re.compile(r"^(?:from|import) course_utils[^\n(]*(?:\([^)]*\))?[^\n]*$", re.MULTILINE)
COMMENTS = {
    ".js": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".mjs": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".css": re.compile(r"/\*.*?\*/", re.DOTALL),
    ".html": re.compile(r"<!--.*?-->|\{#.*?#\}", re.DOTALL),
}
# This program imports torch and other packages once. Then it forks a process for each notebook,
# which runs the notebook's imports and says which of the course's files they have loaded.
LOADED = """
import json, os, sys
import anywidget, einops, ipywidgets, jaxtyping, matplotlib, numpy, torch
for notebook, lines in json.load(sys.stdin).items():
    if os.fork() == 0:
        exec(lines, {})
        course = [name for name in sys.modules if name.startswith("course_utils")]
        files = [sys.modules[name].__file__ for name in course]
        print(json.dumps([notebook, files]), flush=True)
        os._exit(0)
    _, status = os.wait()
    if status:
        sys.exit(f"The imports of {notebook} fail.")
"""
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NO_TOKENS = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}


def code_lines(path: Path) -> int:
    """Count the lines with code; blank lines, comments and docstrings have none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in COMMENTS:
        lines = COMMENTS[path.suffix].sub("", text).split("\n")
        return sum(bool(line.strip()) for line in lines)
    return len(_code_in(text))


def code_lines_of(path: Path) -> dict[str, int]:
    """Count the lines with code of each function and class, decorators included."""
    text = path.read_text(encoding="utf-8")
    in_code = _code_in(text)
    return {name: len(in_code & set(lines)) for name, lines in _definitions(text).items()}


def tokens(path: Path) -> int:
    """Count a module's names, numbers, texts and signs: its size, however many lines it takes."""
    text = path.read_text(encoding="utf-8")
    in_code = _code_in(text)
    return sum(line in in_code for line in _token_lines(text))


def tokens_of(path: Path) -> dict[str, int]:
    """Count the tokens of each function and class, decorators included."""
    text = path.read_text(encoding="utf-8")
    in_code = _code_in(text)
    of_code = [line for line in _token_lines(text) if line in in_code]
    return {
        name: sum(line in lines for line in of_code) for name, lines in _definitions(text).items()
    }


def _definitions(text: str) -> dict[str, range]:
    """By name, the lines of each function and class at the top of a module."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, DOCUMENTED):
            decorators = [decorator.lineno for decorator in node.decorator_list]
            begin = min([node.lineno, *decorators])
            found[node.name] = range(begin, node.end_lineno + 1)
    return found


def _token_lines(text: str) -> Iterator[int]:
    """Yield the line of each token.

    An f-string counts as one token, as in Python 3.11; later versions split it into several.
    """
    depth = 0  # f-strings can stand in f-strings
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if depth == 0 and name not in NO_TOKENS:
            yield token.start[0]
        if name == "FSTRING_START":
            depth += 1
        elif name == "FSTRING_END":
            depth -= 1


def _code_in(text: str) -> set[int]:
    """Return the numbers of the lines of code."""
    found = set()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.strip().startswith("#"):
            found.add(number)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            found -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return found


def loaded_by(paths: Sequence[Path]) -> dict[Path, set[Path]]:
    """Return the course's modules that each notebook's imports load."""
    imports = {str(path): "\n".join(_imports_of(path)) for path in paths}
    command = [sys.executable, "-c", LOADED]
    run = subprocess.run(
        command, input=json.dumps(imports), capture_output=True, text=True, check=True
    )
    loaded = dict(json.loads(line) for line in run.stdout.splitlines())
    return {path: {Path(file) for file in loaded[str(path)]} for path in paths}


def _imports_of(path: Path) -> Iterator[str]:
    for cell in code(path):
        yield from IMPORTS.findall(cell.source)
