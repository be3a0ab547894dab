"""What a lab is: questions, a pure function from their answers to a picture, and jobs.

The jobs may need a kernel; the rest also runs on a page, where there is none.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from course_utils.core.say import Guess, Number
from course_utils.engine.labs.fields import Field

MOST_WORDS = 600  # characters of a sentence on what went wrong; it may quote what was typed


@dataclass(frozen=True)
class View:
    """What a lab shows for one state."""

    picture: str  # SVG
    meaning: str  # one line
    table: Sequence[Sequence[str]] = ()  # row by row, its head first; it is shown folded


@dataclass(frozen=True)
class Change:
    """The result of a click or of a job: values for controls, and what is known from now on.

    `found` is a function from what was known to what is known. It is no value, because in the
    meantime something else may have been found out, or forgotten.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    found: Callable[[object], object] | None = None


@dataclass(frozen=True)
class Progress:
    """What a job says between two steps: how far it is, and what it has found."""

    fraction: Number  # of the work that is done, from 0 to 1
    report: str
    change: Change | None = None


class Lab:
    """What every lab has. Each lab is a class of its own; each panel or page has an object of it.

    `asks` is a frozen dataclass whose fields come from `fields`: they say what is legal, and what
    the controls are. A ValueError from it, or from any method, is the reader's mistake, and its
    sentence is shown. `found` is what is known at first. `rows` are the names of the controls, row
    by row.

    `jobs` and `actions` are methods by the labels of their buttons. Both take `asked` and `found`;
    a job yields Progress, and an action returns a Change. A method that needs torch imports it
    itself, because a page without a kernel has no torch. Such a page also leaves out the buttons
    named in `needs_kernel`.
    """

    name: str
    asks: type
    presets: Mapping[str, Mapping[str, object]] = {}
    rows: Sequence[Sequence[str]] = ()
    found: object = {}
    jobs: Mapping[str, Callable] = {}
    actions: Mapping[str, Callable] = {}
    needs_kernel: Collection[str] = ()

    def view(self, asked: object, found: object) -> View:
        """The picture and its words; it runs at every movement, without torch, numpy or Jupyter."""
        raise NotImplementedError

    def known(self, asked: object, found: object) -> object:
        """`found`, and with it what a kernel computes in milliseconds.

        It runs before every view, job and action.
        """
        return found

    def noted(self, asked: object, found: object) -> Callable[[object], object] | None:
        """What is known from now on because this state was reached, as in `Change.found`.

        It runs before every view.
        """
        return None

    def guesses(self, asked: object, found: object) -> Sequence[Guess]:
        """Each mark that the reader has set in the picture, beside what was measured there."""
        return ()

    def pick(self, key: str, asked: object) -> Mapping[str, object]:
        """The values that controls take when a part of the picture is clicked: its `data-key`."""
        return {}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """What is asked, by name."""
        asked = dataclasses.fields(self.asks)
        return {field.name: field.metadata["field"] for field in asked}

    def read(self, said: Mapping[str, object]) -> object:
        """What the controls say, as the dataclass; ValueError if they say something illegal."""
        answers = {}
        for name, question in self.fields.items():
            if question.asked(said):
                answers[name] = question.read(said[name])
            else:
                answers[name] = question.default
        return self.asks(**answers)


def sentence(error: Exception) -> str:
    """What went wrong: a ValueError is the reader's mistake and says so itself."""
    if not isinstance(error, ValueError):
        return f"The lab itself failed, which is not your doing: {type(error).__name__}: {error}"
    words = str(error)
    if len(words) > MOST_WORDS:
        return f"{words[:MOST_WORDS]}…"
    return words
