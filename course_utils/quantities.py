"""What was counted, what was predicted, what the reader guessed, and how to say it.

A `Ledger` is one account: named items in one unit. A `Comparison` sets a predicted ledger beside
a measured one. Predictions and measurements meet nowhere else. A `Choice` is of words instead of numbers.
"""

import html
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Number = int | float


@dataclass(frozen=True)
class Guess:
    """What was asked, what the reader said, and what was measured: numbers, or words to choose from."""

    asked: str
    said: Number | str
    measured: Number | str

    @property
    def off(self) -> float:
        """How many times too large or too small; 1 where it is right, infinite where no factor would mend it.

        >>> Guess("bytes", 50, 100).off, Guess("bytes", 100, 100).off, Guess("format", "fp16", "bf16").off
        (2.0, 1.0, inf)
        """
        ratio = self._ratio
        return max(ratio, 1 / ratio) if ratio else math.inf

    @property
    def words(self) -> str:
        """How far off it was, as the end of a sentence.

        >>> Guess("bytes", 90, 100).words
        '0.9 times what was measured'
        """
        if self.off == 1:
            return "right"
        if self.off < 1.005:
            return "right, but for less than 0.5 %"
        return (
            f"{times_text(self._ratio)} what was measured" if self.off < math.inf else "not what was measured"
        )

    @property
    def _ratio(self) -> float:
        """What was said, as a share of what was measured; 0 for none."""
        if self.said == self.measured:
            return 1.0
        try:
            ratio = self.said / self.measured
        except (TypeError, ZeroDivisionError, OverflowError):
            return 0.0
        return ratio if 0 < ratio < math.inf else 0.0


class _Shown:
    """What is a table where it is shown, in a notebook and elsewhere, and perhaps a line below it."""

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
            raise KeyError(f"There is no item {item!r} in this ledger. There are: {', '.join(self)}.")
        return self.items_by_name[item]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    @property
    def total(self) -> Number:
        """The sum of all items."""
        return sum(self.values())

    def _rows(self) -> list[list[str]]:
        rows = [["", self.unit], *([item, number_text(n)] for item, n in self.items())]
        return [*rows, ["total", number_text(self.total)]] if len(self) > 1 else rows


@dataclass(frozen=True, repr=False)
class Comparison(_Shown):
    """What was predicted beside what was measured, item by item, and their ratio.

    The reader's own number, if there is one, stands in front: of the first item, or by item. `...` stands for "not
    given yet". With `digits`,
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

    def __post_init__(self) -> None:
        apart = set(self.predicted) ^ set(self.measured)
        if apart:
            raise ValueError(
                "Only the same items can be compared; "
                f"these stand on one side alone: {', '.join(sorted(apart))}."
            )
        units = {side.unit for side in (self, self.predicted, self.measured) if hasattr(side, "unit")} - {""}
        if len(units) > 1:
            raise ValueError(f"Only one unit can be compared, not {' with '.join(sorted(units))}.")
        object.__setattr__(self, "unit", units.pop() if units else "")
        if not self.predicted:
            raise ValueError("A comparison needs at least one item.")
        if len(self.predicted) > 1 and not isinstance(self.guess, Mapping) and not _is_open(self.guess):
            object.__setattr__(self, "guess", {next(iter(self.predicted)): self.guess})

    @property
    def exact(self) -> bool:
        """Whether every prediction is the measurement, to the last digit."""
        return all(self.predicted[item] == self.measured[item] for item in self.predicted)

    @property
    def guesses(self) -> list[Guess]:
        """The reader's numbers, beside what was measured."""
        said = ((item, _plain(guess)) for item, guess in self._by_item().items() if item in self.measured)
        return [Guess(item, n, self.measured[item]) for item, n in said if n is not None]

    def _by_item(self) -> dict[str, object]:
        """What the reader put in, but for what is open still."""
        by_item = self.guess if isinstance(self.guess, Mapping) else dict.fromkeys(self.predicted, self.guess)
        return {item: guess for item, guess in by_item.items() if not _is_open(guess)}

    def _below(self) -> str:
        one = len(self.predicted) == 1
        said = [
            f"Your guess{'' if one else f' of {guess.asked}'} is {guess.words}." for guess in self.guesses
        ]
        for item, guess in self._by_item().items():
            if item not in self.predicted:
                said.append(
                    f"There is nothing called {item!r} to guess here, but {listed(list(self.predicted))}."
                )
            elif _plain(guess) is None:
                said.append(
                    f"A guess is a plain number, without quotes or a unit; {_brief(guess)} is not counted."
                )
        return " ".join(said)

    def _rows(self) -> list[list[str]]:
        guesses = {guess.asked: guess.said for guess in self.guesses}
        asked = ["your guess"] if guesses else []
        rows = [[self.unit, *asked, "predicted", "measured", "measured / predicted"]]
        for item, p in self.predicted.items():
            m = self.measured[item]
            guess = [_short(number_text(guesses[item])) if item in guesses else ""] if guesses else []
            shown = (number_text(n, self.digits) for n in (p, m))
            rows.append([item, *guess, *shown, _ratio_text(m, p, self.digits)])
        return rows


