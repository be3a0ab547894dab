"""Several judges at once, each in a process of its own, where it has a process for answers.

A judge that fails costs the notebook that it was at, and no other.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, wait

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
LONGEST_S = 900.0  # for one notebook: ten answers of the longest kind, and their checks
LONGEST_END_S = 10.0
LOOK_AGAIN_S = 1.0  # whether one of them has been at work for too long
FORKING = multiprocessing.get_context("fork")
END = b"end"
Judge = Callable[[int], object]  # judges the work of that number
MakeJudge = Callable[[], AbstractContextManager[Judge]]


def done(make_judge: MakeJudge, works: Sequence[int]) -> Iterator[tuple[int, object]]:
    """Each work's number, and what its judge said, as they end; None where the judge failed."""
    waiting = list(reversed(works))
    most = min(AT_ONCE, len(works))
    members: list[_Member] = []
    try:
        while waiting or members:
            _put_to_work(members, waiting, make_judge, most)
            wait([member.talk for member in members], timeout=LOOK_AGAIN_S)
            for member in list(members):
                said = member.said()
                if said is not _NOTHING:
                    yield member.work, said
                    member.work = None
                if not member.is_alive:
                    members.remove(member)
    finally:
        for member in members:
            member.end()


_NOTHING = object()  # stands for an answer that has not come yet; None says that the judge failed


class _Member:
    """A judge in a process of its own."""

    def __init__(self, make_judge: MakeJudge, others: Sequence[Connection]) -> None:
        self.talk, theirs = FORKING.Pipe()
        ends_of_the_first = [*others, self.talk]
        self.process = FORKING.Process(target=_judge, args=(make_judge, theirs, ends_of_the_first))
        self.process.start()
        theirs.close()
        self.work: int | None = None
        self.is_alive = True

    def give(self, work: int) -> None:
        self.work = work
        self.begun_s = time.monotonic()
        self.talk.send_bytes(str(work).encode())

    def said(self) -> object:
        """What it said of its work; None if it failed; _NOTHING if it is still at work."""
        try:
            if self.talk.poll():
                return json.loads(self.talk.recv_bytes())
        except (EOFError, OSError, ValueError):
            self.end()
            return None
        if time.monotonic() - self.begun_s > LONGEST_S:
            self.end()
            return None
        return _NOTHING

    def end(self) -> None:
        self.is_alive = False
        with suppress(OSError):
            self.talk.send_bytes(END)
            self.talk.close()
        if self.work is None:
            self.process.join(LONGEST_END_S)
        self.process.kill()
        self.process.join()


def _put_to_work(
    members: list[_Member], waiting: list[int], make_judge: MakeJudge, most: int
) -> None:
    """Start as many judges as needed, give work to each idle one, and end those without any."""
    while waiting and len(members) < most:
        members.append(_Member(make_judge, [member.talk for member in members]))
    for member in members:
        if waiting and member.work is None:
            member.give(waiting.pop())
    for member in list(members):
        if member.work is None:
            members.remove(member)
            member.end()


def _judge(
    make_judge: MakeJudge, talk: Connection, ends_of_the_first: Sequence[Connection]
) -> None:
    """Judge until there is nothing more to judge, or the process that asks has ended."""
    for end in ends_of_the_first:
        end.close()  # while they are open here, no judge hears that the first process has ended
    with make_judge() as judge, suppress(EOFError, BrokenPipeError):
        while True:
            work = talk.recv_bytes()
            if work == END:
                break
            verdicts = judge(int(work))
            talk.send_bytes(json.dumps(verdicts).encode())
