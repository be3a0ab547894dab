"""The judge: it sends cases to an answer's process one by one, and returns what the check says.

The judge runs nothing that a student wrote.
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
from course_utils.stage.grading.channel import (
    AWAIT_EXIT,
    CLOSED,
    KILL,
    PROCESSOR_TIME,
    RUN,
    AnswerProcessError,
    Channel,
    ChannelError,
    TooSlowError,
)

# On a busy machine an answer may take longer than bounds.LONGEST_S: up to MOST_TIMES as long, if in
# each of these periods it has computed for more than LEAST_WORK_MS.
MOST_TIMES = 20
LEAST_WORK_MS = 400
LONGEST_EXIT_S = 30.0  # to end an answer's process takes milliseconds
LONGEST_WORDS = 400  # characters of a message
BYTES_OF_A_REPLY = 4  # a reply to a command is a whole number: a time, or an exit status
FLAGGED = "flagged"
STOPPED = "stopped"
# All that the process of the answers gets of the environment, in which the seed is, too.
KEPT_IN_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


@dataclass(frozen=True)
class Question:
    """What the answer's process has to know for one exercise.

    There is nothing in it that the student's own notebook does not show.
    """

    code: Mapping[str, str]  # the notebook's cells by their ids
    check: str  # such as "flops.days"
    cell: str  # the id of the course's cell that calls the check
    cell_text: str  # the text of that cell as it was handed out
    courses_statements: Sequence[str]  # the statements that the course wrote, not the student
    allowed: Sequence[str]  # the accountant's names that an answer may use
    right_so_far: Sequence[str]  # the checks whose answers in this notebook were right


@dataclass(frozen=True)
class Result:
    """What the tables and the feedback say of one answer."""

    verdict: str  # the status of the check's verdict, or FLAGGED, or STOPPED
    looks_like: str = ""  # for the teacher
    words: str = ""  # for the student
    without_case: str = ""  # for a student who is not to know the cases


class AnswerProcess:
    """The process in which answers run, one after the other.

    The process is started anew when an answer has harmed it.
    """

    def __init__(self, prepared: Mapping[str, object]) -> None:
        self.prepared = prepared  # what `whole_class._prepared` returns
        self.process: subprocess.Popen | None = None

    def judge(self, question: Question, check: Check) -> Result:
        """Run the answer, and return what the check says of it, or why there is no verdict."""
        self._start()
        judges_end, answers_end = socket.socketpair()  # a new one for each answer
        with judges_end:
            with answers_end:  # closed here: only the child's copy of this end may keep it open
                socket.send_fds(self.control, [RUN], [answers_end.fileno()])
            channel = Channel(judges_end, bounds.LONGEST_S)
            channel.other_still_computes = self._busy_test()
            result, problem = _judge_over(channel, question, check)
        # Any other problem is that the child fails by itself: then its exit status tells why.
        may_be_killed = problem is None or isinstance(problem, TooSlowError)
        status = self._end_answer(KILL if may_be_killed else AWAIT_EXIT)
        if result is None:
            return _without_verdict(STOPPED, _why_no_verdict(problem, status))
        return result

    def close(self) -> None:
        """End the process, if there is one, and delete its folder."""
        if self.process is not None:
            self.control.close()
            self.process.kill()
            self.process.wait()
            self.process = None
            self.folder.cleanup()

    def _start(self) -> None:
        """Start the process, unless it is running, and send it what all answers need."""
        if self.process is not None and self.process.poll() is None:
            return
        self.close()
        self.folder = sandbox.temporary_folder()
        self.control, childs_end = socket.socketpair()
        # The second result is the folder that answers write in, which the command names, too.
        command, _ = sandbox.command(os.path.realpath(self.folder.name))
        kept = {name: os.environ[name] for name in KEPT_IN_ENVIRONMENT if name in os.environ}
        with childs_end:
            self.process = subprocess.Popen(
                command,
                stdin=childs_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=kept | sandbox.ENVIRONMENT | {"HOME": self.folder.name},
                start_new_session=True,
            )
        channel = Channel(self.control, bounds.LONGEST_START_S)
        channel.send(self.prepared)
        channel.receive()  # the message "ready"
        self.control.setblocking(True)  # the Channel has made it non-blocking
        self.control.settimeout(LONGEST_EXIT_S)

    def _busy_test(self) -> Callable[[], bool]:
        """Return a function that says whether the answer has computed since the previous call.

        If it has, the machine is busy, and the answer gets more time.
        """
        spent_ms = [0]  # a processor's time in all, at the beginning and at each call

        def still_computes() -> bool:
            """Return whether the answer computes; False after MOST_TIMES calls or without reply."""
            try:
                self.control.sendall(PROCESSOR_TIME)
                reply = self.control.recv(BYTES_OF_A_REPLY)
            except OSError:
                return False
            spent_ms.append(int.from_bytes(reply, "big"))
            worked_ms = spent_ms[-1] - spent_ms[-2]  # since the last call
            may_go_on = len(spent_ms) < MOST_TIMES
            return may_go_on and worked_ms > LEAST_WORK_MS

        return still_computes

    def _end_answer(self, command: bytes) -> int:
        """End the answer by KILL or AWAIT_EXIT, and return its exit status.

        Where that fails, the next answer gets a new process to run in.
        """
        try:
            self.control.sendall(command)
            reply = self.control.recv(BYTES_OF_A_REPLY)
        except OSError:
            reply = b""
        if len(reply) != BYTES_OF_A_REPLY:
            self.close()
            return -signal.SIGKILL  # the exit status of the process, which `close` has killed
        return int.from_bytes(reply, "big", signed=True)


def _judge_over(
    channel: Channel, question: Question, check: Check
) -> tuple[Result | None, ChannelError | None]:
    """Return an answer's result and None; or None and the error by which the channel failed."""
    try:
        channel.send(vars(question))
        flags = [str(flag) for flag in _as_list(channel.receive())]
        verdict, noted = _verdict(channel, check)
    except ChannelError as error:
        return None, error
    except AnswerProcessError as error:
        # Within a check, `asking` turns every ChannelError, TooSlowError too, into this error.
        if channel.left_s <= 0:  # no time is left, so the error came of waiting too long
            return None, TooSlowError()
        return None, ChannelError(str(error))
    flags += noted
    # Without an attempt there is no answer that a person could look at.
    if flags and verdict.status != NOT_ATTEMPTED.status:
        why = (
            f"{' '.join(flags)} A person has to look at this answer; "
            f"its check says: {verdict.status}."
        )
        return _without_verdict(FLAGGED, why), None
    # A verdict that is not on a case has no such sentences: then its words name no case.
    without_case = verdict.without_case or verdict.words
    return Result(verdict.status, verdict.looks_like, verdict.words, without_case), None


