"""The panel that every lab stands on. A lab is its controls, one pure function, and its picture."""

import base64
import contextvars
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

import anywidget
import ipywidgets as widgets
import traitlets

from course_utils.figures import COLOURS
from course_utils.labs import svg as svg_words
from course_utils.quantities import Number

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class View:
    """What a lab shows for one state of its controls: an SVG string or PNG bytes, and one line of meaning."""

    picture: str | bytes
    meaning: str


@dataclass(frozen=True)
class Progress:
    """What a long job says between two steps: how far it is, in words too, and what there is to see by now."""

    fraction: Number
    report: str
    view: View | None = None


class Screen(anywidget.AnyWidget):
    """The part of the panel that is ours to draw: see screen.js."""

    _esm = _HERE / "screen.js"
    _css = svg_words.PAGE_CSS + Template((_HERE / "screen.css").read_text()).substitute(COLOURS)

    name = traitlets.Unicode().tag(sync=True)
    svg = traitlets.Unicode().tag(sync=True)
    png = traitlets.Bytes().tag(sync=True)
    meaning = traitlets.Unicode().tag(sync=True)
    mistake = traitlets.Unicode().tag(sync=True)
    report = traitlets.Unicode().tag(sync=True)
    progress = traitlets.Float(-1.0).tag(sync=True)


class Panel(widgets.VBox):
    """Controls, a picture that follows them, and work that can be stopped.

    `show(**values)` turns the controls' values into a View. It runs at every movement, so it must be
    quick; a ValueError from it is the reader's mistake, and its sentence appears in the panel. A job is
    a generator over the same values that yields Progress: it runs in a thread, and Stop ends it at the
    next yield. `pick(key, **values)` answers a click into the picture with new values for controls.
    """

    def __init__(
        self,
        name: str,
        show: Callable[..., View],
        controls: Mapping[str, widgets.Widget],
        *,
        presets: Mapping[str, Mapping[str, object]] | None = None,
        jobs: Mapping[str, Callable[..., Iterator[Progress]]] | None = None,
        pick: Callable[..., Mapping[str, object]] | None = None,
    ) -> None:
        self.controls = dict(controls)
        self.screen = Screen(name=name)
        self.error: Exception | None = None
        self._show, self._pick = show, pick
        self._presets, self._jobs = dict(presets or {}), dict(jobs or {})
        self._lock = threading.RLock()  # callbacks, workers and cells may all draw
        self._moving = False
        self._worker: threading.Thread | None = None
        self._stopping = threading.Event()

        self._display(show(**self.values))  # a lab that cannot show its first state fails its cell

        for control in self.controls.values():
            control.observe(self._redraw, names="value")
        self.screen.on_msg(self._on_message)
        self._preset_buttons = [self._button(label, self.preset, label) for label in self._presets]
        self._job_buttons = [self._button(label, self.start, label) for label in self._jobs]
        self._stop_button = self._button("Stop", self.stop)
        self._stop_button.disabled = True
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")

    def _rows(self) -> list[widgets.Widget]:
        work = [*self._job_buttons, self._stop_button] if self._job_buttons else []
        wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
        rows = [list(self.controls.values()), self._preset_buttons, work]
        boxes = [widgets.HBox(row, layout=wrap) for row in rows if row]
        boxes[0].add_class("course-controls")
        return boxes

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

    def set(self, **values: object) -> None:
        """Move several controls at once, and draw once."""
        with self._lock, self._telling():
            self._move(values)

    def preset(self, label: str) -> None:
        """Do what the button of that name does."""
        self.set(**self._presets[label])

    def pick(self, key: str) -> None:
        """Do what a click on that part of the picture does."""
        with self._lock, self._telling():
            self._move(self._pick(key, **self.values) if self._pick else {})

    def start(self, label: str) -> None:
        """Start a job; one at a time. Returns at once."""
        with self._lock, self._telling():
            if self._worker is not None:
                return
            steps = self._jobs[label](**self.values)
            self._stopping.clear()
            # The page shows what a thread sends only if it knows which click asked for it.
            context = contextvars.copy_context()
            self._worker = threading.Thread(target=context.run, args=(self._work, steps), daemon=True)
            self._set_busy(True)
            self._worker.start()

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self._stopping.set()

    def wait(self, timeout_s: Number = 60) -> None:
        """Until the job has ended; if it failed, with its exception."""
        worker = self._worker
        if worker is not None:
            worker.join(timeout_s)
            if worker.is_alive():
                raise TimeoutError(f"The job is still running after {timeout_s} s.")
        if self.error is not None:
            raise self.error

    # How it is done.

    def _move(self, values: Mapping[str, object]) -> None:
        unknown = set(values) - set(self.controls)
        if unknown:
            raise ValueError(
                f"This lab has no control {', '.join(sorted(unknown))}. It has: {', '.join(self.controls)}."
            )
        self._moving = True
        try:
            for name, value in values.items():
                self.controls[name].value = value
        finally:
            self._moving = False
        self._display(self._show(**self.values))

    def _redraw(self, _: object) -> None:
        if not self._moving:
            self.set()

    def _display(self, view: View) -> None:
        with self._lock, self.screen.hold_sync():
            self.screen.svg = view.picture if isinstance(view.picture, str) else ""
            self.screen.png = view.picture if isinstance(view.picture, bytes) else b""
            self.screen.meaning = view.meaning
            self.screen.mistake = ""

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Whatever goes wrong inside stands in the panel as a sentence. ipywidgets would log it, at best."""
        self.error = None
        try:
            yield
        except ValueError as error:
            self.error = error
            self.screen.mistake = str(error)
        except Exception as error:
            self.error = error
            self.screen.mistake = (
                f"The lab itself failed, which is not your doing: {type(error).__name__}: {error}"
            )
            raise

    def _on_message(self, _: object, content: Mapping[str, object], __: object) -> None:
        if "pick" in content:
            self.pick(str(content["pick"]))

    def _work(self, steps: Iterator[Progress]) -> None:
        try:
            with self._telling():
                for step in steps:
                    stopped = self._stopping.is_set()
                    with self._lock, self.screen.hold_sync():
                        self.screen.progress = step.fraction
                        self.screen.report = f"Stopped. {step.report}" if stopped else step.report
                        if step.view is not None:
                            self._display(step.view)
                    if stopped:
                        break
        except Exception:
            pass  # it stands in the panel by now, and wait() raises it
        finally:
            with self._lock:
                self._worker = None
                self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        for button in self._job_buttons:
            button.disabled = busy
        self._stop_button.disabled = not busy
        if not busy:
            self.screen.progress = -1

    # What stays on the page where no kernel runs.

    def _still_png(self) -> bytes:
        return self.screen.png or svg_words.still_png(self.screen.svg)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        bundle = super()._repr_mimebundle_(**kwargs)
        bundle["text/plain"] = (
            f"{self.screen.name}. {self.screen.meaning} (A live lab: run this cell to move its controls.)"
        )
        bundle["image/png"] = base64.b64encode(self._still_png()).decode()
        return bundle
