"""The process that runs what students wrote. It never judges.

It is started with nothing in it that an answer must not know. It imports torch and the course
once, and then waits for the judge's commands: for each answer it forks a child. The child receives
the notebook's code over a socket of its own, runs what the answer needs, and sends in plain values
what each call returns. The parent never receives that code; it kills the child, and all processes
that the child has left behind.
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
from course_utils.core.accountant import Latent, Mixture, Model
from course_utils.engine.judging.errors import said_by
from course_utils.engine.judging.exercises import names_used
from course_utils.engine.judging.limits import Clock, TooLongError
from course_utils.stage.grading import bounds, flags, noting, observing, wire
from course_utils.stage.grading.channel import (
    AWAIT_EXIT,
    KILL,
    PROCESSOR_TIME,
    Channel,
    ChannelError,
)
from course_utils.stage.grading.slicing import needed, statements

CONTROL = 0  # the judge's commands come through this process's standard input, which is a socket
LONGEST_EXIT_S = 1.0  # after the command AWAIT_EXIT a child gets so long to exit by itself
ANSWERS_SOCKET = 3  # the first number behind standard input, output and error
MOST_OPEN_FILES = 4096  # an open file's number is below this one
ALL_THE_TIME_S = 1e6  # the judge stops waiting for the child, never the child for the judge
TERMS = dict(vars(course_terms))  # copied before `noting` wraps those functions
RIGHT: set[str] = set()  # the checks whose answers in this notebook the judge has found right
NO_COMMAND = b""
BYTES_OF_A_REPLY = 4  # a reply to a command is a whole number: a time, or an exit status


class VerdictStandIn:
    """What `check.days(answer)` returns in this process, which never judges.

    The notebook's later cells may use `.or_ours` or `.kept` of a verdict. Here, `or_ours` is always
    the student's answer. `kept` is the answer only if the judge has found it right; otherwise it is
    the accountant's function of that name, where there is one.
    """

    def __init__(self, name: str, answer: object) -> None:
        """Take the name of the check, such as "days", and the student's answer."""
        self.name = name
        self.or_ours = answer

    @property
    def kept(self) -> object:
        """The answer if it is right, or if the accountant has no such function; else that one."""
        if self.name in RIGHT:
            return self.or_ours
        return TERMS.get(self.name, self.or_ours)


class ChecksStandIn(ModuleType):
    """A module in place of a module of checks.

    The real one has the right answers, so it is not imported in this process.
    """

    def __getattr__(self, name: str) -> object:
        """Return a stand-in for the check of that name.

        Names with an underscore, such as __path__, are Python's own, and stand for no check.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda answer: VerdictStandIn(name, answer)


def main(confined: bool, folder: str) -> None:
    """Receive the course's cells from the judge, and then run one answer after the other.

    `confined` says whether this process is in a sandbox. `folder` is the one that answers write in.
    """
    control = socket.socket(fileno=CONTROL)
    bounds.keep_memory_to_itself()
    channel = Channel(control, bounds.LONGEST_START_S)
    _prepare(channel.receive())
    channel.send("ready")
    # The channel had made the socket non-blocking, to bound its waits. Now the judge's next command
    # may come at any time, so `recv_fds` has to wait for it without a bound.
    control.setblocking(True)
    child_ended = _pipe_of_ended_children()
    while True:
        command, ends, _, _ = socket.recv_fds(control, 1, 1)  # the byte RUN, and one open file
        if not command:  # the judge has exited
            return
        # `ends` has the child's end of a new socket, which came with the command.
        child = os.fork()
        if not child:  # 0: this is the child
            _answer_and_end(ends[0], folder)
        os.close(ends[0])  # only the child's copy stays open
        status = _exit_status(child, control, child_ended)
        _kill_all(child, confined=confined)
        _empty(folder)
        control.sendall(status.to_bytes(BYTES_OF_A_REPLY, "big", signed=True))


def _prepare(prepared: Mapping[str, object]) -> None:
    """Do once what each answer needs: import what the course's cells import, and parse the cells.

    The real modules of checks are replaced before anything can import them. `prepared` is what
    `whole_class._prepared` returns: names of "modules" to import, texts of cells with "imports" to
    run, and for each notebook its "cells" by their ids, to parse.
    """
    for path in Path(chapters.__path__[0]).glob("*/*check.py"):
        chapter = f"{chapters.__name__}.{path.parent.name}"
        stand_in = ChecksStandIn(f"{chapter}.{path.stem}")
        sys.modules[stand_in.__name__] = stand_in
        # An attribute, too, for `from course_utils.chapters.flops import check`.
        setattr(import_module(chapter), path.stem, stand_in)
    for name in prepared["modules"]:
        import_module(name)
    for text in prepared["imports"]:
        exec(text, {})  # into an empty namespace: what stays is that the modules are loaded
    for cells in prepared["cells"]:
        for cell, text in cells.items():
            statements(cell, text)  # which caches what it has parsed
    gc.freeze()  # so that the children share these pages instead of copying them


def _pipe_of_ended_children() -> int:
    """Return a file descriptor that becomes readable whenever a child ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing would be written
    signal.set_wakeup_fd(writing)
    return reading


