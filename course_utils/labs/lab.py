"""What a lab is: questions, one pure function from their answers to a picture, and work that needs a kernel."""

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from course_utils.labs.fields import Field
from course_utils.quantities import Number

MOST_WORDS = 600  # characters of a sentence on what went wrong; it may quote what was typed


@dataclass(frozen=True)
class View:
    """What a lab shows for one state: an SVG string, one line of meaning, and perhaps a folded table, its head first."""

    picture: str
    meaning: str
    table: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Change:
    """What comes of a click or of work: values for controls, and what is known from now on.

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


@dataclass(frozen=True)
class Lab:
    """A lab, whoever hosts it.

    `asks` is a frozen dataclass whose fields come from `fields`: they say what is legal, and what the controls are.
    `view(asked, found)` runs at every movement, and wherever Python runs: it imports neither torch nor numpy nor
    ipywidgets. A ValueError from it, or from the dataclass, is the reader's mistake, and its sentence is shown.
    `found` is what has been found out so far; it begins as it stands here.

    What needs a kernel stands in the module `jobs` beside the lab, under the names that are given here.
    What needs none is given itself in place of its name, and stands in `anywhere`.
    A job, `job(asked, found)`, yields Progress; an action, `action(asked, found)`, returns a Change. `pick(key, asked)`
    is pure again: the values that controls take when a part of the picture is clicked. Three names the module may have:
    `begin()`, what is known at first; `refresh(asked, found)`, what can be measured at every movement; and `Workshop`,
    a class for those whose work outlives a job: its methods stand for the functions, and its `close` ends it.
    A job gets `found` as it is kept, an action as `refresh` has it. Both need every answer to be sensible.
    """

    name: str
    asks: type
    view: Callable[..., View]
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    jobs: Mapping[str, str | Callable] = field(default_factory=dict)
    actions: Mapping[str, str | Callable] = field(default_factory=dict)
    pick: Callable[..., Mapping[str, object]] | None = None
    found: object = field(default_factory=dict)  # nothing, by what was asked
    rows: Sequence[Sequence[str]] = ()  # of controls; one that wraps, if nothing is said

    @cached_property
    def fields(self) -> dict[str, Field]:
        """What is asked, by name."""
        return {one.name: one.metadata["field"] for one in dataclasses.fields(self.asks)}

    def read(self, said: Mapping[str, object]) -> object:
        """What the controls say, as the dataclass; or a sentence on what they cannot."""
        fields = self.fields.items()
        answers = {name: one.read(said[name]) if one.asked(said) else one.default for name, one in fields}
        return self.asks(**answers)

    def workshop(self) -> object:
        """What has the jobs: a module, or an object of its own for each panel; the lab itself, where there is none."""
        package = self.asks.__module__.rpartition(".")[0]
        if not package or importlib.util.find_spec(f"{package}.jobs") is None:
            return self
        module = importlib.import_module(f"{package}.jobs")
        return module.Workshop() if hasattr(module, "Workshop") else module


def sentence(error: Exception) -> str:
    """What went wrong: a ValueError is the reader's mistake and says so itself."""
    if isinstance(error, ValueError):
        words = str(error)
        return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"
    return f"The lab itself failed, which is not your doing: {type(error).__name__}: {error}"
