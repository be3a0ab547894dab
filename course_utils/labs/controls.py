"""A widget for each kind of field."""

import math
from collections.abc import Sequence
from contextlib import suppress

import ipywidgets as widgets
import traitlets

from course_utils.labs import fields
from course_utils.labs.fields import Field, Said, size_of
from course_utils.quantities import Number

STEP = 0.25  # of a size's slider, in powers of two
_AT_THE_LEFT = {"description_width": "initial"}
LETTER_PX = 8  # no narrower, so that names are not cut


def control_of(field: Field) -> widgets.Widget:
    """The widget that asks for it; what it says is its `value`."""
    match field:
        case fields.Size() if field.slider:
            return SizeControl(field.label, field.default, slider_px=field.slider_px)
        case fields.Size():
            return TypedSize(**_described(field, LETTER_PX * len(field.label) + 80))
        case fields.Sizes():
            return SizesControl(field.default)
        case fields.Several():
            return SeveralControl(field.label, field.options, field.default)
        case fields.Choice() if field.slider_px:
            options, sliding = list(field.options.items()), _described(field, field.slider_px)
            slider = widgets.SelectionSlider(options=options, **sliding)
            slider.add_class("course-chosen")  # its readout cannot be typed into: it would mean nothing
            return slider
        case fields.Choice() if field.menu:
            width = LETTER_PX * len(field.label) + (LETTER_PX - 1) * max(map(len, field.options)) + 40
            return widgets.Dropdown(options=list(field.options.items()), **_described(field, width))
        case fields.Choice():
            buttons = _described(field, 0, button_width="auto")
            return widgets.ToggleButtons(options=list(field.options.items()), **buttons)
        case fields.Whole():
            # Beyond its value, so that it does not stand at the end before `follow` knows the end.
            limits = {"min": field.least, "max": field.default + 1, "step": field.step}
            return widgets.IntSlider(**limits, **_described(field, field.width_px))
        case fields.Tick():
            return _tick(field.label, field.default)
        case fields.Typed():
            return widgets.Text(placeholder=field.placeholder, **_described(field, field.width_px))
    raise TypeError(f"There is no control for a {type(field).__name__}.")


def follow(control: widgets.Widget, field: Field, said: Said) -> None:
    """What a control shows in view of the other answers: itself, its end, its names."""
    control.layout.display = "" if field.asked(said) else "none"
    if isinstance(field, fields.Whole):
        at_the_end, control.max = control.value == control.max, field.end(said)
        if at_the_end:
            control.value = control.max
    if isinstance(field, fields.Sizes):
        with suppress(ValueError):  # the lab says so; the sliders stay
            control.show_names(field.names(said))


def _described(field: Field, width_px: int, **style: str) -> dict[str, object]:
    width = f"{width_px}px" if width_px else "auto"
    look = {"layout": widgets.Layout(width=width), "style": _AT_THE_LEFT | style}
    return {"value": field.default, "description": field.label, **look}


def _tick(label: str, value: bool) -> widgets.Checkbox:
    return widgets.Checkbox(value, description=label, indent=False, layout=widgets.Layout(width="auto"))


def _on_slider(size: Number) -> Number:
    """The slider's nearest step."""
    return 2 ** (STEP * round(math.log2(size) / STEP))


class TypedSize(widgets.Text):
    """A size in a field of its own: a number is shown as one would type it."""

    value = traitlets.CUnicode().tag(sync=True)


class SizeControl(widgets.HBox):
    """A logarithmic slider and a field beside it; `value` is the number, or whatever was typed.

    The slider stands on one of its steps, next to a number that was typed: in the page it would go there by itself,
    and say so, as if it had been dragged.
    """

    value = traitlets.Union([traitlets.Int(), traitlets.Unicode()])

    def __init__(self, name: str, value: int, *, name_px: int = 0, slider_px: int = 170) -> None:
        name_px = name_px or LETTER_PX * len(name) + 12
        self._slider = widgets.FloatLogSlider(
            _on_slider(value),
            base=2,
            min=0,
            max=20,
            step=STEP,
            readout=False,
            layout=widgets.Layout(width=f"{slider_px + name_px}px"),
            style={"description_width": f"{name_px}px"},
        )
        self._field = widgets.Text(str(value), continuous_update=True, layout=widgets.Layout(width="80px"))
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

    # Either moves the other by the value, and no further: then both are where it is.

    def _dragged(self, _: object) -> None:
        dragged = self._slider.value
        if math.isfinite(dragged) and _on_slider(dragged) != self._place():  # ipywidgets lets a NaN pass
            self.value = round(dragged)

    def _typed(self, _: object) -> None:
        if self._field.value != str(self.value):
            self.value = self._field.value

    def _show(self, _: object) -> None:
        self._field.value = str(self.value)
        self._slider.value = self._place() or self._slider.value

    def _place(self) -> Number | None:
        """Where on the slider the value is; what is no size has none, and the slider stays."""
        with suppress(ValueError):  # the lab says so
            return _on_slider(size_of(self.name, self.value))


class SizesControl(widgets.HBox):
    """A size for each of some names, which may change; `value` remembers the sizes of names that have gone."""

    value = traitlets.Dict(traitlets.Union([traitlets.Int(), traitlets.Unicode()]))

    def __init__(self, value: dict[str, int]) -> None:
        self._sizes = [
            SizeControl("", fields.NEW_NAMES_SIZE, name_px=64, slider_px=145)
            for _ in range(fields.MOST_NAMES)
        ]
        self._names: Sequence[str] = ()
        for control in self._sizes:
            control.observe(self._moved, names="value")
        super().__init__(self._sizes, value=value, layout=widgets.Layout(flex_flow="row wrap"))
        self.observe(self._follow, names="value")

    def show_names(self, names: Sequence[str]) -> None:
        """Show these, and hide the rest."""
        self._names = names
        self._follow(None)

    def _follow(self, _: object) -> None:
        for place, control in enumerate(self._sizes):
            used = place < len(self._names)
            control.layout.display = "" if used else "none"
            if used:
                control.name = self._names[place]
                control.value = self._size(control.name)

    def _moved(self, change: dict[str, object]) -> None:
        name = change["owner"].name
        if self._size(name) != change["new"]:  # by the reader, then
            self.value = self.value | {name: change["new"]}

    def _size(self, name: str) -> int | str:
        return self.value.get(name, fields.NEW_NAMES_SIZE)


class SeveralControl(widgets.HBox):
    """A tick for each of a few; `value` names those that are ticked, in order."""

    value = traitlets.Tuple()

    def __init__(self, label: str, options: Sequence[str], value: Sequence[str]) -> None:
        self._ticks = {name: _tick(name, name in value) for name in options}
        for one in self._ticks.values():
            one.observe(self._ticked, names="value")
        layout = widgets.Layout(flex_flow="row wrap", grid_gap="0 12px")
        super().__init__([*([widgets.Label(label)] if label else []), *self._ticks.values()], layout=layout)
        self.value = tuple(value)
        self.observe(self._show, names="value")

    def _ticked(self, change: dict[str, object]) -> None:
        if change["new"] != (change["owner"].description in self.value):  # by the reader, then
            self.value = tuple(name for name, one in self._ticks.items() if one.value)

    def _show(self, _: object) -> None:
        for name, one in self._ticks.items():
            one.value = name in self.value
