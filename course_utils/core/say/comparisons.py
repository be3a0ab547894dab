"""Ledgers, comparisons and choices: counts, predictions and measurements, shown in rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from course_utils.core.say.guesses import (
    Guess,
    brief,
    is_open,
    nearest_between,
    plain,
    short,
)
from course_utils.core.say.language import translated
from course_utils.core.say.open_guesses import OpenGuess
from course_utils.core.say.tables import InRows
from course_utils.core.say.wording import (
    Number,
    factor_text,
    in_words,
    listed,
    number_text,
    with_digits,
)

_LONG = 10**8  # from here on nobody reads all digits of a number in a table


# eq=False keeps Mapping's comparison: a ledger equals any mapping with the same items.
@dataclass(frozen=True, eq=False, repr=False)
class Ledger(InRows, Mapping[str, Number]):
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
        """The counts of all items, added up."""
        return sum(self.values())

    def _rows(self) -> list[list[str]]:
        """Return a head with the unit, a row for each item, and the total of several."""
        rows = [["", self.unit]]
        for item, n in self.items():
            rows.append([item, number_text(n)])
        if len(self) > 1:
            rows.append([translated("total"), number_text(self.total)])
        return rows


@dataclass(frozen=True, repr=False)
class Comparison(InRows):
    """What was predicted beside what was measured, item by item, and their ratio.

    `guess` is what `ask` has returned, or the reader's number for the first item, or a mapping with
    a number by item; `...` means "not given yet". If `guess` is what `ask` has returned, it is in
    `open_guess`, too. Guesses have a column before the other two. `heads` are the names of these
    two columns, such as ("predicted", "reported"); the words on a guess are then like "0.9 times
    what was reported". With `digits`, a number that is not whole is shown with that many
    significant digits, and no ratio is called exact: use `digits` for what is neither a count nor a
    pattern of bits. Never round beforehand. Without `has_ratio` the two numbers are estimates of a
    third one. Their ratio means nothing, so it is left out; a guess between them is spot on, and
    any other is judged by the nearer one.

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
    has_ratio: bool = field(default=True, kw_only=True)
    open_guess: OpenGuess | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Check the items, and bring unit and guess into the form that the other methods use."""
        on_one_side = set(self.predicted) ^ set(self.measured)  # the items that are not in both
        if on_one_side:
            alone = ", ".join(sorted(on_one_side))
            raise ValueError(
                f"Only the same items can be compared; these stand on one side alone: {alone}."
            )
        # A frozen dataclass refuses `self.unit = …`, even here, but not object.__setattr__.
        object.__setattr__(self, "unit", self._common_unit())
        if not self.predicted:
            raise ValueError("A comparison needs at least one item.")
        if isinstance(self.guess, OpenGuess):
            object.__setattr__(self, "open_guess", self.guess)
            object.__setattr__(self, "guess", self._said_by_item(self.guess))
        # A single number that was guessed where there are several items is for the first item.
        is_one_of_several = len(self.predicted) > 1 and not isinstance(self.guess, Mapping)
        if is_one_of_several and not is_open(self.guess):
            first = next(iter(self.predicted))
            object.__setattr__(self, "guess", {first: self.guess})

    def _said_by_item(self, guess: OpenGuess) -> dict[str, Number | str]:
        """Return what the reader has said, by item.

        If there is one item and one question, the question is about that item, whatever its name.
        """
        if len(self.predicted) == 1 and len(guess.names) == 1:
            (item,) = self.predicted
            (name,) = guess.names
            return {item: guess.said.get(name, ...)}  # `...`: not answered yet
        # In the order of the questions, whichever was answered first. It is a copy: what the reader
        # says later does not change a comparison.
        return {name: guess.said[name] for name in guess.names if name in guess.said}

    def _common_unit(self) -> str:
        """Return the unit of the comparison or of a ledger in it; empty if none of them has one.

        ValueError if they have different units.
        """
        # A mapping that is no ledger has no attribute `unit`.
        units = {getattr(side, "unit", "") for side in (self, self.predicted, self.measured)}
        units.discard("")
        if len(units) > 1:
            raise ValueError(f"Only one unit can be compared, not {' with '.join(sorted(units))}.")
        return units.pop() if units else ""

    @property
    def guesses(self) -> list[Guess]:
        """The reader's guesses, each with what was measured. What is no number is left out."""
        first, second = self.heads  # such as "predicted", and "measured" or "reported"
        # A comparison whose items have several units has no unit of its own, but the question has.
        unit = self.open_guess.unit if self.open_guess else self.unit
        guesses = []
        for item, guess in self._by_item().items():
            # A mapping may name something that is no item: see `_not_counted`.
            said = plain(guess)
            if item in self.measured and said is not None:
                measured = self.measured[item]
                kind = second
                if not self.has_ratio:  # two estimates, of which the nearer judges the guess
                    measured = nearest_between(said, self.predicted[item], measured)
                    kind = second if measured == self.measured[item] else first
                guesses.append(Guess(item, said, measured, kind, self.digits, unit))
        return guesses

    def _by_item(self) -> dict[str, object]:
        """Return the reader's guesses by item, without those that are not made yet."""
        if isinstance(self.guess, Mapping):
            by_item = self.guess
        else:  # a guess at the only item, or no guess yet: __post_init__ makes all others mappings
            by_item = dict.fromkeys(self.predicted, self.guess)
        return {item: guess for item, guess in by_item.items() if not is_open(guess)}

    def _below(self) -> str:
        """Return a sentence on each guess; on one that is no number, that it is not counted."""
        sentences = []
        for guess in self.guesses:
            words = guess.words  # such as "Close: 0.9 times what was measured"
            if len(self.predicted) > 1:  # such as "weights: close, 0.9 times what was measured"
                # A hint is empty, or begins a sentence of its own: ". Is it in the unit …?"
                how_far = f"{guess.how_far}{guess.hint}"
                words = translated(
                    "{asked}: {word}, {how_far}",
                    asked=guess.asked,
                    word=translated(guess.word),
                    how_far=how_far,
                )
            sentences.append(_sentence(words))
        return " ".join([*sentences, *self._not_counted()])

    def _below_picture(self) -> str:
        """Return what stands below the picture: `_below` without what the picture says itself.

        Of a single guess, the picture has only the word, such as "close", so a sentence says how
        far off it is. Of several guesses, the picture has both.
        """
        sentences = []
        if len(self.guesses) == 1:
            (guess,) = self.guesses
            sentences.append(_sentence(guess.words))
        return " ".join([*sentences, *self._not_counted()])

    @property
    def fold(self) -> str:
        """The table's fold: open if one row of several was guessed, for texts on the others."""
        return "<details open>" if len(self.guesses) == 1 < len(self.predicted) else "<details>"

    def _not_counted(self) -> Iterator[str]:
        """Yield a sentence on each guess that is not counted."""
        for item, guess in self._by_item().items():
            if item not in self.predicted:
                yield self._without_row(item)
            elif plain(guess) is None:
                yield translated(
                    "A guess is a plain number, without quotes or a unit; {typed} is not counted.",
                    typed=brief(guess),
                )

    def _without_row(self, item: str) -> str:
        """Return a sentence on a guess that has no row: it was asked elsewhere, or is mistyped."""
        if self.open_guess:
            return translated(
                "Your guess is for {name}. The table has no such row, so nothing is compared with "
                "the guess.",
                name=repr(item),
            )
        return translated(
            "There is nothing called {name} to guess here, but {items}.",
            name=repr(item),
            items=listed([repr(row) for row in self.predicted]),
        )

    def _picture(self) -> str:
        """Return the picture of the guesses; an empty text if there are none."""
        guesses = self.guesses
        if not guesses:
            return ""
        # Only a guess needs the picture, and a notebook has many tables without one.
        from course_utils.core.say import picture

        several = []
        for guess in guesses:
            numbers = (self.predicted[guess.asked], self.measured[guess.asked])
            several.append(picture.Shown(guess, *numbers, self.heads, not self.has_ratio))
        return picture.of_numbers(several)

    def _rows_in_short(self) -> list[list[str]]:
        """Return the rows with long numbers in a unit that fits, such as 259 GFLOPs.

        A number that was asked for stays exact: once it is guessed, the picture says it in short.
        """
        head, *rows = self._rows()
        is_alone = len(rows) == 1  # then the question is about this row, whatever its name
        at = len(head) - (3 if self.has_ratio else 2)  # of the first number
        for row, item in zip(rows, self.predicted, strict=True):
            is_asked = self.open_guess and (is_alone or item in self.open_guess.names)
            numbers = (self.predicted[item], self.measured[item])
            unit = self.unit or item.rpartition(", ")[2]  # as in "forward, FLOPs"
            is_long = max(map(abs, numbers)) >= _LONG
            if is_long and unit in ("bytes", "FLOPs") and not is_asked:
                row[at : at + 2] = [in_words(number, unit) for number in numbers]
            elif is_long and unit == "parameters":  # such as 494 million
                row[at : at + 2] = [factor_text(number) for number in numbers]
        return [head, *rows]

    def _rows(self) -> list[list[str]]:
        """Return a head, and a row for each item. Without a guess, there is no column for it."""
        guesses = {guess.asked: guess.said for guess in self.guesses}
        first, second = (translated(head) for head in self.heads)
        head = [self.unit, first, second]
        if self.has_ratio:
            head.append(f"{second} / {first}")
        if guesses:
            head.insert(1, translated("your guess"))
        rows = [head]
        for item, predicted in self.predicted.items():
            measured = self.measured[item]
            row = [item]
            if guesses:
                # Of several items, the reader may have guessed some only.
                guessed = short(number_text(guesses[item])) if item in guesses else ""
                row.append(guessed)
            row.append(number_text(predicted, self.digits))
            row.append(number_text(measured, self.digits))
            if self.has_ratio:
                row.append(_ratio_text(measured, predicted, self.digits))
            rows.append(row)
        return rows


