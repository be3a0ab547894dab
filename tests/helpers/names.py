"""Which names a module defines, and which names a text uses."""

import ast
from pathlib import Path


def defined_in(path: Path) -> dict[str, ast.stmt]:
    """By name, the statement that defines it at the top of the module."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for name in _names_of(node):
            found[name] = node
    return found


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.Assign):
        return _names_in(node.targets)
    if isinstance(node, ast.AnnAssign):
        return _names_in([node.target])
    name = getattr(node, "name", None)  # of a function or a class
    return [name] if name else []


def _names_in(targets: list[ast.expr]) -> list[str]:
    names = []
    for target in targets:
        names.extend(node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    return names


def names_used(text: str) -> set[str]:
    """Return the names that a text uses, beyond defining and importing them.

    The text of a string counts as a use, because a module's tables may name a function so.
    """
    used = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.alias) and node.asname:
            used.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
    return used
