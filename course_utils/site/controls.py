"""What a lab asks, in HTML: the same fields as in the panel, under the same names."""

import json
from collections.abc import Mapping, Sequence
from html import escape

from course_utils.labs import fields
from course_utils.labs.fields import MOST_NAMES, NEW_NAMES_SIZE, Field
from course_utils.labs.lab import Lab
from course_utils.quantities import listed
from course_utils.site.host import NEEDS_A_KERNEL, Host

MOST_POWER, STEP = 20, 0.25  # of a size's slider, as in the panel


def rows(name: str, host: Host) -> str:
    """All that can be moved, tried and done."""
    lab, state = host.lab, host.state()
    asked = "".join(
        f'<div class="course-controls">{"".join(_control(f"{name}-{one}", one, lab, state) for one in row)}</div>'
        for row in lab.rows or [lab.fields]
    )
    jobs, actions = _buttons("start", _able(lab.jobs)), _buttons("act", _able(lab.actions))
    stop = '<button type="button" data-step="stop" disabled>Stop</button>' if jobs else ""
    tried = _buttons("preset", list(lab.presets))
    done = f'<div class="course-work">{jobs}{stop}{actions}</div>' if jobs or actions else ""
    return f'{asked}<div class="course-below"><div class="course-presets">{tried}</div>{done}</div>'


def _able(works: Mapping[str, object]) -> list[str]:
    """Those that need no kernel: they are given as they are, and not by a name."""
    return [label for label, work in works.items() if not isinstance(work, str)]


def elsewhere(lab: Lab) -> str:
    """What of a lab needs a kernel, and where to get one."""
    works = [*lab.jobs.items(), *lab.actions.items()]
    away = [f"<em>{escape(label)}</em>" for label, work in works if isinstance(work, str)]
    return needs(f"Not on this page: {listed(away)}.") if away else ""


def needs(words: str) -> str:
    """What cannot be had without a kernel, and how to get one."""
    return f'<p class="needs">{words} {NEEDS_A_KERNEL} <a href="index.html#kernel">How to get one</a></p>'


def _buttons(what: str, labels: Sequence[str]) -> str:
    return "".join(
        f'<button type="button" data-{what}="{escape(one)}">{escape(one)}</button>' for one in labels
    )


def _control(place: str, name: str, lab: Lab, state: Mapping[str, Mapping[str, object]]) -> str:
    field, now = lab.fields[name], state[name]
    kind = type(field).__name__.lower()
    hidden = "" if now["asked"] else " hidden"
    return f'<div class="control {kind}" data-field="{name}"{hidden}>{_parts(place, field, now)}</div>'


def _parts(place: str, field: Field, now: Mapping[str, object]) -> str:
    label, value = escape(field.label), now["value"]
    named = f'<label for="{place}">{label}</label>'
    match field:
        case fields.Size() if field.slider:
            return _size(place, field.label, value)
        case fields.Size() | fields.Typed():
            more = (
                f' placeholder="{escape(field.placeholder)}"'
                if isinstance(field, fields.Typed)
                else ' size="9"'
            )
            return f'{named}<input id="{place}" type="text" value="{escape(str(value))}"{more} autocomplete="off">'
        case fields.Sizes():
            sizes = (_size(f"{place}-{n}", "", NEW_NAMES_SIZE) for n in range(MOST_NAMES))
            return "".join(f'<div class="size" hidden>{one}</div>' for one in sizes)
        case fields.Several():
            ticks = "".join(
                f'<label><input type="checkbox" value="{escape(one)}"{" checked" * (one in value)}> {escape(one)}</label>'
                for one in field.options
            )
            return f'<div role="group" aria-label="{label}"><span>{label}</span>{ticks}</div>'
        case fields.Choice() if field.slider_px:
            names = escape(json.dumps(list(field.options)))
            at, end = list(field.options).index(value), len(field.options) - 1
            return f'{named}{_slider(place, 0, end, 1, at, field.slider_px)} data-options="{names}"><output></output>'
        case fields.Choice() if field.menu:
            options = "".join(
                f"<option{' selected' * (one == value)}>{escape(one)}</option>" for one in field.options
            )
            return f'{named}<select id="{place}">{options}</select>'
        case fields.Choice():
            buttons = "".join(
                f'<button type="button" value="{escape(one)}" aria-pressed="{str(one == value).lower()}">'
                f"{escape(one)}</button>"
                for one in field.options
            )
            return f'<div role="group" aria-label="{label}"><span>{label}</span>{buttons}</div>'
        case fields.Whole():
            return f"{named}{_slider(place, field.least, now['end'], field.step, value, field.width_px // 2)}><output></output>"
        case fields.Tick():
            return f'<label><input type="checkbox"{" checked" * value}> {label}</label>'
    raise TypeError(f"There is no control for a {type(field).__name__}.")


def _size(place: str, label: str, value: object) -> str:
    """A logarithmic slider and a field beside it; the script sets where the slider stands."""
    label = escape(label)
    return (
        f'<label for="{place}">{label}</label>{_slider(place, 0, MOST_POWER, STEP, 0, 130)}>'
        f'<input type="text" size="9" aria-label="{label}, typed" value="{escape(str(value))}" autocomplete="off">'
    )


def _slider(place: str, least: object, most: object, step: object, value: object, width_px: int) -> str:
    return (
        f'<input id="{place}" type="range" style="width: {width_px}px" min="{least}" max="{most}" step="{step}" '
        f'value="{value}"'
    )