@dataclass(frozen=True, repr=False)
class Choice(InRows):
    """Which of several options was measured, and which one the reader chose.

    >>> Choice("stops at 256", among=("fp16", "bf16"), measured="bf16", guess="fp16")
                  your guess  measured
    stops at 256        fp16      bf16
    Missed: you said fp16, and what was measured is bf16.
    """

    asked: str
    among: Sequence[str] = field(kw_only=True)
    measured: str = field(kw_only=True)
    guess: object = field(default=..., kw_only=True)
    kind: str = field(default="measured", kw_only=True)  # or another one of KINDS, such as "found"
    open_guess: OpenGuess | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Check the measured option; of an OpenGuess, take what the reader has said."""
        if self.measured not in self.among:
            raise ValueError(f"{self.measured!r} is none of {listed(self.among)}.")
        if isinstance(self.guess, OpenGuess):
            object.__setattr__(self, "open_guess", self.guess)
            # `...` means that there is no guess yet.
            object.__setattr__(self, "guess", self.guess.said.get(self.asked, ...))

    @property
    def guesses(self) -> list[Guess]:
        """The reader's choice, with what was measured; empty if the guess is no option.

        It is a list, as in a Comparison, so that callers treat both alike.
        """
        said = str(self.guess).strip().casefold()
        for option in self.among:
            if option.casefold() == said:
                return [Guess(self.asked, option, self.measured, self.kind)]
        return []

    def _below(self) -> str:
        """Return a sentence on the guess, or on the options; empty if nothing was guessed yet."""
        if is_open(self.guess):
            return ""
        if self.guesses:
            (guess,) = self.guesses
            return _sentence(guess.words)
        # Of a guess that is no text, the sentence only says that it lacks quotes.
        options = ", ".join(self.among)
        if not isinstance(self.guess, str):
            return translated("Choose one of these, in quotes: {options}.", options=options)
        return translated(
            "Choose one of these, in quotes: {options}. {typed} is not counted.",
            options=options,
            typed=brief(self.guess),
        )

    def _picture(self) -> str:
        """Return the picture of the options; an empty text if none was chosen."""
        if not self.guesses:
            return ""
        (guess,) = self.guesses
        from course_utils.core.say import picture  # only a guess needs it

        return picture.of_choice(guess, self.among)

    def _rows(self) -> list[list[str]]:
        """Return a head and one row. Without a guess, there is no column for it."""
        measured = translated(self.kind)
        if not self.guesses:
            return [["", measured], [self.asked, self.measured]]
        (guess,) = self.guesses
        head = ["", translated("your guess"), measured]
        return [head, [self.asked, guess.said, self.measured]]


def _sentence(words: str) -> str:
    """Return the words with a full stop, unless they end in a question mark."""
    # The other one is the question mark of Chinese and Japanese.
    return words if words.endswith(("?", "\uff1f")) else translated("{words}.", words=words)


def _ratio_text(measured: Number, predicted: Number, digits: int | None) -> str:
    """Return measured / predicted as text, or words if there is no such number.

    Without `digits`, a ratio close to 1 has enough of them to differ from 1, such as 1.00012.
    """
    if measured != measured and predicted != predicted:  # NaN alone differs from itself
        return translated("both NaN")
    if measured == predicted == 0:
        return translated("both 0")
    if measured == predicted and abs(measured) == math.inf:  # their ratio would be NaN
        return translated("both infinite")
    if predicted == 0:
        return translated("not defined")
    try:
        ratio = measured / predicted
    except OverflowError:  # of a whole number that is too large for a float
        return translated("out of a float's range")
    if digits:
        return with_digits(ratio, digits)
    return translated("1 exactly") if measured == predicted else _near_1(ratio)


def _near_1(ratio: float) -> str:
    """Return a ratio with four digits; with more if it is so close to 1 that these are 1.000."""
    off = abs(ratio - 1)
    digits = 4
    if 0 < off < 5e-4:
        digits = 2 - math.floor(math.log10(off))  # two of the digits in which it differs from 1
    return f"{ratio:.{digits}g}"
