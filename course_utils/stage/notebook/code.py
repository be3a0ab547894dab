"""What the code of one cell has: places to fill in, checks, reveals, and the figure that it makes.

A cell that is no Python, as one in a reader's copy may be, has nothing.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# By patterns, because the rest of the cell may be for IPython alone.
CHECKED = re.compile(r"\bcheck\.(\w+)\((\w+)\)")
CHECK = re.compile(r"\bcheck\.(\w+)\(")
COMMENT = "  # "
SHOWN = "shown"  # the button of a figure in which a guess is drawn


@dataclass(frozen=True)
class Blank:
    """A name that a cell sets to `...`, and the comment behind it; of a dict its keys, too."""

    name: str
    items: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True)
class Reveal:
    """A name whose guess is held against a measurement.

    `row` is the row of the table that it is about, `among` what could be chosen, if that is said.
    """

    name: str
    row: str = ""
    among: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A lab, or a figure with some of its controls; the answers and presets it begins with."""

    lab: str
    controls: tuple[str, ...] = ()
    answers: Mapping[str, object] = field(default_factory=dict)
    presets: tuple[str, ...] = ()
    is_whole: bool = False

    @property
    def asks(self) -> bool:
        """Whether a guess is drawn in it: it has the button *Show*."""
        return SHOWN in self.controls


def statements(text: str) -> list[ast.stmt]:
    """The cell's statements; none if it is not Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def is_stub(node: ast.stmt) -> bool:
    """Whether it sets something to `...`, or is a function whose whole body is `return ...`."""
    if isinstance(node, ast.FunctionDef):
        (*docstring, last) = node.body
        return len(docstring) < 2 and isinstance(last, ast.Return) and _is_dots(last.value)
    return isinstance(node, ast.Assign) and _is_dots(node.value)


def _is_dots(value: ast.expr | None) -> bool:
    """Whether it is the `...` of an answer that is not given yet, or a dict of them."""
    if isinstance(value, ast.Dict):
        return all(map(_is_dots, value.values))
    return isinstance(value, ast.Constant) and value.value is ...


def is_open(text: str) -> bool:
    """Whether all that the cell does is to set names to `...`."""
    body = statements(text)
    return bool(body) and all(isinstance(node, ast.Assign) and is_stub(node) for node in body)


def has_a_stub(text: str) -> bool:
    return any(map(is_stub, statements(text)))


def blanks_in(text: str) -> list[Blank]:
    """The names that the cell leaves to fill in.

    >>> blanks_in("my_days = ...  # in days")
    [Blank(name='my_days', items=(), comment='in days')]
    """
    last = text.rstrip("\n").rpartition("\n")[2]
    comment = last.rpartition(COMMENT)[2] if COMMENT in last else ""
    assignments = [node for node in statements(text) if isinstance(node, ast.Assign)]
    return [
        Blank(target.id, _keys(node.value), comment)
        for node in filter(is_stub, assignments)
        if isinstance(target := node.targets[0], ast.Name)
    ]


def _keys(value: ast.expr) -> tuple[str, ...]:
    return tuple(map(_said, value.keys)) if isinstance(value, ast.Dict) else ()


def _said(key: ast.expr | None) -> str:
    """A key as a reader sees it."""
    if isinstance(key, ast.Constant):
        return str(key.value)
    return ast.unparse(key) if key else ""


def checks_of(text: str, name: str) -> list[str]:
    """The exercises whose check is given that name."""
    return [exercise for exercise, given in CHECKED.findall(text) if given == name]


def checked_in(text: str) -> list[str]:
    """The names that checks are given."""
    return [name for _, name in CHECKED.findall(text)]


def reveals_in(text: str) -> list[Reveal]:
    """The guesses that are held against a measurement in this cell.

    >>> reveals_in('Comparison(predicted, measured, guess={"GB": my_gb})')
    [Reveal(name='my_gb', row='GB', among=())]
    """
    return [reveal for call in _calls(text) for reveal in _revealed_by(call)]


def _revealed_by(call: ast.Call) -> Iterator[Reveal]:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    choices = _texts_of(named.get("among"))
    guess = named.get("guess")
    if isinstance(guess, ast.Name):
        yield Reveal(guess.id, among=choices)
    elif isinstance(guess, ast.Dict):
        for key, value in zip(guess.keys, guess.values, strict=True):
            if key and isinstance(value, ast.Name):
                yield Reveal(value.id, key.value if _is_text(key) else "", choices)


def _texts_of(among: ast.expr | None) -> tuple[str, ...]:
    elements = among.elts if isinstance(among, ast.Tuple) else []
    return tuple(one.value for one in elements if _is_text(one))


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def figure_in(text: str) -> Figure | None:
    """The lab or figure that the cell makes.

    >>> figure_in('labs.figure("float", "fmt", typed="0.1")')
    Figure(lab='float', controls=('fmt',), answers={'typed': '0.1'}, presets=(), is_whole=False)
    """
    calls = list(_calls(text))
    of_labs = [call for call in calls if _is_of_labs(call.func)]
    made = next((call for call in of_labs if call.func.attr == "figure"), None)
    if made:
        values = _values(made)
        if not values:
            return None
        (name, *controls), answers = values
        return Figure(name, tuple(controls), answers, _presets(calls))
    whole = next((call for call in of_labs if call.func.attr.endswith("_lab")), None)
    return (
        Figure(whole.func.attr.removesuffix("_lab"), presets=_presets(calls), is_whole=True)
        if whole
        else None
    )


def _calls(text: str) -> list[ast.Call]:
    nodes = (node for statement in statements(text) for node in ast.walk(statement))
    return [node for node in nodes if isinstance(node, ast.Call)]


def _is_of_labs(function: ast.expr) -> bool:
    is_attribute = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    return is_attribute and function.value.id == "labs"


def _values(call: ast.Call) -> tuple[list[str], dict[str, object]] | None:
    """What a call is given, if all of it can be read without running it."""
    try:
        given = [ast.literal_eval(one) for one in call.args]
        named = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    except ValueError:
        return None
    return (given, named) if given and None not in named else None


def _presets(calls: list[ast.Call]) -> tuple[str, ...]:
    methods = [one for one in calls if isinstance(one.func, ast.Attribute)]
    pressed = [one for one in methods if one.func.attr == "preset"]
    pressed.sort(key=lambda one: (one.lineno, one.col_offset))
    return tuple(one.args[0].value for one in pressed if one.args and _is_text(one.args[0]))
