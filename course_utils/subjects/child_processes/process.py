"""Work in a process of its own, which can be killed. One long call cannot be stopped otherwise.

The process ends with its parent, or when nobody listens any more. So do the processes that it has
started.
"""

import importlib
import inspect
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TextIO

from course_utils.core.measure import MeasurementProgress, memory_ran_out, results
from course_utils.core.measure.results import OnProgress, Steps
from course_utils.core.say import Number

Work = Callable[..., object] | str
_WAIT_S = 0.1  # between two looks at the child; no longer does an end go unseen
_STARTING = MeasurementProgress(0, "Starting a process of its own, which can be killed.")


def steps_of(
    work: Work,
    order: Mapping[str, object],
    *,
    at_most_s: Number = math.inf,
) -> Steps[object]:
    """work(**order) in a process of its own: its steps as they come, and then what it returns.

    `work` is a function of some module; or its name with the module's, if that module is not to be
    imported here. It is a generator of steps, or has a parameter `on_progress` that it calls with
    each step. Order and result have to be picklable.

    Whoever drops this generator kills the process. After `at_most_s` the process ends by itself,
    whatever its parent does. A ValueError or RuntimeError of the work becomes a ValueError here.
    """
    name = work if isinstance(work, str) else f"{work.__module__}.{work.__name__}"
    order_in_hex = pickle.dumps(dict(order)).hex()
    ear, mouth = Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as errors, ear:
        with mouth:
            child = _started(name, order_in_hex, str(at_most_s), mouth, errors)
        try:
            return (yield from _steps_from(child, ear, errors))
        finally:
            # macOS denies the permission to kill a group that has ended.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdin.close()


def _started(
    name: str, order_in_hex: str, at_most_s: str, mouth: Connection, errors: TextIO
) -> subprocess.Popen:
    module = "course_utils.subjects.child_processes.process"
    command = [sys.executable, "-m", module, name, order_in_hex, at_most_s, str(mouth.fileno())]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # it is closed when we end, in whatever way we do
        stdout=errors,  # whatever libraries print
        stderr=errors,
        pass_fds=[mouth.fileno()],
        start_new_session=True,  # so that all processes that it starts can be ended with it
    )


def result_of(work: Work, order: Mapping[str, object], *, at_most_s: Number = math.inf) -> object:
    """What steps_of returns, without the steps."""
    return results.result_of(steps_of(work, order, at_most_s=at_most_s))


def _steps_from(child: subprocess.Popen, ear: Connection, errors: TextIO) -> Steps[object]:
    latest = _STARTING
    yield latest
    while True:
        # This is asked before the pipe is read: what the child said at last is still heard.
        has_ended = child.poll() is not None
        try:
            if ear.poll(_WAIT_S):
                kind, content = ear.recv()
            elif has_ended:  # processes that it has started may live on, and hold the pipe open
                raise EOFError
            else:
                # Nothing new. What else a step holds is not said a second time.
                yield MeasurementProgress(latest.fraction, latest.report)
                continue
        except EOFError:
            last_words = _last_line(errors) or f"Its status is {child.wait()}."
            raise RuntimeError(f"The process ended early. {last_words}") from None
        if kind == "error":
            raise ValueError(content)
        if kind == "result":
            return content
        latest = content
        yield latest


def _last_line(errors: TextIO) -> str:
    errors.seek(0)
    lines = errors.readlines()
    return lines[-1].strip() if lines else ""


# What runs in the process.


def _end_with_the_parent() -> None:
    def wait() -> None:
        # Read from the file descriptor: if the work forks while sys.stdin is read, its lock stays
        # taken in the new process.
        while os.read(0, 1):
            pass
        _end_all()

    threading.Thread(target=wait, daemon=True).start()


def _end_after(at_most_s: Number) -> None:
    def end() -> None:
        words = f"Ended after {at_most_s:g} s, which is the most that it was given."
        print(words, file=sys.stderr, flush=True)
        _end_all()

    timer = threading.Timer(at_most_s, end)
    timer.daemon = True
    timer.start()


def _end_all() -> None:
    """End this process and all that it has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _main(name: str, order: str, at_most_s: str, mouth: str) -> None:
    _end_with_the_parent()
    _end_after(min(float(at_most_s), threading.TIMEOUT_MAX))
    connection = Connection(int(mouth), readable=False)

    def on_progress(step: MeasurementProgress) -> None:
        connection.send(("step", step))

    try:
        module, _, function = name.rpartition(".")
        work = getattr(importlib.import_module(module), function)
        arguments = pickle.loads(bytes.fromhex(order))
        result = done_here(work, arguments, on_progress)
        connection.send(("result", result))
    except (ValueError, RuntimeError, MemoryError) as error:
        connection.send(("error", memory_ran_out(error) or str(error)))


def done_here(
    work: Callable[..., object], order: Mapping[str, object], on_progress: OnProgress
) -> object:
    """Do the work in this process; the child process calls this."""
    if "on_progress" in inspect.signature(work).parameters:
        return work(on_progress=on_progress, **order)
    return results.result_of(work(**order), on_progress)


if __name__ == "__main__":
    _main(*sys.argv[1:])
