"""Sizes that can be dragged or typed: one, or one for each name of a pattern."""

import math
import re
from collections.abc import Sequence

import ipywidgets as widgets
import traitlets

from course_utils.quantities import Number

LARGEST = 2**20
DEFAULT = 4  # of a name that is new
STEP = 0.25  # of the slider, in powers of two


def size_of(name: str, said: int | str) -> int:
    """What was typed, as a whole number.

    >>> size_of("B", "1,024"), size_of("B", "2^14"), size_of("B", 3)
    (1024, 16384, 3)
    """
    words = str(said).strip()
    power = re.fullmatch(r"2 *(?:\^|\*\*) *(\d{1,3})", words, re.ASCII)
    if power or re.fullmatch(r"\d{1,12}|\d{1,3}([,_]\d{3})+", words, re.ASCII):
        size = 2 ** int(power[1]) if power else int(words.replace(",", ""))
        if 1 <= size <= LARGEST:
            return size
    raise ValueError(
        f"{name} is a size: a whole number from 1 to 1,048,576, like 1024 or 2^10. “{str(said)[:40]}” is none."
    )


def _steps(size: Number) -> int:
    return round(math.log2(size) / STEP)


class SizeControl(widgets.HBox):
    """A logarithmic slider and a field beside it; `value` is the number, or whatever was typed.

    The slider stands on one of its steps, next to a number that was typed: in the page it would go there by itself,
    and say so, as if it had been dragged.
    """

    value = traitlets.Union([traitlets.Int(), traitlets.Unicode()])

    def __init__(self, name: str, value: int, *, name_px: int = 20) -> None:
        self._slider = widgets.FloatLogSlider(
            2 ** (STEP * _steps(value)),
            base=2,
            min=0,
            max=20,
            step=STEP,
            readout=False,
            layout=widgets.Layout(width=f"{170 + name_px}px"),
            style={"description_width": f"{name_px}px"},
        )
        self._field = widgets.Text(str(value), continuous_update=True, layout=widgets.Layout(width="80px"))
        self._following = False
        self.name = name
        self._slider.observe(self._dragged, names="value")
        self._field.observe(self._typed, names="value")
        super().__init__([self._slider, self._field], value=value)
        self.observe(self._show, names="value")

    @property
    def name(self) -> str:
        """What it is the size of."""
        return self._slider.description

    @name.setter
    def name(self, name: str) -> None:
        self._slider.description = name
        self._field.tooltip = f"{name}, typed"

    def _dragged(self, change: dict[str, object]) -> None:
        if self._following or not math.isfinite(self._slider.value):  # ipywidgets lets a NaN pass
            return
        if self._slider_steps() != self._steps_of_value():
            self.value = round(self._slider.value)

    def _typed(self, change: dict[str, object]) -> None:
        if not self._following:
            self.value = self._field.value

    def _show(self, change: dict[str, object]) -> None:
        """Move slider and field to where the value is, without being moved by them."""
        self._following = True
        try:
            if self._field.value != str(self.value):
                self._field.value = str(self.value)
            steps = self._steps_of_value()
            if steps not in (None, self._slider_steps()):
                self._slider.value = 2 ** (STEP * steps)
        finally:
            self._following = False

    def _slider_steps(self) -> int | None:
        return _steps(self._slider.value) if math.isfinite(self._slider.value) else None

    def _steps_of_value(self) -> int | None:
        try:
            return _steps(size_of(self.name, self.value))
        except ValueError:
            return None  # the lab says so; the slider stays


class SizesControl(widgets.HBox):
    """A size for each of some names, which may change; `value` remembers the sizes of names that have gone."""

    value = traitlets.Dict(traitlets.Union([traitlets.Int(), traitlets.Unicode()]))
    most_names = 8

    def __init__(self, value: dict[str, int]) -> None:
        self._sizes = [SizeControl("", 4, name_px=64) for _ in range(self.most_names)]
        self._names: Sequence[str] = ()
        self._following = False
        for control in self._sizes:
            control.observe(self._moved, names="value")
        super().__init__(self._sizes, value=value, layout=widgets.Layout(flex_flow="row wrap"))
        self.observe(self._follow, names="value")

    def show_names(self, names: Sequence[str]) -> None:
        """Show these, and hide the rest."""
        self._names = names[: self.most_names]
        self._follow(None)

    def _follow(self, _: object) -> None:
        self._following = True
        try:
            for place, control in enumerate(self._sizes):
                used = place < len(self._names)
                control.layout.display = "" if used else "none"
                if used:
                    control.name = self._names[place]
                    control.value = self.value.get(control.name, DEFAULT)
        finally:
            self._following = False

    def _moved(self, change: dict[str, object]) -> None:
        if not self._following:
            gone = [(name, size) for name, size in self.value.items() if name not in self._names]
            shown = {name: self.value[name] for name in self._names if name in self.value}
            self.value = dict(gone[-50:]) | shown | {change["owner"].name: change["new"]}
