"""What the package itself says to a reader: sentences, the advice of exercises, buttons of labs.

The first two are found by reading the code, and the buttons by asking the labs. So whatever is
written there is listed the next time.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from course_utils.chapters import labs

SPEAKS = ("translated", "template")  # functions of core.say.language; a literal comes first
SENTENCE = "sentence"
# The same calls in a script or a template of pages: the text in quotation marks, read as JSON.
IN_PAGES = re.compile(r"""\b(?:translated|template)\(\s*("(?:[^"\\]|\\.)*")""")
PAGES = ("*.js", "*.html")
IN_EXERCISES = "chapters/*/*check.py"
# Arguments of an exercise's decorator, or of what it raises, that a verdict quotes.
HINTS = "hints"
WANTED = "wanted"
WITHOUT = "without"
NOT_YET = "NotYetError"


def sentences_of(package: Path) -> list[tuple[str, str]]:
    """Return (context, sentence) for each literal in a call of `translated` or `template`.

    The calls stand in Python, and in the scripts and templates of pages.
    """
    found = {}
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f"{name}(" in text for name in SPEAKS):
            for call in _calls(text):
                if _name_called(call) in SPEAKS and call.args:
                    for sentence in _texts(call.args[0]):
                        found.setdefault(sentence, SENTENCE)
    for sentence in _said_by_pages(package):
        found.setdefault(sentence, SENTENCE)
    return [(context, sentence) for sentence, context in found.items()]


def exercises_of(package: Path) -> list[tuple[str, str]]:
    """Return (context, sentence) for the advice, the hints and the reasons of all exercises.

    The context is the module, such as "floats/check.py". A text in several modules counts once.
    """
    found = {}
    for path in sorted(package.glob(IN_EXERCISES)):
        context = f"{path.parent.name}/{path.name}"
        for sentence in _said_by_exercises(path.read_text(encoding="utf-8")):
            found.setdefault(sentence, context)
    return [(context, sentence) for sentence, context in found.items()]


def _said_by_pages(package: Path) -> Iterator[str]:
    """Yield what the scripts and templates of pages say by those functions."""
    for kind in PAGES:
        for path in sorted(package.rglob(kind)):
            yield from said_in(path.read_text(encoding="utf-8"))


def said_in(page: str) -> list[str]:
    """Return what a script or a template says by those functions, in English.

    >>> said_in('show(translated("{n} too low", { n }));')
    ['{n} too low']
    """
    return [json.loads(text) for text in IN_PAGES.findall(page)]


def labels_of_labs() -> list[tuple[str, str]]:
    """Return (context, label) for the name of each lab, and for its presets' and jobs' buttons.

    A label that several labs have counts once. Controls have English names in every language,
    because the text around a lab quotes them.
    """
    found = {}
    for name in labs.NAMES:
        lab = labs.lab_named(name)
        for label in (lab.name, *lab.presets, *lab.jobs, *lab.actions):
            found.setdefault(label, f"{name} lab")
    return [(context, label) for label, context in found.items()]


@lru_cache(512)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _calls(text: str) -> Iterator[ast.Call]:
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Call):
            yield node


def _name_called(call: ast.Call) -> str:
    """Return the name of what is called, without the module before it."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _said_by_exercises(text: str) -> Iterator[str]:
    """Yield what the exercises of a module say, in the order of its lines."""
    kept = _constants(text)
    nodes = [node for node in ast.walk(_tree(text)) if hasattr(node, "lineno")]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        for said in _said_by(node):
            yield from _texts(said, kept)


def _said_by(node: ast.AST) -> list[ast.expr]:
    """Return the expressions of a node that a verdict quotes."""
    if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
        answer_and_sentence = node.value.elts
        return answer_and_sentence[1:] if len(answer_and_sentence) == 2 else []
    if isinstance(node, ast.For):
        return [_container(node.iter)]
    if isinstance(node, ast.Call) and _name_called(node) == NOT_YET:
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    if isinstance(node, ast.keyword) and node.arg == HINTS and isinstance(node.value, ast.Tuple):
        return node.value.elts
    if isinstance(node, ast.keyword) and node.arg == WANTED:
        return [node.value]
    if isinstance(node, ast.keyword) and node.arg == WITHOUT and isinstance(node.value, ast.Dict):
        return node.value.values
    return []


def _container(looped_over: ast.expr) -> ast.expr:
    """Return ADVICE of a loop over ADVICE.items(): a dict with a sentence for each mistake."""
    is_call = isinstance(looped_over, ast.Call) and isinstance(looped_over.func, ast.Attribute)
    return looped_over.func.value if is_call else looped_over


def _constants(text: str) -> dict[str, list[str]]:
    """Return the texts that names are set to, since several answers may share their advice."""
    found = {}
    for node in ast.walk(_tree(text)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            kept = found.setdefault(node.targets[0].id, [])
            is_dict = isinstance(node.value, ast.Dict)
            for value in node.value.values if is_dict else [node.value]:
                # A dict may also have the cases of an exercise, such as patterns of an einsum.
                texts = _texts(value, found)
                kept.extend(said for said in texts if said.endswith(".") or not is_dict)
    return found


def _texts(node: ast.expr, kept: dict[str, list[str]] | None = None) -> Iterator[str]:
    """Yield the text of a literal, both of `a if … else b`, or kept ones; no text made of parts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, kept)
        yield from _texts(node.orelse, kept)
    elif isinstance(node, ast.Name) and kept and node.id in kept:
        yield from kept[node.id]
