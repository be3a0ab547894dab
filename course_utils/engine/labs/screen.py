"""What a lab shows in Jupyter: a picture and its meaning, a mistake, and what a job reports."""

from pathlib import Path

import anywidget
import traitlets

from course_utils.core.say.language import template, translated
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.fields import NOT_AN_OPTION

_HERE = Path(__file__).parent
# The words of screen.js.
WORDS = (
    template("All numbers"),
    template("Progress"),
    NOT_AN_OPTION,
    template("{name}, picture"),
    template("{name}, table"),
    template("{name}, typed"),
    template("Play {name}"),
    template("The slider of {label} has no {value}: {taken}, the nearest, was taken."),
    template("What follows comes up with Show."),
    template(
        "Your guess above comes first. What follows comes up with Show, with your guess or "
        "without one."
    ),
    template("{name}: back to the start"),
    template("The kernel has been restarted. Run this cell again."),
    template(
        "{name} is a whole number from {least} to {most}. In place of “{typed}”, {taken} was taken."
    ),
    template(
        "{name} is a whole number from {least} to {most}. “{typed}” is none, so {taken} was kept."
    ),
)


def labels() -> dict[str, str]:
    """Return the words of screen.js in the reader's language, by the English."""
    return {english: translated(english) for english in WORDS}


class Screen(anywidget.AnyWidget):
    """The part of the panel below the controls. Its page's side is in screen.js."""

    # The texts of the files, and not their paths: anywidget would watch a file that is given by its
    # path, and would keep every screen for ever, because it waits for the file's changes.
    _esm = (_HERE / "screen.js").read_text(encoding="utf-8")
    _css = still.PAGE_CSS + still.stylesheet(_HERE / "screen.css")

    labels = traitlets.Dict().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    # By the labels of the sliders of options: the options' names.
    options = traitlets.Dict().tag(sync=True)
    svg = traitlets.Unicode().tag(sync=True)
    meaning = traitlets.Unicode().tag(sync=True)
    mistake = traitlets.Unicode().tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)  # whether the picture is of former controls
    table = traitlets.List().tag(sync=True)
    report = traitlets.Unicode().tag(sync=True)
    failed = traitlets.Bool(False).tag(sync=True)  # whether the report is on a failure
    progress = traitlets.Float(-1.0).tag(sync=True)  # from 0 to 1; below 0 none is shown
