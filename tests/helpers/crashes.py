"""Processes to be killed. Importing torch takes longer than most of their lives, so a warm process forks them.

`python -m tests.helpers.crashes` is that process: it reads an order a line and answers with how that life went.
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
Life = namedtuple("Life", "said killed")
FORKING = multiprocessing.get_context("fork")


class Nursery:
    """Lives in processes of their own, one after the other."""

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
        """A life that ends by SIGKILL so long after so many words, or by itself."""
        order = {"work": work, "words": words, "delay_s": delay_s, "order": order}
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return Life(**json.loads(self.process.stdout.readline()))


# In the forked process.


def state_of(step):
    """A state that shows whether a file mixes two saves."""
    return {"step": step, "numbers": [torch.full((NUMBERS,), float(n)) for n in (step, -step)]}


def save_again_and_again(say, path):
    begin = checkpoints.load(path)["step"] + 1 if Path(path).exists() else 0
    for step in itertools.count(begin):
        checkpoints.save(path, state_of(step))
        say(step)


def save_beside_another(say, path):
    """Two processes save under the same name: each finds only whole files there."""
    other = os.fork()
    for _ in range(20):
        who = 1 if other else 2
        checkpoints.save(path, {"numbers": torch.full((20_000,), float(who)), "who": who})
        found = checkpoints.load(path)
        assert found["numbers"].eq(found["who"]).all()
    if not other:
        os._exit(0)
    say(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))


def die_at(say, path, step, event):
    """Save a step, and be killed just before the event-th call of the system or of a file."""
    events = itertools.count(1)

    def watch(_frame, kind, function):
        owner = getattr(function, "__self__", None)
        about_files = getattr(owner, "__name__", "") == "posix" or hasattr(owner, "fileno")
        if kind == "c_call" and about_files and next(events) == event:
            os.kill(os.getpid(), signal.SIGKILL)

    state = state_of(step)
    sys.setprofile(watch)
    checkpoints.save(path, state)
    sys.setprofile(None)
    say(next(events) - 1)


def train(say, path, until, every, without=()):
    """Go on from the checkpoint, or begin; save every so many steps and at the end."""
    run, step = long_run.new_run(), 0
    if Path(path).exists():
        state = checkpoints.load(path)
        run.restore(state, without=without)
        step = state["step"]  # counted even where the run itself forgot its own
        say({"resumed": step})
    while step < until:
        loss, step = run.advance(), step + 1
        say({"step": step, "loss": loss})
        if step % every == 0 or step == until:
            checkpoints.save(path, run.state())
            say({"saved": step})


# In the warm process.


def main():
    torch.set_num_threads(1)
    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])  # whose first one imports half of torch
    for line in sys.stdin:
        print(json.dumps(one_life(**json.loads(line))._asdict()), flush=True)


def one_life(work, words, delay_s, order):
    ear, mouth = FORKING.Pipe(duplex=False)
    child = FORKING.Process(target=globals()[work], args=(mouth.send,), kwargs=order)
    child.start()
    mouth.close()
    said = []
    with suppress(EOFError):
        while len(said) != words:
            said.append(ear.recv())
        time.sleep(delay_s)
        child.kill()
        while True:
            said.append(ear.recv())
    child.join()
    if child.exitcode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{work} ended with status {child.exitcode}.")
    return Life(said, child.exitcode != 0)


if __name__ == "__main__":
    main()
