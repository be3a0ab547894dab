"""Waits end as soon as a condition holds; the seconds only bound a wait that would never end."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import psutil

Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value], what: str, seconds: float = 120) -> Value:
    """Wait until the condition is true, and return what it said then."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {seconds} s until: {what}.")
        time.sleep(0.02)
    return value


def children(ended_within_s: float = 0) -> list[psutil.Process]:
    """Return the child processes of measurements or trainings that run after so many seconds."""
    started = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # the child may end while it is looked at
            if "course_utils.subjects.child_processes.process" in child.cmdline():
                started.append(child)
    _, still_running = psutil.wait_procs(started, ended_within_s)
    return still_running


def has_ended(pid: int) -> bool:
    """Whether the process has ended; it may be a zombie, if nobody reaps it in a container."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it may end at any moment, even between two calls
        return True
