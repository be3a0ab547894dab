"""What one exercise's answer needs of a notebook: the statements above its check that make what it names, and theirs.

They run in the order of the cells. What is for IPython alone becomes `...`.
"""

import ast
import re
import symtable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

IPYTHON_LINE = re.compile(
    r"^([ \t]*(?:[\w, ]+=[ \t]*(?=[%!]))?)(?:[%!?].*|[\w.]+\?+[ \t]*)$", re.MULTILINE
)
MADE = re.compile(r"^(?:def |class )?(\w+)", re.MULTILINE)
CHANGED = re.compile(r"^ *(\w+)[.\[]", re.MULTILINE)  # as in d["a"] = 1 and d.update(a=1)
ALWAYS = (
    ast.Assign
    | ast.AnnAssign
    | ast.AugAssign
    | ast.Import
    | ast.ImportFrom
    | ast.FunctionDef
    | ast.ClassDef
)
Names = frozenset[str]
STAR = frozenset("*")  # who imports it may import any name


@dataclass(frozen=True)
class Statement:
    """A statement of a cell, or the whole text of a cell that is no Python, which stops as it stops in the notebook."""

    cell: str
    code: ast.stmt | str
    made: Names
    used: Names = frozenset()
    changed: Names = frozenset()
    late: Names = frozenset()  # what its functions use of the notebook, when they are called
    text: str = ""

    def run(self, space: dict[str, object]) -> None:
        code = self.code if isinstance(self.code, str) else ast.Module([self.code], [])
        exec(compile(code, self.cell, "exec"), space)

    def answers(self, check: str) -> list[ast.expr]:
        """What it hands to that check."""
        nodes = () if isinstance(self.code, str) else ast.walk(self.code)
        calls = (node for node in nodes if isinstance(node, ast.Call) and node.args)
        return [call.args[0] for call in calls if ast.unparse(call.func) == f"check.{check}"]


def needed(
    code: Mapping[str, str], check: str, cell: str, asked: str
) -> tuple[list[Statement], ast.expr]:
    """The statements that the answer needs, and the answer as it is handed to that check in that cell.

    Where the notebook no longer has the call, the course's cell `asked` stands for it, at the end.
    """
    every = [one for name, text in code.items() for one in statements(name, text)]
    calls = [
        (one.cell == cell, at, answer)
        for at, one in enumerate(every)
        for answer in one.answers(check)
    ]
    if not calls:
        return needed(
            {name: code[name] for name in code if name != cell} | {cell: asked}, check, cell, asked
        )
    _, end, answer = max(calls, key=lambda found: found[:2])
    return _slice(every[:end], _statement(cell, ast.Expr(answer)).used), answer


def _slice(above: list[Statement], names: Names) -> list[Statement]:
    """Backwards, each statement that makes or changes a name that is still open. Of modules no change is followed.

    What a function uses late is open at the end, so it takes several rounds.
    """
    imports = (one for one in above if isinstance(one.code, ast.Import | ast.ImportFrom))
    modules = {name for one in imports for name in one.made}
    while True:
        open_names, taken = names, []
        for one in reversed(above):
            if (one.made | one.changed - modules) & (open_names | STAR):
                taken.append(one)
                made = one.made if isinstance(one.code, ALWAYS) else frozenset()
                open_names = open_names - made | one.used
        more = names.union(*(one.late for one in taken))
        if more == names:
            return taken[::-1]
        names = more


@cache  # what the course's cells do is known before an answer's process begins
def statements(cell: str, text: str) -> tuple[Statement, ...]:
    try:
        try:
            body = ast.parse(text).body
        except SyntaxError:
            body = ast.parse(text := IPYTHON_LINE.sub(r"\1...", text)).body
        return tuple(_statement(cell, node) for node in body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (Statement(cell, text, frozenset(MADE.findall(text)), text=text),)


def _statement(cell: str, node: ast.stmt) -> Statement:
    text = ast.unparse(node)
    table = symtable.symtable(text, cell, "exec")
    made = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    made |= {one.name for one in getattr(node, "names", ()) if isinstance(one, ast.alias)} & STAR
    late = _late(table)
    used = late.union(one.get_name() for one in table.get_symbols() if one.is_referenced())
    return Statement(cell, node, *map(frozenset, (made, used, CHANGED.findall(text), late)), text)


def _late(table: symtable.SymbolTable) -> set[str]:
    inner = table.get_children()
    names = {one.get_name() for child in inner for one in child.get_symbols() if one.is_global()}
    return names.union(*map(_late, inner))
