"""Which names a module defines, and which names a text uses."""

import ast
from pathlib import Path


def defined_in(path: Path) -> dict[str, ast.stmt]:
    """By name, what defines it at the top of a module."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [getattr(node, "name", "")]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                one.id
                for target in targets
                for one in ast.walk(target)
                if isinstance(one, ast.Name)
            ]
        found |= {name: node for name in names if name}
    return found


def names_used(text: str) -> set[str]:
    """What a text names beyond defining and importing it; by a string, too, since tables of a module may."""
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
