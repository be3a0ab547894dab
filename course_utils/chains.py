"""A chain of tensor operations as it is typed: parsed as Python, looked up in a table, never run as code."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType

LONGEST = 200  # characters

# Every operation there is here, as it is written. Those that need numbers have at least as many as the example.
_WRITTEN = (
    *("transpose(0, 1)", "permute(1, 0)", "t()", "view(2, -1)", "reshape(2, -1)", "flatten()"),
    *("unflatten(0, (2, -1))", "select(0, 1)", "narrow(0, 1, 2)", "expand(3, -1, -1)", "unsqueeze(0)"),
    *("squeeze()", "unfold(0, 2, 1)", "diagonal()", "as_strided((3, 3), (1, 1), 0)"),
    *("contiguous()", "clone()"),
)
EXAMPLES = {example.partition("(")[0]: example for example in _WRITTEN}
INDEX_EXAMPLE = "[1:, ::2]"
_WRITABLE = re.compile(r"(?:[A-Za-z_]\w*|\d+\b|[ .,:()\[\]-])*", re.ASCII)


@dataclass(frozen=True)
class Operation:
    """One link of the chain: a method's name with its numbers, or an index, which has no name."""

    name: str
    arguments: tuple
    text: str


def chain(words: str) -> list[Operation]:
    """The operations in a text like "transpose(0, 1)[1:, ::2].view(-1)"; an empty text has none.

    >>> [(o.name, o.arguments) for o in chain("t().view(2, -1)[1:]")]
    [('t', ()), ('view', (2, -1)), ('', (slice(1, None, None),))]
    """
    if len(words) > LONGEST:
        raise ValueError(f"That is {len(words)} characters long; {LONGEST} are enough for a chain here.")
    return _Reader(words).operations()


def typed(links: Sequence[Operation]) -> str:
    """The chain as one would type it.

    >>> typed(chain("x.t() [1:] .view(-1)"))
    't()[1:].view(-1)'
    """
    return "".join(link.text if not link.name else f".{link.text}" for link in links).removeprefix(".")


class _Reader:
    """What Python's own parser finds, from x to the last operation: each is known, or a mistake at its place."""

    def __init__(self, words: str) -> None:
        self.words = re.sub(r"\s", " ", words.replace("−", "-")).strip()
        has_x = re.match(r"x\b", self.words)  # as in x.view(...)
        self.added = "" if has_x else "x" if self.words[:1] in "[." else "x."
        self.code = self.added + self.words
        if (end := _WRITABLE.match(self.code).end()) < len(self.code):
            raise self._mistake(end, end + 1, f"{self.code[end]} has no meaning here")

    def operations(self) -> list[Operation]:
        try:
            return self._up_to(ast.parse(self.code, mode="eval").body)
        except SyntaxError as error:
            start = error.offset - 1 if error.offset else len(self.code)
            what = f"Python says “{error.msg}”. A chain is written like t(){INDEX_EXAMPLE}.view(-1)"
            raise self._mistake(start, max(start + 1, (error.end_offset or 0) - 1), what) from None

    def _up_to(self, node: ast.expr) -> list[Operation]:
        match node:
            case ast.Name(id="x"):
                return []
            case ast.Subscript(value=before, slice=index):
                links, name = self._up_to(before), ""
                arguments = map(self._entry, index.elts if isinstance(index, ast.Tuple) else [index])
            case ast.Call(func=ast.Attribute(value=before) as method, args=given):
                links, name = self._up_to(before), self._known(method)
                arguments = map(self._argument, given)
            case ast.Attribute(value=before):
                self._up_to(before)
                name, end = self._known(node), node.end_col_offset
                raise self._mistake(end, end, f"{name} is written like {EXAMPLES[name]}")
            case _:
                raise self._mistake(*_span(node), "only operations belong here, one after the other")
        text = self.code[before.end_col_offset : node.end_col_offset].lstrip(" .")
        return [*links, Operation(name, tuple(arguments), text)]

    def _known(self, method: ast.Attribute) -> str:
        name, end = method.attr, method.end_col_offset
        if name not in EXAMPLES:
            known = f"{INDEX_EXAMPLE}, {', '.join(EXAMPLES)}"
            raise self._mistake(end - len(name), end, f"{name} is no operation here. There are {known}")
        return name

    def _argument(self, node: ast.expr) -> int | tuple:
        return tuple(map(self._argument, node.elts)) if isinstance(node, ast.Tuple) else self._number(node)

    def _entry(self, node: ast.expr) -> int | slice | EllipsisType | None:
        match node:
            case ast.Slice():
                parts = node.lower, node.upper, node.step
                return slice(*(part and self._number(part) for part in parts))
            case ast.Constant(value=None | EllipsisType()):
                return node.value
        return self._number(node)

    def _number(self, node: ast.expr) -> int:
        start, end = _span(node)
        number = re.fullmatch(r"(-?) *(\d{1,6})", self.code[start:end])
        if not number:
            raise self._mistake(start, end, "a whole number of up to six digits belongs here")
        return int(number[1] + number[2])

    def _mistake(self, start: int, end: int, what: str) -> ValueError:
        start, end = (max(0, place - len(self.added)) for place in (start, end))
        words = self.words
        return ValueError(f"In “{words[:start]}▸{words[start:end]}◂{words[end:]}”, at ▸◂: {what}.")


def _span(node: ast.expr) -> tuple[int, int]:
    return node.col_offset, node.end_col_offset
