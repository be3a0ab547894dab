"""A reader's guess before its reveal: what is asked, and what the reader has said so far."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from course_utils.core.say.language import translated
from course_utils.core.say.wording import Number, in_words, listed, number_text


@dataclass(eq=False)  # two guesses are never the same one
class OpenGuess:
    """One or several questions, and what the reader has said to each.

    `names` are the questions' names, which are also the rows of the reveal's table. `unit` is the
    unit of the numbers, and `among` has the options if the answer is a word. `said` has the
    reader's numbers or options by name. `has_gone_on` is True once the reader has pressed *Show*,
    and so sees the cells below. From then on the guess `is_closed`: it cannot be changed, because
    the answer may be in view.

    `on_change` has functions without arguments that are called after each change. `_waiting` has
    those that `when_seen` will call.
    """

    names: tuple[str, ...]
    unit: str = ""
    among: tuple[str, ...] = ()
    said: dict[str, Number | str] = field(default_factory=dict)
    has_gone_on: bool = False
    is_closed: bool = False
    on_change: list[Callable[[], None]] = field(default_factory=list, repr=False)
    _waiting: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def say(self, name: str, typed: str) -> None:
        """Take what was typed as the guess at the question `name`, in place of a former guess.

        ValueError, with a sentence for the reader, if `typed` is no answer to the question. The
        former guess is then kept.
        """
        if self.is_closed:
            raise ValueError(translated("Show was pressed, so this guess stays as it is."))
        self.said[name] = self._read(typed)
        self._changed()

    def go_on(self) -> None:
        """Note that the reader has pressed *Show*, with a guess or without one, and close it."""
        self.has_gone_on = True
        waiting = self._waiting
        self._waiting = []  # before the calls, so that each is made once only
        for call in waiting:
            call()
        self.close()

    def when_seen(self, call: Callable[[], None]) -> None:
        """Call that function when the reader has pressed *Show*: now, if that was done before.

        Such a call records the guess, for example. All cells of a notebook may have been run
        together, before the reader came to this question.
        """
        if self.has_gone_on:
            call()
        else:
            self._waiting.append(call)

    def close(self) -> None:
        """Note that the reader has seen the measured value."""
        if not self.is_closed:
            self.is_closed = True
            self._changed()

    def recall(self, name: str, said: object) -> None:
        """Take over the guess that an earlier run of the notebook has left in the record.

        What is no answer to this question is ignored.
        """
        if isinstance(said, bool) or not isinstance(said, int | float | str):
            return
        is_option = isinstance(said, str)
        asks_for_option = bool(self.among)
        if is_option != asks_for_option:
            return
        # Somebody may have edited the record, or the question may have another unit by now.
        with suppress(ValueError):
            self._read(str(said))  # raises a ValueError if it is no answer to this question
            self.said[name] = said

    def __getitem__(self, name: str) -> "OpenGuess":
        """Return a guess at one of the questions alone, such as `my_bytes["fp16"]`.

        A cell reveals one question by it. That closes the other questions, too.
        """
        if name not in self.names:
            raise KeyError(f"Nothing is asked by the name {name!r}, but {listed(self.names)}.")
        # `one` and `self` share the dictionary `said`: a guess made later in the field is in both.
        one = OpenGuess((name,), self.unit, self.among, self.said, self.has_gone_on, self.is_closed)

        def update_one() -> None:
            """Note for the one question that *Show* was pressed, or the answer seen, for all."""
            if self.has_gone_on and not one.has_gone_on:
                one.go_on()
            if self.is_closed:
                one.close()

        def close_all() -> None:
            """Close the whole guess if this one question is closed; called after its changes."""
            if one.is_closed:
                self.close()

        self.on_change.append(update_one)
        one.on_change.append(close_all)
        return one

    def in_words(self, name: str) -> str:
        """Return the guess with its unit, such as "2.4 GB"; empty if the reader has made none."""
        if name not in self.said:
            return ""
        said = self.said[name]
        if isinstance(said, str):
            return said
        return with_unit(said, self.unit)

    def typed(self, name: str) -> str:
        """Return the guess as the reader could type it; empty if there is none.

        The field shows this text, and the unit beside it: of a share such as "5 %" and of bytes
        such as "140 GB", if they mean the very number, because 140,000,000,000 cannot be read.
        """
        said = self.said.get(name, "")
        if isinstance(said, str):
            return said
        if self.unit in ("share", "bytes"):
            words = in_words(said, self.unit)
            if not words.endswith(self.unit) and self._read(words) == said:
                return words
        return number_text(said)

    def _read(self, typed: str) -> Number | str:
        """Return the option or the number that was typed; ValueError if it is no legal answer."""
        if self.among:
            return self._option(typed)
        # Only a notebook in which somebody types a guess has to load `typed`.
        from course_utils.core.say.typed import read

        return read(typed, self.unit)

    def _option(self, typed: str) -> str:
        """Return the option that was typed, in capitals or not, with quotes around it or not."""
        wanted = typed.strip().strip("\"'").casefold()
        for option in self.among:
            if option.casefold() == wanted:
                return option
        options = ", ".join(self.among)
        raise ValueError(translated("Choose one of these: {options}.", options=options))

    def _changed(self) -> None:
        """Call the functions in `on_change`, which draw the field anew or write to the record."""
        for call in list(self.on_change):  # a copy, since a call may add another function
            call()

    def __repr__(self) -> str:
        none = translated("no guess")
        guesses = [f"{name}: {self.in_words(name) or none}" for name in self.names]
        return "; ".join(guesses)


def with_unit(number: Number, unit: str) -> str:
    """Return the number with its unit; a share has none, and "percent of ..." is written as %."""
    behind = "%" if unit.startswith("percent") else unit
    if unit == "share":
        behind = ""
    return f"{number_text(number)} {behind}".strip()
