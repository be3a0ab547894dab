"""Several judges at once, each a process with a place for answers of its own. One that fails costs the notebook before it."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, wait

AT_ONCE = max(2, min(8, os.cpu_count() or 2))
LONGEST_S = 900.0  # for one notebook: ten answers of the longest kind, and their checks
FORKING = multiprocessing.get_context("fork")
LONGEST_END_S = 10.0
END = b"end"
Judge = Callable[[int], object]  # judges the work of that number
MakeJudge = Callable[[], AbstractContextManager[Judge]]


def done(make_judge: MakeJudge, works: Sequence[int]) -> Iterator[tuple[int, object]]:
    """Each work's number, and what its judge said, as they end; None where the judge failed."""
    waiting = [*works][::-1]
    members: list[_Member] = []
    try:
        while waiting or members:
            while waiting and len(members) < min(AT_ONCE, len(works)):
                members.append(_Member(make_judge, [member.talk for member in members]))
            for member in members:
                if waiting and member.work is None:
                    member.give(waiting.pop())
            members, idle = _parted(members)
            for member in idle:
                member.end()
            wait([member.talk for member in members], timeout=1.0)
            for member in [*members]:
                if (said := member.said()) is not _NOTHING:
                    yield member.work, said
                    member.work = None
                if not member.is_alive:
                    members.remove(member)
    finally:
        for member in members:
            member.end()


_NOTHING = object()


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
        self.work, self.begun = work, time.monotonic()
        self.talk.send_bytes(str(work).encode())

    def said(self) -> object:
        """What it said of its work; None if it failed; nothing if it is still at work."""
        try:
            if self.talk.poll():
                return json.loads(self.talk.recv_bytes())
        except (EOFError, OSError, ValueError):
            self.end()
            return None
        if time.monotonic() - self.begun > LONGEST_S:
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


def _parted(members: Sequence[_Member]) -> tuple[list[_Member], list[_Member]]:
    """Those at work, and those that have none."""
    return [one for one in members if one.work is not None], [
        one for one in members if one.work is None
    ]


def _judge(
    make_judge: MakeJudge, talk: Connection, ends_of_the_first: Sequence[Connection]
) -> None:
    """Judge until there is nothing more to judge, or the process that asks has ended."""
    for end in ends_of_the_first:
        end.close()  # so that this one, too, hears when the first process ends
    with make_judge() as judge, suppress(EOFError, BrokenPipeError):
        while (work := talk.recv_bytes()) != END:
            talk.send_bytes(json.dumps(judge(int(work))).encode())
