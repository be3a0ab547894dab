"""One idea a line: rules that the linter does not have. The linter's are in pyproject.toml."""

import ast
from pathlib import Path

import pytest

from tests import ROOT
from tests.helpers.lines import code_lines, tokens
from tests.project.test_house import COURSE, ROOMS

MOST_TOKENS_A_LINE = 9  # micrograd has 7.7 of them, einops 8.0


@pytest.mark.parametrize("room", ROOMS)
def test_a_line_has_few_tokens_in_every_room(room):
    modules = sorted((COURSE / room).rglob("*.py"))
    lines = sum(code_lines(path) for path in modules)
    assert lines > 500
    assert sum(tokens(path) for path in modules) / lines <= MOST_TOKENS_A_LINE


def is_computed(node: ast.expr) -> bool:
    """Whether a reader has to work the value out, which names and constants never ask for."""
    return not isinstance(node, ast.Name | ast.Constant | ast.Attribute)


def assigns_two_results(node: ast.AST) -> bool:
    """Whether it is like `a, b = f(x), g(y)`; `a, b = b, a` and `a, b = pair` are not."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    is_unpacked = any(isinstance(target, ast.Tuple) for target in node.targets)
    computed = [value for value in node.value.elts if is_computed(value)]
    return is_unpacked and len(computed) >= 2


def two_results_at_once(path: Path) -> list[str]:
    """The places in a module with such a line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(ROOT).as_posix()
    return [f"{name}:{node.lineno}" for node in ast.walk(tree) if assigns_two_results(node)]


def test_the_rule_on_assignments_knows_one_from_the_other():
    for line in ("a, b = f(x), g(y)", "a, b = x + 1, [y]", "(a, b), c = f(x), g(y)"):
        assert assigns_two_results(ast.parse(line).body[0]), line
    plain = ("a, b = f(x)", "a, b = b, a", "a, b = 1, x.y", "a, b = b, a + b", "a = f(x), g(y)")
    for line in plain:
        assert not assigns_two_results(ast.parse(line).body[0]), line


@pytest.mark.parametrize("folder", ["course_utils", "tests"])
def test_no_line_computes_two_things_and_names_both(folder):
    modules = sorted((ROOT / folder).rglob("*.py"))
    assert len(modules) > 50
    places = [place for path in modules for place in two_results_at_once(path)]
    assert places == []
