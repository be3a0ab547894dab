"""A lab while somebody moves it: the answers, what is known, what is shown, and the running job.

This module has no threads, widgets or pages. A host, such as the panel, passes on what the reader
does, and shows `parts` and `shown`.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape

from course_utils.core.say import Guess
from course_utils.core.say.language import template, translated
from course_utils.engine.labs.control_parts import ControlPart
from course_utils.engine.labs.fields import Drawn, Whole
from course_utils.engine.labs.lab import Change, Lab, Progress, View, sentence

# The seconds that a job may take, whatever its own limits say. They are checked between two steps.
LONGEST_S = 240.0
NEEDS_A_KERNEL = template("That needs a kernel, to run torch on a machine of yours.")
# What to say of a name that a lab does not have.
NO_PRESET = template("This lab has no preset {label}. It has: {known}.")
NO_ACTION = template("This lab has no action {label}. It has: {known}.")
NO_JOB = template("This lab has no job {label}. It has: {known}.")
NO_CONTROL = template("This lab has no control {label}. It has: {known}.")


class Session:
    """A lab with the reader's answers.

    `values` has what each control holds, and `parts` the parts of each control. `shown` has the
    rest: picture, meaning, mistake, table, and what a job reports. A mistake of the reader is shown
    as a sentence; a fault of the lab is shown and raised. Where there is no kernel, the host passes
    the function `known`, which takes the place of the lab's method of that name.
    """

    def __init__(self, lab: Lab, known: Callable[[object, object], object] | None = None) -> None:
        """Begin with the default answers. Nothing is drawn before the first move, such as `set`."""
        self.lab = lab
        self.found = lab.found
        self.values = {name: field.default for name, field in lab.fields.items()}
        self.parts: dict[str, list[ControlPart]] = {}
        self.shown: dict[str, object] = {
            "svg": "",
            "stale": False,  # whether the picture is of other values than the present ones
            "meaning": "",
            "mistake": "",
            "table": [],
        }
        self._drawn_values: dict[str, object] = {}
        self.error: Exception | None = None  # of the latest move; None if it went well
        self.failure: Exception | None = None  # of the latest job; None if it went well
        self._set_report("")
        self._has_kernel = known is None
        self._known = lab.known if known is None else known
        self._job: Iterator[Progress] | None = None
        self._stopping = False  # whether the reader has stopped the job
        self._closing = False  # whether `next_step` closes the job, and makes no other step
        self._sliders: dict[str, Whole] = {}
        self._ends: dict[str, int] = {}  # the largest value of each slider at present
        for name, field in lab.fields.items():
            if isinstance(field, Whole):
                self._sliders[name] = field
                self._ends[name] = field.end(self.values)
        # The fields of marks; and the marks that were set, by field and by what was asked then.
        self._drawn = {
            name: field for name, field in lab.fields.items() if isinstance(field, Drawn)
        }
        self._marks: dict[object, Sequence[int | None]] = {}
        self._make_parts()
        self._first_values = dict(self.values)  # which `preset` may go back to

    @property
    def running(self) -> bool:
        """Whether a job is running."""
        return self._job is not None

    # The reader's moves.

    def set(self, values: Mapping[str, object]) -> None:
        """Move several controls at once, and draw once."""
        with self._mistakes_are_shown():
            self._forget_report()
            self._apply(Change(values))

    def move(self, name: str, place: int, to: object) -> None:
        """Move part number `place` of the control `name`, as a reader does by hand."""
        part = self.parts[name][place]
        before = self.values[name]
        after = self.lab.fields[name].moved(before, part, to)
        if after != before:  # a page may also report a slider that nobody has moved
            self.set({name: after})

    def preset(self, label: str) -> None:
        """Press the preset's button.

        If the lab cannot be drawn with what other controls hold, they get their first values.
        """
        with self._mistakes_are_shown():
            values = _named(label, self.lab.presets, NO_PRESET)
            self._forget_report()
            try:
                self._apply(Change(values))
            except ValueError:
                self._apply(Change({**self._first_values, **values}))

    def pick(self, key: str) -> None:
        """Click on the part of the picture with that `data-key`, or point at it."""
        with self._mistakes_are_shown():
            values = {}  # nothing moves if the picture no longer has that part when a click arrives
            if f'data-key="{escape(key)}"' in self.shown["svg"]:
                values = self.lab.pick(key, self.lab.read(self.values))
            self._apply(Change(values))

    def act(self, label: str) -> None:
        """Press the action's button."""
        with self._mistakes_are_shown():
            action = self._method(label, self.lab.actions, NO_ACTION)
            asked, found = self._asked_and_known()
            # `actions` has functions of the lab's class, so the lab is passed as their `self`.
            self._apply(action(self.lab, asked, found))

    def start(self, label: str) -> None:
        """Start a job, if none is running."""
        with self._mistakes_are_shown():
            if self.running:
                return
            job = self._method(label, self.lab.jobs, NO_JOB)
            asked, found = self._asked_and_known()
            self._job = job(self.lab, asked, found)
            self._stopping = False
            self._closing = False
            self.failure = None
            self._deadline_s = time.monotonic() + LONGEST_S
            self._set_report("")

    def stop(self) -> None:
        """End the job at its next step."""
        self._stopping = True

    # A job: `next_step` may take long and shows nothing; `show_step` shows the step's result.

    def step(self) -> None:
        """Make the job's next step and show it, for hosts that can wait for it."""
        if self.running:
            self.show_step(self.next_step())

    def next_step(self) -> Progress | Exception | None:
        """Make the job's next step; return its Progress, its error, or None at the job's end."""
        try:
            if not self._closing:
                return next(self._job, None)
            self._job.close()  # runs the job's `finally` blocks, which may end a process
        except Exception as error:  # to be shown by `show_step`, which the host calls next
            return error
        return None

    def show_step(self, step: Progress | Exception | None) -> None:
        """Show what `next_step` has returned, even if the controls have moved since."""
        if step is None:
            # `failure` is None if the job ended by itself, or was stopped by the reader. Otherwise
            # it was set where the job was told to close: below, or in `_apply_of_job`.
            self._end(self.failure)
            return
        if isinstance(step, Exception):
            self._end(step)
            return
        is_under_way = step.fraction < 1
        if is_under_way and time.monotonic() > self._deadline_s:
            self._closing = True
            ended = translated(
                "Ended after {seconds} s, which is the most that a lab waits.",
                seconds=f"{LONGEST_S:.0f}",
            )
            self.failure = ValueError(ended)
            return
        self._closing = self._stopping and is_under_way  # a finished job only has to end
        report = step.report
        if self._closing:
            report = translated("Stopped. {report}", report=step.report)
        self._set_report(report, progress=step.fraction)
        if step.change:
            self._apply_of_job(step.change)

    def _apply_of_job(self, change: Change) -> None:
        """Apply what the job has found. If the lab fails in doing so, the job ends."""
        try:
            with self._mistakes_are_shown():
                self._apply(change)
        except Exception as fault:
            self._closing = True
            self.failure = fault

    def _end(self, failure: Exception | None) -> None:
        """Draw without the job, and report its failure if there was one."""
        self._job = None
        self.failure = failure
        # If the lab cannot be drawn, that is shown as a mistake, and the report below is still set.
        with suppress(Exception), self._mistakes_are_shown():
            self.draw()
        self.shown["progress"] = -1
        if failure is not None:
            self._set_report(sentence(failure), failed=True)

    # What the session shows.

    @property
    def revealed(self) -> bool:
        """Whether *Show* was pressed: the measurement is in the picture, beside the guess."""
        return bool(self.values.get("shown"))

    def as_revealed(self) -> "Session":
        """Return another session with the same answers, in which *Show* was pressed."""
        other = self.anew()
        other.set({"shown": True})
        return other

    def anew(self, **values: object) -> "Session":
        """Return another session with the same answers, apart from these values."""
        # With a kernel, the other session takes the lab's own `known`, as this one does.
        known = None if self._has_kernel else self._known
        other = Session(self.lab, known)
        other.found = self.found
        other.set({**self.values, **values})
        return other

    def questions(self) -> list[object]:
        """Return what is asked now, for each field of marks."""
        return [(name, *field.question(self.values)) for name, field in self._drawn.items()]

    def drawings(self) -> dict[object, Sequence[int | None]]:
        """Return the marks for each question that was asked, those of the present one included."""
        at_present = zip(self.questions(), self._drawn, strict=True)
        return self._marks | {question: self.values[name] for question, name in at_present}

    def remember(self, question: tuple[object, ...], levels: Sequence[int | None]) -> None:
        """Take these as the marks that were set for another question; ValueError if they can't be.

        They show up when it is asked again.
        """
        name, *_ = question
        _named(name, self._drawn, NO_CONTROL)
        self._marks[question] = self._drawn[name].held(levels)

    def guesses(self) -> Sequence[Guess]:
        """Return the guesses that the reader has set in the picture, with what was measured."""
        asked, found = self._asked_and_known()
        return self.lab.guesses(asked, found)

    def view(self) -> View:
        """Return what the lab shows for the present answers."""
        asked, found = self._asked_and_known()
        return self.lab.view(asked, found)

    def draw(self) -> None:
        """Show the view of the present answers, in place of the former view or of a mistake."""
        asked, found = self._asked_and_known()
        # What the lab remembers of this state from now on, such as that the level is solved.
        note = self.lab.noted(asked, found)
        if note:
            self.found = note(self.found)
        view = self.view()  # with what was just noted
        table = [list(row) for row in view.table]
        self.shown["svg"] = view.picture
        self.shown["meaning"] = view.meaning
        self.shown["table"] = table
        self.shown["mistake"] = ""
        self.shown["stale"] = False
        self._drawn_values = dict(self.values)
        self.error = None

    def _asked_and_known(self) -> tuple[object, object]:
        """Return the arguments of the lab's methods: `asked`, and `found` completed by `known`."""
        asked = self.lab.read(self.values)
        return asked, self._known(asked, self.found)

    def _method(self, label: str, among: Mapping[str, Callable], without: str) -> Callable:
        """Return the job or action of that label; ValueError if it lacks the kernel that it needs.

        `without` is what to say if there is no such label.
        """
        method = _named(label, among, without)
        if label in self.lab.needs_kernel and not self._has_kernel:
            raise ValueError(translated(NEEDS_A_KERNEL))
        return method

    def _apply(self, change: Change) -> None:
        """Move controls, add to what is known, and draw once."""
        for name in change.values:
            _named(name, self.lab.fields, NO_CONTROL)  # called for its ValueError alone
        former_questions = self.questions()
        was_revealed = self.revealed
        try:
            # In the order of the fields, because where a slider ends depends on those before it.
            for name, field in self.lab.fields.items():
                if name in change.values:
                    self.values[name] = field.held(change.values[name])
                    self._move_with_ends()
            self._take_marks_off_missing_levels()
            self._take_marks_along(former_questions, change.values)
            if self.revealed and not was_revealed:
                self._show_what_is_due(change.values)
        finally:  # also if a value is refused, since controls before it have moved
            self._make_parts()
        if change.found is not None:
            self.found = change.found(self.found)
        self.draw()

    def _take_marks_off_missing_levels(self) -> None:
        """Unset every mark above the highest level, which may depend on other controls."""
        for name, field in self._drawn.items():
            there_are = range(field.top(self.values) + 1)
            levels = self.values[name]
            self.values[name] = tuple(level if level in there_are else None for level in levels)

    def _take_marks_along(
        self, former_questions: Collection[object], set_now: Collection[str]
    ) -> None:
        """Keep the marks that were set, and where another question is asked now, show those of it.

        A mark is a guess at the question for which it was set, and at no other. Whoever moves a
        slider to another question finds no marks there, and on the way back the former ones.
        """
        for name, question in zip(self._drawn, self.questions(), strict=True):
            if name in set_now or question in former_questions:
                self._marks[question] = self.values[name]
            else:
                self.values[name] = self._marks.get(question, self._drawn[name].default)

    def _show_what_is_due(self, set_now: Collection[str]) -> None:
        """Move the controls that the lab moves on *Show*, unless they are set in the same move.

        So a figure that comes back after a restart keeps what its controls held.
        """
        for name, value in self.lab.on_show(self.lab.read(self.values)).items():
            if name not in set_now:
                self.values[name] = self.lab.fields[name].held(value)

    def _move_with_ends(self) -> None:
        """Move every slider that is beyond its new end, or was at its former one, to the new end.

        A slider's end may depend on other controls.
        """
        for name, field in self._sliders.items():
            former_end = self._ends[name]
            end = field.end(self.values)
            self._ends[name] = end
            # The slider was at its former end, or is beyond the new one.
            if self.values[name] >= min(former_end, end):
                self.values[name] = end

    def _make_parts(self) -> None:
        """Make the parts of all controls anew, since they depend on what the controls hold."""
        for name, field in self.lab.fields.items():
            # A Sizes field has a slider for each name in what the reader typed. If that cannot be
            # parsed, `parts` raises an error. The drawing shows it, and the former sliders stay.
            with suppress(ValueError):
                self.parts[name] = field.parts(self.values[name], self.values)

    def _forget_report(self) -> None:
        """Clear the last job's report: it belongs to the former answers."""
        if not self.running:
            self._set_report("")

    def _set_report(self, words: str, *, failed: bool = False, progress: float = -1) -> None:
        """Show a job's report. `progress` is from 0 to 1; below 0, no progress is shown."""
        self.shown["report"] = words
        self.shown["failed"] = failed
        self.shown["progress"] = progress

    @contextmanager
    def _mistakes_are_shown(self) -> Iterator[None]:
        """Show an error of the code inside as a sentence.

        A ValueError, the reader's mistake, ends here. Any other error is raised again.
        """
        try:
            yield
        except Exception as error:
            self.error = error
            self.shown["mistake"] = sentence(error)
            self.shown["stale"] = self.values != self._drawn_values
            if not isinstance(error, ValueError):
                raise


def _named(label: str, among: Mapping[str, object], without: str) -> object:
    """Return the item with that label; ValueError, with all labels, if there is none.

    `without` is one of the sentences above.
    """
    if label not in among:
        known = ", ".join(among) or translated("none")
        raise ValueError(translated(without, label=label[:40], known=known))
    return among[label]
