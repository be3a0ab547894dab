"""The panel: a session in Jupyter. It adds widgets, a lock, and a thread for the job."""

import base64
import contextvars
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import ipywidgets as widgets

from course_utils.core import measure, record
from course_utils.core.say import Number
from course_utils.engine.labs import controls
from course_utils.engine.labs.draw import still
from course_utils.engine.labs.fields import Drawn
from course_utils.engine.labs.lab import Lab, Progress
from course_utils.engine.labs.screen import Screen
from course_utils.engine.labs.session import Session

REPORT_S = (
    0.1  # between two reports of a job: Jupyter's server drops messages that come too thickly
)
WIDGET = "application/vnd.jupyter.widget-view+json"
# Below the still picture, which is all that is seen before the cell has run, on pages and on slides.
STILL = "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."
ANSWERED = (
    "The answer. Run its cell in JupyterLab (Shift+Enter), and the lab asks for your guess first."
)


def _shows_from_threads() -> bool:
    """Whether the front end shows what a thread sends. If not, a job runs in the callback of its button."""
    return "google.colab" not in sys.modules


class Panel(widgets.VBox):
    """A lab with its controls: the picture follows them, work can be stopped, and what goes wrong is said in it.

    If some controls are named, it has only those. It begins with the answers.
    """

    _latest: ClassVar[weakref.WeakValueDictionary] = weakref.WeakValueDictionary()
    session: Session | None = None  # a panel that failed has none

    def __init__(self, lab: Lab, *only: str, **answers: object) -> None:
        self.session, self._only = Session(lab), only
        _check_that_it_has(lab, only)
        self.session.set(answers)
        if self.session.error is not None:
            raise self.session.error  # a lab that cannot show its first state fails its cell
        self.screen = Screen(name=lab.name)
        self._lock = threading.RLock()  # callbacks, the job and cells may all move it
        self._thread: threading.Thread | None = None
        self._showing = False
        self._revealed: set[str] = (
            set()
        )  # what was asked: whoever guesses it again has seen the answer
        self._widgets = {
            name: [controls.widget_of(part) for part in parts]
            for name, parts in self.session.parts.items()
        }
        self.controls = {
            name: controls.box_of(field.heading, self.session.parts[name], self._widgets[name])
            for name, field in lab.fields.items()
        }
        for name, made in self._widgets.items():
            for place, (widget, part) in enumerate(
                zip(made, self.session.parts[name], strict=True)
            ):
                if part.kind != "play":  # it moves its slider
                    widget.observe(partial(self._moved, name, place), names="value")
        self.screen.on_msg(self._on_message)
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")
        self._show()

        # Whoever runs the cell again can no longer reach the Stop button of the panel that it replaces.
        former = Panel._latest.get((lab.name, *only))
        if former is not None:
            former.session.stop()
        Panel._latest[lab.name, *only] = self

    def _rows(self) -> list[widgets.Widget]:
        """The rows of controls, and a row with the presets and the buttons; of a figure, those that it is to have."""
        lab, only = self.session.lab, self._only
        rows = [[name for name in only if name in lab.fields]] if only else lab.rows or [lab.fields]
        asked = [_row("course-controls", [self.controls[name] for name in row]) for row in rows]

        def buttons(
            labels: Mapping[str, object], press: Callable[[str], None]
        ) -> list[widgets.Button]:
            return [
                _button(label, partial(press, label))
                for label in labels
                if label in only or not only
            ]

        tried, self._jobs = buttons(lab.presets, self.preset), buttons(lab.jobs, self.start)
        stop = "Stop" if _shows_from_threads() else "To stop: Runtime → Interrupt execution"
        self._stop = _button(stop, self.stop)
        actions = buttons(lab.actions, self.act)
        done = [*self._jobs, self._stop, *actions] if self._jobs else actions
        below = [_row("course-presets", tried), _row("course-work", done)]
        return [*asked, _row("course-below", below)] if tried or done else asked

    # What a reader does with the mouse, a cell or a test does with these.

    @property
    def values(self) -> dict[str, object]:
        """What the controls say now."""
        return dict(self.session.values)

    def set(self, **values: object) -> None:
        """Move several controls at once, and draw once."""
        self._do(self.session.set, values)

    def preset(self, label: str) -> None:
        """Do what the button of that name does."""
        self._do(self.session.preset, label)

    def pick(self, key: str) -> None:
        """Do what a click on that part of the picture does, or a pointer over it."""
        self._do(self.session.pick, key)

    def act(self, label: str) -> None:
        """Do what the button of that name does."""
        self._do(self.session.act, label)

    def start(self, label: str) -> None:
        """Start a job; one at a time. Returns at once, if it can."""
        with self._lock:  # which the job's first step waits for
            if self.session.running:
                return
            self._do(self.session.start, label)
            if not self.session.running:
                return
            # The page shows what a thread sends only if it knows which click asked for it.
            work = partial(contextvars.copy_context().run, self._work)
            self._thread = (
                threading.Thread(target=work, daemon=True) if _shows_from_threads() else None
            )
            (self._thread.start if self._thread else work)()

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self.session.stop()

    def wait(self, timeout_s: Number = 60) -> None:
        """Wait until the job has ended. If it failed, raise its exception."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise TimeoutError(f"The job is still running after {timeout_s} s.")
        if self.session.failure is not None:
            raise self.session.failure

    def close(self) -> None:
        """Take the panel off the page, and end its work."""
        super().close()
        if self.session is not None:
            self.session.stop()

    # How it is done.

    def _do(self, move: Callable[..., None], *of: object) -> None:
        """Make a move under the lock, and show what came of it. The guess that a move reveals goes into the record."""
        with self._lock:
            revealed = self.session.revealed
            try:
                move(*of)
                if self.session.revealed and not revealed:
                    guesses = self.session.guesses()
                    record.note_drawn([one for one in guesses if one.asked not in self._revealed])
                    self._revealed |= {one.asked for one in guesses}
            finally:
                self._show()

    def _moved(self, name: str, place: int, change: Mapping[str, object]) -> None:
        with self._lock:
            if not self._showing:
                self._do(self.session.move, name, place, controls.said_by(change["owner"]))

    def _on_message(self, _: object, content: object, __: object) -> None:
        if not isinstance(content, Mapping):
            return
        if "pick" in content:
            self.pick(str(content["pick"]))
        if isinstance(content.get("set"), Mapping):
            self.set(**{str(name): levels for name, levels in content["set"].items()})

    def _show(self) -> None:
        """Show controls first, then the screen: its script names the sliders' handles."""
        self._showing = True
        try:
            for name, parts in self.session.parts.items():
                for widget, part in zip(self._widgets[name], parts, strict=True):
                    controls.show(widget, part)
                self.controls[name].layout.display = (
                    "none" if all(part.hidden for part in parts) else ""
                )
        finally:
            self._showing = False
        with self.screen.hold_sync():
            for name, value in self.session.shown.items():
                setattr(self.screen, name, value)
        for button in self._jobs:
            button.disabled = self.session.running
        self._point_out_what_is_due()
        # A click that comes while a callback runs is heard after it.
        self._stop.disabled = not (self.session.running and _shows_from_threads())
        waits = "shown" in self._only and not self.session.revealed
        (self.add_class if waits else self.remove_class)("course-waits")

    def _point_out_what_is_due(self) -> None:
        """One button at most is coloured: Show when a guess stands in the picture, and else what is mainly done."""
        asks = "shown" in self.session.lab.fields
        if asks:
            drawn = (
                name for name, field in self.session.lab.fields.items() if isinstance(field, Drawn)
            )
            is_guessed = any(
                level is not None for name in drawn for level in self.session.values[name]
            )
            is_due = is_guessed and not self.session.revealed
            self._widgets["shown"][0].button_style = "primary" if is_due else ""
        if self._jobs:
            may_work = not asks or self.session.revealed
            self._jobs[0].button_style = "primary" if may_work else ""

    def _work(self) -> None:
        """Run the job step by step. The lock is held only while a step is shown."""
        due_s = 0.0
        while self.session.running:
            try:
                step = self.session.next_step()
            except KeyboardInterrupt:  # of a job in a callback
                step = ValueError("Stopped.")
            if isinstance(step, Exception):
                step = _without_its_tensors(step)
            with self._lock:
                self.session.tell(step)
                on_the_way = isinstance(step, Progress) and not step.change and step.fraction < 1
                if not on_the_way or time.monotonic() >= due_s:
                    self._show()
                    due_s = time.monotonic() + REPORT_S

    # What stays on the page where no kernel runs.

    _ipython_display_ = None  # by which ipywidgets 7 shows a widget alone

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        _, colabs = self.screen._repr_mimebundle_(
            **kwargs
        )  # where Colab finds the code of such a screen
        shown, caption = self._still()
        words = f"{self.screen.name}. {shown['meaning']}"
        png = still.still_png(still.captioned(shown["svg"], caption), words)
        bundle = {
            WIDGET: {"version_major": 2, "version_minor": 0, "model_id": self.model_id},
            "text/plain": f"{words} (A live lab: run this cell to move its controls.)",
            "image/png": base64.b64encode(png).decode(),
        }
        return bundle, colabs | {"image/png": {"alt": words}}

    def _still(self) -> tuple[Mapping[str, object], str]:
        """What the still picture shows, and the line below it.

        Whoever reads a stored notebook has no Show button, so a guess stands there with its answer. A reader's own copy
        is opened again by somebody who may not have guessed yet: there the question stays.
        """
        asks = "shown" in self.session.lab.fields and "shown" in (
            self._only or self.session.lab.fields
        )
        if not asks or self.session.revealed or record.workspace():
            return self.session.shown, STILL
        answered = self.session.as_revealed()
        return (
            (self.session.shown, STILL) if answered.shown["mistake"] else (answered.shown, ANSWERED)
        )


def _check_that_it_has(lab: Lab, only: Sequence[str]) -> None:
    named = [*lab.fields, *lab.presets, *lab.jobs, *lab.actions]
    if strangers := [name for name in only if name not in named]:
        raise ValueError(
            f"{lab.name} has no control {strangers[0]!s:.40}. It has: {', '.join(named)}."
        )


def _button(label: str, action: Callable[[], None]) -> widgets.Button:
    button = widgets.Button(description=label, layout=widgets.Layout(width="auto"))
    button.on_click(lambda _: action())
    return button


def _row(kind: str, parts: Sequence[widgets.Widget]) -> widgets.HBox:
    box = widgets.HBox(parts, layout=widgets.Layout(flex_flow="row wrap", align_items="center"))
    box.add_class(kind)
    return box


def _without_its_tensors(error: Exception) -> Exception:
    """The error to keep. If memory ran out, it is a new one: the old traceback would keep tensors alive."""
    why = measure.memory_ran_out(error)
    return ValueError(f"{why} Make it smaller, and try again.") if why else error
