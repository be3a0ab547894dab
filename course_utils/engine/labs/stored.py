"""What a notebook stores of a lab: a still picture, and words in place of the live view."""

import base64
from collections.abc import Collection, Mapping

from course_utils.core import record
from course_utils.core.say.language import in_a_row, in_english, template, translated
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.session import Session

# The MIME type by which a front end finds a live widget.
WIDGET = "application/vnd.jupyter.widget-view+json"
# The line below the still picture, which is all that there is before the cell has run, on pages and
# on slides. ANSWERED takes its place where the picture shows the answer to a guess.
STILL = template(
    "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."
)
ANSWERED = template(
    "The answer. Run its cell in JupyterLab (Shift+Enter), and the lab asks for your guess first."
)
Bundle = tuple[dict[str, object], dict[str, object]]


def bundle_of(
    session: Session, only: Collection[str], model_id: str, metadata: Mapping[str, object]
) -> Bundle:
    """Return what is stored by MIME type, and the metadata with those of the picture added.

    The panel has only the controls in `only`, or all if it is empty; `model_id` is its widget's.
    """
    shown, caption = _shown(session, only)
    name = translated(session.lab.name)
    words = translated("{lab}. {meaning}", lab=name, meaning=shown["meaning"])
    drawing = still.captioned(shown["svg"], translated(caption))
    if not still.can_draw(drawing):
        drawing = _in_english(session, only) or drawing
    png = still.still_png(drawing, words)
    how = translated("(A live lab: run this cell to move its controls.)")
    bundle = {
        WIDGET: {"version_major": 2, "version_minor": 0, "model_id": model_id},
        "text/plain": in_a_row(words, how),
        "image/png": base64.b64encode(png).decode(),
    }
    return bundle, {**metadata, "image/png": {"alt": words, "width": still.WIDTH}}


def _in_english(session: Session, only: Collection[str]) -> str:
    """Return the drawing with English words; "" if the present state cannot be drawn."""
    with in_english():
        shown, caption = _shown(session.anew(), only)
        return still.captioned(shown["svg"], caption) if shown["svg"] else ""


def _shown(session: Session, only: Collection[str]) -> tuple[Mapping[str, object], str]:
    """Return what the session shows, for the still picture, and the line below the picture.

    A stored notebook has no Show button, so where the lab asks for a guess, the picture has the
    answer. A reader's own copy may be opened again before they have guessed, so there the
    answer is left out.
    """
    fields = session.lab.fields
    has_show = "shown" in fields and (not only or "shown" in only)
    if has_show and not session.revealed and not record.workspace():
        answered = session.as_revealed()
        if not answered.shown["mistake"]:  # else the answer cannot be drawn in this state
            return answered.shown, ANSWERED
    return session.shown, STILL
