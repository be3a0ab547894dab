"""Work in a process of its own, which can be killed: what runs for long in one call can't be stopped otherwise.

The process ends with its parent, or when nobody listens any more.
"""

import importlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from typing import TextIO

from course_utils.measure import Step

Say = Callable[[Step], None]
_LISTEN_S = 0.1  # so soon a child that is no longer wanted ends


def steps_apart(
    work: Callable[..., Mapping[str, object]], order: Mapping[str, object]
) -> Generator[Step, None, dict[str, object]]:
    """work(say, **order) in a process of its own: what it says, step by step, and in the end what it returns.

    `work` is a function of some module, by name; order and result are what JSON can hold. Whoever drops this
    generator kills the process. The work's ValueError or RuntimeError comes out as a ValueError here.
    """
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", "course_utils.apart", work.__module__, work.__name__, json.dumps(order)],
            stdin=subprocess.PIPE,  # closed when we end, however that comes
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        )
        try:
            return (yield from _heard_from(child, complaints))
        finally:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()


def _heard_from(child: subprocess.Popen, complaints: TextIO) -> Generator[Step, None, dict[str, object]]:
    latest = Step(0, "Starting a process of its own, which can be killed.")
    with selectors.DefaultSelector() as ear:
        ear.register(child.stdout, selectors.EVENT_READ)
        while True:
            yield latest
            if not ear.select(_LISTEN_S):
                continue
            line = child.stdout.readline()
            if not line:
                complaints.seek(0)
                last_words = "".join(complaints.readlines()[-1:]).strip() or f"Its status is {child.wait()}."
                raise RuntimeError(f"The process that measured ended early. {last_words}")
            said = json.loads(line)
            if "refusal" in said:
                raise ValueError(said["refusal"])
            if "result" in said:
                return said["result"]
            latest = Step(**said)


def _end_with_the_parent() -> None:
    def listen() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()


def _main(module: str, name: str, order: str) -> None:
    _end_with_the_parent()

    ours = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed, by libraries too, must not come between

    def write(what: dict[str, object]) -> None:
        print(json.dumps(what), file=ours, flush=True)

    try:
        work = getattr(importlib.import_module(module), name)
        write({"result": work(lambda step: write(vars(step)), **json.loads(order))})
    except (ValueError, RuntimeError) as error:
        write({"refusal": str(error)})


if __name__ == "__main__":
    _main(*sys.argv[1:])
