"""Work in a process of its own, which can be killed: what runs for long in one call can't be stopped otherwise.

The process ends with its parent, or when nobody listens any more, and so do the processes that it has started.
"""

import importlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import TextIO

from course_utils.measure import Step, memory_ran_out
from course_utils.quantities import Number

Say = Callable[[Step], None]
_LISTEN_S = 0.1  # so soon a child that is no longer wanted ends


def steps_of(
    work: Callable[..., Mapping[str, object]] | str,
    order: Mapping[str, object],
    *,
    begun: Callable[[subprocess.Popen], None] = lambda process: None,
    at_most_s: Number = math.inf,
    slow_disk_s: Number = 0.0,
) -> Generator[Step, None, dict[str, object]]:
    """work(say, **order) in a process of its own: what it says, step by step, and in the end what it returns.

    `work` is a function of some module, or its name with the module's, if that is not to be imported here; order
    and result are what JSON can hold. Whoever drops this generator kills the process. The work's ValueError or
    RuntimeError comes out as a ValueError here. `begun` is told the process, to kill it for instance; after
    `at_most_s` it ends by itself, whatever its parent does. With `slow_disk_s` each flush to the disk takes so
    much longer: long enough to be killed in the middle of one.
    """
    with tempfile.TemporaryFile("w+") as complaints:
        name = work if isinstance(work, str) else f"{work.__module__}.{work.__name__}"
        limits = f"{at_most_s}", f"{slow_disk_s}"
        child = subprocess.Popen(
            [sys.executable, "-m", "course_utils.workers.process", name, json.dumps(order), *limits],
            stdin=subprocess.PIPE,  # closed when we end, however that comes
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,  # so that all that it starts can be ended with it
        )
        try:
            begun(child)
            return (yield from _heard_from(child, complaints))
        finally:
            with suppress(ProcessLookupError, PermissionError):  # macOS says so of a group that has ended
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdin.close()
            child.stdout.close()


def result_of(
    work: Callable[..., Mapping[str, object]] | str,
    order: Mapping[str, object],
    *,
    at_most_s: Number = math.inf,
) -> dict[str, object]:
    """What steps_of returns, without what it says on the way."""
    steps = steps_of(work, order, at_most_s=at_most_s)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _heard_from(child: subprocess.Popen, complaints: TextIO) -> Generator[Step, None, dict[str, object]]:
    yield (latest := Step(0, "Starting a process of its own, which can be killed."))
    begun_line = b""
    with selectors.DefaultSelector() as ear:
        ear.register(child.stdout, selectors.EVENT_READ)
        while True:
            ended = child.poll() is not None  # before it is listened to: what it said at last is still heard
            if not ear.select(_LISTEN_S):
                if not ended:
                    yield Step(latest.fraction, latest.report)  # its numbers come once
                    continue
                heard = b""  # what it has started may live on, and hold the pipe
            else:
                heard = os.read(child.stdout.fileno(), 2**16)  # readline would hide further lines from select
            if not heard:
                complaints.seek(0)
                last_words = "".join(complaints.readlines()[-1:]).strip() or f"Its status is {child.wait()}."
                raise RuntimeError(f"The process ended early. {last_words}")
            *lines, begun_line = (begun_line + heard).split(b"\n")
            for said in map(json.loads, lines):
                if "refusal" in said:
                    raise ValueError(said["refusal"])
                if "result" in said:
                    return said["result"]
                yield (latest := Step(**said))


def _end_with_the_parent() -> None:
    def listen() -> None:
        while os.read(0, 1):  # not sys.stdin, whose lock would stay taken in a process that the work forks
            pass
        _end_all()

    threading.Thread(target=listen, daemon=True).start()


def _end_after(at_most_s: Number) -> None:
    def end() -> None:
        print(
            f"Ended after {at_most_s:g} s, which is the most that it was given.", file=sys.stderr, flush=True
        )
        _end_all()

    timer = threading.Timer(at_most_s, end)
    timer.daemon = True
    timer.start()


def _end_all() -> None:
    """This process and all that it has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _slow_the_disk(seconds: Number) -> None:
    flush = os.fsync

    def slowly(file: int) -> None:
        time.sleep(seconds)
        flush(file)

    os.fsync = slowly


def _main(name: str, order: str, at_most_s: str, slow_disk_s: str) -> None:
    _end_with_the_parent()
    _end_after(min(float(at_most_s), threading.TIMEOUT_MAX))
    _slow_the_disk(float(slow_disk_s))

    ours = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed, by libraries too, must not come between

    def write(what: dict[str, object]) -> None:
        print(json.dumps(what), file=ours, flush=True)

    try:
        module, _, function = name.rpartition(".")
        work = getattr(importlib.import_module(module), function)
        write({"result": work(lambda step: write(vars(step)), **json.loads(order))})
    except (ValueError, RuntimeError, MemoryError) as error:
        write({"refusal": memory_ran_out(error) or str(error)})


if __name__ == "__main__":
    _main(*sys.argv[1:])
