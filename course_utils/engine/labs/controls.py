"""A widget for each part of a control."""

import math
from collections.abc import Sequence

import ipywidgets as widgets

from course_utils.engine.labs.control_parts import LETTER_PX, ControlPart

PLAY_MS = 150  # between two steps of a slider that moves by itself
BESIDE = {"typed", "play"}  # what stays beside the slider before it


def widget_of(part: ControlPart) -> widgets.Widget:
    """The widget that shows it."""
    width_px = part.width_px
    if part.kind == "menu":
        width_px = LETTER_PX * len(part.label) + (LETTER_PX - 1) * max(map(len, part.options)) + 40
    look = {
        "description": part.label,
        "layout": widgets.Layout(width=f"{width_px}px" if width_px else "auto"),
        "style": {"description_width": f"{part.name_px}px" if part.name_px else "initial"},
    }
    match part.kind:
        case "powers":
            powers = {
                "base": 2,
                "min": part.least,
                "max": part.most,
                "step": part.step,
                "readout": False,
            }
            return widgets.FloatLogSlider(2.0**part.value, **powers, **look)
        case "typed":
            return widgets.Text(part.value, layout=widgets.Layout(width="80px"))
        case "text":
            return widgets.Text(part.value, placeholder=part.placeholder, **look)
        case "tick":
            return widgets.Checkbox(part.value, indent=False, **look)
        case "toggle":
            return widgets.ToggleButton(
                part.value, description=part.label, layout=widgets.Layout(width="auto")
            )
        case "play":
            ends = {"min": part.least, "max": part.most, "step": part.step}
            layout = widgets.Layout(width="92px")
            return widgets.Play(
                value=part.value, interval=PLAY_MS, show_repeat=False, layout=layout, **ends
            )
        case "menu":
            return widgets.Dropdown(options=part.options, value=part.value, **look)
        case "buttons":
            look["style"] |= {"button_width": "auto"}
            return widgets.ToggleButtons(options=part.options, value=part.value, **look)
        case "slider" if part.options:
            slider = widgets.SelectionSlider(options=part.options, value=part.value, **look)
            slider.add_class(
                "course-chosen"
            )  # its readout cannot be typed into: it would mean nothing
            return slider
        case "slider":
            return widgets.IntSlider(part.value, part.least, part.most, part.step, **look)
    raise TypeError(f"There is no widget for a part of the kind {part.kind}.")


def said_by(widget: widgets.Widget) -> object:
    """A widget's value in the form of its part's."""
    return math.log2(widget.value) if isinstance(widget, widgets.FloatLogSlider) else widget.value


def show(widget: widgets.Widget, part: ControlPart) -> None:
    """Make the widget show what its part says now."""
    widget.layout.display = "none" if part.hidden else ""
    if part.kind == "typed":
        widget.tooltip = f"{part.label}, typed"
    else:
        widget.description = part.label
        # Without a tooltip, ipywidgets writes "null" there.
        widget.tooltip = f"{part.label} what was measured" if part.kind == "toggle" else part.label
    if part.kind in ("slider", "play") and not part.options:
        widget.max = part.most
    if part.kind == "play":
        return  # the page itself keeps it and its slider at one value
    value = 2.0**part.value if part.kind == "powers" and part.value is not None else part.value
    if value is not None:
        widget.value = value


def box_of(
    heading: str, parts: Sequence[ControlPart], made: Sequence[widgets.Widget]
) -> widgets.Widget:
    """All widgets of a control in one box. A slider and what is beside it stay together."""
    groups: list[list[widgets.Widget]] = []
    for part, widget in zip(parts, made, strict=True):
        groups = (
            [*groups[:-1], [*groups[-1], widget]] if part.kind in BESIDE else [*groups, [widget]]
        )
        if part.kind == "play":
            widgets.jslink((widget, "value"), (groups[-1][0], "value"))
    boxes = [group[0] if len(group) == 1 else widgets.HBox(group) for group in groups]
    if len(boxes) == 1:
        return boxes[0]
    gap = {"grid_gap": "0 12px"} if heading else {}
    label = [widgets.Label(heading)] if heading else []
    return widgets.HBox([*label, *boxes], layout=widgets.Layout(flex_flow="row wrap", **gap))
