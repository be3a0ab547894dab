"""The judge: it asks an answer's process case by case, and returns what the check says.

It runs nothing that a student wrote.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.engine.judging.exercises import Check
from course_utils.engine.judging.verdict import NOT_ATTEMPTED, Verdict
from course_utils.stage.grading import asking, bounds, sandbox
from course_utils.stage.grading.talking import (
    BEGIN,
    ENDED,
    FELL_SILENT,
    HEARD_ENOUGH,
    HOW_LONG,
    SilentError,
    StoppedError,
    Talk,
    TooSlowError,
)

# On a busy machine an answer may take longer than bounds.LONGEST_S: so many times as long, if in
# each of these times it has computed for so many milliseconds.
MOST_TIMES = 20
LEAST_WORK_MS = 400
LONGEST_END_S = 30.0  # to end an answer's process takes milliseconds
LONGEST_WORDS = 400  # characters of a message
FLAGGED = "flagged"
STOPPED = "stopped"
KEPT_IN_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


@dataclass(frozen=True)
class Asked:
    """What the answer's process has to know for one exercise.

    There is nothing in it that the student's own notebook does not show.
    """

    code: Mapping[str, str]  # the notebook's cells by their ids
    check: str  # "flops.days"
    cell: str  # in which the course calls the check
    asked: str  # that cell's text
    course: Sequence[str]  # the statements that are the course's own, not the student's
    allowed: Sequence[str]  # the accountant's names that an answer may use
    right: Sequence[str]  # the checks whose answers of this notebook were right


@dataclass(frozen=True)
class Told:
    """What is said of one answer."""

    verdict: str
    looks_like: str = ""
    words: str = ""
    without_case: str = ""


class Answers:
    """The process in which answers run, one after the other.

    It is started anew when an answer has harmed it.
    """

    def __init__(self, prepared: Mapping[str, object]) -> None:
        self.prepared = prepared
        self.process: subprocess.Popen | None = None

    def told(self, asked: Asked, check: Check) -> Told:
        """What the check says of the answer."""
        self._start()
        mine, theirs = socket.socketpair()
        with mine:
            with theirs:
                socket.send_fds(self.control, [BEGIN], [theirs.fileno()])
            talk = Talk(mine, bounds.LONGEST_S)
            talk.is_working = self._works()
            told, problem = _conversation(talk, asked, check)
        is_done = problem is None or isinstance(problem, TooSlowError)
        status = self._end(HEARD_ENOUGH if is_done else FELL_SILENT)
        if told is None:
            return _without_verdict(STOPPED, _why(problem, status))
        return told

    def close(self) -> None:
        if self.process is not None:
            self.control.close()
            self.process.kill()
            self.process.wait()
            self.process = None
            self.folder.cleanup()

    def _start(self) -> None:
        if self.process is not None and self.process.poll() is None:
            return
        self.close()
        self.folder = sandbox.temporary_folder()
        self.control, theirs = socket.socketpair()
        words, _ = sandbox.command(os.path.realpath(self.folder.name))
        kept = {name: os.environ[name] for name in KEPT_IN_ENVIRONMENT if name in os.environ}
        with theirs:
            self.process = subprocess.Popen(
                words,
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=kept | sandbox.SET | {"HOME": self.folder.name},
                start_new_session=True,
            )
        talk = Talk(self.control, bounds.LONGEST_START_S)
        talk.say(self.prepared)
        talk.hear()
        self.control.setblocking(True)
        self.control.settimeout(LONGEST_END_S)

    def _works(self) -> Callable[[], bool]:
        """A function that tells whether the answer has computed since the function's last call.

        If so, the machine is busy, and the answer gets more time.
        """
        spent_ms = [0]  # of a processor's time, at each call

        def is_working() -> bool:
            try:
                self.control.sendall(HOW_LONG)
                said = self.control.recv(4)
            except OSError:
                return False
            spent_ms.append(int.from_bytes(said, "big"))
            worked_ms = spent_ms[-1] - spent_ms[-2]
            return len(spent_ms) < MOST_TIMES and worked_ms > LEAST_WORK_MS

        return is_working

    def _end(self, how: bytes) -> int:
        """End the answer's process, and return how it ended.

        Where that fails, the next answer gets a new process to run in.
        """
        try:
            self.control.sendall(how)
            said = self.control.recv(4)
        except OSError:
            said = b""
        if len(said) != 4:
            self.close()
            return -signal.SIGKILL
        return int.from_bytes(said, "big", signed=True)


def _conversation(talk: Talk, asked: Asked, check: Check) -> tuple[Told | None, SilentError | None]:
    """What the check says and None; or None and the error by which the conversation ended."""
    try:
        talk.say(vars(asked))
        flags = [str(flag) for flag in _list_of(talk.hear())]
        verdict, noted = _verdict(talk, check)
    except SilentError as error:
        return None, error
    except StoppedError as error:
        if talk.left_s <= 0:
            return None, TooSlowError()
        return None, SilentError(str(error))
    flags += noted
    if flags and verdict.status != NOT_ATTEMPTED.status:
        why = (
            f"{' '.join(flags)} A person has to look at this answer; "
            f"its check says: {verdict.status}."
        )
        return _without_verdict(FLAGGED, why), None
    without_case = verdict.without_case or verdict.words
    return Told(verdict.status, verdict.looks_like, verdict.words, without_case), None


def _without_verdict(status: str, why: str) -> Told:
    return Told(status, looks_like=why, words=why, without_case=why)


def _verdict(talk: Talk, check: Check) -> tuple[Verdict, list[str]]:
    """The check's verdict, and what the answer's process noted of it meanwhile."""
    described = asking.entries(talk.hear())
    if described.get("is") == "stopped":
        return _verdict_on_stopped(described), []
    answer = asking.value_of(described, talk)
    try:
        verdict = check(answer)
    except Exception as error:
        told = (
            f"Its check stopped with {type(error).__name__}: "
            "what came is of a kind that it does not know."
        )
        verdict = Verdict(STOPPED, told, looks_like=told)
    if isinstance(answer, asking.Answer):
        return verdict, answer.noted
    return verdict, asking.noted_in(described)


def _verdict_on_stopped(described: dict[str, object]) -> Verdict:
    """The verdict where the notebook stopped before there was an answer."""
    error = asking.entry(described, "error", str)[:LONGEST_WORDS]
    said = asking.entry(described, "said", str)[:LONGEST_WORDS]
    if not asking.entry(described, "attempted", bool):
        return NOT_ATTEMPTED
    told = f"The cell of the answer stopped with {error}: {said.rstrip('.')}."
    return Verdict("not yet", told, looks_like=told)


def _list_of(flags: object) -> list:
    if type(flags) is not list:
        raise SilentError("It says nonsense.")
    return flags


def _why(problem: SilentError | None, status: int) -> str:
    """Why there is no verdict."""
    if isinstance(problem, TooSlowError):
        return f"It took longer than {bounds.LONGEST_S} s."
    if status in bounds.ENDED:
        return bounds.ENDED[status]
    if str(problem) == ENDED:
        return f"It ended Python itself, with status {status}."
    return "It spoke in the answer's place, and not in plain values."
