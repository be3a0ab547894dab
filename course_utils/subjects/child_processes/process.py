"""Work in a process of its own, which can be killed. One long call cannot be stopped otherwise.

The process ends with its parent, or when nobody reads its results any more. So do the processes
that it has started.
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
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TextIO

from course_utils.core.measure import MeasurementProgress, memory_ran_out, results
from course_utils.core.measure.results import OnProgress, Steps
from course_utils.core.say import Number
from course_utils.core.say.language import template

# A function, or its name behind its module's, such as
# "course_utils.subjects.child_processes.products.timing_steps".
Work = Callable[..., object] | str
_WAIT_S = 0.1  # for a message of the child, before its latest step is repeated
_STARTING = MeasurementProgress(0, template("Starting a process of its own, which can be killed."))


def steps_of(
    work: Work,
    order: Mapping[str, object],
    *,
    at_most_s: Number = math.inf,
) -> Steps[object]:
    """Run work(**order) in a process of its own; yield its steps, and return its result.

    `work` is a function of some module; or the function's name behind the module's, if that module
    is not to be imported here. The function is a generator of steps, or has a parameter
    `on_progress` that it calls with each step. `order` has the function's arguments by name. These
    arguments and the result have to be picklable.

    Closing this generator kills the process. After `at_most_s` the process ends by itself, whatever
    its parent does. A ValueError, RuntimeError or MemoryError of the work becomes a ValueError
    here. RuntimeError if the process ends without a result.
    """
    name = work if isinstance(work, str) else f"{work.__module__}.{work.__name__}"
    order_in_hex = pickle.dumps(dict(order)).hex()
    receiver, sender = Pipe(duplex=False)
    with tempfile.TemporaryFile("w+") as output, receiver:
        with sender:  # closed here, once the child has its own copy
            child = _started(name, order_in_hex, str(at_most_s), sender, output)
        try:
            return (yield from _steps_from(child, receiver, output))
        finally:
            # macOS denies the permission to kill a group that has ended.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdin.close()


def _started(
    name: str, order_in_hex: str, at_most_s: str, sender: Connection, output: TextIO
) -> subprocess.Popen:
    """Start the child, which sends its steps and its result by `sender`, and prints to `output`."""
    module = "course_utils.subjects.child_processes.process"
    command = [sys.executable, "-m", module, name, order_in_hex, at_most_s, str(sender.fileno())]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # the child sees it close when this process ends, in whatever way
        stdout=output,  # whatever libraries print
        stderr=output,
        pass_fds=[sender.fileno()],
        start_new_session=True,  # so that the processes that it starts can be killed with it
    )


def result_of(work: Work, order: Mapping[str, object], *, at_most_s: Number = math.inf) -> object:
    """Run work(**order) as `steps_of` does, and return its result, without the steps."""
    return results.result_of(steps_of(work, order, at_most_s=at_most_s))


def _steps_from(child: subprocess.Popen, receiver: Connection, output: TextIO) -> Steps[object]:
    """Yield the steps that the child sends, and return the result that it sends at last.

    A message is ("step", a MeasurementProgress), ("result", a result) or ("error", a sentence).
    While there is no new step, the latest one is repeated, so that the caller can stop at any time.
    """
    latest = _STARTING
    yield latest
    while True:
        # Polled before the pipe is read: if the child has ended, its last message is in the pipe.
        had_ended = child.poll() is not None
        try:
            if receiver.poll(_WAIT_S):
                kind, content = receiver.recv()
            elif had_ended:  # processes that the child has started may still hold the pipe open
                raise EOFError
            else:
                # Nothing came within _WAIT_S. The latest step is repeated, without its numbers,
                # which are for drawing and have been drawn.
                yield replace(latest, numbers={})
                continue
        except EOFError:  # from above, or from recv: nobody holds the sending end any more
            reason = _last_line(output) or f"Its status is {child.wait()}."
            raise RuntimeError(f"The process ended early. {reason}") from None
        if kind == "error":
            raise ValueError(content)
        if kind == "result":
            return content
        latest = content
        yield latest


def _last_line(output: TextIO) -> str:
    """Return the last line that the child has printed, such as an error; empty if there is none."""
    output.seek(0)
    lines = output.readlines()
    return lines[-1].strip() if lines else ""


# What runs in the child process.


def _end_with_the_parent() -> None:
    """Start a thread that ends all processes when the parent ends, which closes stdin."""

    def wait() -> None:
        """Wait until the parent has ended, and then end all processes."""
        # File descriptor 0 is read, and not sys.stdin: if the work forked meanwhile, the lock of
        # sys.stdin would stay locked in the new process. Reading returns nothing only at the end.
        while os.read(0, 1):
            pass
        _end_all()

    threading.Thread(target=wait, daemon=True).start()


def _end_after(at_most_s: Number) -> None:
    """Start a timer that prints the reason and ends all processes after this time."""

    def end() -> None:
        """Print the reason, and end all processes."""
        reason = f"Ended after {at_most_s:g} s, which is the most that it was given."
        print(reason, file=sys.stderr, flush=True)
        _end_all()

    timer = threading.Timer(at_most_s, end)
    timer.daemon = True
    timer.start()


def _end_all() -> None:
    """End this process and all processes that it has started."""
    if os.getpgrp() == os.getpid():  # otherwise the group is the parent's, which has to go on
        os.killpg(0, signal.SIGKILL)
    os._exit(1)  # and not sys.exit, which would end only the thread that calls it


def _main(name: str, order_in_hex: str, at_most_s: str, file_descriptor: str) -> None:
    """Do the work, and send its steps and its result, or its error, to the parent.

    The arguments are texts, because they come from the command line; `name` is that of the work.
    """
    _end_with_the_parent()
    # Without a limit at_most_s is inf, and a timer takes no more than TIMEOUT_MAX.
    _end_after(min(float(at_most_s), threading.TIMEOUT_MAX))
    sender = Connection(int(file_descriptor), readable=False)

    def on_progress(step: MeasurementProgress) -> None:
        sender.send(("step", step))

    try:
        module, _, function = name.rpartition(".")
        work = getattr(importlib.import_module(module), function)
        order = pickle.loads(bytes.fromhex(order_in_hex))
        result = done_here(work, order, on_progress)
        sender.send(("result", result))
    except (ValueError, RuntimeError, MemoryError) as error:
        # memory_ran_out returns a sentence if the error means that, and otherwise "".
        sender.send(("error", memory_ran_out(error) or str(error)))


def done_here(
    work: Callable[..., object], order: Mapping[str, object], on_progress: OnProgress
) -> object:
    """Do the work in this process, and return its result. `on_progress` is called at each step.

    The work either calls `on_progress` itself, or is a generator that yields the steps.
    """
    if "on_progress" in inspect.signature(work).parameters:
        return work(on_progress=on_progress, **order)
    return results.result_of(work(**order), on_progress)


if __name__ == "__main__":
    _main(*sys.argv[1:])
