"""The widgets of ipywidgets for the parts of controls."""

import math
from collections.abc import Callable, Mapping, Sequence

import ipywidgets as widgets

from course_utils.core.say.language import translated
from course_utils.engine.labs.control_parts import LETTER_PX, ControlPart

# A slider that moves by itself takes a step in PLAY_MS. With few steps it takes longer for each, so
# that it is under way for PLAY_IN_ALL_MS: each step of a short play is a picture to look at.
PLAY_MS = 150
PLAY_IN_ALL_MS = 4500
BESIDE = ("typed", "readout", "play")  # kinds of parts that stand beside the slider before them


def widget_of(part: ControlPart) -> widgets.Widget:
    """Return a new widget that shows the part."""
    if part.kind not in _MAKERS:
        raise TypeError(f"There is no widget for a part of the kind {part.kind}.")
    make = _MAKERS[part.kind]
    return make(part)


def _look(part: ControlPart) -> dict[str, object]:
    """Return arguments that most widgets take: the name, and the widths of widget and name."""
    return {
        "description": part.label,
        "layout": _width(part.width_px),
        "style": {"description_width": f"{part.name_px}px" if part.name_px else "initial"},
    }


def _width(width_px: int) -> widgets.Layout:
    """Return a layout of that width; with 0, it is as wide as the widget needs."""
    return widgets.Layout(width=f"{width_px}px" if width_px else "auto")


def _powers(part: ControlPart) -> widgets.Widget:
    """Return a slider in powers of two, without a readout, since a text field stands beside it.

    Its format is for a screen reader, to which screen.js gives the words of the hidden readout.
    """
    return widgets.FloatLogSlider(
        2.0**part.value,
        base=2,
        min=part.least,
        max=part.most,
        step=part.step,
        readout=False,
        readout_format=",.0f",
        **_look(part),
    )


def _typed(part: ControlPart) -> widgets.Widget:
    return widgets.Text(part.value, layout=_width(80))


def _readout(part: ControlPart) -> widgets.Widget:
    return widgets.Text(part.value, layout=_width(part.width_px), continuous_update=False)


def _text(part: ControlPart) -> widgets.Widget:
    return widgets.Text(part.value, placeholder=part.placeholder, **_look(part))


def _tick(part: ControlPart) -> widgets.Widget:
    return widgets.Checkbox(part.value, indent=False, **_look(part))


def _toggle(part: ControlPart) -> widgets.Widget:
    return widgets.ToggleButton(part.value, description=translated(part.label), layout=_width(0))


def _play(part: ControlPart) -> widgets.Widget:
    return widgets.Play(
        value=part.value,
        min=part.least,
        max=part.most,
        step=part.step,
        interval=_step_ms(part),
        show_repeat=False,
        layout=_width(92),
    )


