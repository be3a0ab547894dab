"""Work for a process of its own that talks, for the tests of how it is heard."""

import os
import signal
import time

from course_utils.core.measure import MeasurementProgress
from course_utils.core.measure.results import OnProgress


def much_at_once(on_progress: OnProgress, lines: int) -> dict[str, object]:
    """Many lines in one breath, and then a silence that is longer than any test."""
    for number in range(lines):
        on_progress(MeasurementProgress(0, "", {"number": number}))
    time.sleep(600)
    return {}


def orphaned(on_progress: OnProgress) -> dict[str, object]:
    """It is killed, and leaves a process behind that holds its end of the pipe."""
    child = os.fork()
    if not child:
        time.sleep(600)
    on_progress(MeasurementProgress(0, "", {"child": child}))
    os.kill(os.getpid(), signal.SIGKILL)
    return {}
