"""A chain of tensor operations as it is typed: read by a small grammar, looked up in a table, never run as code."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from course_utils import layout

LONGEST = 200  # characters
MOST_OPERATIONS = 12
MOST_ELEMENTS = 128  # that a tensor may have here; each is drawn
MOST_DIMENSIONS = 6

# Every operation there is here, as it is written. Those that need numbers have at least as many as the example.
EXAMPLES = {
    "transpose": "transpose(0, 1)",
    "permute": "permute(1, 0)",
    "t": "t()",
    "view": "view(2, -1)",
    "reshape": "reshape(2, -1)",
    "flatten": "flatten()",
    "unflatten": "unflatten(0, (2, -1))",
    "select": "select(0, 1)",
    "narrow": "narrow(0, 1, 2)",
    "expand": "expand(3, -1, -1)",
    "unsqueeze": "unsqueeze(0)",
    "squeeze": "squeeze()",
    "unfold": "unfold(0, 2, 1)",
    "diagonal": "diagonal()",
    "as_strided": "as_strided((3, 3), (1, 1), 0)",
    "contiguous": "contiguous()",
    "clone": "clone()",
}
INDEX_EXAMPLE = "[1:, ::2]"

Argument = int | tuple
Index = int | slice | None | type(Ellipsis)


@dataclass(frozen=True)
class Operation:
    """One link of the chain: a method's name with its numbers, or an index, which has no name."""

    name: str
    arguments: tuple
    text: str

    def applied_to(self, t: torch.Tensor) -> torch.Tensor:
        """The tensor afterwards; a ValueError with a sentence where torch refuses."""
        refused = refusal(self, t)
        if refused:
            raise ValueError(f"{self.text} is refused. {refused}")
        try:
            after = getattr(t, self.name)(*self.arguments) if self.name else t[self.arguments]
        except TypeError:
            example = EXAMPLES.get(self.name, INDEX_EXAMPLE)
            raise ValueError(f"{self.text} has the wrong numbers in it. Write it like {example}.") from None
        except (RuntimeError, IndexError, ValueError) as error:
            words = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"{self.text} on shape {tuple(t.shape)}: torch says “{words}”.") from None
        elements = math.prod(after.shape)  # numel() overflows
        if elements > MOST_ELEMENTS or after.ndim > MOST_DIMENSIONS:
            raise ValueError(
                f"{self.text} gives {after.ndim} dimensions and {elements:,} elements. "
                f"This lab draws up to {MOST_DIMENSIONS} and {MOST_ELEMENTS}: take smaller ones."
            )
        return after


def refusal(operation: Operation, t: torch.Tensor) -> str:
    """Why a view of that tensor is impossible; nothing if it is possible, or no view."""
    if operation.name != "view":
        return ""
    listed = operation.arguments
    new_shape = list(listed[0] if len(listed) == 1 and isinstance(listed[0], tuple) else listed)
    if not all(isinstance(n, int) and n >= -1 for n in new_shape) or new_shape.count(-1) > 1:
        return ""  # torch says what is wrong with it
    if -1 in new_shape:
        rest = math.prod(n for n in new_shape if n != -1)
        if not rest or t.numel() % rest:
            return f"{t.numel()} elements do not fall into groups of {rest}."
        new_shape[new_shape.index(-1)] = t.numel() // rest
    return layout.why_not_view(tuple(t.shape), t.stride(), new_shape)


# Reading.

_TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>\.\.\.|[-.,:()\[\]]))", re.ASCII)


def chain(words: str) -> list[Operation]:
    """The operations in a text like "transpose(0, 1)[1:, ::2].view(-1)"; an empty text has none.

    >>> [(o.name, o.arguments) for o in chain("t().view(2, -1)[1:]")]
    [('t', ()), ('view', (2, -1)), ('', (slice(1, None, None),))]
    """
    if len(words) > LONGEST:
        raise ValueError(f"That is {len(words)} characters long; {LONGEST} are enough for a chain here.")
    operations = list(_Reader(words.replace("−", "-")).operations())
    if len(operations) > MOST_OPERATIONS:
        raise ValueError(
            f"That is a chain of {len(operations)} operations; {MOST_OPERATIONS} are enough here."
        )
    return operations


