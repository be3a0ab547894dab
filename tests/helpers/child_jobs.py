"""Jobs for a child process, with which tests try how its messages are received."""

import os
import signal
import time

from course_utils.core.measure import MeasurementProgress
from course_utils.core.measure.results import OnProgress


def much_at_once(on_progress: OnProgress, lines: int) -> dict[str, object]:
    """Send many messages at once, and then none for longer than any test takes."""
    for number in range(lines):
        on_progress(MeasurementProgress(0, "", {"number": number}))
    time.sleep(600)
    return {}


def orphaned(on_progress: OnProgress) -> dict[str, object]:
    """Be killed, and leave a process behind that still holds this end of the pipe."""
    child = os.fork()
    if not child:  # in the process that is left behind; the test kills it
        time.sleep(600)
    on_progress(MeasurementProgress(0, "", {"child": child}))
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
