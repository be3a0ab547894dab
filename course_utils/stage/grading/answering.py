"""The process that runs what students wrote. It never judges.

It is started with nothing in it that an answer must not know. It imports torch and the course
once, and then waits: for each answer it forks a child. The child hears the notebook's code over a
socket of its own, runs what the answer needs, and tells in plain values what each call gives. The
process itself never hears that code; it ends the child, and whatever the child has left behind.
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
from course_utils.stage.grading.talking import (
    FELL_SILENT,
    HEARD_ENOUGH,
    HOW_LONG,
    SilentError,
    Talk,
)

CONTROL = 0  # the judge talks to this process through its standard input
MEANT_TO_END_S = 1.0  # a child that has fallen silent gets so long to end by itself
ANSWERS_SOCKET = 3  # the first number behind standard input, output and error
MOST_OPEN_FILES = 4096
ALL_THE_TIME_S = 1e6  # it is the judge who gives up waiting, not the child
TERMS = dict(vars(course_terms))  # copied before `noting` wraps those functions
RIGHT: set[str] = set()  # the checks whose answers in this notebook the judge has found right


class Lent:
    """What stands for a check's verdict in this process, which never judges.

    `or_ours` is the student's answer in any case. `kept` is the answer only if the judge has found
    it right. Otherwise it is the accountant's function of that name, where there is one.
    """

    def __init__(self, name: str, answer: object) -> None:
        self.name = name
        self.or_ours = answer

    @property
    def kept(self) -> object:
        if self.name in RIGHT:
            return self.or_ours
        return TERMS.get(self.name, self.or_ours)


class Stand(ModuleType):
    """It stands for a module of checks. The module has the right answers, so it is not imported."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda answer: Lent(name, answer)


def main(confined: bool, folder: str) -> None:
    """Wait for the judge: first come the course's cells, then one answer after the other."""
    control = socket.socket(fileno=CONTROL)
    bounds.keep_memory_to_itself()
    talk = Talk(control, bounds.LONGEST_START_S)
    _prepare(talk.hear())
    talk.say("ready")
    control.setblocking(True)
    child_ended = _pipe_of_ended_children()
    while True:
        begin, ends, _, _ = socket.recv_fds(control, 1, 1)
        if not begin:
            return
        child = os.fork()
        if not child:
            _answer_and_end(ends[0], folder)
        os.close(ends[0])
        status = _watched(child, control, child_ended)
        _end_all(child, confined=confined)
        _empty(folder)
        control.sendall(status.to_bytes(4, "big", signed=True))


def _prepare(told: Mapping[str, object]) -> None:
    """Do once what each answer needs: import what the course's cells import, and parse these."""
    for path in Path(chapters.__path__[0]).glob("*/*check.py"):
        chapter = f"{chapters.__name__}.{path.parent.name}"
        stand = Stand(f"{chapter}.{path.stem}")
        sys.modules[stand.__name__] = stand
        setattr(import_module(chapter), path.stem, stand)
    for name in told["modules"]:
        import_module(name)
    for text in told["imports"]:
        exec(text, {})
    for cells in told["cells"]:
        for cell, text in cells.items():
            statements(cell, text)  # which remembers what it has parsed
    gc.freeze()  # so that the children share these pages instead of copying them


def _pipe_of_ended_children() -> int:
    """A file descriptor that becomes readable whenever a child ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing would be written
    signal.set_wakeup_fd(writing)
    return reading


def _watched(child: int, control: socket.socket, child_ended: int) -> int:
    """Return how the child ended: by itself, or because the judge has heard enough."""
    told = b""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            _hear_the_last_word(control, told)
            return os.waitstatus_to_exitcode(status)
        if told == HEARD_ENOUGH:
            break
        ready = _with_news(control, child_ended, told)
        if not ready:
            break
        if child_ended in ready:
            os.read(child_ended, 100)
        if control in ready:
            told = _word_of_judge(control)
        if told == HOW_LONG:
            control.sendall(_spent_ms(child).to_bytes(4, "big"))
            told = b""
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _with_news(control: socket.socket, child_ended: int, told: bytes) -> list:
    """Wait until the judge says something or a child ends; return which of the two can be read.

    A child that has fallen silent gets a moment to end; if it does not, the list is empty.
    """
    if told == FELL_SILENT:
        ready, _, _ = select.select([child_ended], [], [], MEANT_TO_END_S)
    else:
        ready, _, _ = select.select([control, child_ended], [], [])
    return ready


def _word_of_judge(control: socket.socket) -> bytes:
    """The judge's next word. If the judge has gone, it has heard enough."""
    return control.recv(1) or HEARD_ENOUGH


