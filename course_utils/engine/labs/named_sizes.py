"""A size for each name in what the reader typed, on sliders of powers of two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.core.say.language import template
from course_utils.engine.labs.control_parts import ControlPart, size_moved, size_parts
from course_utils.engine.labs.fields import Field, Said, asks

NEW_NAMES_SIZE = 4  # what a name's slider shows before the reader has moved it
MOST_NAMES = 8  # for which a Sizes field has sliders


@dataclass(frozen=True, kw_only=True)
class Sizes(Field):
    """A size for each name that `names` returns, such as each dimension of an einsum pattern.

    The size of a name that is no longer there is remembered, in case that the name comes back.
    """

    types = (Mapping,)
    refusal = template("{label} cannot be {value}. It is a size for each name.")
    names: Callable[[Said], Sequence[str]]

    def parts(self, held: Mapping[str, object], said: Said) -> list[ControlPart]:
        """Return a slider and a text field for each of MOST_NAMES names; unused ones are hidden."""
        names = list(self.names(said))[:MOST_NAMES]
        unused = [""] * (MOST_NAMES - len(names))
        parts = []
        for name in names + unused:
            size = held.get(name, NEW_NAMES_SIZE)
            parts += size_parts(name, size, slider_px=145, name_px=64, hidden=not name)
        return parts

    def moved(self, held: Mapping[str, object], part: ControlPart, to: object) -> dict[str, object]:
        """Return all sizes after the part, which has the name of one of them, was moved."""
        size = held.get(part.label, NEW_NAMES_SIZE)
        return {**held, part.label: size_moved(size, part, to)}


def sizes(label: str, default: Mapping[str, int], names: Callable[[Said], Sequence[str]]) -> Any:
    """Ask for a size for each of the names."""
    return asks(Sizes(label=label, default=dict(default), names=names))
