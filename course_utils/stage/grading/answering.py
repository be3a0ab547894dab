"""The process that runs what students wrote. It never judges, and is started with nothing in it that an answer may not know.

It imports torch and the course once, and then waits: for each answer it forks a child. The child hears the notebook's code
over a socket of its own, runs what the answer needs, and says what comes when the judge asks, in plain values. This process
hears nothing of the code; it ends the child, and whatever the child has left.
"""

import ast
import gc
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import psutil

import course_utils.core.accountant as course_terms
from course_utils import chapters
from course_utils.core.accountant import Model
from course_utils.engine.judging.exercises import names_used
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.engine.judging.sentences import said_by
from course_utils.stage.grading import bounds, flags, noting, observing, wire
from course_utils.stage.grading.slicing import needed, statements
from course_utils.stage.grading.talking import SilentError, Talk

CONTROL = 0  # standard input is the judge's
MEANT_TO_END_S = 1.0  # so long a child that has gone silent may take to be gone
TERMS = dict(vars(course_terms))  # as they are, before calls of them are noted
RIGHT: set[str] = set()  # the checks whose answers of this notebook were right


class Lent:
    """What a check says here: nothing. What follows uses the answer; or our term, if the answer is not known to be right."""

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.or_ours = answer

    @property
    def kept(self) -> object:
        return self.or_ours if self.name in RIGHT else TERMS.get(self.name, self.or_ours)


class Stand(ModuleType):
    """It stands for a module of checks, in which the answers are: they are not in this process."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda answer: Lent(name, answer)


def main(confined: bool, folder: str) -> None:
    """Wait for the judge: the course's cells first, then one answer after the other."""
    control = socket.socket(fileno=CONTROL)
    bounds.keep_memory_to_itself()
    talk = Talk(control, bounds.LONGEST_START_S)
    _prepare(talk.hear())
    talk.say("ready")
    control.setblocking(True)
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        asked, ends, *_ = socket.recv_fds(control, 1, 1)
        if not asked:
            return
        child = os.fork()
        if not child:
            _answer_and_end(ends[0], folder)
        os.close(ends[0])
        status = _watched(child, control, awake)
        _end_all(child, confined=confined)
        _empty(folder)
        control.sendall(status.to_bytes(4, "big", signed=True))


def _prepare(told: Mapping[str, object]) -> None:
    """Import what the course's cells import, and read the cells, once for all."""
    for path in Path(chapters.__path__[0]).glob("*/*check.py"):
        stand = Stand(f"{chapters.__name__}.{path.parent.name}.{path.stem}")
        sys.modules[stand.__name__] = stand
        setattr(import_module(f"{chapters.__name__}.{path.parent.name}"), path.stem, stand)
    for name in told["modules"]:
        import_module(name)
    for text in told["imports"]:
        exec(text, {})
    for cells in told["cells"]:
        for cell, text in cells.items():
            statements(cell, text)
    gc.freeze()  # what the answers' processes share stays shared


def _watched(child: int, control: socket.socket, awake: int) -> int:
    """How the child ended: on its own, or because the judge has heard enough."""
    told = b""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            while not told or told == b"t":  # the judge says in any case when it has heard enough
                told = control.recv(1) or b"k"
                if told == b"t":
                    control.sendall(bytes(4))
            return os.waitstatus_to_exitcode(status)
        if told == b"k":
            break
        # After a "w" the child has fallen silent, and is likely to be gone in a moment.
        ready, *_ = select.select(
            [control] * (not told) + [awake], [], [], MEANT_TO_END_S if told else None
        )
        if awake in ready:
            os.read(awake, 100)
        if control in ready:
            told = control.recv(1) or b"k"
        if told == b"t":
            told = b""
            control.sendall(_spent_ms(child).to_bytes(4, "big"))
        if told and not ready:
            break
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _spent_ms(child: int) -> int:
    """How much of a processor's time that process has taken."""
    try:
        times = psutil.Process(child).cpu_times()
    except (psutil.Error, OSError):
        return 0
    return int(1000 * (times.user + times.system))


