"""An answer that does not end is stopped, after some seconds of processor time."""

import functools
import signal
import threading

LONGEST_S = 5.0  # of a processor's time, so that a busy machine ends nobody's answer; no call of a solution takes 0.05


class TooLongError(BaseException):
    """The time is up. It is no Exception: the reader's `except Exception` does not catch it."""


class Clock:
    """Raises TooLongError in the code inside, after LONGEST_S. This works in the main thread only."""

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread() and _has_signal():
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread() and _has_signal():
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@functools.cache  # once for good: to set a handler takes ten times as long as to set the clock
def _has_signal() -> bool:
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, _end)
    return hasattr(signal, "SIGVTALRM")


def _end(*_: object) -> None:
    raise TooLongError