def _exit_status(child: int, control: socket.socket, child_ended: int) -> int:
    """Carry out the judge's commands until the child has ended, and return its exit status."""
    command = NO_COMMAND
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:  # 0 while the child runs
            # The judge sends KILL or AWAIT_EXIT in any case, since it may not know of the end.
            # Left unread, that command would be taken for the start of the next answer.
            _receive_last_command(control, command)
            return os.waitstatus_to_exitcode(status)
        if command == KILL:
            break
        readable = _wait(control, child_ended, command)
        if not readable:  # after AWAIT_EXIT, the child did not exit in time
            break
        if child_ended in readable:
            # Empty the pipe, or it stays readable. Only `waitpid` tells whether this child ended.
            os.read(child_ended, 100)
        if control in readable:
            command = _receive_command(control)
        if command == PROCESSOR_TIME:
            control.sendall(_spent_ms(child).to_bytes(BYTES_OF_A_REPLY, "big"))
            command = NO_COMMAND
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _wait(control: socket.socket, child_ended: int, command: bytes) -> list:
    """Wait until the judge sends a command or a child ends; return which of the two is readable.

    After AWAIT_EXIT a child gets a moment to exit; if it does not, the list is empty.
    """
    if command == AWAIT_EXIT:
        readable, _, _ = select.select([child_ended], [], [], LONGEST_EXIT_S)
    else:
        readable, _, _ = select.select([control, child_ended], [], [])
    return readable


def _receive_command(control: socket.socket) -> bytes:
    """Return the judge's next command, or KILL if the judge has exited."""
    return control.recv(1) or KILL  # a socket whose other end is closed gives no bytes


def _receive_last_command(control: socket.socket, command: bytes) -> None:
    """Read until KILL or AWAIT_EXIT: the judge sends one of them even if the child has ended.

    `command` is the last one that was read; if it is one of the two, nothing is left to read.
    """
    while command in (NO_COMMAND, PROCESSOR_TIME):
        command = _receive_command(control)
        if command == PROCESSOR_TIME:
            control.sendall(bytes(BYTES_OF_A_REPLY))  # 0 ms, because the child no longer computes


def _spent_ms(child: int) -> int:
    """Return the processor time that the child has taken, in ms; 0 if it cannot be found out."""
    try:
        times = psutil.Process(child).cpu_times()
    except (psutil.Error, OSError):
        return 0
    return int(1000 * (times.user + times.system))


def _kill_all(child: int, *, confined: bool) -> None:
    """Kill the processes that the child has left behind.

    A sandbox has no other processes, so there we kill all but this one. Elsewhere we kill the
    child's process group.
    """
    # macOS raises PermissionError for a group that has ended.
    with suppress(ProcessLookupError, PermissionError):
        if confined:
            os.kill(-1, signal.SIGKILL)  # -1: all processes but this one
        else:
            os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):  # raised when no child is left
        while os.waitpid(-1, os.WNOHANG)[0]:  # collect all that have ended
            pass


def _empty(folder: str) -> None:
    """Empty the answer's folder. An error ends this process, and the judge starts another."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _answer_and_end(end: int, folder: str) -> NoReturn:
    """Answer the judge's question in the child process, and exit."""
    status = 1  # of a child that stops with any other error than ChannelError
    try:
        signal.set_wakeup_fd(-1)  # the pipe of ended children is the parent's alone
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()  # makes a process group of its own, which `_kill_all` kills
        _keep_only(end)
        os.chdir(folder)
        # What looks for a place to write finds the one folder that an answer may write in.
        here = os.getcwd()
        tempfile.tempdir = here
        os.environ["HOME"] = here
        sys.dont_write_bytecode = True
        with socket.socket(fileno=ANSWERS_SOCKET) as own:
            # A case may have a Model in it, with parts of its own. All other values are plain.
            kinds = {kind.__name__: kind for kind in (Model, Mixture, Latent)}
            channel = Channel(own, ALL_THE_TIME_S, kinds)
            question = channel.receive()
            bounds.bound(here)
            _answer(channel, question)
        status = 0
    except ChannelError:
        status = 0  # the judge has closed its end, because it needs no more
    finally:
        # At once, whatever was raised, and without the cleanup at exit, which is the parent's.
        os._exit(status)


