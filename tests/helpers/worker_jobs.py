"""Work for a process of its own that talks, for the tests of how it is heard."""

import os
import signal
import time

from course_utils.core.measure import Step
from course_utils.core.measure.results import OnStep


def much_at_once(on_step: OnStep, lines: int) -> dict[str, object]:
    """Many lines in one breath, and then a silence that is longer than any test."""
    for number in range(lines):
        on_step(Step(0, "", {"number": number}))
    time.sleep(600)
    return {}


def orphaned(on_step: OnStep) -> dict[str, object]:
    """It is killed, and leaves a process behind that holds its end of the pipe."""
    child = os.fork()
    if not child:
        time.sleep(600)
    on_step(Step(0, "", {"child": child}))
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
