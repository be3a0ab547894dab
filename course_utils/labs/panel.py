"""The panel that every lab stands on. A lab is its controls, one pure function, and its picture."""

import base64
import contextvars
import reprlib
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import ClassVar, TypeVar

import anywidget
import ipywidgets as widgets
import traitlets

from course_utils import measure
from course_utils.figures import COLOURS
from course_utils.labs import svg as svg_words
from course_utils.measure import Step
from course_utils.quantities import Number

Result = TypeVar("Result")
REPORT_S = 0.1  # between two reports of a job
LONGEST_S = 240.0  # that a job may take, whatever its own limits say; seen between two of its steps
# Below the still picture, which is all that is seen before the cell has run, on pages and on slides.
STILL = "A picture of a live lab. To move its controls, run its cell in JupyterLab (Shift+Enter)."
MOST_WORDS = 600  # characters of a sentence on what went wrong; it may quote what was typed
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class View:
    """What a lab shows for one state: an SVG string, one line of meaning, and perhaps a table, its head first."""

    picture: str
    meaning: str
    table: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Progress:
    """What a long job says between two steps: how far it is, in words too, and whether there is more to see."""

    fraction: Number
    report: str
    changed: bool = False


def as_progress(
    steps: Generator[Step, None, Result], *, at_most_s: Number, begun: Number = 0, share: Number = 1
) -> Generator[Progress, None, Result]:
    """A measurement's steps as a job's: from `begun` on its share of the whole, and ended when time is up."""
    deadline = time.monotonic() + at_most_s
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            if time.monotonic() > deadline:
                raise ValueError(f"Ended after {at_most_s:.0f} s, which is the most that this lab waits.")
            yield Progress(begun + share * min(0.98, step.fraction), step.report)
    finally:
        steps.close()


@dataclass(frozen=True)
class Download:
    """A file for the reader to keep; the browser saves it."""

    name: str
    text: str


class Screen(anywidget.AnyWidget):
    """The part of the panel that is ours to draw: see screen.js."""

    # As words: of a path, anywidget would watch the file, and keep every screen for ever that waits for its changes.
    _esm = (_HERE / "screen.js").read_text(encoding="utf-8")
    _css = svg_words.PAGE_CSS + Template((_HERE / "screen.css").read_text(encoding="utf-8")).substitute(
        COLOURS
    )

    name = traitlets.Unicode().tag(sync=True)
    svg = traitlets.Unicode().tag(sync=True)
    meaning = traitlets.Unicode().tag(sync=True)
    mistake = traitlets.Unicode().tag(sync=True)
    table = traitlets.List().tag(sync=True)
    report = traitlets.Unicode().tag(sync=True)
    failed = traitlets.Bool(False).tag(sync=True)  # whether the report tells of a failure
    progress = traitlets.Float(-1.0).tag(sync=True)


