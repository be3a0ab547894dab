"""A size that can be dragged or typed."""

import re

import ipywidgets as widgets
import traitlets

LARGEST = 2**20


def size_of(name: str, said: int | str) -> int:
    """What was typed, as a whole number.

    >>> size_of("B", "1,024"), size_of("B", "2^14"), size_of("B", 3)
    (1024, 16384, 3)
    """
    words = str(said).strip().replace(",", "").replace("_", "")
    power = re.fullmatch(r"2 *(?:\^|\*\*) *(\d{1,3})", words, re.ASCII)
    if power or re.fullmatch(r"\d{1,12}", words, re.ASCII):
        size = 2 ** int(power[1]) if power else int(words)
        if 1 <= size <= LARGEST:
            return size
    raise ValueError(
        f"{name} is a size: a whole number from 1 to 1,048,576, like 1024 or 2^10. “{str(said)[:40]}” is none."
    )


class SizeControl(widgets.HBox):
    """A logarithmic slider and a field beside it; `value` is the number, or whatever was typed."""

    value = traitlets.Union([traitlets.Int(), traitlets.Unicode()])

    def __init__(self, name: str, value: int) -> None:
        self._name = name
        self._slider = widgets.FloatLogSlider(
            value,
            base=2,
            min=0,
            max=20,
            step=0.25,
            description=name,
            readout=False,
            layout=widgets.Layout(width="190px"),
            style={"description_width": "20px"},
        )
        self._field = widgets.Text(
            str(value), continuous_update=True, tooltip=f"{name}, typed", layout=widgets.Layout(width="80px")
        )
        self._following = False
        self._slider.observe(self._dragged, names="value")
        self._field.observe(self._typed, names="value")
        super().__init__([self._slider, self._field], value=value)
        self.observe(self._show, names="value")

    def _dragged(self, change: dict[str, object]) -> None:
        if not self._following:
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
            try:
                size = size_of(self._name, self.value)
            except ValueError:
                return  # the lab says so; the slider stays
            if round(self._slider.value) != size:
                self._slider.value = size
        finally:
            self._following = False
