"""Ledgers, comparisons, choices and tables: what is shown as rows."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.core.say.guesses import Guess, brief, is_open, plain, short
from course_utils.core.say.wording import Number, listed, number_text, with_digits


class _Shown:
    """Something that is shown as a table, in a notebook and as text, perhaps with a line below it."""

    def __repr__(self) -> str:
        return "\n".join(filter(None, (_text_table(self._rows()), self._below())))

    def _repr_html_(self) -> str:
        below = self._below()
        return _html_table(self._rows()) + (f"\n<p>{html.escape(below)}</p>" if below else "")

    def _below(self) -> str:
        return ""


@dataclass(frozen=True, eq=False, repr=False)  # equal to any mapping with the same items
class Ledger(_Shown, Mapping[str, Number]):
    """Items and their counts, all in one unit.

    >>> Ledger({"weights": 96, "biases": 8}, unit="bytes").total
    104
    """

    items_by_name: Mapping[str, Number]
    unit: str = ""

    def __getitem__(self, item: str) -> Number:
        if item not in self.items_by_name:
            raise KeyError(
                f"There is no item {item!r} in this ledger. There are: {', '.join(self)}."
            )
        return self.items_by_name[item]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    @property
    def total(self) -> Number:
        return sum(self.values())

    def _rows(self) -> list[list[str]]:
        rows = [["", self.unit], *([item, number_text(n)] for item, n in self.items())]
        return [*rows, ["total", number_text(self.total)]] if len(self) > 1 else rows


@dataclass(frozen=True, repr=False)
class Comparison(_Shown):
    """What was predicted beside what was measured, item by item, and their ratio.

    The reader's own number, if there is one, stands in front: of the first item, or by item. `...` stands for "not
    given yet". `heads` names the two columns where another kind of number stands there, such as ("predicted",
    "reported"); a guess is held against the second, and told "0.9 times what was reported". With `digits`,
    what is not a whole number is shown with so many, and nothing is called exact: so show what is no count and no
    pattern of bits. Never round beforehand.

    >>> Comparison({"error": 0.03707}, {"error": 0.03741}, digits=2)
           predicted  measured  measured / predicted
    error      0.037     0.037                   1.0
    """

    predicted: Mapping[str, Number]
    measured: Mapping[str, Number]
    unit: str = ""
    guess: object = field(default=..., kw_only=True)
    digits: int | None = field(default=None, kw_only=True)
    heads: tuple[str, str] = field(default=("predicted", "measured"), kw_only=True)

    def __post_init__(self) -> None:
        apart = set(self.predicted) ^ set(self.measured)
        if apart:
            alone = ", ".join(sorted(apart))
            raise ValueError(
                f"Only the same items can be compared; these stand on one side alone: {alone}."
            )
        units = {
            side.unit for side in (self, self.predicted, self.measured) if hasattr(side, "unit")
        } - {""}
        if len(units) > 1:
            raise ValueError(f"Only one unit can be compared, not {' with '.join(sorted(units))}.")
        object.__setattr__(self, "unit", units.pop() if units else "")
        if not self.predicted:
            raise ValueError("A comparison needs at least one item.")
        if (
            len(self.predicted) > 1
            and not isinstance(self.guess, Mapping)
            and not is_open(self.guess)
        ):
            object.__setattr__(self, "guess", {next(iter(self.predicted)): self.guess})

    @property
    def guesses(self) -> list[Guess]:
        """The reader's numbers, beside what was measured."""
        said = (
            (item, plain(guess)) for item, guess in self._by_item().items() if item in self.measured
        )
        return [
            Guess(item, n, self.measured[item], self.heads[1], self.digits)
            for item, n in said
            if n is not None
        ]

    def _by_item(self) -> dict[str, object]:
        """The reader's numbers by item, without those that are still open."""
        by_item = (
            self.guess
            if isinstance(self.guess, Mapping)
            else dict.fromkeys(self.predicted, self.guess)
        )
        return {item: guess for item, guess in by_item.items() if not is_open(guess)}

    def _below(self) -> str:
        one = len(self.predicted) == 1
        said = [
            _sentence(f"Your guess{'' if one else f' of {guess.asked}'} is {guess.words}")
            for guess in self.guesses
        ]
        for item, guess in self._by_item().items():
            if item not in self.predicted:
                said.append(
                    f"There is nothing called {item!r} to guess here, but {listed(list(self.predicted))}."
                )
            elif plain(guess) is None:
                said.append(
                    f"A guess is a plain number, without quotes or a unit; {brief(guess)} is not counted."
                )
        return " ".join(said)

    def _rows(self) -> list[list[str]]:
        guesses = {guess.asked: guess.said for guess in self.guesses}
        asked = ["your guess"] if guesses else []
        rows = [[self.unit, *asked, *self.heads, " / ".join(reversed(self.heads))]]
        for item, p in self.predicted.items():
            m = self.measured[item]
            guess = (
                [short(number_text(guesses[item])) if item in guesses else ""] if guesses else []
            )
            shown = (number_text(n, self.digits) for n in (p, m))
            rows.append([item, *guess, *shown, _ratio_text(m, p, self.digits)])
        return rows


