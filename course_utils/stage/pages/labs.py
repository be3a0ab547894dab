"""A lab as HTML, before its script runs: its picture, and what the script makes controls of."""

import json
from collections.abc import Iterable, Sequence
from html import escape

from course_utils.core.say import listed
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.lab import Lab
from course_utils.engine.labs.session import NEEDS_A_KERNEL
from course_utils.stage.pages.host import Precomputed, answer_of, session_of

NOT_YET = template(
    "A still picture. The lab moves where the browser runs scripts and WebAssembly, "
    "on a page that a web server sends."
)


def lab(
    name: str,
    known: Precomputed | None,
    begun: dict[str, list[object]],
    only: Sequence[str] = (),
    *,
    linked: bool = False,
) -> str:
    """Return the HTML of a lab before its script runs: its picture, and the picture's meaning.

    It has the description from which the script makes controls, too. `begun` has the moves that the
    lab begins with. If `only` has names, the lab has no other controls. If it is `linked`, the
    page's address holds what its controls hold.
    """
    session = session_of(name, known)
    shown = answer_of(session, begun)
    the_lab = session.lab
    controls = _controls(the_lab, shown["parts"], only)
    lab_name = translated(the_lab.name)
    picture_name = translated("{name}, picture", name=lab_name)
    opened = (
        f'<div class="course-lab" data-lab="{name}" data-begun="{escape(json.dumps(begun))}" '
        f'data-controls="{escape(json.dumps(controls))}" {"data-linked " if linked else ""}'
        f'role="group" aria-label="{escape(lab_name)}">'
    )
    meaning = f'<div class="course-meaning">{escape(shown["meaning"])}</div>'
    picture = (
        f'<div class="course-picture" role="group" aria-label="{escape(picture_name)}">'
        f"{shown['svg']}</div>"
    )
    # In a figure, which has only some of the controls, nobody misses buttons that need a kernel.
    needs_kernel = "" if only else _buttons_elsewhere(the_lab)
    lines = [
        opened,
        '<div class="rows" hidden></div>',
        f'<p class="course-note" role="status">{escape(translated(NOT_YET))}</p>',
        f'<div class="course-screen">{meaning}{picture}</div>',
        f"{needs_kernel}</div>",  # the end of `opened`
    ]
    return "\n".join(lines)


def _controls(the_lab: Lab, parts: object, only: Sequence[str]) -> dict[str, object]:
    """Return the description from which lab.js makes controls: rows of fields, labels of buttons.

    "preset", "start" and "act" are the session's methods that the buttons call.
    """
    return {
        "rows": the_lab.rows_of(only),
        "more": [] if only else the_lab.more,
        "parts": parts,
        "headings": {name: field.heading for name, field in the_lab.fields.items()},
        "preset": _buttons(the_lab, the_lab.presets, only),
        "start": _buttons(the_lab, the_lab.jobs, only),
        "act": _buttons(the_lab, the_lab.actions, only),
    }


def _buttons(the_lab: Lab, labels: Iterable[str], only: Sequence[str]) -> list[str]:
    """Return the labels of the buttons that a page can have: those that need no kernel."""
    wanted = [label for label in labels if not only or label in only]
    return [label for label in wanted if label not in the_lab.needs_kernel]


def _buttons_elsewhere(the_lab: Lab) -> str:
    """Return a sentence on the lab's buttons that need a kernel; "" if none does."""
    labels = [label for label in (*the_lab.jobs, *the_lab.actions) if label in the_lab.needs_kernel]
    if not labels:
        return ""
    names = listed([f"<em>{escape(translated(label))}</em>" for label in labels])
    sentence = translated(
        "Not on this page: {names}. {needs_a_kernel} {how}",
        names=names,
        needs_a_kernel=translated(NEEDS_A_KERNEL),
        how=f'<a href="index.html#kernel">{escape(translated("How to get one"))}</a>',
    )
    return f'<p class="needs">{sentence}</p>'
