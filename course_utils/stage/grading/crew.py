"""Several judges at once, each in a process of its own, where it has a process for answers.

A judge that fails costs the notebook that it was judging, and no other.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection, wait

AT_ONCE = max(2, min(8, os.cpu_count() or 2))  # judges: one for each processor, but 2 to 8
LONGEST_S = 900.0  # for one notebook: ten answers of the longest kind, and their checks
LONGEST_EXIT_S = 10.0  # after the command EXIT, a judge gets so long to exit by itself
LOOK_AGAIN_S = 1.0  # how often we look whether a judge has taken longer than LONGEST_S
# A forked judge has what its parent has prepared, in memory that both share.
FORKING = multiprocessing.get_context("fork")
EXIT = b"end"  # sent to a judge's process in place of a job's number
Judge = Callable[[int], object]  # takes a job's number, and returns the verdicts
MakeJudge = Callable[[], AbstractContextManager[Judge]]


def results(make_judge: MakeJudge, jobs: Sequence[int]) -> Iterator[tuple[int, object]]:
    """Yield each job's number and its verdicts, in the order in which the judges finish.

    The verdicts are None if the judge failed.
    """
    waiting = list(reversed(jobs))  # so that `pop`, which takes the last, takes the first job
    most = min(AT_ONCE, len(jobs))
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            _assign(workers, waiting, make_judge, most)
            # Until a judge has sent verdicts or has ended, or until the time is up.
            wait([worker.pipe for worker in workers], timeout=LOOK_AGAIN_S)
            for worker in list(workers):  # each has a job, since `_assign` has ended all others
                verdicts = worker.verdicts()
                if verdicts is not _PENDING:
                    yield worker.job, verdicts
                    worker.job = None  # so that `_assign` gives it another job
                if not worker.is_running:  # `verdicts` has ended a judge that failed
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.end()


_PENDING = object()  # stands for verdicts that have not come yet; None says that the judge failed


class _Worker:
    """A judge in a process of its own. `job` is the number of its job; None while it has none."""

    def __init__(self, make_judge: MakeJudge, pipes_of_others: Sequence[Connection]) -> None:
        """Fork the process, which closes its copies of the parent's ends: see `_run_judge`."""
        self.pipe, childs_end = FORKING.Pipe()
        parents_ends = [*pipes_of_others, self.pipe]
        arguments = (make_judge, childs_end, parents_ends)
        self.process = FORKING.Process(target=_run_judge, args=arguments)
        self.process.start()
        childs_end.close()
        self.job: int | None = None
        self.is_running = True

    def give(self, job: int) -> None:
        """Let this judge begin with the job."""
        self.job = job
        self.begun_s = time.monotonic()
        self.pipe.send_bytes(str(job).encode())

    def verdicts(self) -> object:
        """Return the verdicts on the job; None if the judge failed; _PENDING if it still judges.

        A judge that has failed, or takes longer than LONGEST_S, is ended.
        """
        try:
            if self.pipe.poll():
                return json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError, ValueError):
            self.end()
            return None
        if time.monotonic() - self.begun_s > LONGEST_S:
            self.end()
            return None
        return _PENDING

    def end(self) -> None:
        """End the process: by the command EXIT if it has no job, by a signal otherwise."""
        self.is_running = False
        with suppress(OSError):  # raised if the process has ended already
            self.pipe.send_bytes(EXIT)
            self.pipe.close()
        if self.job is None:  # a judge with a job would read the command only after the job
            self.process.join(LONGEST_EXIT_S)
        self.process.kill()
        self.process.join()


def _assign(workers: list[_Worker], waiting: list[int], make_judge: MakeJudge, most: int) -> None:
    """Start up to `most` judges, give a job to each idle one, and end those left without a job."""
    while waiting and len(workers) < most:
        workers.append(_Worker(make_judge, [worker.pipe for worker in workers]))
    for worker in workers:
        if waiting and worker.job is None:
            worker.give(waiting.pop())
    for worker in list(workers):
        if worker.job is None:
            workers.remove(worker)
            worker.end()


def _run_judge(make_judge: MakeJudge, pipe: Connection, parents_ends: Sequence[Connection]) -> None:
    """Judge job after job, until the parent process sends EXIT or has exited itself."""
    for end in parents_ends:
        end.close()  # a copy left open here would hide from the judges that the parent has exited
    # The pipe raises one of these two errors if the parent has exited.
    with make_judge() as judge, suppress(EOFError, BrokenPipeError):
        while True:
            command = pipe.recv_bytes()
            if command == EXIT:
                break
            verdicts = judge(int(command))  # the number of a job, such as b"12"
            pipe.send_bytes(json.dumps(verdicts).encode())
