"""The controls of a panel that are seldom used, behind a button: at first they are folded away."""

from collections.abc import Mapping, Sequence

import ipywidgets as widgets

from course_utils.core.say.language import template, translated
from course_utils.engine.labs import controls

MORE = template("More controls")
FEWER = template("Fewer controls")
FOLDED = "course-folded"  # the class of a row that is not shown


class Fold:
    """Some rows of controls, and the button that shows them or folds them away.

    They also unfold when one of their controls changes while nobody sees it, as a preset does it.
    """

    def __init__(self, rows: Sequence[widgets.Box], first_values: Mapping[str, object]) -> None:
        """Fold the rows; `first_values` has what their controls hold at first, by the names."""
        self.button = controls.button_of(translated(MORE), self._turn)
        self._rows = rows
        self._values = dict(first_values)
        self._is_open = False
        self._show()

    def follow(self, values: Mapping[str, object]) -> None:
        """Unfold the rows if one of their controls has changed; `values` are those of all."""
        values_here = {name: values[name] for name in self._values}
        if values_here != self._values and not self._is_open:
            self._turn()
        self._values = values_here

    def _turn(self) -> None:
        self._is_open = not self._is_open
        self._show()

    def _show(self) -> None:
        self.button.description = translated(FEWER if self._is_open else MORE)
        for row in self._rows:
            if self._is_open:
                row.remove_class(FOLDED)
            else:
                row.add_class(FOLDED)