def _keep_only(end: int) -> None:
    """Close all open files but the socket `end`, which gets the number ANSWERS_SOCKET.

    Standard input, output and error lead nowhere afterwards.
    """
    devnull = os.open(os.devnull, os.O_RDWR)
    for standard in range(ANSWERS_SOCKET):
        os.dup2(devnull, standard)
    os.dup2(end, ANSWERS_SOCKET)
    os.closerange(ANSWERS_SOCKET + 1, MOST_OPEN_FILES)


def _answer(channel: Channel, question: Mapping[str, object]) -> None:
    """Send what has no place in the answer's text, what the answer is, and each call's outcome.

    It ends with a ChannelError, when the judge closes its end. `question` has the fields of
    `judging.Question`.
    """
    RIGHT.update(question["right_so_far"])
    check = question["check"].partition(".")[2]  # "days" of "flops.days"
    slice_, answer = needed(question["code"], check, question["cell"], question["cell_text"])
    students, courses = _by_author(question, {statement.cell for statement in slice_})
    students_code = [statement.code for statement in students]
    channel.send(flags.found([*students_code, answer], slice_, question["allowed"]))
    # While the code runs, forbidden calls and imports are noted, but no import of the course's.
    noting.watch(question["allowed"], courses)
    value, problem = _value(slice_, answer, question["cell"])
    if problem is not None:
        # Without a statement, nothing in the notebook makes what the check is given.
        channel.send({"is": "stopped", "attempted": bool(slice_), **problem})
        return
    channel.send(_described(value))
    while True:
        case = channel.receive()
        if isinstance(case, tuple):  # arguments to call the answer with
            _send_outcome(channel, value, case)
        else:  # one of the three kinds of exercise that `observing` has a function for
            observing.OBSERVE[case["do"]](channel, value, case)


def _by_author(question: Mapping[str, object], cells: set[str]) -> tuple[list, list]:
    """Return all statements of these cells that the student wrote, and those of the course.

    A statement of the course that the student has changed is the student's.
    """
    students = []
    courses = []
    for cell, text in question["code"].items():
        if cell not in cells:
            continue
        for statement in statements(cell, text):
            if statement.text in question["courses_statements"]:
                courses.append(statement)
            else:
                students.append(statement)
    return students, courses


def _value(slice_: list, answer: ast.expr, cell: str) -> tuple[object, dict[str, object] | None]:
    """Return the answer's value and None; or None and the error that stopped the cells.

    `slice_` has the statements that the answer needs, and `answer` is the expression that the check
    is given in the cell `cell`.
    """
    space: dict[str, object] = {"__name__": "__main__"}
    # By cell, the error that stopped it. As in a notebook, the rest of that cell does not run.
    stopped: dict[str, BaseException] = {}
    for statement in slice_:
        try:
            if statement.cell not in stopped:
                statement.run(space)
        except BaseException as error:  # SystemExit, too
            stopped[statement.cell] = error
    try:
        expression = compile(ast.Expression(answer), cell, "eval")
        return eval(expression, space), None
    except BaseException as error:
        # If a cell was stopped, its error explains more than the missing name that follows from it.
        # Of several such errors the last one is taken.
        cause = list(stopped.values())[-1] if stopped else error
        return None, {"type": type(cause).__name__, "message": said_by(cause)}


def _described(value: object) -> dict[str, object]:
    """Return what the judge receives: a function's name and parameters, or the answer's value."""
    if not callable(value):
        return {"is": "value", "value": observing.sendable(value), "noted": noting.NOTED}
    name = getattr(value, "__name__", "<answer>")  # as the judge calls what has no name
    # A function's notes come later, with the outcome of each call.
    return {
        "is": "function",
        "name": str(name),
        "parameters": observing.parameters_of(value),
        "names_used": sorted(names_used(value)),
    }


def _send_outcome(channel: Channel, function: object, case: tuple) -> None:
    """Call the answer; send its result or its error, and whether it changed its arguments."""
    given = wire.encoded(case)  # before the call, which may change the arguments
    try:
        with Clock():
            result = observing.sendable(function(*case))
    except (Exception, SystemExit, KeyboardInterrupt, TooLongError) as error:
        described = observing.described_error(function, error)
        channel.send({"error": described, "noted": noting.NOTED})
        return
    changed = wire.encoded(observing.sendable(case)) != given
    channel.send({"result": result, "changed": changed, "noted": noting.NOTED})


if __name__ == "__main__":
    main(sys.argv[1] == "confined", sys.argv[2])  # as `sandbox._python` writes the command
