"""What waits, waits on a condition; the seconds only bound a wait that would never end."""

import time
from collections.abc import Callable
from typing import TypeVar

import psutil

Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value], what: str, seconds: float = 120) -> Value:
    """What the condition said when it was first true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {seconds} s until: {what}.")
        time.sleep(0.02)
    return value


def has_ended(pid: int) -> bool:
    """Gone, or a zombie: in a container there may be nobody who asks for it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # at any moment, so not asked before
        return True