@dataclass(frozen=True, repr=False)
class Choice(_Shown):
    """Which of several it was, as measured, and which one the reader had chosen.

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
        if _is_open(self.guess):
            return ""
        if not self.guesses:
            return f"Choose one of these, in quotes: {', '.join(self.among)}. {_brief(self.guess)} is not counted."
        return f"Your guess is {self.guesses[0].words}."

    def _rows(self) -> list[list[str]]:
        said = [guess.said for guess in self.guesses]
        return [["", *["your guess" for _ in said], "measured"], [self.asked, *said, self.measured]]


def _is_open(guess: object) -> bool:
    """Whether nothing is guessed yet."""
    return guess is ... or guess is None


def _plain(guess: object) -> Number | None:
    """One of Python's own numbers, or None for what is no real number."""
    if isinstance(guess, bool) or not isinstance(guess, numbers.Real):
        return None
    return int(guess) if isinstance(guess, numbers.Integral) else float(guess)


def _brief(guess: object) -> str:
    return _short(" ".join(repr(guess).split()))


def _short(words: str) -> str:
    return words if len(words) <= 40 else f"{words[:30]} …"


@dataclass(frozen=True, repr=False)
class Table(_Shown):
    """Rows of words, the head first."""

    rows: list[list[str]]

    def _rows(self) -> list[list[str]]:
        return self.rows


def _ratio_text(measured: Number, predicted: Number, digits: int | None) -> str:
    if measured != measured and predicted != predicted:
        return "both NaN"
    if measured == predicted and (not measured or math.isinf(measured)):
        return "both infinite" if measured else "both 0"
    if not predicted:
        return "not defined"
    if digits:
        return _with_digits(measured / predicted, digits)
    if measured == predicted:
        return "1 exactly"
    off = measured / predicted - 1
    return f"1 {off:+.1e}" if abs(off) < 5e-4 else f"{1 + off:.4g}"


def count_text(n: int, of: str) -> str:
    """So many of something, in full up to a million billions.

    >>> count_text(1, "step"), count_text(8192, "step"), count_text(2**80, "step")
    ('1 step', '8,192 steps', '1.21e+24 steps')
    """
    return f"{n:,} {of}{'s' * (n != 1)}" if n < 10**15 else f"{n:.3g} {of}s"


def listed(names: Sequence[object]) -> str:
    """Names as a sentence has them; nothing for none.

    >>> listed(["model", "step", "data"])
    'model, step and data'
    """
    *first, last = map(str, names or [""])
    return f"{', '.join(first)} and {last}" if first else last


def times_text(ratio: Number) -> str:
    """How many times as much, in three digits or in full.

    >>> times_text(15.77), times_text(13_400_000)
    ('15.8 times', '13,400,000 times')
    """
    return f"{three_digits(ratio)} times"