def _hear_the_last_word(control: socket.socket, told: bytes) -> None:
    """Read the word by which the judge ends an answer: it comes even if the child has ended."""
    while told in (b"", HOW_LONG):
        told = _word_of_judge(control)
        if told == HOW_LONG:
            control.sendall(bytes(4))  # no time, because it no longer works


def _spent_ms(child: int) -> int:
    """How much processor time that process has taken."""
    try:
        times = psutil.Process(child).cpu_times()
    except (psutil.Error, OSError):
        return 0
    return int(1000 * (times.user + times.system))


def _end_all(child: int, *, confined: bool) -> None:
    """End what the child has left behind.

    A sandbox has no other processes, so there we end all but this one. Elsewhere we end the
    child's process group.
    """
    with suppress(ProcessLookupError, PermissionError):  # macOS says so of a group that has ended
        if confined:
            os.kill(-1, signal.SIGKILL)
        else:
            os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _empty(folder: str) -> None:
    """Empty the answer's folder. If that fails, this process ends, and the judge starts another."""
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
        _keep_only(end)
        os.chdir(folder)
        here = os.getcwd()
        tempfile.tempdir = here
        os.environ["HOME"] = here
        sys.dont_write_bytecode = True
        with socket.socket(fileno=ANSWERS_SOCKET) as own:
            talk = Talk(own, ALL_THE_TIME_S, {Model.__name__: Model})
            asked = talk.hear()
            bounds.bound(os.getcwd())
            _answer(talk, asked)
        status = 0
    except SilentError:
        status = 0  # the judge has heard enough
    finally:
        os._exit(status)


def _keep_only(end: int) -> None:
    """Close all open files but that socket, which gets the number ANSWERS_SOCKET."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(ANSWERS_SOCKET):
        os.dup2(nothing, standard)
    os.dup2(end, ANSWERS_SOCKET)
    os.closerange(ANSWERS_SOCKET + 1, MOST_OPEN_FILES)


def _answer(talk: Talk, asked: Mapping[str, object]) -> None:
    """Say what the answer is, and then what each call of it gives."""
    RIGHT.update(asked["right"])
    check = asked["check"].partition(".")[2]
    found, answer = needed(asked["code"], check, asked["cell"], asked["asked"])
    cells = {statement.cell for statement in found}
    students = []  # the statements of these cells that are the student's
    courses = []
    for cell, text in asked["code"].items():
        if cell not in cells:
            continue
        for statement in statements(cell, text):
            if statement.text in asked["course"]:
                courses.append(statement)
            else:
                students.append(statement.code)
    talk.say(flags.found([*students, answer], found, asked["allowed"]))
    noting.watch(asked["allowed"], courses)
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
    """The answer's value and None; or None and the error that stopped the cells."""
    space: dict[str, object] = {"__name__": "__main__"}
    stopped: dict[str, BaseException] = {}  # by cell: the rest of a cell that stopped does not run
    for statement in found:
        try:
            if statement.cell not in stopped:
                statement.run(space)
        except BaseException as error:
            stopped[statement.cell] = error
    try:
        expression = compile(ast.Expression(answer), cell, "eval")
        return eval(expression, space), None
    except BaseException as error:
        error = next(reversed(stopped.values()), error)
        return None, {"error": type(error).__name__, "said": said_by(error)}


def _described(value: object) -> dict[str, object]:
    """A function by its name and by what it takes; any other value as it is."""
    if not callable(value):
        return {"is": "value", "value": observing.sayable(value), "noted": noting.NOTED}
    name = getattr(value, "__name__", "<")
    return {
        "is": "function",
        "name": str(name),
        "takes": observing.taken_by(value),
        "uses": sorted(names_used(value)),
    }


def _say_outcome(talk: Talk, function: object, case: tuple) -> None:
    """Say what one call gave, or how it stopped; and whether it changed what it was given."""
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
