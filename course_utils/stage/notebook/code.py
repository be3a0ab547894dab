"""What the code of one cell contains: places to fill in, checks, reveals, and the figure it makes.

A cell that is not valid Python, as a reader's may be, contains none of these.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

# Calls of checks are found by a pattern, since a cell with an IPython command cannot be parsed.
CHECKED = re.compile(r"\bcheck\.(\w+)\((\w+)\)")  # check.days(my_days)
CHECK = re.compile(r"\bcheck\.(\w+)\(")  # any call of a check, whatever is in its parentheses
COMMENT = "  # "  # stands between the code of a line and the comment behind it
SHOWN = "shown"  # the control with the button *Show*: figures in which a guess is drawn have it


@dataclass(frozen=True)
class Blank:
    """A name that a cell sets to `...`, and the comment behind it.

    `items` are the keys if the name is set to a dict with `...` for each of its values.
    """

    name: str
    items: tuple[str, ...] = ()
    comment: str = ""


@dataclass(frozen=True)
class Ask:
    """A guess that a cell asks for: `name = ask(…)`, with the arguments of the call.

    `questions` are the names of what is asked for. `among` are the options if the answer is one of
    several words. If the questions are parts of a sum, `between` has the names and the numbers of
    its two ends.
    """

    name: str
    questions: tuple[str, ...]
    unit: str = ""
    among: tuple[str, ...] = ()
    between: tuple[tuple[str, float], ...] = ()  # (("at the peak", 82.5), ("reported", 260))


@dataclass(frozen=True)
class Reveal:
    """A name whose guess is compared with a measurement.

    `row` is the row of the comparison's table; it is empty where the call names none. The call
    Comparison(predicted, measured, guess={"GB": my_gb}) has the name "my_gb" and the row "GB".
    """

    name: str
    row: str = ""


@dataclass(frozen=True)
class Figure:
    """A whole lab, or a figure that has only some of a lab's controls.

    Of labs.figure("float", "fmt", typed="0.1"), `lab` is "float" and `controls` has "fmt".
    `answers` are the first values of controls, here {"typed": "0.1"}. `presets` are the presets
    that the cell presses.
    """

    lab: str
    controls: tuple[str, ...] = ()
    answers: Mapping[str, object] = field(default_factory=dict)
    presets: tuple[str, ...] = ()
    is_whole: bool = False

    @property
    def asks(self) -> bool:
        """Whether the reader draws a guess in the figure: then it has the button *Show*."""
        return SHOWN in self.controls


def statements(text: str) -> list[ast.stmt]:
    """Return the cell's statements; none if it is not valid Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def is_stub(node: ast.stmt) -> bool:
    """Whether a statement sets something to `...`, or defines a function that returns `...`.

    The function may have a docstring, and nothing else.
    """
    if isinstance(node, ast.FunctionDef):
        # Of two statements, the first is taken for a docstring, whatever it is.
        return _ends_open(node) and len(node.body) <= 2
    return isinstance(node, ast.Assign) and _is_dots(node.value)


def _is_dots(value: ast.expr | None) -> bool:
    """Whether the value is the `...` of an answer that is still to be given, or a dict of them."""
    if isinstance(value, ast.Dict):
        return all(_is_dots(item) for item in value.values)
    return isinstance(value, ast.Constant) and value.value is ...


def is_imports(text: str) -> bool:
    """Whether the cell imports names, and does nothing else."""
    body = statements(text)
    return bool(body) and all(isinstance(node, ast.Import | ast.ImportFrom) for node in body)


def asks_in(text: str) -> list[Ask]:
    """Return the guesses that the cell asks for.

    >>> asks_in('my_gb = ask("one matrix", "GB")')
    [Ask(name='my_gb', questions=('one matrix',), unit='GB', among=(), between=())]
    """
    asks = []
    for node in statements(text):
        if isinstance(node, ast.Assign) and _is_call_of(node.value, "ask"):
            asks.extend(_ask(node.targets[0], node.value))
    return asks


def asks_ahead(text: str) -> bool:
    """Whether the cell only has fields for guesses at what a later notebook asks again.

    A call such as ask_ahead("8 H100s, AdamW", "days", notebook="flops") makes such a field.
    """
    body = statements(text)
    are_calls = [
        isinstance(node, ast.Expr) and _is_call_of(node.value, "ask_ahead") for node in body
    ]
    return bool(body) and all(are_calls)