def _without_verdict(status: str, why: str) -> Result:
    """Return the result with that sentence for teacher and student alike: it has no case in it."""
    return Result(status, looks_like=why, words=why, without_case=why)


def _verdict(channel: Channel, check: Check) -> tuple[Verdict, list[str]]:
    """Return the check's verdict, and what the answer's process noted while the answer ran."""
    described = asking.entries(channel.receive())
    if described.get("is") == "stopped":
        return _verdict_on_stopped(described), []
    answer = asking.value_of(described, channel)
    try:
        verdict = check(answer)
    except Exception as error:
        words = (
            f"Its check stopped with {type(error).__name__}: "
            "what came is of a kind that it does not know."
        )
        verdict = Verdict(STOPPED, words, looks_like=words)
    # Notes on a function come with each call, and notes on a value come with the value.
    if isinstance(answer, asking.RemoteFunction):
        return verdict, answer.noted
    return verdict, asking.noted_in(described)


def _verdict_on_stopped(described: dict[str, object]) -> Verdict:
    """Return the verdict where the notebook stopped before there was an answer."""
    error = asking.entry(described, "type", str)[:LONGEST_WORDS]
    message = asking.entry(described, "message", str)[:LONGEST_WORDS]
    if not asking.entry(described, "attempted", bool):
        return NOT_ATTEMPTED
    words = f"The cell of the answer stopped with {error}: {message.rstrip('.')}."
    # The teacher's table shows `looks_like`: no listed mistake fits, so it has the same sentence.
    return Verdict("not yet", words, looks_like=words)


def _as_list(flags: object) -> list:
    """Return the flags, which have to be a list; ChannelError if they are not."""
    if type(flags) is not list:
        raise ChannelError("It says nonsense.")
    return flags


def _why_no_verdict(problem: ChannelError | None, status: int) -> str:
    """Return a sentence on why the answer has no verdict; `status` is its exit status."""
    if isinstance(problem, TooSlowError):
        return f"It took longer than {bounds.LONGEST_S} s."
    if status in bounds.SENTENCE_BY_STATUS:
        return bounds.SENTENCE_BY_STATUS[status]
    if str(problem) == CLOSED:
        return f"It ended Python itself, with status {status}."
    # The course's code in that process sends no such bytes, so the student's code has sent some.
    return "It spoke in the answer's place, and not in plain values."
