"""An answer that does not end is stopped, after some seconds of processor time."""

import functools
import signal
import threading

from course_utils.core.say import Number

# Seconds of a processor's time, so that a busy machine ends nobody's answer. No call of a solution
# takes more than 0.05 s.
LONGEST_S = 5.0


class TooLongError(BaseException):
    """The time is up.

    It is a BaseException, so that the reader's `except Exception` does not catch it.
    """


class Clock:
    """A context manager: when the time is up, it raises TooLongError in the code inside.

    The time is `longest_s`, or LONGEST_S if none is given. In other threads than the main one it
    does nothing, because Python handles signals only in the main thread.
    """

    def __init__(self, longest_s: Number | None = None) -> None:
        self.longest_s = LONGEST_S if longest_s is None else longest_s

    def __enter__(self) -> None:
        _set_timer(self.longest_s)

    def __exit__(self, *_: object) -> None:
        _set_timer(0)


def _set_timer(seconds: Number) -> None:
    """Let TooLongError be raised after that many seconds; 0 seconds switch the timer off.

    Nothing happens in other threads than the main one, or on Windows, which has no such timer.
    """
    is_main_thread = threading.current_thread() is threading.main_thread()
    if is_main_thread and _install_handler():
        # This timer counts only while the process runs on a processor.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


@functools.cache  # since setting the handler takes ten times as long as setting the timer
def _install_handler() -> bool:
    """Let the timer's signal raise TooLongError; return False where there is no such signal.

    The handler stays installed. Later calls only return the first call's result from the cache.
    """
    if not hasattr(signal, "SIGVTALRM"):
        return False
    signal.signal(signal.SIGVTALRM, _end)
    return True


def _end(*_: object) -> None:
    """Raise TooLongError: the handler of the timer's signal."""
    raise TooLongError
