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

# An import of the course's, over several lines if it has brackets.
IMPORTS = re.compile(r"^(?:from|import) course_utils[^\n(]*(?:\([^)]*\))?[^\n]*$", re.MULTILINE)
COMMENTS = {
    ".js": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".mjs": re.compile(r"^\s*//[^\n]*$|/\*.*?\*/", re.MULTILINE | re.DOTALL),
    ".css": re.compile(r"/\*.*?\*/", re.DOTALL),
    ".html": re.compile(r"<!--.*?-->|\{#.*?#\}", re.DOTALL),
}
# Torch and its like are imported once, and the course by a process of its own for each notebook.
LOADED = """
import json, os, sys
import anywidget, einops, ipywidgets, jaxtyping, matplotlib, numpy, torch
for notebook, lines in json.load(sys.stdin).items():
    if os.fork() == 0:
        exec(lines, {})
        files = [one.__file__ for name, one in sys.modules.items() if name.startswith("course_utils")]
        print(json.dumps([notebook, files]), flush=True)
        os._exit(0)
    _, status = os.wait()
    if status:
        sys.exit(f"The imports of {notebook} fail.")
"""
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
NO_TOKENS = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}


def code_lines(path: Path) -> int:
    """Lines with code: without blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in COMMENTS:
        return sum(bool(line.strip()) for line in COMMENTS[path.suffix].sub("", text).split("\n"))
    return len(_code_in(text))


def code_lines_of(path: Path) -> dict[str, int]:
    """The same for each function and class of a Python module, decorators included."""
    text = path.read_text(encoding="utf-8")
    in_code, found = _code_in(text), {}
    for node in ast.parse(text).body:
        if isinstance(node, DOCUMENTED):
            begin = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name] = len(in_code & {*range(begin, node.end_lineno + 1)})
    return found


def tokens(path: Path) -> int:
    """The names, numbers, texts and signs of a Python module: its size, however many lines it takes."""
    text = path.read_text(encoding="utf-8")
    in_code = _code_in(text)
    return sum(line in in_code for line in _token_lines(text))


def tokens_of(path: Path) -> dict[str, int]:
    """The same for each function and class of the module, decorators included."""
    text = path.read_text(encoding="utf-8")
    in_code = _code_in(text)
    lines = [line for line in _token_lines(text) if line in in_code]
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, DOCUMENTED):
            begin = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name] = sum(begin <= line <= node.end_lineno for line in lines)
    return found


def _token_lines(text: str) -> Iterator[int]:
    """The line of each token. An f-string is one, as in Python 3.11, whatever a later one splits it into."""
    inside = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            inside += 1
        if name not in NO_TOKENS and (not inside or (inside == 1 and name == "FSTRING_START")):
            yield token.start[0]
        if name == "FSTRING_END":
            inside -= 1


def _code_in(text: str) -> set[int]:
    """The numbers of the lines of code."""
    lines = {
        number
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            lines -= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    return lines


def loaded_by(paths: Sequence[Path]) -> dict[Path, set[Path]]:
    """The course's modules that each notebook's imports load."""
    lines = {
        str(path): "\n".join(line for cell in code(path) for line in IMPORTS.findall(cell.source))
        for path in paths
    }
    command = [sys.executable, "-c", LOADED]
    run = subprocess.run(
        command, input=json.dumps(lines), capture_output=True, text=True, check=True
    )
    loaded = dict(map(json.loads, run.stdout.splitlines()))
    return {path: {*map(Path, loaded[str(path)])} for path in paths}
