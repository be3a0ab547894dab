"""What waits, waits on a condition; the seconds only bound a wait that would never end."""

import time
from collections.abc import Callable
from contextlib import suppress
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


def children(ended_within_s: float = 0) -> list[psutil.Process]:
    """The course's processes that this one has started, and that live on after so many seconds."""
    started = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # gone meanwhile
            if "course_utils.subjects.child_processes.process" in child.cmdline():
                started.append(child)
    return psutil.wait_procs(started, ended_within_s)[1]


def has_ended(pid: int) -> bool:
    """Whether it is gone, or a zombie: in a container nobody may reap it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # at any moment, so not asked before
        return True
