"""Work for a process of its own that talks, for the tests of how it is heard."""

import os
import signal
import tempfile
import time

from course_utils.measure import Step
from course_utils.workers.process import Say


def much_at_once(say: Say, lines: int) -> dict[str, object]:
    """Many lines in one breath, and then a silence that is longer than any test."""
    for number in range(lines):
        say(Step(0, "", {"number": number}))
    time.sleep(600)
    return {}


def flushed(say: Say) -> dict[str, object]:
    """How long it would have slept while one file was flushed to the disk."""
    slept: list[float] = []
    time.sleep = slept.append
    with tempfile.TemporaryFile() as file:
        os.fsync(file.fileno())
    return {"slept": slept}


def orphaned(say: Say) -> dict[str, object]:
    """It is killed, and leaves a process behind that holds its end of the pipe."""
    child = os.fork()
    if not child:
        time.sleep(600)
    say(Step(0, "", {"child": child}))
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def where_they_meet(say: Say) -> dict[str, object]:
    """Over two processes that torchrun's launcher starts: the address at which they meet, and gloo's."""
    from course_utils.training import sharded

    def addresses(_: str) -> sharded.Report:
        here = os.environ["MASTER_ADDR"]
        return {"address": here, "interface": os.environ.get("GLOO_SOCKET_IFNAME", "any")}

    return {"met": sharded._launched(2, addresses, "")}
