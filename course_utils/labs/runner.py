"""A panel's jobs: one at a time, each in a thread that the reader can stop, and that ends when its time is up."""

import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress

from course_utils import measure
from course_utils.labs.lab import Change, Progress, sentence
from course_utils.labs.screen import Screen
from course_utils.quantities import Number

LONGEST_S = 240.0  # that a job may take, whatever its own limits say; seen between two of its steps
REPORT_S = 0.1  # between two reports of a job


class Runner:
    """Runs one job at a time, and shows what it reports.

    `redraw(change)` shows what is known after a step, `on_busy(busy)` that a job begins or ends. Whoever moves the
    panel meanwhile holds the same lock.
    """

    def __init__(
        self,
        screen: Screen,
        lock: AbstractContextManager,
        redraw: Callable[[Change], None],
        on_busy: Callable[[bool], None],
    ) -> None:
        self.busy = False
        self._screen, self._lock, self._redraw, self._on_busy = screen, lock, redraw, on_busy
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._report_due_s = 0.0

    def start(self, steps: Iterator[Progress]) -> None:
        """Run a job that has been made ready. Returns at once."""
        with self._lock:  # which the job's first step waits for
            self._screen.show_report("")
            self._error, self._report_due_s = None, 0.0
            self._stopping.clear()
            # The page shows what a thread sends only if it knows which click asked for it.
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._run, steps), daemon=True)
            self._thread.start()
            self._set_busy(True)

    def stop(self) -> None:
        """Ask the job to end; it does at its next step."""
        self._stopping.set()

    def wait(self, timeout_s: Number) -> None:
        """Until the job has ended; if it failed, with its exception."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise TimeoutError(f"The job is still running after {timeout_s} s.")
        if self._error is not None:
            raise self._error

    def _run(self, steps: Iterator[Progress]) -> None:
        deadline = time.monotonic() + LONGEST_S
        try:
            with closing(steps):
                for step in steps:
                    if time.monotonic() > deadline and step.fraction < 1:
                        raise ValueError(
                            f"Ended after {LONGEST_S:.0f} s, which is the most that a lab waits."
                        )
                    stopped = self._stopping.is_set() and step.fraction < 1
                    self._show(step, stopped)
                    if stopped:
                        break
        except Exception as error:  # wait() raises it
            self._error = _without_its_tensors(error)
        finally:
            self._end()

    def _show(self, step: Progress, stopped: bool) -> None:
        with self._lock:
            # Jupyter's server drops messages that come too thickly, the last ones included.
            if stopped or step.change or step.fraction >= 1 or time.monotonic() >= self._report_due_s:
                words = f"Stopped. {step.report}" if stopped else step.report
                self._screen.show_report(words, progress=step.fraction)
                self._report_due_s = time.monotonic() + REPORT_S
            if step.change:
                self._redraw(step.change)

    def _end(self) -> None:
        with self._lock:
            with suppress(Exception):  # which stands on the screen
                self._redraw(Change())
            if self._error is not None:
                self._screen.show_report(sentence(self._error), failed=True)
            self._screen.progress = -1
            self._set_busy(False)

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self._on_busy(busy)


def _without_its_tensors(error: Exception) -> Exception:
    """What to keep of an error. Where memory ran out, its traceback still holds what did fit, and would go on doing so."""
    why = measure.memory_ran_out(error)
    return ValueError(f"{why} Make it smaller, and try again.") if why else error
