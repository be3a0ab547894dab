"""What a lab is: questions, a pure function from their answers to a picture, and jobs.

The jobs may need a kernel; the rest also runs on a page, where there is none.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from course_utils.core.say import Guess, Number
from course_utils.core.say.language import translated
from course_utils.engine.labs.fields import Field

MOST_CHARACTERS = 600  # of a sentence on what went wrong; it may quote what was typed


@dataclass(frozen=True)
class View:
    """What a lab shows for one state."""

    picture: str  # SVG
    meaning: str  # what the picture shows, in one line of words
    table: Sequence[Sequence[str]] = ()  # row by row, its head first; it is shown folded


@dataclass(frozen=True)
class Change:
    """The result of a click or of a job: new values for controls, and what has been found out.

    `values` has the new values by the names of the fields. `found` takes what was known before,
    the lab's `found`, and returns what is known now. It is a function and not the new value,
    because while a job runs something else may be found out, or forgotten.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    found: Callable[[object], object] | None = None


@dataclass(frozen=True)
class Progress:
    """What a job reports after a step: how far it is, and what it has found."""

    fraction: Number  # of the work that is done, from 0 to 1
    report: str
    change: Change | None = None


class Lab:
    """What every lab has. Each lab is a class of its own; each panel or page has an object of it.

    `asks` is a frozen dataclass. Its fields are made by the functions of the module `fields`, and
    define the controls and the legal answers. An object of `asks`, with the reader's answers, is
    `asked` in the methods below. A ValueError from `asks` or from a method is the reader's mistake,
    and its message is shown.

    `found` is what is known beyond the answers, such as measurements; here it is what is known at
    first. `presets` has values of controls by the labels of their buttons. `rows` has the names of
    the controls, row by row; `more` has rows of those that are seldom used, and are folded at
    first. `jobs` and `actions` are methods by the labels of their buttons. Both
    take `asked` and `found`; a job yields Progress, and an action returns a Change. A method that
    needs torch imports it itself, because a page without a kernel has no torch. Such a page also
    leaves out the buttons named in `needs_kernel`.
    """

    name: str
    asks: type
    presets: Mapping[str, Mapping[str, object]] = {}
    rows: Sequence[Sequence[str]] = ()
    more: Sequence[Sequence[str]] = ()
    found: object = {}
    jobs: Mapping[str, Callable] = {}
    actions: Mapping[str, Callable] = {}
    needs_kernel: Collection[str] = ()

    def view(self, asked: object, found: object) -> View:
        """Return the picture and its words. Runs at each move, without torch, numpy or Jupyter."""
        raise NotImplementedError

    def known(self, asked: object, found: object) -> object:
        """Return `found`, completed by what only a kernel can compute, such as a model's gradients.

        The session calls this before each view, job and action, and passes the result to them as
        `found`. Since it runs at each move, it has to be quick: what takes long is a job. Most labs
        need nothing, and return `found` as it is.
        """
        return found

    def noted(self, asked: object, found: object) -> Callable[[object], object] | None:
        """Return a function that adds to `found` what this state shows, such as a solved level.

        Return None if the state shows nothing new. The session calls this before each view. It is a
        function because this `found` is completed by `known`, and only the news is kept.
        """
        return None

    def guesses(self, asked: object, found: object) -> Sequence[Guess]:
        """Return a Guess for each mark that the reader has set in the picture."""
        return ()

    def on_show(self, asked: object) -> Mapping[str, object]:
        """Return controls' new values when *Show* is pressed, such as the moment to look at."""
        return {}

    def pick(self, key: str, asked: object) -> Mapping[str, object]:
        """Return controls' new values after a click on the picture's part with this `data-key`."""
        return {}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The questions, by the names of their fields in `asks`."""
        # The functions of the module `fields` have put each question into this metadata.
        entries = dataclasses.fields(self.asks)
        return {entry.name: entry.metadata["field"] for entry in entries}

    def rows_of(self, only: Sequence[str]) -> Sequence[Sequence[str]]:
        """Return the names of the controls in each row, without those that are seldom used.

        If some controls, presets or buttons are named in `only`, these controls are in one row.
        """
        if only:
            return [[name for name in only if name in self.fields]]
        return self.rows or [list(self.fields)]

    def read(self, said: Mapping[str, object]) -> object:
        """Return the reader's answers as an object of `asks`; ValueError if one is illegal.

        `said` is what the controls hold. A question that is not asked has its default as answer.
        """
        answers = {}
        for name, question in self.fields.items():
            if question.asked(said):
                answers[name] = question.read(said[name])
            else:
                answers[name] = question.default
        return self.asks(**answers)


def sentence(error: Exception) -> str:
    """Return the message of a ValueError, which is the reader's mistake, cut if it is too long.

    For any other error, which is a fault of the lab, return a sentence that says so.
    """
    if not isinstance(error, ValueError):
        return translated(
            "The lab itself failed, which is not your doing: {kind}: {error}",
            kind=type(error).__name__,
            error=error,
        )
    message = str(error)
    if len(message) > MOST_CHARACTERS:
        return f"{message[:MOST_CHARACTERS]}…"
    return message
