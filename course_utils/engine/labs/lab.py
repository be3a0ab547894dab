"""What a lab is: questions, one pure function from their answers to a picture, and work that may need a kernel."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from course_utils.core.say import Guess, Number
from course_utils.engine.labs.fields import Field

MOST_WORDS = 600  # characters of a sentence on what went wrong; it may quote what was typed


@dataclass(frozen=True)
class View:
    """What a lab shows for one state: an SVG string, one line of meaning, and perhaps a folded table, its head first."""

    picture: str
    meaning: str
    table: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Change:
    """The result of a click or of a job: values for controls, and what is known from now on.

    `found` turns what was known into what is: in the meantime something else may have been found out, or forgotten.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    found: Callable[[object], object] | None = None


@dataclass(frozen=True)
class Progress:
    """What a job says between two steps: how far it is, in words too, and whether that changes anything."""

    fraction: Number
    report: str
    change: Change | None = None


class Lab:
    """What every lab has. Each is a class of its own, and each panel or page has an object of it.

    `asks` is a frozen dataclass whose fields come from `fields`: they say what is legal, and what the controls are.
    A ValueError from it, or from any method, is the reader's mistake, and its sentence is shown.
    `found` is what is known at first. `rows` are the names of the controls, row by row.

    `jobs` and `actions` are methods by the labels of their buttons. A job, `job(self, asked, found)`, yields Progress;
    an action returns a Change. Whoever needs torch imports it in the method: a page without a kernel has none, and
    leaves out the buttons in `needs_kernel`.
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
        """The picture. It runs at every movement, without torch, numpy and Jupyter."""
        raise NotImplementedError

    def known(self, asked: object, found: object) -> object:
        """`found`, with what a kernel computes in milliseconds. It runs before every view, job and action."""
        return found

    def noted(self, asked: object, found: object) -> Callable[[object], object] | None:
        """What is known from now on because this state was reached, as in `Change.found`. It runs before every view."""
        return None

    def guesses(self, asked: object, found: object) -> Sequence[Guess]:
        """Each mark that the reader has set in the picture, beside what was measured there."""
        return ()

    def pick(self, key: str, asked: object) -> Mapping[str, object]:
        """The values that controls take when the part of the picture with that `data-key` is clicked."""
        return {}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """What is asked, by name."""
        return {one.name: one.metadata["field"] for one in dataclasses.fields(self.asks)}

    def read(self, said: Mapping[str, object]) -> object:
        """What the controls say, as the dataclass; ValueError if they say something illegal."""
        fields = self.fields.items()
        answers = {
            name: one.read(said[name]) if one.asked(said) else one.default for name, one in fields
        }
        return self.asks(**answers)


def sentence(error: Exception) -> str:
    """What went wrong: a ValueError is the reader's mistake and says so itself."""
    if isinstance(error, ValueError):
        words = str(error)
        return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"
    return f"The lab itself failed, which is not your doing: {type(error).__name__}: {error}"