def _step_ms(part: ControlPart) -> int:
    """Return the milliseconds from one step of a slider that moves by itself to the next."""
    steps = (part.most - part.least) // part.step
    return max(PLAY_MS, PLAY_IN_ALL_MS // max(1, steps))


def _menu(part: ControlPart) -> widgets.Widget:
    """Return a menu that is as wide as its name and its longest option need."""
    look = _look(part)
    longest_option = max(len(option) for option in part.options)
    # A short name may consist of wide letters, as "machine" does. In a long option, wide and narrow
    # letters average out.
    name_px = LETTER_PX * len(part.label)
    option_px = (LETTER_PX - 1) * longest_option
    arrow_px = 40  # with the space around it and the texts
    look["layout"] = _width(name_px + option_px + arrow_px)
    return widgets.Dropdown(options=part.options, value=part.value, **look)


def _buttons(part: ControlPart) -> widgets.Widget:
    look = _look(part)
    look["style"]["button_width"] = "auto"
    return widgets.ToggleButtons(options=part.options, value=part.value, **look)


def _slider(part: ControlPart) -> widgets.Widget:
    """Return a slider over whole numbers, or over the part's options if it has any."""
    if not part.options:
        return widgets.IntSlider(part.value, part.least, part.most, part.step, **_look(part))
    slider = widgets.SelectionSlider(options=part.options, value=part.value, **_look(part))
    # An option cannot be typed. By this class, screen.js finds the slider and locks its readout.
    slider.add_class("course-chosen")
    return slider


_MAKERS: Mapping[str, Callable[[ControlPart], widgets.Widget]] = {
    "powers": _powers,
    "typed": _typed,
    "readout": _readout,
    "text": _text,
    "tick": _tick,
    "toggle": _toggle,
    "play": _play,
    "menu": _menu,
    "buttons": _buttons,
    "slider": _slider,
}


def value_of(widget: widgets.Widget) -> object:
    """Return a widget's value as its part has it: for a slider in powers of two, the exponent."""
    if isinstance(widget, widgets.FloatLogSlider):
        return math.log2(widget.value)
    return widget.value


def show(widget: widgets.Widget, part: ControlPart) -> None:
    """Give the widget the visibility, name, largest value and value that its part has now."""
    widget.layout.display = "none" if part.hidden else ""
    _name(widget, part)
    if part.kind in ("slider", "play") and not part.options:
        widget.max = part.most  # it may depend on other controls
    if part.kind == "play":
        widget.interval = _step_ms(part)
        return  # the page itself keeps a play button and its slider at one value
    if part.value is None:
        return  # what was typed is no size, so the slider stays where it is
    widget.value = 2.0**part.value if part.kind == "powers" else part.value


def _name(widget: widgets.Widget, part: ControlPart) -> None:
    """Set the visible name and the tooltip; without a tooltip, ipywidgets would show "null"."""
    if part.kind in ("typed", "readout"):
        widget.tooltip = translated("{name}, typed", name=part.label)
        return
    widget.description = part.label  # in English, as the text around a lab names its controls
    widget.tooltip = part.label
    if part.kind == "toggle":  # the only one is the button *Show*
        widget.description = translated(part.label)
        hides = translated("Hide what was measured")
        widget.tooltip = hides if part.value else translated("Show what was measured")


def box_of(
    heading: str, parts: Sequence[ControlPart], made: Sequence[widgets.Widget]
) -> widgets.Widget:
    """Return one box with all widgets of a control; `made` has the widget of each part.

    A slider stays together with the text field and the play button beside it.
    """
    groups: list[list[widgets.Widget]] = []
    for part, widget in zip(parts, made, strict=True):
        if part.kind in BESIDE:
            groups[-1].append(widget)
        else:
            groups.append([widget])
        slider = groups[-1][0]
        if part.kind == "readout":
            slider.readout = False
        if part.kind == "play":
            # The page itself, without Python, keeps the two at one value. A slider of options has
            # their places.
            value = "index" if isinstance(slider, widgets.SelectionSlider) else "value"
            widgets.jslink((widget, "value"), (slider, value))
    boxes = [group[0] if len(group) == 1 else widgets.HBox(group) for group in groups]
    if len(boxes) == 1:
        return boxes[0]
    if heading:
        layout = widgets.Layout(flex_flow="row wrap", grid_gap="0 12px")
        return widgets.HBox([widgets.Label(heading), *boxes], layout=layout)
    return widgets.HBox(boxes, layout=widgets.Layout(flex_flow="row wrap"))


def button_of(label: str, action: Callable[[], None]) -> widgets.Button:
    """Return a button with that name, whose click calls `action`."""
    button = widgets.Button(description=label, layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: action())
    return button


def row_of(kind: str, parts: Sequence[widgets.Widget]) -> widgets.HBox:
    """Return the widgets in a row that wraps. `kind` is the row's class for CSS."""
    box = widgets.HBox(parts, layout=widgets.Layout(flex_flow="row wrap", align_items="center"))
    box.add_class(kind)
    return box
