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

from course_utils import measure
from course_utils.labs import controls
from course_utils.labs.draw import still
from course_utils.labs.lab import Lab, Progress
from course_utils.labs.screen import Screen
from course_utils.labs.session import Session
from course_utils.quantities import Number

REPORT_S = 0.1  # between two reports of a job: Jupyter's server drops messages that come too thickly
# Below the still picture, which is all that is seen before the cell has run, on pages and on slides.
STILL = "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."


def shows_from_threads() -> bool:
    """Whether the front end shows what a thread sends. If not, a job runs in the callback of its button."""
    return "google.colab" not in sys.modules


class Panel(widgets.VBox):
    """A lab with its controls: the picture follows them, work can be stopped, and what goes wrong is said in it."""

    _latest: ClassVar[weakref.WeakValueDictionary] = weakref.WeakValueDictionary()
    session: Session | None = None  # a panel that failed has none

    def __init__(self, lab: Lab) -> None:
        self.session = Session(lab)
        self.session.draw()  # a lab that cannot show its first state fails its cell
        self.screen = Screen(name=lab.name)
        self._lock = threading.RLock()  # callbacks, the job and cells may all move it
        self._thread: threading.Thread | None = None
        self._showing = False
        self._widgets = {
            name: [controls.widget_of(part) for part in parts] for name, parts in self.session.parts.items()
        }
        self.controls = {
            name: controls.box_of(field.heading, self.session.parts[name], self._widgets[name])
            for name, field in lab.fields.items()
        }
        for name, made in self._widgets.items():
            for place, widget in enumerate(made):
                widget.observe(partial(self._moved, name, place), names="value")
        self.screen.on_msg(self._on_message)
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")
        self._show()

        # Whoever runs the cell again can no longer reach the Stop button of the panel that it replaces.
        former = Panel._latest.get(lab.name)
        if former is not None:
            former.session.stop()
        Panel._latest[lab.name] = self

    def _rows(self) -> list[widgets.Widget]:
        """The rows of controls, and a row with the presets and the buttons."""
        lab = self.session.lab
        asked = [
            _row("course-controls", [self.controls[name] for name in row]) for row in lab.rows or [lab.fields]
        ]
        tried = [_button(label, partial(self.preset, label)) for label in lab.presets]
        self._jobs = [_button(label, partial(self.start, label)) for label in lab.jobs]
        self._stop = _button("Stop", self.stop)
        actions = [_button(label, partial(self.act, label)) for label in lab.actions]
        done = [*self._jobs, self._stop, *actions] if self._jobs else actions
        if self._jobs:
            self._jobs[0].button_style = "primary"  # what is mainly done
        return [*asked, _row("course-below", [_row("course-presets", tried), _row("course-work", done)])]

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
            self._thread = threading.Thread(target=work, daemon=True) if shows_from_threads() else None
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
        """Make a move under the lock, and show what came of it."""
        with self._lock:
            try:
                move(*of)
            finally:
                self._show()

    def _moved(self, name: str, place: int, change: Mapping[str, object]) -> None:
        with self._lock:
            if not self._showing:
                self._do(self.session.move, name, place, controls.said_by(change["owner"]))

    def _on_message(self, _: object, content: object, __: object) -> None:
        if isinstance(content, Mapping) and "pick" in content:
            self.pick(str(content["pick"]))

    def _show(self) -> None:
        """Show controls first, then the screen: its script names the sliders' handles."""
        self._showing = True
        try:
            for name, parts in self.session.parts.items():
                for widget, part in zip(self._widgets[name], parts, strict=True):
                    controls.show(widget, part)
                self.controls[name].layout.display = "none" if all(part.hidden for part in parts) else ""
        finally:
            self._showing = False
        with self.screen.hold_sync():
            for name, value in self.session.shown.items():
                setattr(self.screen, name, value)
        for button in self._jobs:
            button.disabled = self.session.running
        self._stop.disabled = not self.session.running

    def _work(self) -> None:
        """Run the job step by step. The lock is held only while a step is shown."""
        due_s = 0.0
        while self.session.running:
            step = self.session.next_step()
            if isinstance(step, Exception):
                step = _without_its_tensors(step)
            with self._lock:
                self.session.tell(step)
                on_the_way = isinstance(step, Progress) and not step.change and step.fraction < 1
                if not on_the_way or time.monotonic() >= due_s:
                    self._show()
                    due_s = time.monotonic() + REPORT_S

    # What stays on the page where no kernel runs.

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        words = f"{self.screen.name}. {self.screen.meaning}"
        bundle["text/plain"] = f"{words} (A live lab: run this cell to move its controls.)"
        png = still.still_png(still.captioned(self.screen.svg, STILL), words)
        bundle["image/png"] = base64.b64encode(png).decode()
        return bundle, {"image/png": {"alt": words}}


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
