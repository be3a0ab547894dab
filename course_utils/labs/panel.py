"""The panel: a lab in Jupyter."""

import base64
import reprlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from html import escape
from typing import ClassVar

import ipywidgets as widgets
import traitlets

from course_utils.labs.controls import control_of, follow
from course_utils.labs.draw import still
from course_utils.labs.lab import Change, Lab, View, sentence
from course_utils.labs.runner import Runner
from course_utils.labs.screen import Screen
from course_utils.quantities import Number

END_AT_MOST_S = 5.0  # that a job is given to end, before what it works with is taken away
# Below the still picture, which is all that is seen before the cell has run, on pages and on slides.
STILL = "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."


class Panel(widgets.VBox):
    """A lab with its controls: the picture follows them, work can be stopped, and what goes wrong is said in it."""

    _latest: ClassVar[weakref.WeakValueDictionary] = weakref.WeakValueDictionary()
    _workshop: object = None  # a panel that failed has none

    def __init__(self, lab: Lab) -> None:
        self.lab, self.screen = lab, Screen(name=lab.name)
        self._lock = threading.RLock()  # callbacks, workers and cells may all draw
        self._runner = Runner(self.screen, self._lock, self._redraw, self._show_busy)
        self._stop_button = self._button("Stop", self.stop)
        self._stop_button.disabled = True
        self._moving = False
        self.controls = {name: control_of(field) for name, field in lab.fields.items()}
        self.error: Exception | None = None  # of the latest movement; a job keeps its own
        self._workshop = lab.workshop()
        self.found = getattr(self._workshop, "begin", lambda: lab.found)()
        self._refresh = getattr(self._workshop, "refresh", lambda asked, found: found)

        self._follow()
        self._first = self.values
        self.screen.show(self._show(**self.values))  # a lab that cannot show its first state fails its cell

        for control in self.controls.values():
            control.observe(self._moved, names="value")
        self.screen.on_msg(self._on_message)
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")

        # Whoever runs the cell again can no longer reach the Stop button of the panel that it replaces.
        former = Panel._latest.get(lab.name)
        if former is not None:
            former.retire()
        Panel._latest[lab.name] = self

    def _work(self, label: str, among: Mapping[str, str | Callable], what: str) -> Callable:
        work = _named(label, among, what)
        return getattr(self._workshop, work) if isinstance(work, str) else work

    # How it looks.

    def _rows(self) -> list[widgets.Widget]:
        """What is asked, what can be tried, what can be done."""
        rows = self.lab.rows or [self.controls]
        asked = [_row("course-controls", [self.controls[name] for name in row]) for row in rows]
        tried = [self._button(label, partial(self.preset, label)) for label in self.lab.presets]
        jobs = [self._button(label, partial(self.start, label)) for label in self.lab.jobs]
        actions = [self._button(label, partial(self.act, label)) for label in self.lab.actions]
        done = [*jobs, self._stop_button, *actions] if jobs else actions
        if jobs:
            jobs[0].button_style = "primary"  # what is mainly done
        self._job_buttons = jobs
        return [*asked, _row("course-below", [_row("course-presets", tried), _row("course-work", done)])]

    def _button(self, label: str, action: Callable[[], None]) -> widgets.Button:
        button = widgets.Button(description=label, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _: action())
        return button

    # What a reader does with the mouse, a cell or a test does with these.

    @property
    def values(self) -> dict[str, object]:
        """What the controls say now."""
        return {name: control.value for name, control in self.controls.items()}

    def set(self, **values: object) -> None:
        """Move several controls at once, and draw once."""
        with self._lock, self._mistakes_are_shown():
            self._forget_report()
            self._apply(Change(values))

    def preset(self, label: str) -> None:
        """Do what the button of that name does; nonsense in other controls gives way to what they began with."""
        with self._lock, self._mistakes_are_shown():
            values = _named(label, self.lab.presets, "preset")
            self._forget_report()
            try:
                self._apply(Change(values))
            except ValueError:
                self._apply(Change({**self._first, **values}))

    def pick(self, key: str) -> None:
        """Do what a click on that part of the picture does, or a pointer over it."""
        with self._lock, self._mistakes_are_shown():
            # A late click may mean a part that has gone.
            there = self.lab.pick and f'data-key="{escape(key)}"' in self.screen.svg
            self._apply(Change(self.lab.pick(key, self._asked()) if there else {}))

    def act(self, label: str) -> None:
        """Do what the button of that name does."""
        with self._lock, self._mistakes_are_shown():
            asked = self._asked()
            action = self._work(label, self.lab.actions, "action")
            self._apply(action(asked, self._refresh(asked, self.found)))

    def start(self, label: str) -> None:
        """Start a job; one at a time. Returns at once."""
        with self._lock, self._mistakes_are_shown():
            if not self._runner.busy:
                job = self._work(label, self.lab.jobs, "job")
                self._runner.start(job(self._asked(), self.found))

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self._runner.stop()

    def wait(self, timeout_s: Number = 60) -> None:
        """Until the job has ended; if it failed, with its exception."""
        self._runner.wait(timeout_s)

    def retire(self) -> None:
        """Another of its name takes its place: its work ends, and what that worked with goes."""
        self.stop()
        if hasattr(self._workshop, "close"):
            with suppress(Exception):  # a job's failure is told where somebody waits for it
                self.wait(END_AT_MOST_S)
            self._workshop.close()

    def close(self) -> None:
        """Take the panel off the page, and end its work."""
        super().close()
        self.retire()

    # How it is done.

    def _asked(self) -> object:
        return self.lab.read(self.values)

    def _show(self, **values: object) -> View:
        asked = self.lab.read(values)
        return self.lab.view(asked, self._refresh(asked, self.found))

    def _apply(self, change: Change) -> None:
        """Move controls, know more; and draw once."""
        self._move(change.values)
        if change.found is not None:
            self.found = change.found(self.found)
        self.screen.show(self._show(**self.values))
        self.error = None

    def _forget_report(self) -> None:
        """What the last job found, or why it failed, is of what was asked then."""
        if not self._runner.busy:
            self.screen.show_report("")

    def _redraw(self, change: Change) -> None:
        """Show what a job has found, whatever the controls say by now."""
        with self._mistakes_are_shown():
            self._apply(change)

    def _move(self, values: Mapping[str, object]) -> None:
        for name in values:
            _named(name, self.controls, "control")
        self._moving = True
        try:
            for name in self.controls:  # in their order: where one ends depends on those before it
                if name in values:
                    self.controls[name].value = values[name]
                    self._follow()
            self._follow()  # what the reader has moved, too
        except traitlets.TraitError as error:
            why = f"{error}".rstrip(".")
            raise ValueError(f"{name} cannot be {reprlib.repr(values[name])}. {why}.") from error
        finally:
            self._moving = False

    def _moved(self, _: object) -> None:
        with self._lock:
            if not self._moving:
                self.set()

    def _follow(self) -> None:
        for name, field in self.lab.fields.items():
            follow(self.controls[name], field, self.values)

    @contextmanager
    def _mistakes_are_shown(self) -> Iterator[None]:
        """Whatever goes wrong inside stands in the panel as a sentence. ipywidgets would log it, at best."""
        try:
            yield
        except Exception as error:
            self.error = error
            self.screen.mistake = sentence(error)
            if not isinstance(error, ValueError):
                raise

    def _on_message(self, _: object, content: object, __: object) -> None:
        if isinstance(content, Mapping) and "pick" in content:
            self.pick(str(content["pick"]))

    def _show_busy(self, busy: bool) -> None:
        for button in self._job_buttons:
            button.disabled = busy
        self._stop_button.disabled = not busy

    # What stays on the page where no kernel runs.

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        words = f"{self.screen.name}. {self.screen.meaning}"
        bundle["text/plain"] = f"{words} (A live lab: run this cell to move its controls.)"
        png = still.still_png(still.captioned(self.screen.svg, STILL), words)
        bundle["image/png"] = base64.b64encode(png).decode()
        return bundle, {"image/png": {"alt": words}}


def _row(kind: str, parts: Sequence[widgets.Widget]) -> widgets.HBox:
    box = widgets.HBox(parts, layout=widgets.Layout(flex_flow="row wrap", align_items="center"))
    box.add_class(kind)
    return box


def _named(label: str, among: Mapping[str, object], what: str) -> object:
    if label not in among:
        raise ValueError(f"This lab has no {what} {label[:40]}. It has: {', '.join(among) or 'none'}.")
    return among[label]