class Panel(widgets.VBox):
    """Controls, a picture that follows them, and work that can be stopped.

    `show(**values)` turns the controls' values into a View. It runs at every movement, so it must be
    quick; a ValueError from it is the reader's mistake, and its sentence appears in the panel. A job is
    a generator over the same values that yields Progress: it runs in a thread, and Stop ends it at the
    next yield. Where it says that something changed, `show` draws again, with the values of that moment.
    An action is done at once, and may return a Download, or new values for controls. `pick(key, **values)`
    answers with such values when a part of the picture is clicked, or pointed at.
    """

    _latest: ClassVar[weakref.WeakValueDictionary] = weakref.WeakValueDictionary()

    def __init__(
        self,
        name: str,
        show: Callable[..., View],
        controls: Mapping[str, widgets.Widget],
        *,
        presets: Mapping[str, Mapping[str, object]] | None = None,
        jobs: Mapping[str, Callable[..., Iterator[Progress]]] | None = None,
        actions: Mapping[str, Callable[..., Download | Mapping[str, object] | None]] | None = None,
        pick: Callable[..., Mapping[str, object]] | None = None,
    ) -> None:
        self.controls = dict(controls)
        self.screen = Screen(name=name)
        self.error: Exception | None = None  # of the latest movement; a job keeps its own
        self._show, self._pick = show, pick
        self._first = self.values
        self._presets, self._jobs, self._actions = dict(presets or {}), dict(jobs or {}), dict(actions or {})
        self._lock = threading.RLock()  # callbacks, workers and cells may all draw
        self._moving = False
        self._worker: threading.Thread | None = None
        self._job_error: Exception | None = None
        self._stopping = threading.Event()

        self._display(show(**self.values))  # a lab that cannot show its first state fails its cell

        for control in self.controls.values():
            control.observe(self._redraw, names="value")
        self.screen.on_msg(self._on_message)
        self._preset_buttons = [self._button(label, self.preset, label) for label in self._presets]
        self._job_buttons = [self._button(label, self.start, label) for label in self._jobs]
        self._action_buttons = [self._button(label, self.act, label) for label in self._actions]
        self._stop_button = self._button("Stop", self.stop)
        self._stop_button.disabled = True
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")

        # Whoever runs the cell again can no longer reach the Stop button of the panel that it replaces.
        former = Panel._latest.get(name)
        if former is not None:
            former.give_way()
        Panel._latest[name] = self

    def _rows(self) -> list[widgets.Widget]:
        work = [*self._job_buttons, *([self._stop_button] if self._jobs else []), *self._action_buttons]
        wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
        rows = {
            "course-controls": list(self.controls.values()),
            "course-presets": self._preset_buttons,
            "course-work": work,
        }
        if work:
            work[0].button_style = "primary"  # what is mainly done
        boxes = {name: widgets.HBox(row, layout=wrap) for name, row in rows.items() if row}
        for name, box in boxes.items():
            box.add_class(name)
        asked, *done = boxes.values()
        return [asked, widgets.HBox(done, layout=wrap)] if done else [asked]

    def _button(self, label: str, action: Callable[..., None], *arguments: object) -> widgets.Button:
        button = widgets.Button(description=label, layout=widgets.Layout(width="auto"))

        def click(_: widgets.Button) -> None:
            action(*arguments)

        button.on_click(click)
        return button

    # What a reader does with the mouse, a cell or a test does with these.

    @property
    def values(self) -> dict[str, object]:
        """What the controls say now."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def _chosen(self) -> dict[str, object]:
        """The same, for the lab; a cell can take a choice back, which is nothing to reckon with."""
        for name, value in self.values.items():
            if value is None:
                raise ValueError(f"Nothing is chosen for {name}.")
        return self.values

    def set(self, **values: object) -> None:
        """Move several controls at once, and draw once."""
        with self._lock, self._telling():
            self._move(values)

    def preset(self, label: str) -> None:
        """Do what the button of that name does; nonsense in other controls gives way to what they began with."""
        with self._lock, self._telling():
            values = _named(label, self._presets, "preset")
            try:
                self._move(values)
            except ValueError:
                self._move({**self._first, **values})

    def pick(self, key: str) -> None:
        """Do what a click on that part of the picture does, or a pointer over it."""
        with self._lock, self._telling():
            # A late click may mean a part that has gone.
            there = f'data-key="{escape(key)}"' in self.screen.svg
            self._move(self._pick(key, **self._chosen) if self._pick and there else {})

    def act(self, label: str) -> None:
        """Do what the button of that name does."""
        with self._lock, self._telling():
            done = _named(label, self._actions, "action")(**self._chosen)
            if isinstance(done, Download):
                self.screen.send({"download": done.name, "text": done.text})
            self._move(done if isinstance(done, Mapping) else {})

    def start(self, label: str) -> None:
        """Start a job; one at a time. Returns at once."""
        with self._lock, self._telling():
            if self._worker is not None:
                return
            steps = _named(label, self._jobs, "job")(**self._chosen)
            self._stopping.clear()
            self._job_error = None
            self._report("", failed=False)
            # The page shows what a thread sends only if it knows which click asked for it.
            context = contextvars.copy_context()
            worker = threading.Thread(target=context.run, args=(self._work, steps), daemon=True)
            worker.start()  # it waits for the lock that we hold
            self._worker = worker
            self._set_busy(True)

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self._stopping.set()

    def give_way(self) -> None:
        """What becomes of it when another of its name takes its place."""
        self.stop()

    def wait(self, timeout_s: Number = 60) -> None:
        """Until the job has ended; if it failed, with its exception."""
        worker = self._worker
        if worker is not None:
            worker.join(timeout_s)
            if worker.is_alive():
                raise TimeoutError(f"The job is still running after {timeout_s} s.")
        if self._job_error is not None:
            raise self._job_error

    def close(self) -> None:
        """Stop the job, and take the panel and its controls off the page."""
        self.stop()
        stop = getattr(self, "_stop_button", None)  # not every lab shows it, and one that failed has none
        for part in (*self.children, *([stop] if stop else [])):
            _close(part)
        self.layout.close()
        super().close()

    # How it is done.

    def _move(self, values: Mapping[str, object]) -> None:
        for name in values:
            _named(name, self.controls, "control")
        before, self._moving = self.values, True
        try:
            for name, value in values.items():
                self.controls[name].value = value
        except traitlets.TraitError as error:
            for control, old in before.items():
                self.controls[control].value = old
            why = f"{error}".rstrip(".")
            raise ValueError(f"{name} cannot be {reprlib.repr(value)}. {why}.") from error
        finally:
            self._moving = False
        self._display(self._show(**self._chosen))

    def _redraw(self, _: object) -> None:
        if not self._moving:
            self.set()

    def _display(self, view: View) -> None:
        with self._lock, self.screen.hold_sync():
            self.screen.svg = view.picture
            self.screen.meaning = view.meaning
            self.screen.table = [list(row) for row in view.table]
            self.screen.mistake = ""
            self.error = None

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Whatever goes wrong inside stands in the panel as a sentence. ipywidgets would log it, at best."""
        try:
            yield
        except Exception as error:
            self.error = error
            self.screen.mistake = _sentence(error)
            if not isinstance(error, ValueError):
                raise

    def _on_message(self, _: object, content: object, __: object) -> None:
        if isinstance(content, Mapping) and "pick" in content:
            self.pick(str(content["pick"]))

    def _work(self, steps: Iterator[Progress]) -> None:
        next_report_s, deadline = 0.0, time.monotonic() + LONGEST_S
        try:
            with closing(steps):
                for step in steps:
                    if time.monotonic() > deadline and step.fraction < 1:
                        raise ValueError(
                            f"Ended after {LONGEST_S:.0f} s, which is the most that a lab waits."
                        )
                    stopped = self._stopping.is_set() and step.fraction < 1
                    # Jupyter's server drops messages that come too thickly, the last ones included.
                    if stopped or step.changed or step.fraction >= 1 or time.monotonic() >= next_report_s:
                        words = f"Stopped. {step.report}" if stopped else step.report
                        self._report(words, progress=step.fraction)
                        next_report_s = time.monotonic() + REPORT_S
                    if step.changed:
                        self._draw_anew()
                    if stopped:
                        break
        except Exception as error:  # wait() raises it
            self._job_error = _without_its_tensors(error)
            words = _sentence(self._job_error)
            self._report("" if words == self.screen.mistake else words, failed=True)  # said once is enough
        finally:
            with self._lock:
                self._worker = None
                self._set_busy(False)

    def _report(self, words: str, *, failed: bool = False, progress: Number = -1) -> None:
        with self._lock, self.screen.hold_sync():
            self.screen.report, self.screen.failed, self.screen.progress = words, failed, progress

    def _draw_anew(self) -> None:
        """Draw what the controls say now; if they say nonsense, its sentence keeps its place."""
        with self._lock:
            try:
                self._display(self._show(**self._chosen))
            except Exception:
                if self.error is None:  # else it is said already
                    raise

    def _set_busy(self, busy: bool) -> None:
        for button in self._job_buttons:
            button.disabled = busy
        self._stop_button.disabled = not busy
        if not busy:
            self.screen.progress = -1

    # What stays on the page where no kernel runs.

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        bundle = super()._repr_mimebundle_(**kwargs)
        words = f"{self.screen.name}. {self.screen.meaning}"
        bundle["text/plain"] = f"{words} (A live lab: run this cell to move its controls.)"
        still = svg_words.captioned(self.screen.svg, STILL)
        bundle["image/png"] = base64.b64encode(svg_words.still_png(still, words)).decode()
        return bundle, {"image/png": {"alt": words}}


def _close(widget: widgets.Widget) -> None:
    for part in getattr(widget, "children", ()):
        _close(part)
    for part in (widget.layout, getattr(widget, "style", None)):  # ipywidgets keeps what is not closed
        if part is not None:
            part.close()
    widget.close()


def _named(label: str, among: Mapping[str, object], what: str) -> object:
    if label not in among:
        raise ValueError(f"This lab has no {what} {label[:40]}. It has: {', '.join(among) or 'none'}.")
    return among[label]


def _without_its_tensors(error: Exception) -> Exception:
    """What to keep of an error. Where memory ran out, its traceback still holds what did fit, and would go on doing so."""
    why = measure.memory_ran_out(error)
    if not why:
        return error
    return ValueError(f"{why} Make it smaller, and try again.")


def _sentence(error: Exception) -> str:
    if isinstance(error, ValueError):
        words = str(error)
        return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"
    return f"The lab itself failed, which is not your doing: {type(error).__name__}: {error}"