class _Reader:
    """Goes through the tokens once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if not match:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise self._mistake(at, at + 1, f"{text[at]} has no meaning here")
            self.tokens.append((match[0].strip(), match.end() - len(match[0].strip()), match.end()))
            at = match.end()
        self.place = 0

    def operations(self) -> Iterator[Operation]:
        if self._next() == "x":  # as in x.view(...)
            self.place += 1
        while self.place < len(self.tokens):
            begun = self.tokens[self.place][1]
            if self._next() == ".":
                self.place += 1
                begun = self._here()[0]
            if self._next() == "[":
                name, arguments = "", self._index()
            else:
                name, arguments = self._method()
            yield Operation(name, arguments, self.text[begun : self.tokens[self.place - 1][2]])

    def _method(self) -> tuple[str, tuple]:
        name = self._next()
        if name not in EXAMPLES:
            known = f"{INDEX_EXAMPLE}, {', '.join(EXAMPLES)}"
            said = f"{name} is no operation of this lab" if name else "an operation is missing"
            raise self._mistake(*self._here(), f"{said}. It has {known}")
        self.place += 1
        if self._next() != "(":
            raise self._mistake(*self._here(), f"{name} is written like {EXAMPLES[name]}")
        return name, self._tuple(name)

    def _tuple(self, name: str) -> tuple:
        """Numbers, or tuples of them, between parentheses."""
        opened = self._take("(")
        found: list[Argument] = []
        while self._next() != ")":
            if found:
                self._take(",", opened)
                if self._next() == ")":
                    break  # a comma may end it
            found.append(self._tuple(name) if self._next() == "(" else self._number(opened))
        self.place += 1
        return tuple(found)

    def _index(self) -> tuple:
        opened = self._take("[")
        found: list[Index] = []
        while self._next() != "]":
            if found:
                self._take(",", opened)
                if self._next() == "]":
                    break
            found.append(self._one_index(opened))
        if not found:
            raise self._mistake(*self._here(), f"an index is written like {INDEX_EXAMPLE}")
        self.place += 1
        return tuple(found)

    def _one_index(self, opened: int) -> Index:
        if self._next() in ("...", "None"):
            self.place += 1
            return Ellipsis if self.tokens[self.place - 1][0] == "..." else None
        parts: list[int | None] = [None]
        while self._next() not in (",", "]"):
            if self._next() == ":":
                self.place += 1
                parts.append(None)
                if len(parts) > 3:
                    raise self._mistake(*self._here(-1), "a slice is start:stop:step")
            elif parts[-1] is None:
                parts[-1] = self._number(opened)
            else:
                raise self._mistake(*self._here(), "a comma is missing before this")
        return slice(*parts) if len(parts) > 1 else parts[0]

    def _number(self, opened: int) -> int:
        sign = -1 if self._next() == "-" else 1
        self.place += sign == -1
        digits = self._next()
        if not digits.isdigit():
            where = self._here() if digits else (opened, opened + 1)
            raise self._mistake(*where, "a whole number belongs here" if digits else "this is never closed")
        if len(digits) > 6:
            raise self._mistake(*self._here(), "no number here needs more than six digits")
        self.place += 1
        return sign * int(digits)

    def _take(self, sign: str, opened: int | None = None) -> int:
        if self._next() != sign:
            if not self._next() and opened is not None:
                raise self._mistake(opened, opened + 1, "this is never closed")
            raise self._mistake(*self._here(), f"{sign} belongs here")
        self.place += 1
        return self.tokens[self.place - 1][1]

    def _next(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def _here(self, back: int = 0) -> tuple[int, int]:
        place = self.place + back
        return self.tokens[place][1:] if place < len(self.tokens) else (len(self.text), len(self.text))

    def _mistake(self, start: int, end: int, what: str) -> ValueError:
        return ValueError(
            f"In “{self.text[:start]}▸{self.text[start:end]}◂{self.text[end:]}”, at ▸◂: {what}."
        )
