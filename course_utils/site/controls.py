"""What a lab asks, in HTML: the same parts as in the panel, under the same names."""

import json
from collections.abc import Sequence
from html import escape

from course_utils.labs.lab import Lab
from course_utils.labs.parts import LETTER_PX, Part, grouped
from course_utils.labs.session import NEEDS_A_KERNEL, Session
from course_utils.quantities import listed


def rows(name: str, session: Session) -> str:
    """All that can be moved, tried and done."""
    lab = session.lab
    asked = "".join(
        f'<div class="course-controls">{"".join(_control(f"{name}-{one}", one, session) for one in row)}</div>'
        for row in lab.rows or [lab.fields]
    )
    jobs, actions = (
        [label for label in labels if label not in lab.needs_kernel] for labels in (lab.jobs, lab.actions)
    )
    stop = '<button type="button" data-stop disabled>Stop</button>' if jobs else ""
    done = f"{_buttons('start', jobs)}{stop}{_buttons('act', actions)}"
    work = f'<div class="course-work">{done}</div>' if done else ""
    tried = _buttons("preset", list(lab.presets))
    return f'{asked}<div class="course-below"><div class="course-presets">{tried}</div>{work}</div>'


def elsewhere(lab: Lab) -> str:
    """What of a lab needs a kernel, and where to get one."""
    away = [f"<em>{escape(one)}</em>" for one in (*lab.jobs, *lab.actions) if one in lab.needs_kernel]
    how = f'{NEEDS_A_KERNEL} <a href="index.html#kernel">How to get one</a>'
    return f'<p class="needs">Not on this page: {listed(away)}. {how}</p>' if away else ""


def _buttons(what: str, labels: Sequence[str]) -> str:
    return "".join(
        f'<button type="button" data-{what}="{escape(one)}">{escape(one)}</button>' for one in labels
    )


def _control(place: str, name: str, session: Session) -> str:
    parts, heading = session.parts[name], escape(session.lab.fields[name].heading)
    shown = [_part(f"{place}-{number}", number, part) for number, part in enumerate(parts)]
    groups = "".join(
        f'<div class="part"{" hidden" * parts[group[0]].hidden}>{"".join(shown[one] for one in group)}</div>'
        for group in grouped(parts)
    )
    if heading:
        groups = f'<div role="group" aria-label="{heading}"><span>{heading}</span>{groups}</div>'
    hidden = " hidden" * all(part.hidden for part in parts)
    return f'<div class="control" data-field="{name}"{hidden}>{groups}</div>'


def _part(place: str, number: int, part: Part) -> str:
    label, value = escape(part.label), escape(str(part.value))
    this = f'id="{place}" data-place="{number}" data-kind="{part.kind}"'
    named = f'<label for="{place}">{label}</label>'
    match part.kind:
        case "powers":
            return named + _slider(this, part.least, part.most, part.step, part.value, 130)
        case "slider" if part.options:
            at, most = part.options.index(part.value), len(part.options) - 1
            names = f'{this} data-options="{escape(json.dumps(part.options))}"'
            return f"{named}{_slider(names, 0, most, 1, at, part.width_px)}<output></output>"
        case "slider":
            slider = _slider(this, part.least, part.most, part.step, part.value, part.width_px // 2)
            return f"{named}{slider}<output></output>"
        case "typed":
            return (
                f'<input {this} type="text" aria-label="{label}, typed" value="{value}" autocomplete="off">'
            )
        case "text":
            width = f'style="width: {part.width_px - LETTER_PX * len(part.label)}px"'
            more = f'placeholder="{escape(part.placeholder)}" autocomplete="off"'
            return f'{named}<input {this} type="text" {width} value="{value}" {more}>'
        case "tick":
            return f'<label><input {this} type="checkbox"{" checked" * part.value}> {label}</label>'
        case "menu":
            options = "".join(
                f"<option{' selected' * (one == part.value)}>{escape(one)}</option>" for one in part.options
            )
            return f"{named}<select {this}>{options}</select>"
        case "buttons":
            buttons = "".join(
                f'<button type="button" value="{escape(one)}" aria-pressed="{str(one == part.value).lower()}">'
                f"{escape(one)}</button>"
                for one in part.options
            )
            return f'<div {this} role="group" aria-label="{label}"><span>{label}</span>{buttons}</div>'
    raise TypeError(f"There is no control for a part of the kind {part.kind}.")


def _slider(this: str, least: object, most: object, step: object, value: object, width_px: int) -> str:
    return (
        f'<input {this} type="range" style="width: {width_px}px" min="{least}" max="{most}" step="{step}" '
        f'value="{value}">'
    )
