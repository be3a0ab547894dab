"""Work in a process of its own, which can be killed. A single long call cannot be stopped in another way.

The process ends with its parent, or when nobody listens any more, and so do the processes that it has started.
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
_WAIT_S = 0.1  # so soon a child that is no longer wanted ends


def steps_of(
    work: Work,
    order: Mapping[str, object],
    *,
    at_most_s: Number = math.inf,
) -> Steps[object]:
    """work(**order) in a process of its own: its steps as they come, and in the end what it returns.

    `work` is a function of some module, or its name with the module's, if that is not to be imported here. It is a
    generator of steps, or has a parameter `on_progress` to be called with each. Order and result
    are what can be pickled.
    Whoever drops this generator kills the process. The work's ValueError or RuntimeError comes out as a
    ValueError here. After `at_most_s` it ends by itself, whatever its parent does.
    """
    ear, mouth = Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as errors, ear:
        name = work if isinstance(work, str) else f"{work.__module__}.{work.__name__}"
        said = name, pickle.dumps(dict(order)).hex(), str(at_most_s), str(mouth.fileno())
        with mouth:
            child = subprocess.Popen(
                [sys.executable, "-m", "course_utils.subjects.child_processes.process", *said],
                stdin=subprocess.PIPE,  # closed when we end, however that comes
                stdout=errors,  # whatever libraries print
                stderr=errors,
                pass_fds=[mouth.fileno()],
                start_new_session=True,  # so that all that it starts can be ended with it
            )
        try:
            return (yield from _steps_from(child, ear, errors))
        finally:
            with suppress(
                ProcessLookupError, PermissionError
            ):  # macOS says so of a group that has ended
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdin.close()


def result_of(work: Work, order: Mapping[str, object], *, at_most_s: Number = math.inf) -> object:
    """What steps_of returns, without the steps."""
    return results.result_of(steps_of(work, order, at_most_s=at_most_s))


def _steps_from(child: subprocess.Popen, ear: Connection, errors: TextIO) -> Steps[object]:
    yield (latest := MeasurementProgress(0, "Starting a process of its own, which can be killed."))
    kind, content = "", None
    while kind != "result":
        has_ended = child.poll() is not None  # looked at first: what it said at last is still heard
        try:
            if ear.poll(_WAIT_S):
                kind, content = ear.recv()
            elif has_ended:  # what it has started may live on, and hold the pipe
                raise EOFError
            else:
                yield MeasurementProgress(latest.fraction, latest.report)  # its numbers come once
                continue
        except EOFError:
            errors.seek(0)
            last_words = (
                "".join(errors.readlines()[-1:]).strip() or f"Its status is {child.wait()}."
            )
            raise RuntimeError(f"The process ended early. {last_words}") from None
        if kind == "error":
            raise ValueError(content)
        if kind == "step":
            yield (latest := content)
    return content


# What runs in the process.


def _end_with_the_parent() -> None:
    def wait() -> None:
        while os.read(
            0, 1
        ):  # not sys.stdin, whose lock would stay taken in a process that the work forks
            pass
        _end_all()

    threading.Thread(target=wait, daemon=True).start()


def _end_after(at_most_s: Number) -> None:
    def end() -> None:
        print(
            f"Ended after {at_most_s:g} s, which is the most that it was given.",
            file=sys.stderr,
            flush=True,
        )
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
    say = Connection(int(mouth), readable=False).send
    try:
        module, _, function = name.rpartition(".")
        work = getattr(importlib.import_module(module), function)
        say(
            (
                "result",
                done_here(
                    work, pickle.loads(bytes.fromhex(order)), lambda step: say(("step", step))
                ),
            )
        )
    except (ValueError, RuntimeError, MemoryError) as error:
        say(("error", memory_ran_out(error) or str(error)))


def done_here(
    work: Callable[..., object], order: Mapping[str, object], on_progress: OnProgress
) -> object:
    """Do the work in this process; the child process calls this."""
    if "on_progress" in inspect.signature(work).parameters:
        return work(on_progress=on_progress, **order)
    return results.result_of(work(**order), on_progress)


if __name__ == "__main__":
    _main(*sys.argv[1:])
