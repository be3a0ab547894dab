"""One measurement at a time on each device. A second one waits, even in another process."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from course_utils.measure.results import Step, Steps
from course_utils.quantities import Number

_WAITING = "Waiting: another process is measuring on this device, and two would time each other."


@contextmanager
def lock_file(device: str) -> Iterator[int | None]:
    """An open file that stands for the device, for all processes of this user; None where there can be none."""
    which, descriptor = torch.device(device), None
    name = f"course-utils-timing-{os.getuid()}-{which.type}-{which.index or 0}.lock"
    # Better timed beside another than not at all: there may be no room, or a file or link of someone else's.
    with contextlib.suppress(OSError):
        path = Path(tempfile.gettempdir()) / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough if a child has inherited it
            os.close(descriptor)


def wait_for(lock: int | None, begun: Number, deadline: Number) -> Steps[bool]:
    """Wait until the lock is ours or the time is up; returns whether it is ours."""
    while lock is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            now = time.perf_counter()
            if now >= deadline:
                return False
            yield Step((now - begun) / (deadline - begun), _WAITING)
            time.sleep(min(0.05, max(0.0, deadline - now)))
    return True