def _ask(target: ast.expr, call: ast.Call) -> Iterator[Ask]:
    """Yield the Ask of a call such as ask("one matrix", "GB"), whose result `target` gets.

    Nothing is yielded if the target is no plain name, or if an argument would have to be computed.
    """
    if not isinstance(target, ast.Name):
        return
    # An argument that would have to be computed is a ValueError, and one like {[]: 1} a TypeError.
    with suppress(ValueError, TypeError):
        given = [ast.literal_eval(argument) for argument in call.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        # The first two arguments are usually given without their names.
        by_position = dict(zip(("names", "unit"), given, strict=False))
        arguments = named | by_position
        names = arguments.get("names", ())  # one question, or several
        questions = (names,) if isinstance(names, str) else tuple(names)
        unit = arguments.get("unit", "")
        among = tuple(arguments.get("among", ()))
        ends = dict(arguments.get("between") or {})  # of a sum, such as {"peak": 82, "all": 260}
        between = tuple(ends.items())
        # An unfinished call, such as ask() or ask(["one matrix", 3]), is left out.
        if questions and all(isinstance(word, str) for word in (*questions, unit, *among)):
            yield Ask(target.id, questions, unit, among, between)


def _is_call_of(node: ast.expr, name: str) -> bool:
    """Whether the expression is a call of the function of that name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def is_guess(text: str) -> bool:
    """Whether the cell does nothing else than ask for guesses."""
    body = statements(text)
    # `asks_in` finds one guess in a statement at most, so each statement has to be one.
    return bool(body) and len(asks_in(text)) == len(body)


def is_open(text: str) -> bool:
    """Whether the cell does nothing else than set names to `...`."""
    body = statements(text)
    if not body:
        return False
    return all(isinstance(node, ast.Assign) and is_stub(node) for node in body)


def has_a_stub(text: str) -> bool:
    """Whether the reader writes in this cell: it has a stub, or a function that is half-written.

    A half-written function has some of its lines, and still ends in `return ...`.
    """
    return any(is_stub(node) or _ends_open(node) for node in statements(text))


def _ends_open(node: ast.stmt) -> bool:
    """Whether a statement defines a function that ends in `return ...`, however much is written."""
    if not isinstance(node, ast.FunctionDef):
        return False
    last = node.body[-1]
    return isinstance(last, ast.Return) and _is_dots(last.value)


def blanks_in(text: str) -> list[Blank]:
    """Return the names that the reader has to fill in, each a Blank.

    >>> blanks_in("my_days = ...  # in days")
    [Blank(name='my_days', items=(), comment='in days')]
    """
    comment = _last_comment(text)  # the same for all blanks of the cell
    blanks = []
    for node in statements(text):
        if not isinstance(node, ast.Assign) or not is_stub(node):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name):
            blanks.append(Blank(target.id, _keys(node.value), comment))
    return blanks


def _last_comment(text: str) -> str:
    """Return the comment behind the code of the cell's last line, or "" if there is none."""
    _, _, last_line = text.rstrip("\n").rpartition("\n")
    _, separator, comment = last_line.rpartition(COMMENT)
    return comment if separator else ""


def _keys(value: ast.expr) -> tuple[str, ...]:
    """Return the texts of a dict's keys; nothing for a value that is no dict."""
    if not isinstance(value, ast.Dict):
        return ()
    return tuple(_key_text(key) for key in value.keys)


def _key_text(key: ast.expr | None) -> str:
    """Return the key without quotes, as a table shows it; empty for `**more`, which has no key."""
    if key is None:
        return ""
    if isinstance(key, ast.Constant):
        return str(key.value)
    return ast.unparse(key)


def checks_of(text: str, name: str) -> list[str]:
    """Return the exercises whose check is called with `name`.

    >>> checks_of("check.days(my_days)", "my_days")
    ['days']
    """
    return [exercise for exercise, given in CHECKED.findall(text) if given == name]


def checked_in(text: str) -> list[str]:
    """Return the names with which checks are called, such as my_days in check.days(my_days)."""
    return [name for _, name in CHECKED.findall(text)]


def reveals_in(text: str) -> list[Reveal]:
    """Return the guesses that are compared with a measurement in this cell.

    >>> reveals_in("reveal(my_gb, predicted=2.4, measured=gb)")
    [Reveal(name='my_gb', row='')]
    >>> reveals_in('Comparison(predicted, measured, guess={"GB": my_gb})')
    [Reveal(name='my_gb', row='GB')]
    """
    reveals = []
    for call in _calls(text):
        reveals.extend(_revealed_by(call))
    return reveals


def _revealed_by(call: ast.Call) -> Iterator[Reveal]:
    """Yield the guesses in a call: the first argument of `reveal`, or `guess` of other calls.

    The argument is a name, as in my_gb; or one of several answers, as in my_days["sending"]; or a
    dict of names by their rows, as in {"GB": my_gb}.
    """
    arguments = {keyword.arg: keyword.value for keyword in call.keywords}
    guess = arguments.get("guess")
    if _is_call_of(call, "reveal") and call.args:
        guess = call.args[0]
    if isinstance(guess, ast.Name):
        yield Reveal(guess.id)
    elif isinstance(guess, ast.Subscript) and isinstance(guess.value, ast.Name):
        yield Reveal(guess.value.id, _row(guess.slice))
    elif isinstance(guess, ast.Dict):
        for key, value in zip(guess.keys, guess.values, strict=True):
            if key and isinstance(value, ast.Name):  # `**more` has no key
                yield Reveal(value.id, _row(key))


def _row(key: ast.expr) -> str:
    """Return the row that a key names; "" if the key is not a text that is written out."""
    return key.value if _is_text(key) else ""


def _is_text(node: ast.expr | None) -> bool:
    """Whether the expression is a text that is written out, such as "GB"."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def figure_in(text: str) -> Figure | None:
    """Return the lab or figure that the cell makes; None if it makes none.

    If the cell makes a figure and a whole lab, the figure is returned.

    >>> figure_in('labs.figure("float", "fmt", typed="0.1")')
    Figure(lab='float', controls=('fmt',), answers={'typed': '0.1'}, presets=(), is_whole=False)

    The first values may be named above the call, and are then written out in the same cell:

    >>> figure_in('start = {"typed": "0.1"}\\nlabs.figure("float", **start)').answers
    {'typed': '0.1'}
    """
    calls = _calls(text)
    of_labs = [call for call in calls if _is_of_labs(call.func)]
    for call in of_labs:
        if call.func.attr == "figure":
            return _figure_made_by(call, _presets(calls), _dicts(text))
    for call in of_labs:
        if call.func.attr.endswith("_lab"):  # such as labs.float_lab()
            lab = call.func.attr.removesuffix("_lab")
            return Figure(lab, presets=_presets(calls), is_whole=True)
    return None


def _figure_made_by(
    call: ast.Call, presets: tuple[str, ...], dicts: Mapping[str, ast.expr]
) -> Figure | None:
    """Return the figure that a call makes; None if an argument would have to be computed.

    `dicts` are the dicts that the cell writes out, by name, for calls with `**name`.
    """
    answers = {}
    try:
        given = [ast.literal_eval(argument) for argument in call.args]
        for keyword in call.keywords:
            if keyword.arg is None:  # `**name`
                answers |= ast.literal_eval(dicts.get(ast.unparse(keyword.value), keyword.value))
            else:
                answers[keyword.arg] = ast.literal_eval(keyword.value)
    except ValueError:
        return None
    if not given:
        return None
    lab, *controls = given
    return Figure(lab, tuple(controls), answers, presets)


def _dicts(text: str) -> dict[str, ast.expr]:
    """Return the dicts that the cell writes out, by the names to which it assigns them."""
    found = {}
    for statement in statements(text):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Dict):
            found[ast.unparse(statement.targets[0])] = statement.value
    return found


def _calls(text: str) -> list[ast.Call]:
    """Return all calls in the cell, nested ones included."""
    calls = []
    for statement in statements(text):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                calls.append(node)
    return calls


def _is_of_labs(function: ast.expr) -> bool:
    """Whether the called function is `labs.…`."""
    if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
        return False
    return function.value.id == "labs"


def _presets(calls: list[ast.Call]) -> tuple[str, ...]:
    """Return the presets that the cell presses by calling `preset`, in the order of its text."""
    presses = [call for call in calls if _presses_a_preset(call)]
    # `ast.walk` finds calls that are nested less deeply first, so their order is not the text's.
    presses.sort(key=lambda call: (call.lineno, call.col_offset))
    return tuple(call.args[0].value for call in presses)


def _presses_a_preset(call: ast.Call) -> bool:
    """Whether the call is like `figure.preset("464 in E4M3?")`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "preset":
        return False
    return bool(call.args) and _is_text(call.args[0])
