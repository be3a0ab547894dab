"""The panel: a session in Jupyter. It adds widgets, a lock, and a thread for the job."""

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
from course_utils.core.say.language import in_a_row, translated
from course_utils.engine.labs import controls, stored
from course_utils.engine.labs.fields import Drawn
from course_utils.engine.labs.fold import Fold
from course_utils.engine.labs.lab import Lab, Progress
from course_utils.engine.labs.screen import Screen, labels
from course_utils.engine.labs.session import Session

# Seconds between two reports of a job: Jupyter's server drops messages that come in too quickly.
REPORT_S = 0.1


def _shows_from_threads() -> bool:
    """Whether the front end shows what a thread sends. Colab's does not.

    Where it does not, a job runs in the callback of its button.
    """
    return "google.colab" not in sys.modules


class Panel(widgets.VBox):
    """A lab with its controls. The picture follows them, and a mistake is shown beside the picture.

    If some controls, presets or buttons are named in `only`, the panel has no others. `answers` are
    the first values of controls.
    """

    # By the lab's name and `only`, the panel that was made last, unless it is gone.
    _latest: ClassVar[weakref.WeakValueDictionary] = weakref.WeakValueDictionary()
    session: Session | None = None  # a panel whose first state failed has none

    def __init__(self, lab: Lab, *only: str, **answers: object) -> None:
        """Show the lab with these answers, and only with the controls and buttons named `only`.

        Without `only`, it is shown with all of them.
        """
        self.session = Session(lab)
        self._only = only
        _check_that_it_has(lab, only)
        self.session.set(answers)
        if self.session.error is not None:
            raise self.session.error  # a lab that cannot show its first state fails its cell
        self.screen = Screen(
            name=translated(lab.name), labels=labels(), options=self._options_of_sliders()
        )
        self._lock = threading.RLock()  # callbacks, the job's thread and cells may move the lab
        self._thread: threading.Thread | None = None
        self._fold: Fold | None = None
        self._showing = False  # whether the widgets are being set, and not moved by the reader
        self._was_revealed = False  # whether the answer has been shown once
        # The questions whose answers were shown. A later mark is no guess, and is not recorded.
        self._answered: set[object] = set()
        self._marks = self._restore_marks(answers)
        self._make_controls()
        self.screen.on_msg(self._on_message)
        super().__init__([*self._rows(), self.screen])
        self.add_class("course-lab")
        self._show()
        self._replace_former()

    def _restore_marks(self, first_answers: Mapping[str, object]) -> object:
        """Set the marks as they were left; return KeptMarks, or None outside of a reader's copy."""
        folder = record.workspace()
        is_drawn_in = any(isinstance(field, Drawn) for field in self.session.lab.fields.values())
        if not (folder and record.notebook and is_drawn_in):
            return None
        # Only a panel in a reader's copy has to load what keeps marks.
        from course_utils.engine.labs.kept_marks import KeptMarks

        # The panel's arguments tell it apart from others of this lab in the notebook.
        arguments = [*self._only, dict(first_answers)]
        # This also moves the session's controls to what was kept.
        marks = KeptMarks(self.session, folder, record.notebook, arguments)
        self._note_what_is_answered()
        return marks

    def _make_controls(self) -> None:
        """Make a widget for each part of each control, and follow what the reader does with it."""
        self._widgets: dict[str, list[widgets.Widget]] = {}
        self.controls: dict[str, widgets.Widget] = {}
        for name, parts in self.session.parts.items():
            self._widgets[name] = [controls.widget_of(part) for part in parts]
        for name, field in self.session.lab.fields.items():
            parts = self.session.parts[name]
            self.controls[name] = controls.box_of(field.heading, parts, self._widgets[name])
            for place, part in enumerate(parts):
                if part.kind != "play":  # a play button only moves the slider beside it
                    moved = partial(self._moved, name, place)
                    self._widgets[name][place].observe(moved, names="value")

    def _replace_former(self) -> None:
        """End the job of the panel that this one replaces.

        When a cell is run again, nobody can reach the Stop button of its former panel any more.
        """
        key = (self.session.lab.name, *self._only)
        former = Panel._latest.get(key)
        if former is not None:
            former.session.stop()
        Panel._latest[key] = self

    def _rows(self) -> list[widgets.Widget]:
        """Make all buttons; return the rows of controls, and then one of presets and buttons."""
        lab = self.session.lab
        lines = [self._line(names) for names in lab.rows_of(self._only)]
        if lab.more and not self._only:
            more = [self._line(names) for names in lab.more]
            first_values = {name: lab.fields[name].default for names in lab.more for name in names}
            self._fold = Fold(more, first_values)
            lines[-1].children += (self._fold.button,)
            lines += more

        presets = self._buttons(lab.presets, self.preset)
        actions = self._buttons(lab.actions, self.act)
        self._jobs = self._buttons(lab.jobs, self.start)
        stop = translated("Stop")
        if not _shows_from_threads():
            stop = translated("To stop: Runtime → Interrupt execution")
        self._stop = controls.button_of(stop, self.stop)
        work = actions
        if self._jobs:
            work = [*self._jobs, self._stop, *actions]
        if presets or work:
            below = [
                controls.row_of("course-presets", presets),
                controls.row_of("course-work", work),
            ]
            lines.append(controls.row_of("course-below", below))
        return lines

    def _line(self, names: Sequence[str]) -> widgets.Box:
        """Return a row of the controls with these names."""
        return controls.row_of("course-controls", [self.controls[name] for name in names])

    def _buttons(
        self, labels: Mapping[str, object], press: Callable[[str], None]
    ) -> list[widgets.Button]:
        """Return a button for each label that the panel has; a click passes it to `press`."""
        shown = [label for label in labels if label in self._only or not self._only]
        return [controls.button_of(translated(label), partial(press, label)) for label in shown]

    # Cells and tests do with these methods what a reader does with the mouse.

    @property
    def values(self) -> dict[str, object]:
        """What each control holds now."""
        return dict(self.session.values)

    def set(self, **values: object) -> None:
        """Move several controls at once, and draw once."""
        self._do(self.session.set, values)

    def preset(self, label: str) -> None:
        """Do what the button of that name does."""
        self._do(self.session.preset, label)

    def pick(self, key: str) -> None:
        """Do what a click on the picture's part with that `data-key` does, or pointing at it."""
        self._do(self.session.pick, key)

    def act(self, label: str) -> None:
        """Do what the button of that name does."""
        self._do(self.session.act, label)

    def start(self, label: str) -> None:
        """Start a job, if none is running, and return at once if it can run in a thread."""
        # A job's thread shows nothing before this lock is free. A job without a thread runs within
        # the lock, and can take it again to show its steps: an RLock is free to its own thread.
        with self._lock:
            if self.session.running:
                return
            self._do(self.session.start, label)
            if not self.session.running:
                return
            # The page shows what a thread sends only if the thread has the context of the click.
            context = contextvars.copy_context()
            self._thread = None  # that of a former job, for which `wait` must not wait
            if not _shows_from_threads():  # so the job runs here, to its end
                context.run(self._run_job)
                return
            self._thread = threading.Thread(target=context.run, args=(self._run_job,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the job at its next step."""
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
        """Take the panel off the page, and end its job."""
        super().close()
        if self.session is not None:
            self.session.stop()

    # Moves, and how they are shown.

    def _do(self, move: Callable[..., None], *arguments: object) -> None:
        """Make a move under the lock, and show the result."""
        with self._lock:
            was_revealed = self.session.revealed
            try:
                move(*arguments)
                if self.session.revealed and not was_revealed:
                    self._record_guesses()
                self._note_what_is_answered()
            finally:
                self._show()
            if self._marks is not None:
                self._marks.keep()

    def _record_guesses(self) -> None:
        """Write what the record has of the guesses that *Show* has just answered.

        Whoever has seen the answer before does not guess.
        """
        has_guessed = not self._answered.issuperset(self.session.questions())
        if has_guessed and self._marks is not None:
            self._marks.note(self.session.guesses())

    def _note_what_is_answered(self) -> None:
        """After *Show*, every question that the controls ask is answered at once."""
        if self.session.revealed:
            self._answered.update(self.session.questions())

    def _moved(self, name: str, place: int, change: Mapping[str, object]) -> None:
        """Make the reader's move of part number `place` of a control, whose widget has changed."""
        with self._lock:
            if not self._showing:  # else `_show_controls` has set the value
                self._do(self.session.move, name, place, controls.value_of(change["owner"]))

    def _options_of_sliders(self) -> dict[str, list[str]]:
        """Return the names of the options of each slider of options, by the slider's label."""
        all_parts = [part for parts in self.session.parts.values() for part in parts]
        return {
            part.label: list(part.options)
            for part in all_parts
            if part.kind == "slider" and part.options
        }

    def _choose(self, label: str, option: str) -> None:
        """Move the slider of options with that label to an option that was typed beside it."""
        for name, parts in self.session.parts.items():
            for place, part in enumerate(parts):
                if part.kind == "slider" and part.label == label and option in part.options:
                    self._do(self.session.move, name, place, option)

    def _on_message(self, _: object, content: object, __: object) -> None:
        """Make the move that the screen has sent.

        That is {"pick": key}, {"choose": [slider, option]}, or {"set": {field: levels}}.
        """
        if not isinstance(content, Mapping):
            return
        if "pick" in content:
            self.pick(str(content["pick"]))
        match content.get("choose"):
            case [str(label), str(option)]:
                self._choose(label, option)
        drawn = content.get("set")
        if isinstance(drawn, Mapping):
            levels_by_name = {str(name): levels for name, levels in drawn.items()}
            self.set(**levels_by_name)

    def _show(self) -> None:
        """Show the controls, and after them the screen.

        The screen's script names the sliders' handles for screen readers, so they come first.
        """
        self._show_controls()
        with self.screen.hold_sync():
            for name, value in self.session.shown.items():
                setattr(self.screen, name, value)
        for button in self._jobs:
            button.disabled = self.session.running
        self._point_out_what_is_due()
        # Where a job runs in a callback, a click on Stop would have an effect only after the job.
        can_stop = self.session.running and _shows_from_threads()
        self._stop.disabled = not can_stop
        # A figure that names "shown" among its controls asks for a guess. By this class, the cells
        # below it are kept out of the window until *Show* is pressed, and not again after *Hide*.
        self._was_revealed = self._was_revealed or self.session.revealed
        if "shown" in self._only and not self._was_revealed:
            self.add_class("course-waits")
        else:
            self.remove_class("course-waits")

    def _show_controls(self) -> None:
        """Make each control look as its parts do now."""
        self._showing = True  # a widget that changes in the meantime was not moved by the reader
        try:
            for name, parts in self.session.parts.items():
                for widget, part in zip(self._widgets[name], parts, strict=True):
                    controls.show(widget, part)
                is_hidden = all(part.hidden for part in parts)
                self.controls[name].layout.display = "none" if is_hidden else ""
            if self._fold is not None:
                self._fold.follow(self.session.values)
        finally:
            self._showing = False

    def _point_out_what_is_due(self) -> None:
        """Colour the button to press next: *Show* once the reader has guessed, or the first job's.

        The first job waits until *Show* has been pressed, if the lab asks for a guess.
        """
        asks_for_a_guess = "shown" in self.session.lab.fields
        if asks_for_a_guess:
            is_due = self._is_guessed() and not self.session.revealed
            (show,) = self._widgets["shown"]
            show.button_style = "primary" if is_due else ""
        if self._jobs:
            is_due = not asks_for_a_guess or self.session.revealed
            self._jobs[0].button_style = "primary" if is_due else ""

    def _is_guessed(self) -> bool:
        """Whether the reader has set a mark in the picture."""
        for name, field in self.session.lab.fields.items():
            if isinstance(field, Drawn):
                levels = self.session.values[name]
                if any(level is not None for level in levels):
                    return True
        return False

    def _run_job(self) -> None:
        """Run the job step by step. The lock is held only while a step is shown."""
        due_s = 0.0  # when the next report is due
        while self.session.running:
            try:
                step = self.session.next_step()
            except KeyboardInterrupt:  # only raised where the job runs in a callback
                step = ValueError(translated("Stopped."))
            if isinstance(step, Exception):
                step = _without_its_tensors(step)
            with self._lock:
                self.session.show_step(step)
                # A report between two others may be left out; a result or an end may not.
                is_report = isinstance(step, Progress) and not step.change and step.fraction < 1
                if not is_report or time.monotonic() >= due_s:
                    self._show()
                    due_s = time.monotonic() + REPORT_S

    # What a notebook stores, and what is shown where no kernel runs.

    _ipython_display_ = None  # replaces a method of ipywidgets 7, which shows the widget alone

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, object], dict[str, object]]:
        """Return the live view, a picture and a sentence in its place, and anywidget's metadata.

        Colab finds the code of the screen by this metadata.
        """
        _, metadata = self.screen._repr_mimebundle_(**kwargs)
        return stored.bundle_of(self.session, self._only, self.model_id, metadata)


def _check_that_it_has(lab: Lab, only: Sequence[str]) -> None:
    """Raise a ValueError, with the names of all controls, if the lab lacks one of `only`."""
    known = [*lab.fields, *lab.presets, *lab.jobs, *lab.actions]
    for name in only:
        if name not in known:
            refused = translated(
                "{lab} has no control {name}. It has: {known}.",
                lab=translated(lab.name),
                name=f"{name!s:.40}",
                known=", ".join(known),
            )
            raise ValueError(refused)


def _without_its_tensors(error: Exception) -> Exception:
    """Return the error; if memory ran out, a new one, since the traceback keeps tensors alive."""
    why = measure.memory_ran_out(error)
    if not why:
        return error
    return ValueError(in_a_row(why, translated("Make it smaller, and try again.")))
