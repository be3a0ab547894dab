"""Work in a thread that the reader can stop, and that ends when its time is up."""

import contextvars
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import TypeVar

from course_utils import measure
from course_utils.labs.lab import Progress
from course_utils.measure import Step
from course_utils.quantities import Number

Result = TypeVar("Result")
LONGEST_S = 240.0  # that a job may take, whatever its own limits say; seen between two of its steps


def as_progress(
    steps: Generator[Step, None, Result],
    *,
    at_most_s: Number,
    begun: Number = 0,
    share: Number = 1,
    prefix: str = "",
) -> Generator[Progress, None, Result]:
    """A measurement's steps as a job's: from `begun` on its share of the whole, and ended when time is up."""
    deadline = time.monotonic() + at_most_s
    with closing(steps):
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            if time.monotonic() > deadline:
                raise ValueError(f"Ended after {at_most_s:.0f} s, which is the most that this lab waits.")
            yield Progress(begun + share * min(0.98, step.fraction), f"{prefix}{step.report}")


class Job:
    """A generator of Progress that runs in a thread of its own from `start` on.

    `heard(progress, stopped)` is told each step, the last with whether Stop has ended it there; `ended(error)`, once,
    how it came out.
    """

    def __init__(
        self,
        steps: Iterator[Progress],
        heard: Callable[[Progress, bool], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        self.error: Exception | None = None
        self._steps, self._heard, self._ended = steps, heard, ended
        self._stopping = threading.Event()
        # The page shows what a thread sends only if it knows which click asked for it.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)

    def start(self) -> None:
        """Returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; it does at its next step."""
        self._stopping.set()

    def wait(self, timeout_s: Number) -> None:
        """Until it has ended; if it failed, with its exception."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError(f"The job is still running after {timeout_s} s.")
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        deadline = time.monotonic() + LONGEST_S
        try:
            with closing(self._steps):
                for step in self._steps:
                    if time.monotonic() > deadline and step.fraction < 1:
                        raise ValueError(
                            f"Ended after {LONGEST_S:.0f} s, which is the most that a lab waits."
                        )
                    stopped = self._stopping.is_set() and step.fraction < 1
                    self._heard(step, stopped)
                    if stopped:
                        break
        except Exception as error:  # wait() raises it
            self.error = _without_its_tensors(error)
        finally:
            self._ended(self.error)


def _without_its_tensors(error: Exception) -> Exception:
    """What to keep of an error. Where memory ran out, its traceback still holds what did fit, and would go on doing so."""
    why = measure.memory_ran_out(error)
    return ValueError(f"{why} Make it smaller, and try again.") if why else error