def _end_all(child: int, *, confined: bool) -> None:
    """End what the child has left behind. In a space of processes of its own that is every other process."""
    with suppress(ProcessLookupError, PermissionError):  # macOS says so of a group that has ended
        if confined:
            os.kill(-1, signal.SIGKILL)
        else:
            os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _empty(folder: str) -> None:
    """Empty the answer's folder. If that fails, this process ends, and the judge starts another one."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _answer_and_end(end: int, folder: str) -> NoReturn:
    """All that the child does."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.dup2(end, 3)
        os.closerange(4, 4096)
        os.chdir(folder)
        tempfile.tempdir = os.environ["HOME"] = os.getcwd()
        sys.dont_write_bytecode = True
        with socket.socket(fileno=3) as own:
            talk = Talk(own, 1e6, {Model.__name__: Model})
            asked = talk.hear()
            bounds.bound(os.getcwd())
            _answer(talk, asked)
        status = 0
    except SilentError:
        status = 0  # the judge has heard enough
    finally:
        os._exit(status)


def _answer(talk: Talk, asked: Mapping[str, object]) -> None:
    """Say what the answer is, and then what it gives to each call."""
    RIGHT.update(asked["right"])
    name = asked["check"].partition(".")[2]
    found, answer = needed(asked["code"], name, asked["cell"], asked["asked"])
    cells = {one.cell for one in found}
    every = [
        one
        for name, text in asked["code"].items()
        if name in cells
        for one in statements(name, text)
    ]
    theirs = [one.code for one in every if one.text not in asked["course"]]
    talk.say(flags.found([*theirs, answer], found, asked["allowed"]))
    noting.watch(asked["allowed"], [one for one in every if one.text in asked["course"]])
    value, problem = _value(found, answer, asked["cell"])
    if problem is not None:
        talk.say({"is": "stopped", "attempted": bool(found), **problem})
        return
    talk.say(_described(value))
    while True:
        case = talk.hear()
        if isinstance(case, tuple):
            _say_outcome(talk, value, case)
        else:
            observing.OBSERVE[case["do"]](talk, value, case)


def _value(found: list, answer: ast.expr, cell: str) -> tuple[object, dict[str, object] | None]:
    """The answer's value; or why there is none."""
    space: dict[str, object] = {"__name__": "__main__"}
    stopped: dict[str, BaseException] = {}  # by cell; what stands below in it does not run
    for one in found:
        try:
            if one.cell not in stopped:
                one.run(space)
        except BaseException as error:
            stopped[one.cell] = error
    try:
        return eval(compile(ast.Expression(answer), cell, "eval"), space), None
    except BaseException as error:
        error = next(reversed(stopped.values()), error)
        return None, {"error": type(error).__name__, "said": said_by(error)}


def _described(value: object) -> dict[str, object]:
    """A function by its name and what it takes; any other value as it is."""
    if not callable(value):
        return {"is": "value", "value": observing.sayable(value), "noted": noting.NOTED}
    name = getattr(value, "__name__", "<")
    told = {"is": "function", "name": str(name), "takes": observing.taken_by(value)}
    return told | {"uses": sorted(names_used(value))}


def _say_outcome(talk: Talk, function: object, case: tuple) -> None:
    """What one call gave, or how it stopped; and whether it changed what it was given."""
    given = wire.encoded(case)
    try:
        with Clock():
            came = observing.sayable(function(*case))
    except (Exception, SystemExit, KeyboardInterrupt, TooLongError) as error:
        talk.say({"error": observing.told(function, error), "noted": noting.NOTED})
        return
    changed = wire.encoded(observing.sayable(case)) != given
    talk.say({"came": came, "changed": changed, "noted": noting.NOTED})


if __name__ == "__main__":
    main(sys.argv[1] == "confined", sys.argv[2])
