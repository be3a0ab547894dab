"""A lab while somebody moves it: what is answered, what is known, what is shown, and the job that runs.

Nothing here knows of threads, widgets or pages. A host plays the reader's moves, and shows `parts` and `shown`.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape

from course_utils.core.say import Guess
from course_utils.engine.labs.control_parts import ControlPart
from course_utils.engine.labs.fields import Whole
from course_utils.engine.labs.lab import Change, Lab, Progress, View, sentence

LONGEST_S = 240.0  # that a job may take, whatever its own limits say; seen between two of its steps
NEEDS_A_KERNEL = "That needs a kernel, to run torch on a machine of yours."


class Session:
    """Without a kernel, `known` is given, in place of the lab's method.

    `parts` are the controls, `shown` is the rest: picture, meaning, mistake, table, and what a job reports.
    A mistake is shown as a sentence; a fault of the lab is raised as well.
    """

    def __init__(self, lab: Lab, known: Callable[[object, object], object] | None = None) -> None:
        self.lab, self.found = lab, lab.found
        self.values = {name: field.default for name, field in lab.fields.items()}
        self.parts: dict[str, list[ControlPart]] = {}
        self.shown: dict[str, object] = {"svg": "", "meaning": "", "mistake": "", "table": []}
        self.error: Exception | None = None  # of the latest move
        self.failure: Exception | None = None  # of the latest job
        self._tell_report("")
        self._known, self._has_kernel = known or lab.known, known is None
        self._job: Iterator[Progress] | None = None
        self._stopping = self._closing = False
        self._sliders = {name: one for name, one in lab.fields.items() if isinstance(one, Whole)}
        self._ends = {name: one.end(self.values) for name, one in self._sliders.items()}
        self._lay_out()
        self._first = dict(self.values)

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
        """Move one part of a control, by hand."""
        part, before = self.parts[name][place], self.values[name]
        after = self.lab.fields[name].moved(before, part, to)
        if after != before:  # a page may say where a slider is as if it had been dragged there
            self.set({name: after})

    def preset(self, label: str) -> None:
        """Press the button of that name. If other controls hold nonsense, they go back to their first values."""
        with self._mistakes_are_shown():
            values = _named(label, self.lab.presets, "preset")
            self._forget_report()
            try:
                self._apply(Change(values))
            except ValueError:
                self._apply(Change({**self._first, **values}))

    def pick(self, key: str) -> None:
        """Click on that part of the picture, or point at it."""
        with self._mistakes_are_shown():
            # A late click may mean a part that has gone.
            there = f'data-key="{escape(key)}"' in self.shown["svg"]
            self._apply(Change(self.lab.pick(key, self.lab.read(self.values)) if there else {}))

    def act(self, label: str) -> None:
        """Press the button of that name."""
        with self._mistakes_are_shown():
            action = self._work(label, self.lab.actions, "action")
            self._apply(action(self.lab, *self._asked_and_known()))

    def start(self, label: str) -> None:
        """Start a job; one at a time."""
        with self._mistakes_are_shown():
            if not self.running:
                job = self._work(label, self.lab.jobs, "job")
                self._job = job(self.lab, *self._asked_and_known())
                self._stopping, self._closing, self.failure = False, False, None
                self._end_s = time.monotonic() + LONGEST_S
                self._tell_report("")

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self._stopping = True

    # A job: `next_step` may take long and shows nothing, `tell` shows what it said.

    def step(self) -> None:
        """Make the job's next step and show it, for hosts that can wait for it."""
        if self.running:
            self.tell(self.next_step())

    def next_step(self) -> Progress | Exception | None:
        """What the job says next, what made it fail, or None at its end."""
        try:
            if not self._closing:
                return next(self._job, None)
            self._job.close()
        except Exception as error:
            return error
        return None

    def tell(self, step: Progress | Exception | None) -> None:
        """Show what the job reports and has found, even if the controls have moved since."""
        if not isinstance(step, Progress):
            self._end(step or self.failure)
        elif time.monotonic() > self._end_s and step.fraction < 1:
            self._closing = True
            self.failure = ValueError(
                f"Ended after {LONGEST_S:.0f} s, which is the most that a lab waits."
            )
        else:
            self._closing = self._stopping and step.fraction < 1
            self._tell_report("Stopped. " * self._closing + step.report, progress=step.fraction)
            try:
                if step.change:
                    with self._mistakes_are_shown():
                        self._apply(step.change)
            except Exception as fault:
                self._closing, self.failure = True, fault

    def _end(self, failure: Exception | None) -> None:
        self._job, self.failure = None, failure
        with suppress(Exception), self._mistakes_are_shown():
            self.draw()
        self.shown["progress"] = -1
        if failure is not None:
            self._tell_report(sentence(failure), failed=True)

    # How it is done.

    @property
    def revealed(self) -> bool:
        """Whether what was measured is shown beside a guess in the picture."""
        return bool(self.values.get("shown"))

    def as_revealed(self) -> "Session":
        """Another session of this lab, in which the same is asked and what was measured is shown."""
        other = Session(self.lab, None if self._has_kernel else self._known)
        other.found = self.found
        other.set({**self.values, "shown": True})
        return other

    def guesses(self) -> Sequence[Guess]:
        """What the reader has set in the picture, beside what was measured."""
        return self.lab.guesses(*self._asked_and_known())

    def view(self) -> View:
        """What the lab shows for the present answers."""
        return self.lab.view(*self._asked_and_known())

    def draw(self) -> None:
        """Show the view, in place of the former one or of a mistake."""
        if note := self.lab.noted(*self._asked_and_known()):
            self.found = note(self.found)
        view = self.view()
        table = [list(row) for row in view.table]
        self.shown |= {"svg": view.picture, "meaning": view.meaning, "table": table, "mistake": ""}
        self.error = None

    def _asked_and_known(self) -> tuple[object, object]:
        asked = self.lab.read(self.values)
        return asked, self._known(asked, self.found)

    def _work(self, label: str, among: Mapping[str, Callable], what: str) -> Callable:
        work = _named(label, among, what)
        if label in self.lab.needs_kernel and not self._has_kernel:
            raise ValueError(NEEDS_A_KERNEL)
        return work

    def _apply(self, change: Change) -> None:
        """Move controls, add to what is known, and draw once."""
        for name in change.values:
            _named(name, self.lab.fields, "control")
        try:
            for (
                name,
                field,
            ) in self.lab.fields.items():  # in their order: an end depends on those before it
                if name in change.values:
                    self.values[name] = field.held(change.values[name])
                    self._follow()
        finally:
            self._lay_out()
        if change.found is not None:
            self.found = change.found(self.found)
        self.draw()

    def _follow(self) -> None:
        """A slider that stands at its end stays there when the end moves."""
        for name, one in self._sliders.items():
            before, self._ends[name] = self._ends[name], one.end(self.values)
            if self.values[name] >= min(before, self._ends[name]):
                self.values[name] = self._ends[name]

    def _lay_out(self) -> None:
        for name, field in self.lab.fields.items():
            with suppress(
                ValueError
            ):  # of names that cannot be read: the lab says so, their sliders stay
                self.parts[name] = field.parts(self.values[name], self.values)

    def _forget_report(self) -> None:
        """Clear the last job's report: it belongs to the former answers."""
        if not self.running:
            self._tell_report("")

    def _tell_report(self, words: str, *, failed: bool = False, progress: float = -1) -> None:
        self.shown |= {"report": words, "failed": failed, "progress": progress}

    @contextmanager
    def _mistakes_are_shown(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error, self.shown["mistake"] = error, sentence(error)
            if not isinstance(error, ValueError):
                raise


def _named(label: str, among: Mapping[str, object], what: str) -> object:
    if label not in among:
        raise ValueError(
            f"This lab has no {what} {label[:40]}. It has: {', '.join(among) or 'none'}."
        )
    return among[label]
