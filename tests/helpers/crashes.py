"""Processes that tests kill, and the process that forks them.

Importing torch takes longer than most of these processes live, so one process imports it and
forks them: `python -m tests.helpers.crashes`. It reads one order a line, and answers each with how
that process lived and ended.
"""

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from contextlib import suppress
from pathlib import Path

import torch

from course_utils.chapters.checkpointing import long_run
from course_utils.subjects import checkpoints

ROOT = Path(__file__).parents[2]
NUMBERS = 300_000  # of each of the two tensors that savers save: some milliseconds of writing
Life = namedtuple("Life", "said killed")  # its messages, and whether it was killed
FORKING = multiprocessing.get_context("fork")


class Nursery:
    """Starts processes to be killed, one after the other."""

    def __init__(self):
        quiet = {"OMP_NUM_THREADS": "1", "VECLIB_MAXIMUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.crashes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | quiet,
        )

    def live(self, work, *, words=None, delay_s=0.0, **order):
        """Run `work`, and kill it `delay_s` after so many messages unless it ends by itself."""
        life = {"work": work, "words": words, "delay_s": delay_s, "order": order}
        print(json.dumps(life), file=self.process.stdin, flush=True)
        return Life(**json.loads(self.process.stdout.readline()))


# In the forked process.


def state_of(step):
    """Return a state whose numbers all follow from the step: a mixture of two saves shows."""
    numbers = [torch.full((NUMBERS,), float(step)), torch.full((NUMBERS,), float(-step))]
    return {"step": step, "numbers": numbers}


def save_again_and_again(say, path):
    """Save step after step without end, from the one after the checkpoint's if there is one."""
    begin = 0
    if Path(path).exists():
        begin = checkpoints.load(path)["step"] + 1
    for step in itertools.count(begin):
        checkpoints.save(path, state_of(step))
        say(step)


def save_beside_another(say, path):
    """Save from two processes under the same name, and check that each finds only whole files."""
    other = os.fork()
    who = 1 if other else 2
    for _ in range(20):
        checkpoints.save(path, {"numbers": torch.full((20_000,), float(who)), "who": who})
        found = checkpoints.load(path)
        assert found["numbers"].eq(found["who"]).all()
    if not other:
        os._exit(0)
    _, status = os.waitpid(other, 0)
    say(os.waitstatus_to_exitcode(status))


def die_at(say, path, step, event):
    """Save a step, and be killed just before call number `event` to the system or to a file."""
    events = itertools.count(1)

    # Python calls this for each call; of a function in C, `function` is that function.
    def watch(_frame, kind, function):
        owner = getattr(function, "__self__", None)
        about_files = getattr(owner, "__name__", "") == "posix" or hasattr(owner, "fileno")
        if kind == "c_call" and about_files and next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    state = state_of(step)
    sys.setprofile(watch)
    checkpoints.save(path, state)
    sys.setprofile(None)
    say(next(events) - 1)  # how many calls there were, all before the one to die at


def train(say, path, until, every, without=()):
    """Go on from the checkpoint if there is one; save after every so many steps and at the end."""
    run = long_run.new_run()
    step = 0
    if Path(path).exists():
        state = checkpoints.load(path)
        run.restore(state, without=without)
        step = state["step"]  # of the file, because `without` can make the run forget its own
        say({"resumed": step})
    while step < until:
        loss = run.advance()
        step += 1
        say({"step": step, "loss": loss})
        if step % every == 0 or step == until:
            checkpoints.save(path, run.state())
            say({"saved": step})


# In the warm process.


def main():
    """Carry out each order that comes by stdin, and print its life."""
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # the first optimizer imports much
    for line in sys.stdin:
        life = one_life(**json.loads(line))
        print(json.dumps(life._asdict()), flush=True)


def one_life(work, words, delay_s, order):
    """Run `work` in a forked process, and kill it as `Nursery.live` says; return its Life."""
    received, sent = FORKING.Pipe(duplex=False)
    child = FORKING.Process(target=globals()[work], args=(sent.send,), kwargs=order)
    child.start()
    sent.close()
    said = []
    with suppress(EOFError):  # the child has ended
        while len(said) != words:
            said.append(received.recv())
        time.sleep(delay_s)
        child.kill()
        while True:  # what it had sent before it was killed
            said.append(received.recv())
    child.join()
    if child.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{work} ended with status {child.exitcode}.")
    return Life(said, child.exitcode != 0)


if __name__ == "__main__":
    main()