@dataclass(frozen=True, repr=False)
class Choice(_Shown):
    """The one of several options that was measured, and the one that the reader chose.

    >>> Choice("stops at 256", among=("fp16", "bf16"), measured="bf16", guess="fp16")
                  your guess  measured
    stops at 256        fp16      bf16
    Your guess is not what was measured.
    """

    asked: str
    among: Sequence[str] = field(kw_only=True)
    measured: str = field(kw_only=True)
    guess: object = field(default=..., kw_only=True)

    def __post_init__(self) -> None:
        if self.measured not in self.among:
            raise ValueError(f"{self.measured!r} is none of {listed(self.among)}.")

    @property
    def guesses(self) -> list[Guess]:
        """The reader's choice beside what was measured, if there is one."""
        chosen = [one for one in self.among if one.casefold() == str(self.guess).strip().casefold()]
        return [Guess(self.asked, one, self.measured) for one in chosen[:1]]

    def _below(self) -> str:
        if is_open(self.guess):
            return ""
        if not self.guesses:
            typed = f" {brief(self.guess)} is not counted." if isinstance(self.guess, str) else ""
            return f"Choose one of these, in quotes: {', '.join(self.among)}.{typed}"
        return _sentence(f"Your guess is {self.guesses[0].words}")

    def _rows(self) -> list[list[str]]:
        said = [guess.said for guess in self.guesses]
        return [["", *["your guess" for _ in said], "measured"], [self.asked, *said, self.measured]]


@dataclass(frozen=True, repr=False)
class Table(_Shown):
    """Rows of words, the head first."""

    rows: list[list[str]]

    def _rows(self) -> list[list[str]]:
        return self.rows


def side_by_side(
    columns: Mapping[str, Mapping[str, Number | str]], *, digits: int | None = None
) -> Table:
    """A column for each of them, and a row for each item of the first. What is no whole number has `digits`.

    >>> side_by_side({"one": {"bytes": 8192, "fits": "yes"}, "two": {"bytes": 16384, "fits": "no"}})
             one     two
    bytes  8,192  16,384
    fits     yes      no
    """
    items = next(iter(columns.values()))
    rows = [[item, *(_cell(column[item], digits) for column in columns.values())] for item in items]
    return Table([["", *columns], *rows])


def _cell(value: Number | str, digits: int | None) -> str:
    return value if isinstance(value, str) else number_text(value, digits)


def _sentence(words: str) -> str:
    return words if words.endswith("?") else f"{words}."


def _ratio_text(measured: Number, predicted: Number, digits: int | None) -> str:
    if measured != measured and predicted != predicted:
        return "both NaN"
    if measured == predicted and (not measured or math.isinf(measured)):
        return "both infinite" if measured else "both 0"
    if not predicted:
        return "not defined"
    if digits:
        return with_digits(measured / predicted, digits)
    if measured == predicted:
        return "1 exactly"
    off = measured / predicted - 1
    return f"1 {off:+.1e}" if abs(off) < 5e-4 else f"{1 + off:.4g}"


def _text_table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: list[str]) -> str:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        return "  ".join([row[0].ljust(len(first)), *rest]).rstrip()

    return "\n".join(map(line, rows))


def _html_table(rows: list[list[str]]) -> str:
    def line(row: list[str], tag: str) -> str:
        cells = (
            (tag if cell else "td", html.escape(cell)) for cell in row
        )  # a heading says something
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for tag, cell in cells) + "</tr>"

    head, *body = rows
    lines = [line(head, "th"), *(line(row, "td") for row in body)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"
