"""The slice of a notebook that one exercise's answer needs.

The slice has the statements above the check that make the names which the answer uses, and the
statements which those need in turn. They run in the order of the cells. A line that only IPython
understands, such as `%timeit f()`, becomes `...`.
"""

import ast
import re
import symtable
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# As in %timeit f(), !ls and f??; of x = %timeit f(), the group has "x = ", which stays.
IPYTHON_LINE = re.compile(
    r"^([ \t]*(?:[\w, ]+=[ \t]*(?=[%!]))?)(?:[%!?].*|[\w.]+\?+[ \t]*)$", re.MULTILINE
)
# The names that a text makes, even if it is no Python: f in "def f(", and x in "x = 1".
MADE = re.compile(r"^(?:def |class )?(\w+)", re.MULTILINE)
CHANGED = re.compile(r"^ *(\w+)[.\[]", re.MULTILINE)  # as in d["a"] = 1 and d.update(a=1)
# Statements that always make their names. An `if` or a loop may not, so above it we look further.
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
STAR = frozenset("*")  # `from x import *` may make any name


@dataclass(frozen=True)
class Statement:
    """A statement of a cell.

    A cell that is no Python is one statement: its whole text, whose run raises the same SyntaxError
    as in the notebook.
    """

    cell: str
    code: ast.stmt | str
    made: Names  # which it assigns, defines or imports
    used: Names = frozenset()  # which it reads
    changed: Names = frozenset()  # whose values it may change
    late: Names = frozenset()  # of the notebook, which its functions read when they are called
    text: str = ""  # as `ast.unparse` writes it; if it is no Python, the cell's own

    def run(self, space: dict[str, object]) -> None:
        """Run the statement in that namespace."""
        # The second list of a Module is for comments that ignore types, of which there are none.
        code = self.code if isinstance(self.code, str) else ast.Module([self.code], [])
        exec(compile(code, self.cell, "exec"), space)

    def answers(self, check: str) -> list[ast.expr]:
        """Return the first argument of each call of that check in this statement."""
        if isinstance(self.code, str):  # the text of a cell that is no Python: it has no calls
            return []
        answers = []
        for node in ast.walk(self.code):
            is_call = isinstance(node, ast.Call) and len(node.args) > 0
            if is_call and ast.unparse(node.func) == f"check.{check}":
                answers.append(node.args[0])
        return answers


def needed(
    code: Mapping[str, str], check: str, cell: str, asked: str
) -> tuple[list[Statement], ast.expr]:
    """Return the statements that the answer needs, and the expression that the check is given.

    `code` has the texts of the cells by their ids, and `cell` is the id of the course's cell that
    calls the check. The last call of the check counts, and one in that cell counts before any
    other. Where the notebook no longer has a call, that cell with its text `asked` is put at the
    end.
    """
    every: list[Statement] = []
    for name, text in code.items():
        every.extend(statements(name, text))
    calls = []  # (is in the course's cell, place among the statements, expression)
    for at, statement in enumerate(every):
        for answer in statement.answers(check):
            calls.append((statement.cell == cell, at, answer))
    if not calls:
        with_check = {name: text for name, text in code.items() if name != cell}
        with_check[cell] = asked
        return needed(with_check, check, cell, asked)  # finds the call in the added cell

    # True is more than False: a call in the course's cell comes before any other, then the last.
    # The answers are left out of the comparison, because syntax trees cannot be compared.
    _, end, answer = max(calls, key=lambda call: call[:2])
    names = _statement(cell, ast.Expr(answer)).used  # by the expression that the check is given
    return _slice(every[:end], names), answer  # only statements above the call


def _slice(above: list[Statement], names: Names) -> list[Statement]:
    """Return the statements that make or change these names, and the statements which those need.

    We go backwards, and take each statement that makes or changes a name that is still needed.
    A line such as torch.zeros(2) counts as one that may change `torch`. So lines that only change a
    module, such as torch.set_num_threads(1), are not taken: nearly every line would be. A function
    reads its global names when it is called, so they may be made below its `def`, which we meet too
    late, as we go backwards. So we collect these names, and begin again with them among `names`,
    until there is no new one.
    """
    modules = _modules_in(above)
    while True:
        open_names = names  # those that no statement so far is sure to make
        taken = []
        for statement in reversed(above):
            touched = statement.made | (statement.changed - modules)
            if touched & (open_names | STAR):  # a star may make any name, so it is taken
                taken.append(statement)
                if isinstance(statement.code, ALWAYS):
                    open_names = open_names - statement.made
                open_names = open_names | statement.used
        names_and_late = names  # and what the functions of the taken statements read when called
        for statement in taken:
            names_and_late = names_and_late | statement.late
        if names_and_late == names:
            return taken[::-1]  # in the order of the notebook
        names = names_and_late


def _modules_in(above: list[Statement]) -> set[str]:
    """Return all names that imports make, because any of them may be a module."""
    names = set()
    for statement in above:
        if isinstance(statement.code, ast.Import | ast.ImportFrom):
            names |= statement.made
    return names


@cache  # so that the course's cells are parsed once, before the process of an answer is forked
def statements(cell: str, text: str) -> tuple[Statement, ...]:
    """Return the statements of a cell with this text."""
    try:
        try:
            body = ast.parse(text).body
        except SyntaxError:  # perhaps only because of IPython's lines
            text = IPYTHON_LINE.sub(r"\1...", text)
            body = ast.parse(text).body
        return tuple(_statement(cell, node) for node in body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that parsing may raise
        # The whole cell is one statement: it raises its error only for answers that need the cell.
        return (Statement(cell, text, made=frozenset(MADE.findall(text)), text=text),)


def _statement(cell: str, node: ast.stmt) -> Statement:
    """Return the statement, with the names that it makes, uses and changes."""
    text = ast.unparse(node)
    table = symtable.symtable(text, cell, "exec")
    late = _late(table)  # names that are read only when one of the statement's functions is called
    made = set()
    used = set(late)
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():  # `def` and `class` assign, too
            made.add(symbol.get_name())
        if symbol.is_referenced():
            used.add(symbol.get_name())
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        made |= STAR
    return Statement(
        cell,
        node,
        made=frozenset(made),
        used=frozenset(used),
        changed=frozenset(CHANGED.findall(text)),
        late=frozenset(late),
        text=text,
    )


def _late(table: symtable.SymbolTable) -> set[str]:
    """Return the notebook's names that functions and classes in the table read, also nested ones.

    They are global there, because the functions do not make them.
    """
    names = set()
    for child in table.get_children():
        for symbol in child.get_symbols():
            if symbol.is_global():
                names.add(symbol.get_name())
        names |= _late(child)
    return names