def three_digits(n: Number) -> str:
    """Three digits, or a whole number in full.

    >>> three_digits(1.2345), three_digits(13_400_000.4)
    ('1.23', '13,400,000')
    """
    return f"{n:,.0f}" if abs(n) >= 99.95 else f"{n:.3g}"


def number_text(n: Number, digits: int | None = None) -> str:
    """Counts in full with separators, other numbers to six digits, or to so many and with their zeros.

    >>> number_text(2_415_919_104), number_text(0.0265123), number_text(0.9998, 2)
    ('2,415,919,104', '0.0265123', '1.0')
    """
    if isinstance(n, float) and n.is_integer() and abs(n) < 1e15:
        n = int(n)
    if isinstance(n, int):
        return f"{n:,}"
    return _with_digits(n, digits) if digits else f"{n:.6g}"


def _with_digits(n: Number, digits: int) -> str:
    return f"{n:#.{digits}g}".removesuffix(".")


def bytes_text(n: Number) -> str:
    """A number of bytes in full, in binary units and in decimal ones.

    >>> bytes_text(2304 * 2**20)
    '2,415,919,104 bytes = 2.25 GiB = 2.42 GB'
    """
    if abs(n) < 1000:
        return f"{number_text(n)} bytes"
    return f"{number_text(n)} bytes = {_scaled(n, 1024, _BINARY)}B = {_scaled(n, 1000, _DECIMAL)}B"


def decimal_bytes_text(n: Number) -> str:
    """A number of bytes in decimal units alone, as data sheets have them.

    >>> decimal_bytes_text(80_000_000_000), decimal_bytes_text(96)
    ('80 GB', '96 bytes')
    """
    return bytes_text(n).split(" = ")[-1]


def flops_text(n: Number) -> str:
    """A count of floating-point operations.

    >>> flops_text(33_554_432)
    '33.6 MFLOPs'
    """
    return f"{_scaled(n, 1000, _DECIMAL)}FLOPs"


def rate_text(per_sec: Number, of: str = "FLOP") -> str:
    """A rate.

    >>> rate_text(989.5e12), rate_text(3.35e12, "B")
    ('990 TFLOP/s', '3.35 TB/s')
    """
    return f"{_scaled(per_sec, 1000, _DECIMAL)}{of}/s"


def seconds_text(seconds: Number) -> str:
    """A time, from nanoseconds to years, in the unit a person would use.

    >>> seconds_text(0.00123), seconds_text(12_435_328)
    ('1.23 ms', '144 days')
    """
    for smallest, size, unit in _TIMES:
        if abs(seconds) >= 0.9995 * smallest:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds * 1e9)} ns"


_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_TIMES = (  # from this many seconds on, in units of so many seconds
    (2 * 365.25 * 86400, 365.25 * 86400, "years"),
    (2 * 86400, 86400, "days"),
    (2 * 3600, 3600, "hours"),
    (2 * 60, 60, "minutes"),
    (1, 1, "s"),
    (1e-3, 1e-3, "ms"),
    (1e-6, 1e-6, "µs"),
)


def _scaled(n: Number, base: int, prefixes: tuple[str, ...]) -> str:
    power = 0
    while abs(n / base**power) >= base - 0.5 and power < len(prefixes) - 1:
        power += 1
    return f"{three_digits(n / base**power)} {prefixes[power]}"


def _text_table(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: list[str]) -> str:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        return "  ".join([row[0].ljust(len(first)), *rest]).rstrip()

    return "\n".join(map(line, rows))


def _html_table(rows: list[list[str]]) -> str:
    def line(row: list[str], tag: str) -> str:
        cells = ((tag if cell else "td", html.escape(cell)) for cell in row)  # a heading says something
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for tag, cell in cells) + "</tr>"

    head, *body = rows
    lines = [line(head, "th"), *(line(row, "td") for row in body)]
    return "<table>\n" + "\n".join(lines) + "\n</table>"
